// What one tick of the control plane costs by mmap, and by batches on kernel HASHes.
#pragma once

#include <vector>

#include "tests/bench/packet_rows.h"
#include "tests/bench/report.h"

namespace edgeshed::bench {

std::vector<Row> tick_rows(const RunOptions& options);

}  // namespace edgeshed::bench
