// One game server's session: bytes in, calls on its host, bytes out. Reads what a stranger may have
// written, so it knows sizes and order and nothing else; must not know sockets, maps or rooms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "userspace/core/codes.h"
#include "userspace/session/wire.h"

namespace edgeshed::session {

/// Numbers of sessions: 2 and up, never used again by one daemon.
using SessionId = std::uint32_t;

/// Why something was refused: the code that the server gets, and one line that says more.
struct Refused {
  core::Code code = core::Code::count;
  std::string text;
};

/// What a session gets. The descriptors stay the host's.
struct Grant {
  std::uint32_t rows = 0;
  std::uint32_t room_rows = 0;
  double frame_budget_ms = 0;
  int report_fd = -1;
  int plan_fd = -1;
};

/// Where a session's messages go out. One message per call, whole or not at all.
class SessionOutput {
 public:
  virtual ~SessionOutput() = default;
  /// False: the server does not read, or is gone; the message is lost.
  virtual bool send(std::span<const std::byte> message, std::initializer_list<int> fds) = 0;
  /// Ends the connection: the server registers anew, if it can.
  virtual void end() = 0;
};

struct ServerIdentity {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
};

/// Who decides. Names are valid only during the call.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  /// Strings in `hello` are terminated. `output` stays valid until ended().
  virtual std::variant<Grant, Refused> open(SessionId id, const ServerIdentity& who,
                                            const es_session_hello& hello,
                                            SessionOutput& output) = 0;
  /// The room's row on the plan board, or why not.
  virtual std::variant<std::uint32_t, Refused> room_open(SessionId id, std::string_view room,
                                                         std::uint32_t players) = 0;
  /// The server has been sent its descriptors.
  virtual void welcomed(SessionId id) = 0;
  virtual void room_close(SessionId id, std::uint32_t room) = 0;
  virtual std::optional<Refused> connect(SessionId id, const es_session_connect& peer) = 0;
  virtual void disconnect(SessionId id, std::uint32_t row) = 0;
  /// Answered by the host: only it knows whom a refusal is about.
  virtual void set_stream(SessionId id, const es_session_stream& stream) = 0;
  /// Only after open() has granted.
  virtual void ended(SessionId id) = 0;
};

class Session {
 public:
  Session(SessionId id, const ServerIdentity& who, SessionHost& host, SessionOutput& output)
      : id_(id), who_(who), host_(host), output_(output) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Acts on one message. Empty: the session goes on; otherwise it is over, and this is the line
  /// for the log.
  [[nodiscard]] std::string handle(std::span<const std::byte> message);

 private:
  std::string hello(const es_session_hello& message);
  std::string room_open(const es_session_room_open& message);
  std::string room_close(const es_session_room_close& message);
  std::string connect(const es_session_connect& message);
  std::string disconnect(const es_session_disconnect& message);
  std::string set_stream(const es_session_stream& message);
  void refuse_hello(std::uint32_t request, const Refused& refused);

  SessionId id_;
  ServerIdentity who_;
  SessionHost& host_;
  SessionOutput& output_;
  bool open_ = false;
};

/// The wire's form of a refusal, cut to its fields.
es_session_code to_wire(const Refused& refused);

/// Sends `event` of `kind`; sizes and type are filled in.
bool send_event(SessionOutput& output, es_session_event event);

}  // namespace edgeshed::session
