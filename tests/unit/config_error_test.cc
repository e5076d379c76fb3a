// The exact text of configuration errors: file:line:column, what is wrong, what is allowed.
#include <gtest/gtest.h>

#include <string>

#include "userspace/config/config.h"

namespace edgeshed::config {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse(text, "e.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitUsage);
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << "one line";
    return line;
  }
  return "no error";
}

// Lines 1 to 8, so that what a test appends begins at line 9.
constexpr const char* kBase = R"([[shard]]
name = "main"
room_capacity = 2
[[room]]
name = "arena"
shard = "main"
[[class]]
name = "player"
)";

// Lines 9 to 14 behind kBase.
constexpr const char* kEndpoint = R"([[endpoint]]
name = "game"
address = "10.0.0.1"
port = 7777
protocol = "enet"
rooms = ["arena"]
)";

std::string based(const std::string& more) { return error_of(kBase + more); }
std::string at_endpoint(const std::string& more) { return based(kEndpoint + more); }

TEST(ConfigError, UnknownKeysNameTheAllowedOnes) {
  EXPECT_EQ(error_of("[hosts]\n"),
            "e.toml:1:2: file: unknown key \"hosts\"; allowed: host, session, interface, "
            "control, slow_consumer, room_state, placement, cost, degree, fair_share, ladder, "
            "shard, room, "
            "class, endpoint, connection; correct its name or remove it");
  EXPECT_EQ(error_of("[host]\ntick_hz = 60\n  tick = 60\n"),
            "e.toml:3:3: [host]: unknown key \"tick\"; allowed: connections_max, endpoints_max, "
            "rooms_max, classes_max, streams_max, stream_hint_ratio, tick_hz, mode, audit_log; "
            "correct its name or remove it");
  EXPECT_EQ(based("standard = { packets = 5 }\n"),
            "e.toml:9:14: [[class]] standard: unknown key \"packets\"; allowed: packets_per_s, "
            "bytes_per_s, burst_s; correct its name or remove it");
  EXPECT_EQ(error_of("[host]\nzebra = 1\nant = 2\n"),
            "e.toml:2:1: [host]: unknown key \"zebra\"; allowed: connections_max, endpoints_max, "
            "rooms_max, classes_max, streams_max, stream_hint_ratio, tick_hz, mode, audit_log; "
            "correct its name or remove it");
}

TEST(ConfigError, SyntaxIsOneLineWithItsPlace) {
  EXPECT_EQ(error_of("[host]\naudit_log = \"audit.jsonl\"\n"),
            "e.toml:2:13: [host]: audit_log: \"audit.jsonl\" is no absolute path; allowed: "
            "/var/log/edgeshed/audit.jsonl, or no audit_log at all");
  const std::string line = error_of("[host]\ntick_hz = \n");
  EXPECT_TRUE(line.starts_with("e.toml:2:11: not valid TOML: ")) << line;
}

TEST(ConfigError, TypesAndRanges) {
  EXPECT_EQ(error_of("[host]\ntick_hz = 300\n"),
            "e.toml:2:11: [host]: tick_hz: 300 is out of range; allowed: 10 to 250");
  EXPECT_EQ(error_of("[host]\ntick_hz = 9\n"),
            "e.toml:2:11: [host]: tick_hz: 9 is out of range; allowed: 10 to 250");
  EXPECT_EQ(error_of("[host]\ntick_hz = 60.5\n"),
            "e.toml:2:11: [host]: tick_hz: is a number with a fraction; allowed: an integer");
  EXPECT_EQ(error_of("[host]\nmode = \"off\"\n"),
            "e.toml:2:8: [host]: mode: \"off\" is unknown; allowed: shadow, enforce");
  EXPECT_EQ(error_of("host = 5\n"),
            "e.toml:1:8: file: host: is an integer; allowed: a table "
            "{ ... }");
  EXPECT_EQ(error_of("[room]\nname = \"r\"\n"),
            "e.toml:1:1: file: room: is a table; allowed: an array of tables");
  EXPECT_EQ(error_of("[[shard]]\nname = \"a\"\nframe_budget_ms = 0.5\n"),
            "e.toml:3:19: [[shard]]: frame_budget_ms: 0.5 is out of range; allowed: 1 to 1000");
  EXPECT_EQ(error_of("[[shard]]\nname = \"a\"\nframe_budget_ms = nan\n"),
            "e.toml:3:19: [[shard]]: frame_budget_ms: nan is out of range; allowed: 1 to 1000");
}

TEST(ConfigError, Names) {
  EXPECT_EQ(error_of("\n[[shard]]\n"),
            "e.toml:2:1: [[shard]]: \"name\" is missing; add it: other tables and the "
            "metrics refer to it");
  EXPECT_EQ(error_of("[[shard]]\nname = \"a b\"\n"),
            "e.toml:2:8: [[shard]]: name: \"a b\" is no name; allowed: 1 to 63 of A-Z a-z 0-9 "
            "_ . -");
  EXPECT_EQ(based("[[shard]]\nname = \"main\"\n"),
            "e.toml:10:8: [[shard]]: name: \"main\" is used twice; give each [[shard]] a name of "
            "its own");
  EXPECT_EQ(based("[[room]]\nname = \"r\"\nshard = \"mian\"\n"),
            "e.toml:11:9: [[room]]: shard: \"mian\" is no [[shard]]; defined: main");
  EXPECT_EQ(based("[[room]]\nname = \"r\"\n"),
            "e.toml:9:1: [[room]]: \"shard\" is missing; add it: the [[shard]] that runs "
            "the room");
  EXPECT_EQ(based("[[endpoint]]\nname = \"g\"\naddress = \"any\"\nport = 1\nprotocol = \"lane\"\n"
                  "rooms = [\"nowhere\"]\n"),
            "e.toml:14:9: [[endpoint]]: rooms: \"nowhere\" is no [[room]]; defined: arena");
  EXPECT_EQ(at_endpoint("[[connection]]\nremote = \"1.1.1.1:1\"\nendpoint = \"gmae\"\n"),
            "e.toml:17:12: [[connection]]: endpoint: \"gmae\" is no [[endpoint]]; defined: game");
  EXPECT_EQ(at_endpoint("[[connection]]\nremote = \"1.1.1.1:1\"\nendpoint = \"game\"\nclass = "
                        "\"vip\"\n"),
            "e.toml:18:9: [[connection]]: class: \"vip\" is no [[class]]; defined: player");
}

TEST(ConfigError, Capacities) {
  EXPECT_EQ(error_of("[host]\nrooms_max = 1\n[[shard]]\nname = \"s\"\n[[room]]\nname = \"a\"\n"
                     "shard = \"s\"\n[[room]]\nname = \"b\"\nshard = \"s\"\n"),
            "e.toml:8:1: [[room]]: is number 2, and rooms_max is 1; raise rooms_max in [host] (at "
            "most 65535) or remove one");
  EXPECT_EQ(error_of("[host]\nclasses_max = 1\n[[class]]\nname = \"a\"\n[[class]]\nname = \"b\"\n"),
            "e.toml:5:1: [[class]]: is number 2, and classes_max is 1; raise classes_max in [host] "
            "(at most 255) or remove one");
  EXPECT_EQ(error_of("[host]\nendpoints_max = 256\n"),
            "e.toml:2:17: [host]: endpoints_max: 256 is out of range; allowed: 1 to 255");
  EXPECT_EQ(based("[[room]]\nname = \"b\"\nshard = \"main\"\n[[room]]\nname = \"c\"\nshard = "
                  "\"main\"\n"),
            "e.toml:14:9: [[room]]: shard: \"main\" has room_capacity 2, and this is room number "
            "3; raise room_capacity or use another shard");
}

TEST(ConfigError, Endpoints) {
  EXPECT_EQ(at_endpoint("[[endpoint]]\nname = \"b\"\naddress = \"10.0.0.1\"\nport = 7777\n"
                        "protocol = \"lane\"\nrooms = [\"arena\"]\n"),
            "e.toml:18:8: [[endpoint]]: port: 7777 at this address already belongs to \"game\"; "
            "change one of them");
  EXPECT_EQ(at_endpoint("dscp = { 46 = \"voice\" }\n"),
            "e.toml:15:8: [[endpoint]]: dscp: belongs to protocol \"dscp\", and this endpoint has "
            "\"enet\"; remove it or change the protocol");
  EXPECT_EQ(at_endpoint("channels = { 64 = { reliable = \"event\" } }\n"),
            "e.toml:15:19: [[endpoint]] channels: 64: is no key here; allowed: 0 to 63");
  EXPECT_EQ(at_endpoint("channels = { 1 = { reliable = \"evnt\" } }\n"),
            "e.toml:15:31: [[endpoint]] channels 1: reliable: \"evnt\" is unknown; allowed: "
            "control, join, command, event, snapshot, stream, voice, cosmetic");
  EXPECT_EQ(at_endpoint("lanes = { command = \"vital\" }\n"),
            "e.toml:15:21: [[endpoint]] lanes: command: \"vital\" is unknown; allowed: critical, "
            "standard, best_effort");
  EXPECT_EQ(at_endpoint("stranger = { room = \"lobby\" }\n"),
            "e.toml:15:21: [[endpoint]] stranger: room: \"lobby\" is no room of this endpoint; "
            "name one of its rooms");
  EXPECT_EQ(based("[[endpoint]]\nname = \"g\"\naddress = \"localhost\"\n"),
            "e.toml:11:11: [[endpoint]]: address: \"localhost\" is no address; allowed: IPv4, IPv6 "
            "or \"any\"");
  EXPECT_EQ(based("[[endpoint]]\nname = \"g\"\naddress = \"any\"\nport = 70000\n"),
            "e.toml:12:8: [[endpoint]]: port: 70000 is out of range; allowed: 1 to 65535");
  EXPECT_EQ(based("[[endpoint]]\nname = \"g\"\naddress = \"any\"\nport = 7\n"),
            "e.toml:9:1: [[endpoint]]: \"protocol\" is missing; add it: one of opaque, "
            "enet, lane, dscp, match; it is never guessed");
}

TEST(ConfigError, MatchRules) {
  const std::string head =
      "[[endpoint]]\nname = \"g\"\naddress = \"any\"\nport = 7\nprotocol = \"match\"\nrooms = "
      "[\"arena\"]\n";
  EXPECT_EQ(based(head + "match = [ { offset = 0, mask = 0xff, value = 0x100, lane = \"voice\" } "
                         "]\n"),
            "e.toml:15:46: [[endpoint]] match: value: has bits outside mask and would never match; "
            "clear them or widen mask");
  std::string nine = "match = [\n";
  for (int i = 0; i < 9; ++i) nine += "{ offset = 0, mask = 1, value = 1, lane = \"voice\" },\n";
  EXPECT_EQ(based(head + nine + "]\n"),
            "e.toml:15:9: [[endpoint]]: match: 9 rules are too many; allowed: 1 to 8");
}

TEST(ConfigError, FiveAddressesOfOnePort) {
  std::string text;
  for (int i = 1; i <= 5; ++i) {
    const std::string number = std::to_string(i);
    text += "[[endpoint]]\nname = \"e" + number + "\"\naddress = \"10.0.0." + number +
            "\"\nport = 7\nprotocol = \"lane\"\nrooms = [\"arena\"]\n";
  }
  EXPECT_EQ(based(text),
            "e.toml:36:8: [[endpoint]]: port: 7 has 5 endpoints; allowed: 4 addresses per port; "
            "use another port or \"any\"");
}

TEST(ConfigError, Connections) {
  EXPECT_EQ(at_endpoint("[[connection]]\nremote = \"::1:4000\"\nendpoint = \"game\"\n"),
            "e.toml:16:10: [[connection]]: remote: \"::1:4000\" is no address and port; allowed: "
            "\"10.0.0.2:40000\" or \"[2001:db8::2]:40000\"");
  const std::string one = "[[connection]]\nremote = \"1.1.1.1:1\"\nendpoint = \"game\"\n";
  EXPECT_EQ(at_endpoint(one + one),
            "e.toml:19:10: [[connection]]: remote: \"1.1.1.1:1\" is named twice at endpoint "
            "\"game\"; remove one");
  EXPECT_EQ(at_endpoint(one + "room = \"lobby\"\n"),
            "e.toml:18:8: [[connection]]: room: \"lobby\" is unknown; allowed: arena");
  EXPECT_EQ(at_endpoint(one + "weight = 0\n"),
            "e.toml:18:10: [[connection]]: weight: 0 is out of range; allowed: 0.004 to 256");
}

TEST(ConfigError, RatesAndBursts) {
  EXPECT_EQ(based("standard = { packets_per_s = 10, burst_s = 9 }\n"),
            "e.toml:9:44: [[class]] standard: burst_s: 9 s are more than a debt can hold; allowed: "
            "0 to 8.192 at HZ 1000");
  EXPECT_EQ(based("standard = { bytes_per_s = 10 }\n"),
            "e.toml:9:28: [[class]] standard: bytes_per_s: 10 is out of range; allowed: 1000 to "
            "1000000000");
}

TEST(ConfigError, ControlAndLadder) {
  EXPECT_EQ(error_of("[control]\nexit_ratio = 1.5\n"),
            "e.toml:2:14: [control]: exit_ratio: must be 0.1 to 1");
  EXPECT_EQ(error_of("[control]\nce_pressure_low = 1.2\n"),
            "e.toml:1:1: [control]: ce_pressure_high: must be above ce_pressure_low");
  EXPECT_EQ(error_of("[[ladder]]\nrung = 3\nsnapshot = { keep = 0.9 }\n"),
            "e.toml:1:1: [[ladder]]: rung 3: must not keep more of anything than rung 2; change "
            "that rung or the one below it");
  EXPECT_EQ(error_of("[[ladder]]\nrung = 3\n[[ladder]]\nrung = 3\n"),
            "e.toml:4:8: [[ladder]]: rung: 3 is used twice; merge the tables");
  EXPECT_EQ(error_of("[[ladder]]\nrung = 0\n"),
            "e.toml:2:8: [[ladder]]: rung: 0 is out of range; allowed: 1 to 5");
}

TEST(ConfigError, OneLineWhateverTheFileQuotes) {
  EXPECT_EQ(error_of("[host]\nmode = \"a\\nb\\u001b[31m\"\n"),
            "e.toml:2:8: [host]: mode: \"a b [31m\" is unknown; allowed: shadow, enforce");
  for (const char* text : {"\"a\\nb\" = 1\n", "[host]\n\"a\\rb\" = 1\n", "a = \"x\\ty\nb\"\n",
                           "[[shard]]\nname = \"a\\u007fb\"\n", "[[shard]]\nname = '\t'\n",
                           "[[interface]]\ndev = \"a\\nb\"\nfaces = \"c\\nd\"\n"}) {
    for (const char c : error_of(text)) EXPECT_TRUE(c >= ' ' && c != 0x7f) << text;
  }
}

}  // namespace
}  // namespace edgeshed::config
