// edgeshed dump endpoints, rooms and connections.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "maps/slot_table.h"
#include "tools/cli/dump.h"
#include "tools/cli/table.h"
#include "userspace/core/model.h"
#include "userspace/core/names.h"
#include "userspace/kernel/counters_reader.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

json::array lanes_json(std::uint8_t mask) {
  json::array lanes;
  for (unsigned lane = 0; lane < ES_LANES; ++lane) {
    if ((mask >> lane & 1) != 0) lanes.emplace_back(row_name(lane));
  }
  return lanes;
}

std::string lanes_text(std::uint8_t mask) {
  std::string text;
  for (unsigned lane = 0; lane < ES_LANES; ++lane) {
    if ((mask >> lane & 1) != 0) text += (text.empty() ? "" : ",") + row_name(lane);
  }
  return text.empty() ? "-" : text;
}

std::string address_of(const es_plan_endpoint& row) {
  if ((row.flags & ES_EP_ANY_ADDRESS) != 0) return "any";
  return core::address_text({row.local_addr_hi, row.local_addr_lo});
}

json::object ledger_json(const es_room_counters& sum, int direction) {
  json::object tiers;
  for (unsigned tier = 0; tier <= ES_TIERS; ++tier) {
    json::object outcomes;
    for (unsigned outcome = 0; outcome < ES_OUTCOMES; ++outcome) {
      outcomes[core::outcome_name(outcome)] = sum.cell[direction][tier][outcome];
    }
    const char* name = tier == ES_TIERS ? "demoted" : core::tier_name(static_cast<__u8>(tier));
    tiers[name] = std::move(outcomes);
  }
  return tiers;
}

json::object connection_json(const HostView& view, std::uint32_t number) {
  const es_connection& record = view.maps().connections()[number];
  const es_policy& policy = record.policy;
  const double weight = policy.weight_inverse_q8 == 0 ? 0 : 256.0 / policy.weight_inverse_q8;
  return {{"record", number},
          {"remote", core::remote_text(record.key)},
          {"endpoint", view.endpoint_name(record.key.endpoint)},
          {"room", view.room_name(policy.room)},
          {"class", view.class_name(policy.contract_class)},
          {"priority", policy.priority},
          {"weight", std::round(weight * 100) / 100},
          {"exempt", (policy.flags & ES_CONN_EXEMPT) != 0},
          {"throttled", (policy.flags & ES_CONN_THROTTLED) != 0},
          {"stream_block", record.key.stream_block}};
}

}  // namespace

std::set<std::uint32_t> live_records(const kernel::MapSet& maps) {
  std::set<std::uint32_t> records;
  for (const es_bucket& bucket : maps.buckets()) {
    const __u64 tags = __atomic_load_n(&bucket.tags, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < ES_BUCKET_SLOTS; ++i) {
      if ((tags >> (8 * i) & 0xff) == 0) continue;
      const std::uint32_t record = bucket.slot[i] & ES_RECORD_MASK;
      if (record < maps.connections().size()) records.insert(record);
    }
  }
  return records;
}

void dump_endpoints(const HostView& view, bool as_json) {
  json::array list;
  Table table({"ENDPOINT", "ADDRESS", "PORT", "PROTOCOL", "MODE", "PAUSED IN", "PAUSED OUT"});
  for (const std::uint8_t number : view.endpoints()) {
    const es_plan_endpoint& row = view.endpoint(number);
    json::object object{
        {"name", view.endpoint_name(number)},
        {"number", number},
        {"address", address_of(row)},
        {"port", view.port_of(number)},
        {"protocol", core::protocol_name(row.protocol)},
        {"mode", mode_of(row)},
        {"refuse_joins", (row.flags & ES_EP_REFUSE_JOINS) != 0},
        {"paused",
         {{"in", lanes_json(row.drop_mask[ES_IN])}, {"out", lanes_json(row.drop_mask[ES_OUT])}}},
        {"unlimited",
         {{"in", lanes_json(row.pass_mask[ES_IN])}, {"out", lanes_json(row.pass_mask[ES_OUT])}}},
        {"handshakes_per_cpu", row.handshakes_per_cpu},
        {"retry_standard_ms", 10 * row.retry_standard_10ms},
        {"retry_standard_spread_ms", 10 * row.retry_standard_spread_10ms},
        {"retry_join_ms", row.retry_join_ms},
        {"retry_join_spread_ms", 10 * row.retry_join_spread_10ms}};
    table.add({view.endpoint_name(number), address_of(row), std::to_string(view.port_of(number)),
               core::protocol_name(row.protocol), mode_of(row), lanes_text(row.drop_mask[ES_IN]),
               lanes_text(row.drop_mask[ES_OUT])});
    list.push_back(std::move(object));
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(list));
  } else {
    table.print("no plan has been published");
  }
}

void dump_rooms(const HostView& view, bool as_json) {
  const kernel::CountersReader counters(view.maps());
  const auto rows = view.maps().plan_rooms(view.generation() & 1);
  auto sum = std::make_unique<es_room_counters>();
  json::array list;
  Table table({"ROOM", "WAY", "TIER", "ADMITTED", "MARKED", "OPEN", "CONTRACT", "GOVERNOR",
               "LADDER", "FAIR SHARE", "ADMISSION"});
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (view.generation() == 0 || rows[i].generation == 0) continue;
    counters.read_room(i, *sum);
    json::object object{
        {"name", view.room_name(i)}, {"number", i}, {"stream_bytes", sum->stream_bytes}};
    for (int d = 0; d < ES_DIRECTIONS; ++d) {
      object[direction_name(d)] = ledger_json(*sum, d);
      for (unsigned tier = 0; tier <= ES_TIERS; ++tier) {
        std::vector<std::string> cells{
            view.room_name(i), direction_name(d),
            tier == ES_TIERS ? "demoted" : core::tier_name(static_cast<__u8>(tier))};
        std::uint64_t all = 0;
        for (const __u64 cell : sum->cell[d][tier]) {
          cells.push_back(std::to_string(cell));
          all += cell;
        }
        if (all != 0) table.add(std::move(cells));
      }
    }
    list.push_back(std::move(object));
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(list));
  } else {
    table.print("no packet of a room has been decided by the table");
  }
}

void dump_connections(const HostView& view, bool as_json) {
  json::array list;
  Table table({"REMOTE", "ENDPOINT", "ROOM", "CLASS", "PRIORITY", "WEIGHT"});
  for (const std::uint32_t number : live_records(view.maps())) {
    json::object object = connection_json(view, number);
    table.add({std::string(object["remote"].as_string()),
               std::string(object["endpoint"].as_string()), std::string(object["room"].as_string()),
               std::string(object["class"].as_string()), json::serialize(object["priority"]),
               fmt::format("{:.2f}", object["weight"].to_number<double>())});
    list.push_back(std::move(object));
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(list));
  } else {
    table.print("no connection is known");
  }
}

}  // namespace edgeshed::cli
