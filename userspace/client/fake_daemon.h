// A daemon for tests of the library: one thread, driven step by step, so that nothing is a race.
#ifndef EDGESHED_CLIENT_FAKE_DAEMON_H
#define EDGESHED_CLIENT_FAKE_DAEMON_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "userspace/session/wire.h"

namespace edgeshed::client_test {

/// A memfd and its mapping.
class Board {
 public:
  Board(std::size_t bytes, bool seal);
  ~Board();
  Board(Board&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_) {}
  Board& operator=(Board&&) = delete;

  int fd() const { return fd_; }
  void* data() const { return data_; }

 private:
  int fd_;
  void* data_;
  std::size_t bytes_;
};

/// How the welcome lies.
struct Lies {
  std::uint32_t version = ES_SESSION_VERSION;
  std::uint32_t magic = ES_SESSION_MAGIC;
  std::size_t report_bytes_missing = 0;
  std::size_t plan_bytes_missing = 0;
  bool sealed = true;
  int boards = 2;
};

/// A message as received.
struct Packet {
  std::vector<char> bytes;
  std::uint16_t type() const { return as<es_session_head>().type; }
  template <typename Message>
  const Message& as() const {
    return *reinterpret_cast<const Message*>(bytes.data());
  }
};

class FakeDaemon {
 public:
  explicit FakeDaemon(std::string path);
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  /// Waits for a session, at most two seconds. False: none came.
  bool accept();
  /// The next message, waited for at most `wait_ms`. Nothing: none came, or the session is over.
  std::optional<Packet> receive(int wait_ms = 2000);
  /// Whether the session's socket was closed by the library.
  bool closed(int wait_ms = 2000);
  void send(const void* message, std::size_t bytes, const std::vector<int>& fds = {});
  /// accept, HELLO, WELCOME. The boards are new ones.
  es_session_hello welcome(const Lies& lies = {});
  void refuse_welcome(const char* code, const char* text, std::uint32_t retry_after_ms);
  /// Answers ROOM_OPEN. `code` empty: accepted.
  void room_opened(std::uint32_t request, std::uint32_t row, const char* code = "");
  void event(std::uint32_t kind, std::uint32_t row, std::uint32_t room, std::uint32_t value,
             std::uint64_t player, const char* code);
  /// Ends the session; the listener stays.
  void hang_up();

  es_report_board& report() { return *static_cast<es_report_board*>(report_->data()); }
  es_plan_board& plan() { return *static_cast<es_plan_board*>(plan_->data()); }
  /// A plan that keeps everything, valid for `valid_ms`, with room `row` placed.
  es_board_room& open_plan(std::uint32_t row, std::int64_t valid_ms);

  static constexpr std::uint32_t kRoomRows = 64;

 private:
  std::string path_;
  int listener_;
  int session_ = -1;
  std::optional<Board> report_;
  std::optional<Board> plan_;
};

std::uint64_t now_ns();

}  // namespace edgeshed::client_test

#endif
