// What a sound configuration means: every section, and the defaults of what is left out.
#include "userspace/config/config.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace edgeshed::config {
namespace {

constexpr const char* kBase = R"([[shard]]
name = "main"
[[room]]
name = "arena"
shard = "main"
[[room]]
name = "lobby"
shard = "main"
)";

core::Model parsed(const std::string& more) { return parse(kBase + more, "test.toml"); }

core::Endpoint endpoint_with(const std::string& keys) {
  return parsed(
             "[[endpoint]]\nname = \"game\"\naddress = \"any\"\nport = 7777\nrooms = "
             "[\"lobby\", \"arena\"]\n" +
             keys)
      .endpoints.at(0);
}

TEST(Config, EmptyFileIsAllDefaults) {
  const core::Model model = parse("", "test.toml");
  EXPECT_EQ(model.host.connections_max, 4096u);
  EXPECT_EQ(model.host.endpoints_max, 32u);
  EXPECT_EQ(model.host.rooms_max, 256u);
  EXPECT_EQ(model.host.classes_max, 32u);
  EXPECT_EQ(model.host.streams_max, 256u);
  EXPECT_EQ(model.host.tick_hz, 60u);
  EXPECT_EQ(model.host.mode, core::Mode::unset);
  EXPECT_EQ(model.law.control.hold_s, 1);
  EXPECT_EQ(model.law.control.next_hold_s, 0.25);
  EXPECT_EQ(model.classes.size(), 1u);
  EXPECT_EQ(model.classes[0].tier_cap, ES_TIER_critical);
  EXPECT_TRUE(model.endpoints.empty());
}

TEST(Config, HostControlAndLadder) {
  const core::Model model = parsed(R"(
[host]
connections_max = 100
tick_hz = 250
mode = "enforce"
[control]
hold_s = 2
exit_ratio = 0.8
[[ladder]]
rung = 5
standard_below = 128
max_gap_ms = 500
snapshot = { keep = 0.1, keep_in = 0 }
)");
  EXPECT_EQ(model.host.connections_max, 100u);
  EXPECT_EQ(model.host.tick_hz, 250u);
  EXPECT_EQ(model.host.mode, core::Mode::enforce);
  EXPECT_EQ(model.law.control.hold_s, 2);
  EXPECT_EQ(model.law.control.exit_ratio, 0.8);
  EXPECT_EQ(model.law.ladder[5].threshold[core::kTierStandard], 128);
  EXPECT_EQ(model.law.ladder[5].max_gap_ms, 500);
  EXPECT_EQ(model.law.ladder[5].lane[0].keep[ES_IN], 0);
  EXPECT_EQ(model.law.ladder[5].lane[0].keep[ES_OUT], 0.1);
  EXPECT_EQ(model.law.ladder[4].max_gap_ms, 250);
}

TEST(Config, ShardsAndRooms) {
  const core::Model model = parse(R"(
[[shard]]
name = "a"
[[shard]]
name = "b"
frame_budget_ms = 16.6
room_capacity = 2
[[room]]
name = "r"
shard = "b"
stream_cap = 8
stream_samples_per_s = 30
stream_bytes_per_s = 3000
player_bytes_per_s = 9000
room_bytes_per_s = 5000000000
level_out = { best_effort = { tokens_per_s = 20, burst_s = 0.5 } }
)",
                                  "test.toml");
  EXPECT_EQ(model.shards[0].frame_budget_ms, 33.3);
  EXPECT_EQ(model.shards[0].room_capacity, 64u);
  EXPECT_EQ(model.shards[1].frame_budget_ms, 16.6);
  const core::Room& room = model.rooms[0];
  EXPECT_EQ(room.shard, 1u);
  EXPECT_EQ(room.stream_cap, 8);
  EXPECT_EQ(room.stream_samples_per_s, 30u);
  EXPECT_EQ(room.stream_bytes_per_s, 3000u);
  EXPECT_EQ(room.player_bytes_per_s, 9000u);
  EXPECT_EQ(room.room_bytes_per_s, 5000000000u);
  EXPECT_EQ(room.level[ES_OUT][core::kTierBestEffort].tokens_per_s, 20);
  EXPECT_EQ(room.level[ES_OUT][core::kTierBestEffort].burst_s, 0.5);
  EXPECT_EQ(room.level[ES_IN][core::kTierBestEffort].tokens_per_s, 0);
}

TEST(Config, ClassRatesForBothDirectionsOrOne) {
  const core::Model model = parse(R"(
[[class]]
name = "player"
tier_cap = "standard"
critical = { packets_per_s = 200, bytes_per_s = 200000, burst_s = 0.5 }
standard = { packets_per_s = 60 }
out = { standard = { packets_per_s = 90 } }
)",
                                  "test.toml");
  const core::ContractClass& player = model.classes.at(1);
  EXPECT_EQ(player.tier_cap, ES_TIER_standard);
  for (const auto& rate : player.rate) {
    EXPECT_EQ(rate[ES_TIER_critical].packets_per_s, 200);
    EXPECT_EQ(rate[ES_TIER_critical].bytes_per_s, 200000);
    EXPECT_EQ(rate[ES_TIER_critical].burst_s, 0.5);
    EXPECT_EQ(rate[ES_TIER_best_effort].packets_per_s, 0);
  }
  EXPECT_EQ(player.rate[ES_IN][ES_TIER_standard].packets_per_s, 60);
  EXPECT_EQ(player.rate[ES_OUT][ES_TIER_standard].packets_per_s, 90);
  EXPECT_EQ(player.rate[ES_OUT][ES_TIER_standard].burst_s, 0.25);
  EXPECT_EQ(core::find_class(model, "player"), 1);
  EXPECT_EQ(core::find_class(model, ""), -1);
  // Of all named classes the largest; one without a limit leaves none to go by.
  EXPECT_EQ(core::largest_contract(model, ES_IN, ES_TIER_standard), 60);
  EXPECT_EQ(core::largest_contract(model, ES_IN, ES_TIER_best_effort), 0);
  core::Model more = model;
  more.classes.push_back(player);
  more.classes.back().rate[ES_IN][ES_TIER_standard].packets_per_s = 90;
  EXPECT_EQ(core::largest_contract(more, ES_IN, ES_TIER_standard), 90);
  EXPECT_EQ(core::largest_contract(core::Model(), ES_IN, ES_TIER_standard), 0);
}

TEST(Config, BurstMayBeLongerOnASlowerClock) {
  const std::string text =
      "[[class]]\nname = \"c\"\nstandard = { packets_per_s = 9, burst_s = 30 }";
  EXPECT_THROW(parse(text, "test.toml", 1000), Error);
  EXPECT_EQ(parse(text, "test.toml", 250).classes.at(1).rate[0][1].burst_s, 30);
}

TEST(Config, EndpointDefaults) {
  const core::Endpoint endpoint = endpoint_with("protocol = \"opaque\"");
  EXPECT_EQ(endpoint.number, 1);
  EXPECT_TRUE(endpoint.any_address);
  EXPECT_EQ(endpoint.port, 7777);
  EXPECT_EQ(endpoint.default_lane, ES_LANE_command);
  EXPECT_EQ(endpoint.lane_tiers, core::default_lane_tiers());
  EXPECT_EQ(endpoint.rooms, (std::vector<uint16_t>{1, 0}));
  EXPECT_EQ(endpoint.stranger_room, 1);
  EXPECT_EQ(endpoint.stranger_tier_cap, ES_TIER_standard);
  EXPECT_EQ(endpoint.stranger_priority, 0);
  EXPECT_EQ(endpoint.handshakes_per_s, 100u);
  EXPECT_EQ(endpoint.mode, core::Mode::unset);
  EXPECT_FALSE(endpoint.rejects);
}

TEST(Config, EnetChannels) {
  const core::Endpoint endpoint = endpoint_with(R"(protocol = "enet"
crc = true
default_lane = "snapshot"
lanes = { command = "best_effort", voice = "standard" }
channels = { 2 = { unreliable = "voice" }, 63 = { reliable = "command", unreliable = "cosmetic" } }
stranger = { tier_cap = "best_effort", handshakes_per_s = 5, priority = 9, room = "arena" }
)");
  const auto& channel = endpoint.classifier.enet_channel;
  EXPECT_EQ(channel[0], ES_LANE_event << 4 | ES_LANE_snapshot);
  EXPECT_EQ(channel[2], ES_LANE_event << 4 | ES_LANE_voice);
  EXPECT_EQ(channel[63], ES_LANE_command << 4 | ES_LANE_cosmetic);
  EXPECT_TRUE(endpoint.crc);
  EXPECT_EQ(endpoint.default_lane, ES_LANE_snapshot);
  EXPECT_EQ(es_lane_tier(endpoint.lane_tiers, ES_LANE_command), ES_TIER_best_effort);
  EXPECT_EQ(es_lane_tier(endpoint.lane_tiers, ES_LANE_voice), ES_TIER_standard);
  EXPECT_EQ(es_lane_tier(endpoint.lane_tiers, ES_LANE_event), ES_TIER_critical);
  EXPECT_EQ(endpoint.stranger_tier_cap, ES_TIER_best_effort);
  EXPECT_EQ(endpoint.handshakes_per_s, 5u);
  EXPECT_EQ(endpoint.stranger_priority, 9);
  EXPECT_EQ(endpoint.stranger_room, 0);
}

TEST(Config, DscpAndMatch) {
  const core::Endpoint dscp =
      endpoint_with("protocol = \"dscp\"\ndscp = { 46 = \"voice\" }\ndefault_lane = \"event\"");
  EXPECT_EQ(dscp.classifier.dscp_lane[46], ES_LANE_voice);
  EXPECT_EQ(dscp.classifier.dscp_lane[0], ES_LANE_event);
  const core::Endpoint match = endpoint_with(R"(protocol = "match"
match = [ { offset = 4, mask = 0xff000000, value = 0x01000000, lane = "snapshot" } ]
)");
  EXPECT_EQ(match.classifier.match[0].offset, 4);
  EXPECT_EQ(match.classifier.match[0].mask, 0xff000000u);
  EXPECT_EQ(match.classifier.match[0].value, 0x01000000u);
  EXPECT_EQ(match.classifier.match[0].lane, ES_LANE_snapshot);
  EXPECT_EQ(match.classifier.match[1].mask, 0u);
}

TEST(Config, EndpointsOfOnePortAreChainedWithAnyLast) {
  std::string text;
  for (const char* address : {"any", "10.0.0.1", "2001:db8::1"}) {
    text += std::string("[[endpoint]]\nname = \"e") + std::to_string(text.size()) +
            "\"\naddress = \"" + address +
            "\"\nport = 5\nprotocol = \"lane\"\nrooms = [\"arena\"]\n";
  }
  const core::Model model = parsed(text);
  EXPECT_EQ(core::first_endpoint_of_port(model, 5), 2);
  EXPECT_EQ(model.endpoints[1].next_same_port, 3);
  EXPECT_EQ(model.endpoints[2].next_same_port, 1);
  EXPECT_EQ(model.endpoints[0].next_same_port, 0);
  EXPECT_EQ(core::first_endpoint_of_port(model, 6), 0);
}

TEST(Config, Connections) {
  const core::Model model = parsed(R"(
[[class]]
name = "player"
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "opaque"
rooms = ["lobby"]
[[connection]]
remote = "10.91.0.2:40000"
endpoint = "game"
room = "lobby"
class = "player"
priority = 200
weight = 2
[[connection]]
remote = "[::1]:4000"
endpoint = "game"
exempt = true
)");
  const core::Connection& first = model.connections.at(0);
  EXPECT_EQ(core::remote_text(first.key), "10.91.0.2:40000");
  EXPECT_EQ(ntohs(first.key.port), 40000);
  EXPECT_EQ(first.key.endpoint, 1);
  EXPECT_EQ(first.policy.room, 1);
  EXPECT_EQ(first.policy.contract_class, 1);
  EXPECT_EQ(first.policy.priority, 200);
  EXPECT_EQ(first.policy.weight_inverse_q8, 128);
  EXPECT_EQ(first.policy.flags, 0);
  const core::Connection& second = model.connections.at(1);
  EXPECT_EQ(second.policy.room, 1) << "the endpoint's only room";
  EXPECT_EQ(second.policy.contract_class, 0);
  EXPECT_EQ(second.policy.priority, 128);
  EXPECT_EQ(second.policy.weight_inverse_q8, 256);
  EXPECT_EQ(second.policy.flags, ES_CONN_EXEMPT);
  EXPECT_EQ(model.endpoints[0].exempt_connections, 1u);
}

TEST(Config, ModeOfTheEndpointWins) {
  core::Host host;
  core::Endpoint endpoint;
  EXPECT_TRUE(core::is_shadow(host.mode, endpoint));
  host.mode = core::Mode::enforce;
  EXPECT_FALSE(core::is_shadow(host.mode, endpoint));
  endpoint.mode = core::Mode::shadow;
  EXPECT_TRUE(core::is_shadow(host.mode, endpoint));
}

TEST(Config, WeightInverse) {
  EXPECT_EQ(core::weight_inverse_q8(1), 256);
  EXPECT_EQ(core::weight_inverse_q8(256), 1);
  EXPECT_EQ(core::weight_inverse_q8(1000), 1);
  EXPECT_EQ(core::weight_inverse_q8(0.004), 64000);
  EXPECT_EQ(core::weight_inverse_q8(0.0001), 65535);
}

TEST(Config, LoadsAFileAndSaysWhenItCannot) {
  const std::string path = testing::TempDir() + "edgeshed_config_test.toml";
  std::ofstream(path) << "[host]\ntick_hz = 30\n";
  EXPECT_EQ(load(path).host.tick_hz, 30u);
  std::filesystem::remove(path);
  for (const std::string& missing : {path, testing::TempDir()}) {
    try {
      load(missing);
      FAIL() << missing;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), kExitUsage);
      EXPECT_EQ(error.what(), missing +
                                  ": cannot be read; check that the file exists and that you may "
                                  "read it");
    }
  }
}

TEST(ConfigExample, OfTheReadmeIsSoundAndShedsNothing) {
  const core::Model model = load(EDGESHED_EXAMPLE_CONFIG);
  EXPECT_EQ(model.host.mode, core::Mode::shadow);
  ASSERT_EQ(model.endpoints.size(), 1u);
  EXPECT_EQ(model.endpoints[0].port, 7777);
}

}  // namespace
}  // namespace edgeshed::config
