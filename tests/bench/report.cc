// Table and JSON: see report.h.
#include "tests/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

namespace edgeshed::bench {
namespace {

const char* side_text(const Goal& goal) { return goal.side == Goal::Side::kAtMost ? "<=" : ">="; }

std::string goal_text(const std::optional<Goal>& goal) {
  return goal ? fmt::format("{} {:.2f}", side_text(*goal), goal->ratio) : "";
}

std::string pass_text(const std::optional<bool>& pass) {
  if (!pass) return "";
  return *pass ? "yes" : "NO";
}

/// Labels are ASCII without quotes or backslashes: they are written in this program.
std::string json_string(const std::string& text) {
  return text.empty() ? "null" : fmt::format("\"{}\"", text);
}

}  // namespace

std::optional<bool> Row::pass() const {
  if (!goal) return std::nullopt;
  return goal->side == Goal::Side::kAtMost ? ratio <= goal->ratio : ratio >= goal->ratio;
}

Row figure(std::string row, double ns) {
  Row result;
  result.row = std::move(row);
  result.ns = ns;
  return result;
}

Row compare(std::string row, std::string peer, double ns, double peer_ns,
            std::optional<Goal> goal) {
  Row result = figure(std::move(row), ns);
  result.peer = std::move(peer);
  result.peer_ns = peer_ns;
  const bool at_least = goal && goal->side == Goal::Side::kAtLeast;
  result.ratio = result.ratio_quartile = at_least ? peer_ns / ns : ns / peer_ns;
  result.goal = goal;
  return result;
}

void print_table(std::ostream& out, const std::vector<Row>& rows) {
  std::size_t row_width = 3, peer_width = 4;
  for (const Row& row : rows) {
    row_width = std::max(row_width, row.row.size());
    peer_width = std::max(peer_width, row.peer.size());
  }
  out << fmt::format("{:<{}}  {:<{}}  {:>10}  {:>10}  {:>7}  {:>8}  {:>8}  {}\n", "row", row_width,
                     "peer", peer_width, "ns", "peer ns", "ratio", "quartile", "goal", "pass");
  for (const Row& row : rows) {
    out << fmt::format("{:<{}}  {:<{}}  {:>10.1f}", row.row, row_width, row.peer, peer_width,
                       row.ns);
    if (!row.peer.empty()) {
      out << fmt::format("  {:>10.1f}  {:>7.2f}  {:>8.2f}  {:>8}  {}", row.peer_ns, row.ratio,
                         row.ratio_quartile, goal_text(row.goal), pass_text(row.pass()));
    }
    out << "\n";
  }
}

void write_json(std::ostream& out, const std::vector<Row>& rows) {
  out << "[\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const bool compared = !row.peer.empty();
    const std::string pass = !row.pass() ? "null" : *row.pass() ? "true" : "false";
    out << fmt::format(
        "  {{\"row\": {}, \"peer\": {}, \"ns\": {:.3f}, \"peer_ns\": {}, \"ratio\": {}, "
        "\"ratio_quartile\": {}, \"goal\": {}, \"pass\": {}}}{}\n",
        json_string(row.row), json_string(row.peer), row.ns,
        compared ? fmt::format("{:.3f}", row.peer_ns) : "null",
        compared ? fmt::format("{:.4f}", row.ratio) : "null",
        compared ? fmt::format("{:.4f}", row.ratio_quartile) : "null",
        json_string(goal_text(row.goal)), pass, i + 1 < rows.size() ? "," : "");
  }
  out << "]\n";
}

}  // namespace edgeshed::bench
