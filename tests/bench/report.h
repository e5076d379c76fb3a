// The rows of a run, as a table and as JSON. Must not measure.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace edgeshed::bench {

/// What a ratio has to be.
struct Goal {
  enum class Side { kAtMost, kAtLeast };
  Side side = Side::kAtMost;
  double ratio = 1;
};

struct Row {
  std::string row;
  std::string peer;  ///< empty: only a figure
  double ns = 0;     ///< per packet, or as the row says
  double peer_ns = 0;
  double ratio = 0;           ///< of the medians: ns / peer_ns, or for "at least" peer_ns / ns
  double ratio_quartile = 0;  ///< the same of the lower quartiles
  std::optional<Goal> goal;

  std::optional<bool> pass() const;
};

/// Rows without a peer: ns only.
Row figure(std::string row, double ns);
/// ns / peer_ns at most, or peer_ns / ns at least what the goal says; without a goal ns / peer_ns.
Row compare(std::string row, std::string peer, double ns, double peer_ns, std::optional<Goal> goal);

void print_table(std::ostream& out, const std::vector<Row>& rows);
void write_json(std::ostream& out, const std::vector<Row>& rows);

}  // namespace edgeshed::bench
