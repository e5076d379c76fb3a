// How late a tick begins: the daemon's ring against a timerfd, in one run.
#pragma once

#include <vector>

#include "tests/bench/packet_rows.h"
#include "tests/bench/report.h"

namespace edgeshed::bench {

std::vector<Row> lateness_rows(const RunOptions& options);

}  // namespace edgeshed::bench
