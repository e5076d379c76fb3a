// edgeshed dump streams: the state streams that connections have, from the pinned maps.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <string>

#include "tools/cli/dump.h"
#include "tools/cli/table.h"
#include "userspace/core/address.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

// A window is one word: the second it is about, what the second before held, what this one holds
// (bits 51..26 and 25..0; the packet path's packing, maps/connection.h).
constexpr unsigned kCountBits = 26;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

std::uint64_t this_second(std::uint64_t window) { return window & kCountMask; }
std::uint64_t second_before(std::uint64_t window) { return window >> kCountBits & kCountMask; }

json::object window_json(std::uint64_t window) {
  return {{"this_second", this_second(window)}, {"second_before", second_before(window)}};
}

}  // namespace

void dump_streams(const HostView& view, bool as_json) {
  json::array list;
  Table table({"REMOTE", "ROOM", "STREAM", "STATE", "SAMPLES", "BEFORE", "BYTES", "BEFORE"});
  for (const std::uint32_t number : live_records(view.maps())) {
    const es_connection& record = view.maps().connections()[number];
    const std::uint32_t block = record.key.stream_block;
    if (block == 0 || block >= view.maps().streams().size()) continue;
    for (const es_stream_slot& slot : view.maps().streams()[block].slot) {
      const std::uint32_t word = __atomic_load_n(&slot.stream_id, __ATOMIC_RELAXED);
      const std::uint32_t id = word & ~ES_STREAM_CLOSED;
      if (id == 0) continue;
      const bool closed = (word & ES_STREAM_CLOSED) != 0;
      const std::uint64_t samples = __atomic_load_n(&slot.samples_window, __ATOMIC_RELAXED);
      const std::uint64_t bytes = __atomic_load_n(&slot.bytes_window, __ATOMIC_RELAXED);
      list.push_back(json::object{{"remote", core::remote_text(record.key)},
                                  {"endpoint", view.endpoint_name(record.key.endpoint)},
                                  {"room", view.room_name(record.policy.room)},
                                  {"stream", id - 1},
                                  {"closed", closed},
                                  {"samples", window_json(samples)},
                                  {"bytes", window_json(bytes)}});
      table.add({core::remote_text(record.key), view.room_name(record.policy.room),
                 std::to_string(id - 1), closed ? "closed" : "open",
                 std::to_string(this_second(samples)), std::to_string(second_before(samples)),
                 std::to_string(this_second(bytes)), std::to_string(second_before(bytes))});
    }
  }
  if (as_json) {
    fmt::print("{}\n", json::serialize(list));
  } else {
    table.print("no connection has a stream");
  }
}

}  // namespace edgeshed::cli
