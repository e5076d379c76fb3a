// [[endpoint]]: address, protocol, classifier and strangers, and the chain of shared ports.
#include <algorithm>
#include <charconv>

#include "userspace/config/builder.h"

namespace edgeshed::config {
namespace {

/// A number written as a key, such as the channel 2 in `channels = { 2 = ... }`.
uint8_t number_key(const Section& section, std::string_view key, uint32_t limit) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == key.data() + key.size();
  if (!whole || number >= limit) {
    section.fail(key, "is no key here; allowed: 0 to " + std::to_string(limit - 1));
  }
  return static_cast<uint8_t>(number);
}

void read_channels(const Section& endpoint, union es_classifier& classifier) {
  constexpr uint8_t kDefault = ES_LANE_event << 4 | ES_LANE_snapshot;
  std::fill(std::begin(classifier.enet_channel), std::end(classifier.enet_channel), kDefault);
  const toml::table* table = endpoint.child("channels");
  if (table == nullptr) return;
  const Section section(endpoint.path(), *table, endpoint.label() + " channels", {});
  for (const auto& [key, node] : *table) {
    const uint8_t channel = number_key(section, key.str(), ES_ENET_CHANNELS);
    const toml::table* lanes = section.child(key.str());
    const Section lane(endpoint.path(), *lanes, section.label() + " " + std::string(key.str()),
                       {"reliable", "unreliable"});
    const uint8_t reliable = lane.choice("reliable", ES_LANE_event, lane_names());
    const uint8_t unreliable = lane.choice("unreliable", ES_LANE_snapshot, lane_names());
    classifier.enet_channel[channel] = static_cast<uint8_t>(reliable << 4 | unreliable);
  }
}

void read_dscp(const Section& endpoint, uint8_t default_lane, union es_classifier& classifier) {
  std::fill(std::begin(classifier.dscp_lane), std::end(classifier.dscp_lane), default_lane);
  endpoint.require("dscp", "the lane of each DSCP, such as dscp = { 46 = \"voice\" }");
  const Section section(endpoint.path(), *endpoint.child("dscp"), endpoint.label() + " dscp", {});
  for (const auto& [key, node] : section.table()) {
    const uint8_t dscp = number_key(section, key.str(), 64);
    classifier.dscp_lane[dscp] = section.choice(key.str(), default_lane, lane_names());
  }
}

void read_match(const Section& endpoint, union es_classifier& classifier) {
  endpoint.require("match",
                   "its rules, such as match = [ { offset = 0, mask = 0xff000000, value = "
                   "0x01000000, lane = \"snapshot\" } ]");
  const auto rules = endpoint.children("match");
  if (rules.size() > ES_MATCH_RULES) {
    endpoint.fail("match", std::to_string(rules.size()) + " rules are too many; allowed: 1 to " +
                               std::to_string(ES_MATCH_RULES));
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    const Section section(endpoint.path(), *rules[i], endpoint.label() + " match",
                          {"offset", "mask", "value", "lane"});
    for (const char* key : {"offset", "mask", "value", "lane"}) {
      section.require(key, "(4 bytes at offset & mask) == value gives the lane");
    }
    struct es_match_rule& rule = classifier.match[i];
    rule.offset = static_cast<__u16>(section.integer("offset", 0, 0, 255));
    rule.mask = static_cast<__u32>(section.integer("mask", 0, 1, 0xffffffff));
    rule.value = static_cast<__u32>(section.integer("value", 0, 0, 0xffffffff));
    rule.lane = section.choice("lane", 0, lane_names());
    if ((rule.value & ~rule.mask) != 0) {
      section.fail("value",
                   "has bits outside mask and would never match; clear them or widen mask");
    }
  }
}

/// Keys of a classifier belong to one protocol each.
void check_protocol_keys(const Section& section, uint8_t protocol) {
  const struct {
    const char* key;
    uint8_t protocol;
  } kKeys[] = {{"crc", ES_PROTOCOL_enet},
               {"channels", ES_PROTOCOL_enet},
               {"dscp", ES_PROTOCOL_dscp},
               {"match", ES_PROTOCOL_match}};
  for (const auto& [key, owner] : kKeys) {
    if (!section.has(key) || owner == protocol) continue;
    section.fail(key, std::string("belongs to protocol \"") + core::protocol_name(owner) +
                          "\", and this endpoint has \"" + core::protocol_name(protocol) +
                          "\"; remove it or change the protocol");
  }
}

void read_address(const Section& section, core::Endpoint& endpoint) {
  section.require("address", "a local address, or \"any\"");
  const std::string text = section.text("address", "");
  endpoint.any_address = text == "any";
  if (endpoint.any_address || core::parse_address(text, endpoint.address)) return;
  section.fail("address", "\"" + text + "\" is no address; allowed: IPv4, IPv6 or \"any\"");
}

void read_endpoint_rooms(const Section& section, const core::Model& model,
                         core::Endpoint& endpoint) {
  section.require("rooms", "names of [[room]] tables, at least one");
  for (const std::string& name : section.texts("rooms")) {
    const int room = core::find_room(model, name);
    if (room < 0) {
      section.fail("rooms", "\"" + name + "\" is no [[room]]; defined: " + names_of(model.rooms));
    }
    const auto number = static_cast<uint16_t>(room);
    if (std::find(endpoint.rooms.begin(), endpoint.rooms.end(), number) != endpoint.rooms.end()) {
      section.fail("rooms", "\"" + name + "\" is named twice; remove one");
    }
    endpoint.rooms.push_back(number);
  }
  if (endpoint.rooms.empty()) section.fail("rooms", "is empty; name at least one [[room]]");
}

void read_lane_tiers(const Section& section, core::Endpoint& endpoint) {
  endpoint.lane_tiers = core::default_lane_tiers();
  const toml::table* table = section.child("lanes");
  if (table == nullptr) return;
  const Section lanes(section.path(), *table, section.label() + " lanes",
                      {
#define X(name, tier, text) #name,
                          ES_LANE_LIST(X)
#undef X
                      });
  for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
    const uint8_t tier =
        lanes.choice(core::lane_name(lane), es_lane_tier(endpoint.lane_tiers, lane), tier_names());
    endpoint.lane_tiers = core::with_lane_tier(endpoint.lane_tiers, lane, tier);
  }
}

void read_stranger(const Section& section, const core::Model& model, core::Endpoint& endpoint) {
  endpoint.stranger_room = endpoint.rooms.front();
  const toml::table* table = section.child("stranger");
  if (table == nullptr) return;
  const Section stranger(section.path(), *table, section.label() + " stranger",
                         {"tier_cap", "priority", "handshakes_per_s", "room"});
  endpoint.stranger_tier_cap =
      stranger.choice("tier_cap", endpoint.stranger_tier_cap, tier_names());
  endpoint.stranger_priority =
      static_cast<uint8_t>(stranger.integer("priority", endpoint.stranger_priority, 0, 255));
  endpoint.handshakes_per_s = static_cast<uint32_t>(
      stranger.integer("handshakes_per_s", endpoint.handshakes_per_s, 0, 1000000));
  if (!stranger.has("room")) return;
  const std::string name = stranger.text("room", "");
  const int room = core::find_room(model, name);
  const auto& rooms = endpoint.rooms;
  if (room < 0 || std::find(rooms.begin(), rooms.end(), room) == rooms.end()) {
    stranger.fail("room", "\"" + name + "\" is no room of this endpoint; name one of its rooms");
  }
  endpoint.stranger_room = static_cast<uint16_t>(room);
}

void read_classifier(const Section& section, core::Endpoint& endpoint) {
  switch (endpoint.protocol) {
    case ES_PROTOCOL_enet:
      endpoint.crc = section.boolean("crc", false);
      read_channels(section, endpoint.classifier);
      break;
    case ES_PROTOCOL_dscp:
      read_dscp(section, endpoint.default_lane, endpoint.classifier);
      break;
    case ES_PROTOCOL_match:
      read_match(section, endpoint.classifier);
      break;
    default:
      break;
  }
}

core::Endpoint read_endpoint(const Section& section, const core::Model& model) {
  core::Endpoint endpoint;
  endpoint.number = static_cast<uint8_t>(model.endpoints.size() + 1);
  endpoint.name = read_name(section);
  check_new_name(section, model.endpoints, endpoint.name);
  read_address(section, endpoint);
  section.require("port", "the local UDP port, 1 to 65535");
  endpoint.port = static_cast<uint16_t>(section.integer("port", 0, 1, ES_PORTS - 1));
  section.require("protocol", "one of " + list_text(protocol_names()) + "; it is never guessed");
  endpoint.protocol = section.choice("protocol", 0, protocol_names());
  check_protocol_keys(section, endpoint.protocol);
  endpoint.default_lane = section.choice("default_lane", endpoint.default_lane, lane_names());
  endpoint.rejects = section.boolean("rejects", false);
  endpoint.mode = read_mode(section);
  read_endpoint_rooms(section, model, endpoint);
  read_lane_tiers(section, endpoint);
  read_classifier(section, endpoint);
  read_stranger(section, model, endpoint);
  return endpoint;
}

/// Fails when another endpoint has the same port and address, or when the port is full.
void check_port(const Section& section, const core::Model& model, const core::Endpoint& endpoint) {
  size_t same_port = 1;
  for (const core::Endpoint& other : model.endpoints) {
    if (other.port != endpoint.port) continue;
    if (other.any_address == endpoint.any_address && other.address == endpoint.address) {
      section.fail("port", std::to_string(endpoint.port) +
                               " at this address already belongs to \"" + other.name +
                               "\"; change one of them");
    }
    ++same_port;
  }
  if (same_port <= ES_SAME_PORT_MAX) return;
  section.fail("port", std::to_string(endpoint.port) + " has " + std::to_string(same_port) +
                           " endpoints; allowed: " + std::to_string(ES_SAME_PORT_MAX) +
                           " addresses per port; use another port or \"any\"");
}

}  // namespace

void read_endpoints(Build& build) {
  core::Model& model = build.model;
  for (const toml::table* table : build.root.children("endpoint")) {
    const Section section(
        build.root.path(), *table, "[[endpoint]]",
        {"name", "address", "port", "protocol", "rooms", "crc", "mode", "channels", "lanes",
         "rejects", "default_lane", "dscp", "match", "stranger"});
    check_capacity(section, model.endpoints.size() + 1, model.host.endpoints_max, "endpoints_max",
                   ES_ENDPOINTS_MAX - 1);
    core::Endpoint endpoint = read_endpoint(section, model);
    check_port(section, model, endpoint);
    model.endpoints.push_back(std::move(endpoint));
  }
}

void link_same_ports(Build& build) {
  auto& endpoints = build.model.endpoints;
  // The packet path takes the first of a chain that matches, so "any" must stand last.
  std::vector<core::Endpoint*> order;
  for (core::Endpoint& endpoint : endpoints) order.push_back(&endpoint);
  std::stable_sort(order.begin(), order.end(),
                   [](const core::Endpoint* a, const core::Endpoint* b) {
                     return !a->any_address && b->any_address;
                   });
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (order[j]->port != order[i]->port) continue;
      order[i]->next_same_port = order[j]->number;
      break;
    }
  }
}

}  // namespace edgeshed::config
