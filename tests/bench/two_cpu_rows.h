// What a packet costs on each of two CPUs at once. Must not print.
#pragma once

#include <vector>

#include "tests/bench/packet_rows.h"
#include "tests/bench/report.h"

namespace edgeshed::bench {

/// Empty on a machine with one CPU.
std::vector<Row> two_cpu_rows(const RunOptions& options);

}  // namespace edgeshed::bench
