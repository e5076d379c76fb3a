#include "userspace/client/fake_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace edgeshed::client_test {
namespace {

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

bool readable(int fd, int wait_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, wait_ms) == 1;
}

void fill(es_session_code& code, const char* name, const char* text) {
  std::snprintf(code.name, sizeof(code.name), "%s", name);
  std::snprintf(code.text, sizeof(code.text), "%s", text);
}

template <typename Message>
Message made(std::uint16_t type, std::uint32_t request = 0) {
  Message message{};
  message.head = {.type = type, .bytes = sizeof(Message), .request = request};
  return message;
}

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Board::Board(std::size_t bytes, bool seal)
    : fd_(memfd_create("board", MFD_CLOEXEC | MFD_ALLOW_SEALING)), data_(nullptr), bytes_(bytes) {
  check(fd_ >= 0, "memfd_create");
  check(ftruncate(fd_, static_cast<off_t>(bytes)) == 0, "ftruncate");
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  check(data_ != MAP_FAILED, "mmap");
  if (seal) check(fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "F_ADD_SEALS");
}

Board::~Board() {
  if (fd_ < 0) return;
  munmap(data_, bytes_);
  close(fd_);
}

FakeDaemon::FakeDaemon(std::string path)
    : path_(std::move(path)), listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  unlink(path_.c_str());
  check(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, "bind");
  check(listen(listener_, 4) == 0, "listen");
}

FakeDaemon::~FakeDaemon() {
  hang_up();
  close(listener_);
  unlink(path_.c_str());
}

bool FakeDaemon::accept() {
  hang_up();
  if (!readable(listener_, 2000)) return false;
  session_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  return session_ >= 0;
}

std::optional<Packet> FakeDaemon::receive(int wait_ms) {
  if (!readable(session_, wait_ms)) return {};
  Packet packet;
  packet.bytes.resize(4096);
  const ssize_t bytes = recv(session_, packet.bytes.data(), packet.bytes.size(), 0);
  if (bytes < static_cast<ssize_t>(sizeof(es_session_head))) return {};
  packet.bytes.resize(static_cast<std::size_t>(bytes));
  return packet;
}

bool FakeDaemon::closed(int wait_ms) {
  char byte = 0;
  return readable(session_, wait_ms) && recv(session_, &byte, 1, 0) <= 0;
}

void FakeDaemon::send(const void* message, std::size_t bytes, const std::vector<int>& fds) {
  iovec part{.iov_base = const_cast<void*>(message), .iov_len = bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* passed = CMSG_FIRSTHDR(&header);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(passed), fds.data(), fds.size() * sizeof(int));
  }
  check(sendmsg(session_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes), "sendmsg");
}

es_session_hello FakeDaemon::welcome(const Lies& lies) {
  check(accept(), "no session came");
  const auto packet = receive();
  check(packet && packet->type() == ES_SESSION_hello, "no HELLO came");
  const auto hello = packet->as<es_session_hello>();

  report_.emplace(sizeof(es_report_board) + hello.rows * sizeof(es_board_connection) -
                      lies.report_bytes_missing,
                  lies.sealed);
  plan_.emplace(sizeof(es_plan_board) + kRoomRows * sizeof(es_board_room) - lies.plan_bytes_missing,
                lies.sealed);
  report().magic = plan().magic = lies.magic;
  report().version = plan().version = lies.version;
  report().rows = hello.rows;
  plan().rooms = kRoomRows;
  // From here on nobody may map it for writing: the library must not try.
  if (lies.sealed) check(fcntl(plan_->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0, "F_ADD_SEALS");

  auto answer = made<es_session_welcome>(ES_SESSION_welcome, hello.head.request);
  answer.rows = hello.rows;
  answer.room_rows = kRoomRows;
  const std::vector<int> fds{report_->fd(), plan_->fd(), report_->fd(), plan_->fd()};
  send(&answer, sizeof(answer), {fds.begin(), fds.begin() + lies.boards});
  return hello;
}

void FakeDaemon::refuse_welcome(const char* code, const char* text, std::uint32_t retry_after_ms) {
  check(accept(), "no session came");
  check(receive().has_value(), "no HELLO came");
  auto answer = made<es_session_welcome>(ES_SESSION_welcome);
  fill(answer.refused, code, text);
  answer.refused.retry_after_ms = retry_after_ms;
  send(&answer, sizeof(answer));
  hang_up();
}

void FakeDaemon::room_opened(std::uint32_t request, std::uint32_t row, const char* code) {
  auto answer = made<es_session_room_opened>(ES_SESSION_room_opened, request);
  answer.room = row;
  if (*code) {
    fill(answer.refused, code, "the shard is full");
    answer.refused.retry_after_ms = 3000;
  }
  send(&answer, sizeof(answer));
}

void FakeDaemon::event(std::uint32_t kind, std::uint32_t row, std::uint32_t room,
                       std::uint32_t value, std::uint64_t player, const char* code) {
  auto message = made<es_session_event>(ES_SESSION_event);
  message.kind = kind;
  message.row = row;
  message.room = room;
  message.value = value;
  message.player = player;
  fill(message.code, code, "one line");
  send(&message, sizeof(message));
}

void FakeDaemon::hang_up() {
  if (session_ >= 0) close(session_);
  session_ = -1;
}

es_board_room& FakeDaemon::open_plan(std::uint32_t row, std::int64_t valid_ms) {
  plan().valid_until_ns = now_ns() + static_cast<std::uint64_t>(valid_ms * 1'000'000);
  plan().generation++;
  es_board_room& room = plan().room[row];
  room = {};
  room.open = 1;
  std::fill(std::begin(room.keep_q16), std::end(room.keep_q16), std::uint16_t{0xffff});
  return room;
}

}  // namespace edgeshed::client_test
