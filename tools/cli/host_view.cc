#include "tools/cli/host_view.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "maps/lanes.h"
#include "maps/plan.h"
#include "tools/cli/client.h"
#include "userspace/core/model.h"
#include "userspace/core/numbering.h"
#include "userspace/kernel/jiffies_clock.h"

namespace edgeshed::cli {
namespace {

/// The name of each number whose hash one of `items` has; "#" and the number of the others.
template <typename Items>
std::vector<std::string> named(const std::vector<std::uint64_t>& hashes, const Items& items) {
  std::vector<std::string> names;
  for (std::size_t number = 0; number < hashes.size(); ++number) {
    names.push_back(fmt::format("#{}", number));
    for (const auto& item : items) {
      if (!item.name.empty() && core::name_hash(item.name) == hashes[number]) {
        names.back() = item.name;
      }
    }
  }
  return names;
}

std::vector<std::string> ask_list(const std::string& socket, const char* kind) {
  std::vector<std::string> names;
  for (;;) {
    const Reply reply =
        ask_daemon(socket, daemon::NamesRequest{kind, static_cast<std::uint32_t>(names.size())});
    if (reply.code != kExitOk) return names;
    const auto* list = reply.answer.if_contains("names");
    if (list == nullptr || !list->is_array() || list->get_array().empty()) return names;
    for (const auto& name : list->get_array()) {
      names.emplace_back(name.is_string() ? std::string(name.get_string()) : "?");
    }
  }
}

}  // namespace

std::string Names::of(const std::vector<std::string>& names, std::size_t number) {
  return number < names.size() ? names[number] : fmt::format("#{}", number);
}

Names ask_names(const std::string& socket) {
  Names names;
  names.endpoints = ask_list(socket, "endpoint");
  if (names.endpoints.empty()) return names;
  names.endpoints.insert(names.endpoints.begin(), "host");
  names.rooms = ask_list(socket, "room");
  names.classes = ask_list(socket, "class");
  if (!names.classes.empty() && names.classes[0].empty()) names.classes[0] = "none";
  return names;
}

Names names_of_config(const core::Model& model, const kernel::MapSet& maps) {
  const unsigned copy = __atomic_load_n(&maps.control().generation, __ATOMIC_ACQUIRE) & 1;
  const core::Numbering live =
      core::numbering_of(maps.plan_endpoints(copy), maps.plan_rooms(copy), maps.plan_classes(copy));
  Names names;
  names.endpoints = named(live.endpoints, model.endpoints);
  names.rooms = named(live.rooms, model.rooms);
  names.classes = named(live.classes, model.classes);
  return names;
}

HostView::HostView(const Globals& globals, const std::string& config)
    : maps_(kernel::MapSet::from_pins(globals.pin_dir, kernel::Access::kRead)),
      names_(ask_names(globals.socket)) {
  if (names_.endpoints.empty() && !config.empty()) {
    names_ = names_of_config(load_config(config), maps_);
  }
}

std::uint32_t HostView::generation() const {
  return __atomic_load_n(&maps_.control().generation, __ATOMIC_ACQUIRE);
}

std::vector<std::uint8_t> HostView::endpoints() const {
  std::vector<std::uint8_t> numbers;
  if (generation() == 0) return numbers;
  for (std::uint32_t i = 1; i < maps_.geometry().endpoints; ++i) {
    // A writer clears a row before it fills it, so one of the two copies says it exists.
    const bool exists =
        maps_.plan_endpoints(0)[i].generation != 0 || maps_.plan_endpoints(1)[i].generation != 0;
    if (exists) numbers.push_back(static_cast<std::uint8_t>(i));
  }
  return numbers;
}

const es_plan_endpoint& HostView::endpoint(std::uint8_t number) const {
  return maps_.plan_endpoints(generation() & 1)[number];
}

std::uint32_t HostView::port_of(std::uint8_t number) const {
  const auto ports = maps_.ports();
  for (std::uint32_t port = 1; port < ports.size(); ++port) {
    // A chain of endpoints on one port begins with the number in the table.
    std::uint8_t at = ports[port];
    for (unsigned step = 0; at != 0 && step < ES_SAME_PORT_MAX; ++step) {
      if (at == number) return port;
      at = endpoint(at).next_same_port;
    }
  }
  return 0;
}

bool HostView::expired() const {
  const std::uint64_t valid_until =
      __atomic_load_n(&maps_.control().valid_until_jiffies, __ATOMIC_RELAXED);
  return generation() != 0 && kernel::JiffiesProbe().sample().jiffies > valid_until;
}

std::string HostView::endpoint_name(std::uint8_t number) const {
  return number == 0 ? "host" : Names::of(names_.endpoints, number);
}
std::string HostView::room_name(std::uint32_t number) const {
  return Names::of(names_.rooms, number);
}
std::string HostView::class_name(std::uint32_t number) const {
  return number == 0 ? "none" : Names::of(names_.classes, number);
}

const char* mode_of(const es_plan_endpoint& row) {
  return (row.flags & ES_EP_SHADOW) != 0 ? "shadow" : "enforce";
}

const char* direction_name(int direction) { return direction == ES_IN ? "in" : "out"; }

std::string row_name(unsigned row) {
  if (row < ES_LANES) return core::lane_name(static_cast<std::uint8_t>(row));
  return row == ES_ROW_DEMOTED ? "demoted" : "unclassified";
}

}  // namespace edgeshed::cli
