// [[connection]], and the names of the lists in maps/lanes.h.
#include <algorithm>
#include <set>
#include <tuple>

#include "userspace/config/builder.h"

namespace edgeshed::config {
namespace {

/// Least weight whose inverse fits into 16 bits: 256 / 65535, rounded up.
constexpr double kWeightMin = 0.004;
constexpr double kWeightMax = 256;

core::Endpoint& read_endpoint_name(const Section& section, core::Model& model) {
  section.require("endpoint", "name of the [[endpoint]] that the remote plays at");
  const std::string name = section.text("endpoint", "");
  const uint8_t number = core::find_endpoint(model, name);
  if (number == 0) {
    section.fail("endpoint",
                 "\"" + name + "\" is no [[endpoint]]; defined: " + names_of(model.endpoints));
  }
  return model.endpoints[number - 1];
}

uint16_t read_room(const Section& section, const core::Model& model,
                   const core::Endpoint& endpoint) {
  std::vector<std::string> names;
  for (const uint16_t room : endpoint.rooms) names.push_back(model.rooms[room].name);
  if (!section.has("room")) {
    if (names.size() == 1) return endpoint.rooms.front();
    section.fail("\"room\" is missing, and the endpoint has several; allowed: " + list_text(names));
  }
  return endpoint.rooms[section.choice_of_many("room", names)];
}

struct es_policy read_policy(const Section& section, const core::Model& model,
                             const core::Endpoint& endpoint) {
  struct es_policy policy = {};
  policy.room = read_room(section, model, endpoint);
  if (section.has("class")) {
    const std::string name = section.text("class", "");
    const int contract = core::find_class(model, name);
    if (contract < 0) {
      section.fail("class",
                   "\"" + name + "\" is no [[class]]; defined: " + names_of(model.classes));
    }
    policy.contract_class = static_cast<__u8>(contract);
  }
  policy.priority = static_cast<__u8>(section.integer("priority", 128, 0, 255));
  policy.weight_inverse_q8 =
      core::weight_inverse_q8(section.number("weight", 1, kWeightMin, kWeightMax));
  if (section.boolean("exempt", false)) policy.flags |= ES_CONN_EXEMPT;
  return policy;
}

}  // namespace

std::span<const std::string> lane_names() {
  static const std::string kNames[] = {
#define X(name, tier, text) #name,
      ES_LANE_LIST(X)
#undef X
  };
  return kNames;
}

std::span<const std::string> tier_names() {
  static const std::string kNames[] = {
#define X(name, text) #name,
      ES_TIER_LIST(X)
#undef X
  };
  return kNames;
}

std::span<const std::string> protocol_names() {
  static const std::string kNames[] = {
#define X(name, text) #name,
      ES_PROTOCOL_LIST(X)
#undef X
  };
  return kNames;
}

void read_connections(Build& build) {
  core::Model& model = build.model;
  std::set<std::tuple<uint64_t, uint64_t, uint16_t, uint8_t>> seen;
  for (const toml::table* table : build.root.children("connection")) {
    const Section section(build.root.path(), *table, "[[connection]]",
                          {"remote", "endpoint", "room", "class", "priority", "weight", "exempt"});
    check_capacity(section, model.connections.size() + 1, model.host.connections_max,
                   "connections_max", ES_CONNECTIONS_MAX);
    core::Connection connection;
    section.require("remote", "address:port of the other end, such as \"10.0.0.2:40000\"");
    const std::string remote = section.text("remote", "");
    if (!core::parse_remote(remote, connection.key)) {
      section.fail("remote", "\"" + remote +
                                 "\" is no address and port; allowed: \"10.0.0.2:40000\" or "
                                 "\"[2001:db8::2]:40000\"");
    }
    core::Endpoint& endpoint = read_endpoint_name(section, model);
    connection.key.endpoint = endpoint.number;
    const auto& key = connection.key;
    if (!seen.insert({key.addr_hi, key.addr_lo, key.port, key.endpoint}).second) {
      section.fail("remote", "\"" + remote + "\" is named twice at endpoint \"" + endpoint.name +
                                 "\"; remove one");
    }
    connection.policy = read_policy(section, model, endpoint);
    if ((connection.policy.flags & ES_CONN_EXEMPT) != 0) ++endpoint.exempt_connections;
    model.connections.push_back(connection);
  }
}

}  // namespace edgeshed::config
