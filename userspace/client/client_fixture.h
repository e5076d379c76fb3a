// What the library's tests share: a session, the daemon that it meets, and short names.
#ifndef EDGESHED_CLIENT_CLIENT_FIXTURE_H
#define EDGESHED_CLIENT_CLIENT_FIXTURE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "userspace/client/client.h"
#include "userspace/client/fake_daemon.h"

namespace edgeshed::client_test {

struct CloseSession {
  void operator()(edgeshed_session* session) const { edgeshed_close(session); }
};
using Session = std::unique_ptr<edgeshed_session, CloseSession>;

/// Runs the daemon's part in a thread while the library's part, which waits for it, runs here.
template <typename Part>
auto beside(const std::function<void()>& daemons_part, Part part) {
  auto other = std::async(std::launch::async, daemons_part);
  auto result = part();
  other.get();
  return result;
}

inline double ms_since(std::uint64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) / 1e6;
}

class Client : public testing::Test {
 protected:
  Client() {
    char directory[] = "/tmp/edgeshed_client_XXXXXX";
    directory_ = mkdtemp(directory);
    path_ = directory_ + "/session.sock";
    address_.sin_family = AF_INET;
    address_.sin_port = htons(4000);
    inet_pton(AF_INET, "192.0.2.7", &address_.sin_addr);
  }
  ~Client() override {
    session_.reset();
    daemon_.reset();
    rmdir(directory_.c_str());
    close(some_fd_);
  }

  Session open(std::uint32_t peers_max = 0) {
    const edgeshed_options options{.shard = "arena",
                                   .socket = path_.c_str(),
                                   .server = "test",
                                   .peers_max = peers_max,
                                   .sends_unasked = 0};
    return Session(edgeshed_open(&options));
  }
  void start_daemon() { daemon_.emplace(path_); }
  /// A session that the daemon has accepted.
  void accepted(std::uint32_t peers_max = 0) {
    start_daemon();
    session_ = beside([&] { daemon_->welcome(); }, [&] { return open(peers_max); });
    ASSERT_TRUE(edgeshed_connected(session_.get())) << edgeshed_problem(session_.get());
  }
  /// A room that the daemon has placed on `row`.
  int room(std::uint32_t row, const char* name = "match") {
    return beside([&] { answer_room(row); },
                  [&] { return edgeshed_room_open(session_.get(), name, 16); });
  }
  void answer_room(std::uint32_t row, const char* code = "") {
    const auto packet = daemon_->receive();
    ASSERT_TRUE(packet && packet->type() == ES_SESSION_room_open);
    daemon_->room_opened(packet->as<es_session_room_open>().head.request, row, code);
  }
  int connect(int room, std::uint64_t player = 0) {
    const edgeshed_peer peer{.room = room,
                             .addr = reinterpret_cast<const sockaddr*>(&address_),
                             .endpoint = nullptr,
                             .contract_class = nullptr,
                             .player = player,
                             .weight = 0,
                             .priority = 0};
    return edgeshed_connect(session_.get(), &peer);
  }
  /// A connection as the daemon hears of it.
  es_session_connect heard_connect() {
    const auto packet = daemon_->receive();
    if (packet && packet->type() == ES_SESSION_connect) return packet->as<es_session_connect>();
    ADD_FAILURE() << "no CONNECT came";
    return {};
  }
  std::optional<edgeshed_event> poll() {
    edgeshed_event event{};
    if (!edgeshed_poll(session_.get(), &event)) return {};
    return event;
  }
  void expect_event(int kind, const char* text) {
    const auto event = poll();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->kind, kind);
    EXPECT_THAT(event->text, testing::HasSubstr(text));
  }
  /// The second between two tries is over.
  void retry_now() { session_->next_try_ns = 0; }
  bool may_send(int peer, edgeshed_lane lane) {
    return edgeshed_may_send(session_.get(), peer, lane) == 1;
  }
  void tick() {
    edgeshed_tick_begin(session_.get());
    edgeshed_tick_end(session_.get());
  }

  int some_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::string directory_;
  std::string path_;
  sockaddr_in address_{};
  std::optional<FakeDaemon> daemon_;
  Session session_;
};

}  // namespace edgeshed::client_test

#endif
