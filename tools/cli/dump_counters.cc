// edgeshed dump counters: the ledger of every endpoint, cell by cell.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>

#include "maps/reasons.h"
#include "tools/cli/dump.h"
#include "tools/cli/table.h"
#include "userspace/core/names.h"
#include "userspace/kernel/counters_reader.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

const char* verdict_of(unsigned reason) { return core::verdict_name(es_reason_verdict(reason)); }

/// Cells of one direction. `rejected` of a row is the part of its drops that was answered.
json::object direction_json(const es_endpoint_counters& sum, int direction) {
  json::array cells;
  json::array rejected_rows;
  std::uint64_t bytes = 0;
  std::uint64_t rejected = 0;
  for (unsigned row = 0; row < ES_ROWS; ++row) {
    bytes += sum.bytes[direction][row];
    rejected += sum.rejected[direction][row];
    if (sum.rejected[direction][row] != 0) {
      rejected_rows.push_back(
          json::object{{"lane", row_name(row)}, {"packets", sum.rejected[direction][row]}});
    }
    for (unsigned reason = 0; reason < ES_REASONS; ++reason) {
      const __u64 packets = sum.cell[direction][row][reason];
      if (packets == 0) continue;
      cells.push_back(json::object{{"lane", row_name(row)},
                                   {"reason", core::reason_name(reason)},
                                   {"verdict", verdict_of(reason)},
                                   {"packets", packets}});
    }
  }
  json::array shadow;
  for (unsigned reason = 0; reason < ES_REASONS; ++reason) {
    const __u64 packets = sum.shadow[direction][reason];
    if (packets == 0) continue;
    shadow.push_back(json::object{{"reason", core::reason_name(reason)}, {"packets", packets}});
  }
  return {{"seen", sum.seen[direction]},
          {"bytes", bytes},
          {"cells", std::move(cells)},
          {"rejected", rejected},
          {"rejected_rows", std::move(rejected_rows)},
          {"shadow", std::move(shadow)},
          {"walk_errors", sum.walk_errors[direction]}};
}

void add_rows(Table& table, const std::string& name, const json::object& ways) {
  for (const char* way : {"in", "out"}) {
    const json::object& direction = ways.at(way).as_object();
    for (const auto& one : direction.at("cells").as_array()) {
      const json::object& cell = one.as_object();
      const std::string verdict(cell.at("verdict").as_string());
      table.add({name, way, std::string(cell.at("lane").as_string()),
                 std::string(cell.at("reason").as_string()), verdict,
                 json::serialize(cell.at("packets"))},
                verdict == "drop" ? Tone::kWarn : Tone::kPlain);
    }
    for (const auto& one : direction.at("rejected_rows").as_array()) {
      const json::object& row = one.as_object();
      table.add({name, way, std::string(row.at("lane").as_string()), "(of the drops)", "reject",
                 json::serialize(row.at("packets"))},
                Tone::kWarn);
    }
    for (const auto& one : direction.at("shadow").as_array()) {
      const json::object& row = one.as_object();
      table.add({name, way, "-", std::string(row.at("reason").as_string()), "(shadow)",
                 json::serialize(row.at("packets"))},
                Tone::kDim);
    }
  }
}

}  // namespace

void dump_counters(const HostView& view, bool as_json) {
  const kernel::CountersReader counters(view.maps());
  auto sum = std::make_unique<es_endpoint_counters>();
  const auto ways = [&](std::uint8_t number) {
    counters.read_endpoint(number, *sum);
    return json::object{
        {"in", direction_json(*sum, ES_IN)},
        {"out", direction_json(*sum, ES_OUT)},
        {"not_rejected", {{"by_cap", sum->not_rejected[0]}, {"too_short", sum->not_rejected[1]}}}};
  };
  json::object host = ways(0);
  json::array endpoints;
  Table table({"ENDPOINT", "WAY", "LANE", "REASON", "VERDICT", "PACKETS"});
  add_rows(table, "host", host);
  for (const std::uint8_t number : view.endpoints()) {
    json::object object = ways(number);
    add_rows(table, view.endpoint_name(number), object);
    object["name"] = view.endpoint_name(number);
    endpoints.push_back(std::move(object));
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(json::object{{"endpoints", std::move(endpoints)},
                                                    {"host", std::move(host)}}));
  } else {
    table.print("no packet has been seen");
  }
}

}  // namespace edgeshed::cli
