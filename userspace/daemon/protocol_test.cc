// The control socket's messages: what is read, what is refused, and what ends a connection.
#include "userspace/daemon/protocol.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <variant>

namespace edgeshed::daemon {
namespace {

Refusal refused(std::string_view message) {
  const auto parsed = parse_request(message);
  const auto* refusal = std::get_if<Refusal>(&parsed);
  return refusal != nullptr ? *refusal : Refusal{false, "accepted"};
}

TEST(Protocol, ReadsBackWhatItWrites) {
  const ConnectRequest connect{"[2001:db8::7]:40000", "game", "lobby", "pro", 200, 2.5};
  const auto parsed = parse_request(to_message(connect));
  const auto& back = std::get<ConnectRequest>(std::get<Request>(parsed));
  EXPECT_EQ(back.remote, connect.remote);
  EXPECT_EQ(back.room, "lobby");
  EXPECT_EQ(back.contract_class, "pro");
  EXPECT_EQ(back.priority, 200u);
  EXPECT_EQ(back.weight, 2.5);
  const Request requests[] = {ReportRequest{"a", 1.5, 2, 0.5, 7},
                              DisconnectRequest{"r", "e"},
                              SetRequest{"shard", "a", 3, 10},
                              SetRequest{"room", "a", {}, 0},
                              DrainRequest{"a", true},
                              BypassRequest{false},
                              StatusRequest{},
                              EventsRequest{},
                              NamesRequest{"room", 512}};
  for (const Request& request : requests) {
    const auto again = parse_request(to_message(request));
    ASSERT_TRUE(std::holds_alternative<Request>(again)) << to_message(request);
    EXPECT_EQ(std::get<Request>(again).index(), request.index());
  }
}

TEST(Protocol, ImpossibleValuesAreRefusedAndTheConnectionGoesOn) {
  for (const char* message :
       {R"({"command":"report","shard":"a","tick_p99_ms":-0.1})",
        R"({"command":"report","shard":"a","tick_p99_ms":600001})",
        R"({"command":"report","shard":"a","tick_p99_ms":1,"ring":1.01})",
        R"({"command":"report","shard":"a","tick_p99_ms":1,"rooms":1.5})",
        R"({"command":"set","kind":"room","name":"a","rung":6,"for_s":1})",
        R"({"command":"set","kind":"room","name":"a","rung":5,"for_s":0})",
        R"({"command":"set","kind":"shard","name":"a","rung":5,"for_s":86401})",
        R"({"command":"connect","remote":"r","endpoint":"e","priority":256})",
        R"({"command":"connect","remote":"r","endpoint":"e","weight":0})"}) {
    const Refusal refusal = refused(message);
    EXPECT_FALSE(refusal.malformed) << message;
    EXPECT_NE(refusal.error.find("allowed: "), std::string::npos) << refusal.error;
  }
}

TEST(Protocol, MalformedMessagesEndTheConnection) {
  const std::string deep = std::string(1000, '[');
  const std::string long_name =
      R"({"command":"report","tick_p99_ms":1,"shard":")" + std::string(200, 'x') + "\"}";
  for (const std::string& message :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), deep, long_name,
        std::string(R"({"command":"dance"})"), std::string(R"({"command":7})"),
        std::string(R"({"command":"report","shard":"a"})"),
        std::string(R"({"command":"set","kind":"shard","name":"a","rung":1})"),
        std::string(R"({"command":"drain","shard":"a","on":1})"),
        std::string(R"({"command":"drain","shard":"a"})"),
        std::string(R"({"command":"report","shard":"a","tick_p99_ms":"1"})"),
        std::string(R"({"command":"report","shard":"a","tick_p99_ms":NaN})"),
        std::string(R"({"command":"report","shard":"a","tick_p99_ms":1,"rign":1})"),
        std::string(R"({"command":"status"} {"command":"status"})"),
        std::string(kMessageBytesMax + 1, ' ')}) {
    EXPECT_TRUE(refused(message).malformed) << message.substr(0, 80);
  }
}

TEST(Protocol, AnswersAreOneLine) {
  EXPECT_EQ(error_answer("a\nb\r"), R"({"ok":false,"error":"a b "})");
  EXPECT_EQ(ok_answer({{"count", 3}}), R"({"ok":true,"count":3})");
}

TEST(Protocol, AnyBytesAreTaken) {
  std::mt19937 random(1);
  const std::string seed =
      R"({"command":"report","shard":"a","tick_p99_ms":1.5e2,"ring":0.5,"rooms":3})";
  for (int i = 0; i < 20'000; ++i) {
    std::string message = seed;
    for (int edits = 1 + i % 4; edits > 0; --edits) {
      message[random() % message.size()] = static_cast<char>(random());
    }
    const auto parsed = parse_request(message);
    if (const auto* request = std::get_if<Request>(&parsed)) {
      if (const auto* report = std::get_if<ReportRequest>(request)) {
        EXPECT_GE(report->tick_p99_ms, 0);
        EXPECT_LE(report->ring, 1);
      }
    }
  }
}

}  // namespace
}  // namespace edgeshed::daemon
