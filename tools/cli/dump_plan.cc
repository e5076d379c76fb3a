// edgeshed dump plan: what each room sheds now, as published.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <string>

#include "maps/plan.h"
#include "tools/cli/dump.h"
#include "tools/cli/table.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

/// A keep as published, as a share with three decimals. ES_KEEP_ALL is exactly 1.
double keep_share(__u16 keep_q16) { return std::round(1000.0 * keep_q16 / ES_KEEP_ALL) / 1000; }

json::object rules_json(const es_room_rules& rules, std::uint32_t hz) {
  json::object lanes;
  for (unsigned lane = 0; lane < ES_LANES; ++lane) {
    json::object object{{"keep", keep_share(rules.keep_q16[lane])},
                        {"paused", (rules.drop_mask >> lane & 1) != 0},
                        {"lower_effort", (rules.le_mask >> lane & 1) != 0}};
    if (lane >= 4) {
      object["min_interval_ms"] = 1000.0 * rules.min_interval_jiffies[lane - 4] / hz;
    }
    lanes[row_name(lane)] = std::move(object);
  }
  json::object levels;
  const char* const tiers[] = {"standard", "best_effort"};
  for (unsigned i = 0; i < 2; ++i) {
    const es_level& level = rules.level[i];
    const double per_s = static_cast<double>(level.rate_q16) / 65536 / 256 * hz;
    levels[tiers[i]] = json::object{{"threshold", rules.threshold[i]},
                                    {"level", level.burst != 0},
                                    {"tokens_per_s", std::round(per_s * 100) / 100}};
  }
  return {{"lanes", std::move(lanes)},
          {"tiers", std::move(levels)},
          {"max_gap_ms", 1000.0 * rules.max_gap_jiffies / hz},
          {"ce_share", std::round(1000.0 * rules.ce_q8 / 255) / 1000}};
}

void add_rows(Table& table, const std::string& room, int direction, const es_room_rules& rules,
              std::uint32_t hz) {
  for (unsigned lane = 0; lane < ES_LANES; ++lane) {
    const bool paused = (rules.drop_mask >> lane & 1) != 0;
    const __u16 interval = lane >= 4 ? rules.min_interval_jiffies[lane - 4] : 0;
    const bool marked = (rules.le_mask >> lane & 1) != 0;
    if (!paused && !marked && interval == 0 && rules.keep_q16[lane] == ES_KEEP_ALL) continue;
    table.add({room, direction_name(direction), row_name(lane),
               paused ? "paused" : fmt::format("{:.3f}", keep_share(rules.keep_q16[lane])),
               fmt::format("{:.0f}", 1000.0 * interval / hz), marked ? "LE" : "",
               fmt::format("{}/{}", rules.threshold[0], rules.threshold[1])});
  }
}

}  // namespace

void dump_plan(const HostView& view, bool as_json) {
  const std::uint32_t generation = view.generation();
  const std::uint32_t hz = view.maps().geometry().hz;
  const auto rows = view.maps().plan_rooms(generation & 1);
  json::array rooms;
  Table table({"ROOM", "WAY", "LANE", "KEEP", "INTERVAL MS", "MARK", "PRIORITY BELOW STD/BE"});
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    const es_plan_room row = rows[i];
    if (generation == 0 || row.generation == 0) continue;
    json::object object{{"name", view.room_name(i)}, {"number", i}};
    for (int d = 0; d < ES_DIRECTIONS; ++d) {
      object[direction_name(d)] = rules_json(row.rules[d], hz);
      add_rows(table, view.room_name(i), d, row.rules[d], hz);
    }
    rooms.push_back(std::move(object));
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"generation", generation},
                                                    {"expired", view.expired()},
                                                    {"rooms", std::move(rooms)}}));
    return;
  }
  fmt::print("generation {}{}\n", generation, view.expired() ? ", expired" : "");
  table.print("every lane of every room is kept whole");
}

}  // namespace edgeshed::cli
