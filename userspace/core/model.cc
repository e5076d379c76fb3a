// Look-ups on the model. No decision, no text beyond the names of maps/lanes.h.
#include "userspace/core/model.h"

#include <algorithm>
#include <cmath>

namespace edgeshed::core {
namespace {

constexpr const char* kLaneNames[] = {
#define X(name, tier, text) #name,
    ES_LANE_LIST(X)
#undef X
};
constexpr const char* kTierNames[] = {
#define X(name, text) #name,
    ES_TIER_LIST(X)
#undef X
};
constexpr const char* kProtocolNames[] = {
#define X(name, text) #name,
    ES_PROTOCOL_LIST(X)
#undef X
};

template <typename Items>
int find_name(const Items& items, std::string_view name) {
  if (name.empty()) return -1;  // the name of holes, and of class 0
  const auto found = std::find_if(items.begin(), items.end(),
                                  [name](const auto& item) { return item.name == name; });
  return found == items.end() ? -1 : static_cast<int>(found - items.begin());
}

}  // namespace

uint16_t default_lane_tiers() {
  uint16_t tiers = 0;
#define X(name, tier, text) tiers = with_lane_tier(tiers, ES_LANE_##name, ES_TIER_##tier);
  ES_LANE_LIST(X)
#undef X
  return tiers;
}

uint16_t with_lane_tier(uint16_t lane_tiers, uint8_t lane, uint8_t tier) {
  const uint32_t shift = 2u * lane;
  return static_cast<uint16_t>((lane_tiers & ~(3u << shift)) | (uint32_t{tier} << shift));
}

const char* lane_name(uint8_t lane) { return lane < ES_LANES ? kLaneNames[lane] : "?"; }

const char* tier_name(uint8_t tier) { return tier < ES_TIERS ? kTierNames[tier] : "?"; }

const char* protocol_name(uint8_t protocol) {
  return protocol < ES_PROTOCOLS ? kProtocolNames[protocol] : "?";
}

bool class_exists(const Model& model, uint32_t number) {
  return number == 0 || (number < model.classes.size() && !model.classes[number].name.empty());
}

double largest_contract(const Model& model, int direction, int tier) {
  double largest = 0;
  for (std::size_t i = 1; i < model.classes.size(); ++i) {
    if (model.classes[i].name.empty()) continue;
    const double packets_per_s = model.classes[i].rate[direction][tier].packets_per_s;
    if (packets_per_s <= 0) return 0;
    largest = std::max(largest, packets_per_s);
  }
  return largest;
}

bool is_shadow(Mode host, const Endpoint& endpoint) {
  return (endpoint.mode == Mode::unset ? host : endpoint.mode) != Mode::enforce;
}

int find_shard(const Model& model, std::string_view name) { return find_name(model.shards, name); }

int find_room(const Model& model, std::string_view name) { return find_name(model.rooms, name); }

int find_class(const Model& model, std::string_view name) { return find_name(model.classes, name); }

uint8_t find_endpoint(const Model& model, std::string_view name) {
  return static_cast<uint8_t>(find_name(model.endpoints, name) + 1);
}

uint8_t first_endpoint_of_port(const Model& model, uint16_t port) {
  for (const Endpoint& endpoint : model.endpoints) {
    if (!exists(endpoint) || endpoint.port != port) continue;
    const bool follows_another =
        std::any_of(model.endpoints.begin(), model.endpoints.end(),
                    [&](const Endpoint& other) { return other.next_same_port == endpoint.number; });
    if (!follows_another) return endpoint.number;
  }
  return 0;
}

uint16_t weight_inverse_q8(double weight) {
  return static_cast<uint16_t>(std::clamp(std::round(256 / weight), 1.0, 65535.0));
}

}  // namespace edgeshed::core
