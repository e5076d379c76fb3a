// The protocol of a session: see session.h.
#include "userspace/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace edgeshed::session {
namespace {

template <std::size_t kBytes>
bool terminated(const char (&text)[kBytes]) {
  return std::memchr(text, 0, kBytes) != nullptr;
}

template <std::size_t kBytes>
void copy_text(char (&to)[kBytes], std::string_view text) {
  const std::size_t bytes = std::min(text.size(), kBytes - 1);
  text.copy(to, bytes);
  to[bytes] = 0;
}

template <typename Message>
Message with_head(es_session_type type, std::uint32_t request) {
  Message message{};
  message.head = {static_cast<std::uint16_t>(type), static_cast<std::uint16_t>(sizeof(Message)),
                  request};
  return message;
}

template <typename Message>
std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

/// The message as a struct, if it has its size.
template <typename Message>
std::optional<Message> read_as(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message;
}

constexpr char kNotTerminated[] = "a string without its end";

}  // namespace

es_session_code to_wire(const Refused& refused) {
  es_session_code code{};
  const core::CodeInfo& info = core::code_info(refused.code);
  copy_text(code.name, info.name);
  copy_text(code.text, refused.text.empty() ? info.sentence : refused.text);
  code.retry_after_ms = info.retry_after_ms;
  return code;
}

bool send_event(SessionOutput& output, es_session_event event) {
  event.head = {ES_SESSION_event, static_cast<std::uint16_t>(sizeof(event)), 0};
  return output.send(bytes_of(event), {});
}

Session::~Session() {
  if (open_) host_.ended(id_);
}

std::string Session::handle(std::span<const std::byte> message) {
  es_session_head head{};
  if (message.size() < sizeof(head)) return fmt::format("{} bytes are no message", message.size());
  std::memcpy(&head, message.data(), sizeof(head));
  if (head.bytes != message.size()) {
    return fmt::format("a message of {} bytes says that it has {}", message.size(), head.bytes);
  }
  if (!open_ && head.type != ES_SESSION_hello) return "the first message is not hello";
  const std::string wrong_size = fmt::format("type {} with {} bytes", head.type, message.size());
  const auto with = [&]<typename Message>(std::string (Session::*act)(const Message&)) {
    const auto read = read_as<Message>(message);
    return read ? (this->*act)(*read) : wrong_size;
  };
  switch (head.type) {
    case ES_SESSION_hello:
      return with(&Session::hello);
    case ES_SESSION_room_open:
      return with(&Session::room_open);
    case ES_SESSION_room_close:
      return with(&Session::room_close);
    case ES_SESSION_connect:
      return with(&Session::connect);
    case ES_SESSION_disconnect:
      return with(&Session::disconnect);
    case ES_SESSION_stream:
      return with(&Session::set_stream);
    default:
      return fmt::format("type {} is unknown, or not a server's to send", head.type);
  }
}

void Session::refuse_hello(std::uint32_t request, const Refused& refused) {
  auto answer = with_head<es_session_welcome>(ES_SESSION_welcome, request);
  answer.refused = to_wire(refused);
  output_.send(bytes_of(answer), {});
}

std::string Session::hello(const es_session_hello& message) {
  if (open_) return "a second hello";
  if (message.magic != ES_SESSION_MAGIC) return "hello with another magic";
  const std::uint32_t request = message.head.request;
  if (message.version != ES_SESSION_VERSION) {
    const Refused refused{core::Code::register_version_mismatch,
                          fmt::format("the server speaks version {}, this daemon {}; rebuild it "
                                      "with the installed library",
                                      message.version, ES_SESSION_VERSION)};
    refuse_hello(request, refused);
    return refused.text;
  }
  if (!terminated(message.shard) || !terminated(message.server)) return kNotTerminated;
  const auto opened = host_.open(id_, who_, message, output_);
  if (const auto* refused = std::get_if<Refused>(&opened)) {
    refuse_hello(request, *refused);
    return refused->text;
  }
  open_ = true;
  const Grant& grant = std::get<Grant>(opened);
  auto answer = with_head<es_session_welcome>(ES_SESSION_welcome, request);
  answer.rows = grant.rows;
  answer.room_rows = grant.room_rows;
  answer.frame_budget_ms = grant.frame_budget_ms;
  const bool sent = output_.send(bytes_of(answer), {grant.report_fd, grant.plan_fd});
  host_.welcomed(id_);
  return sent ? std::string() : "the server does not take its boards";
}

std::string Session::room_open(const es_session_room_open& message) {
  if (!terminated(message.room)) return kNotTerminated;
  auto answer = with_head<es_session_room_opened>(ES_SESSION_room_opened, message.head.request);
  const auto opened = host_.room_open(id_, message.room, message.players);
  if (const auto* refused = std::get_if<Refused>(&opened)) {
    answer.room = ES_SESSION_NONE;
    answer.refused = to_wire(*refused);
  } else {
    answer.room = std::get<std::uint32_t>(opened);
  }
  return output_.send(bytes_of(answer), {}) ? std::string()
                                            : "the server does not read its answers";
}

std::string Session::room_close(const es_session_room_close& message) {
  host_.room_close(id_, message.room);
  return {};
}

std::string Session::connect(const es_session_connect& message) {
  if (!terminated(message.endpoint) || !terminated(message.contract_class)) return kNotTerminated;
  const auto refused = host_.connect(id_, message);
  if (!refused) return {};
  es_session_event event{};
  event.kind = ES_SESSION_EVENT_refused;
  event.row = message.row;
  event.room = message.room;
  event.player = message.player;
  event.code = to_wire(*refused);
  send_event(output_, event);  // a server that does not read its refusals hurts itself only
  return {};
}

std::string Session::disconnect(const es_session_disconnect& message) {
  host_.disconnect(id_, message.row);
  return {};
}

std::string Session::set_stream(const es_session_stream& message) {
  host_.set_stream(id_, message);
  return {};
}

}  // namespace edgeshed::session
