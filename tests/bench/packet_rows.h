// What a packet costs: the rows of one CPU. Must not print.
#pragma once

#include <vector>

#include "tests/bench/report.h"

namespace edgeshed::bench {

struct RunOptions {
  bool quick = false;  ///< 1 k and 10 k connections only, few rounds
  unsigned rounds() const { return quick ? 5 : 15; }
};

std::vector<Row> packet_rows(const RunOptions& options);

}  // namespace edgeshed::bench
