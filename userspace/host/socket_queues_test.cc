// Sockets of our own on loopback, filled and read; and answers that no kernel gives.
#include "userspace/host/socket_queues.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "userspace/core/receive_queue.h"

namespace edgeshed::host {
namespace {

/// A UDP socket bound to loopback, which never reads.
struct DeafServer {
  DeafServer() : fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  }
  std::uint16_t port() const { return ntohs(address.sin_port); }
  void hear(int messages, std::size_t bytes) const {
    const std::vector<char> payload(bytes, 'x');
    const kernel::Fd client(::socket(AF_INET, SOCK_DGRAM, 0));
    for (int i = 0; i < messages; ++i) {
      ::sendto(client.get(), payload.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&address),
               sizeof address);
    }
  }
  void read_all() const {
    char buffer[2048];
    while (::recv(fd.get(), buffer, sizeof buffer, 0) > 0) {
    }
  }
  kernel::Fd fd;
  sockaddr_in address{};
};

/// The one socket of a port; port 0 if there is none.
SocketQueue queue_at(SocketQueues& queues, std::uint16_t port, std::uint16_t filter) {
  SocketQueue found;
  EXPECT_TRUE(queues.read(filter, [&](const SocketQueue& one) {
    if (one.port == port) found = one;
  }));
  return found;
}

TEST(SocketQueues, WhatWaitsIsSeenAndGoesWhenItIsRead) {
  const DeafServer server;
  SocketQueues queues;
  for (const std::uint16_t filter : {server.port(), std::uint16_t{0}}) {
    EXPECT_EQ(queue_at(queues, server.port(), filter).bytes, 0u);
    server.hear(100, 60);
    const SocketQueue full = queue_at(queues, server.port(), filter);
    EXPECT_EQ(core::address_text(full.local), "127.0.0.1");
    const double messages = full.bytes / core::kBytesPerMessage;
    EXPECT_GT(messages, 50);
    EXPECT_LT(messages, 200);
    server.read_all();
    EXPECT_EQ(queue_at(queues, server.port(), filter).bytes, 0u);
  }
}

TEST(SocketQueues, APortWithoutASocketHasNone) {
  std::uint16_t port = 0;
  {
    const DeafServer gone;
    port = gone.port();
  }
  SocketQueues queues;
  EXPECT_EQ(queue_at(queues, port, port).port, 0);
}

/// An answer as the kernel writes it.
struct Answer {
  void add(std::uint16_t type, std::uint32_t sequence, std::span<const std::byte> body,
           std::uint32_t claimed = 0) {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body.size());
    if (claimed != 0) header.nlmsg_len = claimed;
    header.nlmsg_type = type;
    header.nlmsg_seq = sequence;
    const auto* const begin = reinterpret_cast<const std::byte*>(&header);
    bytes.insert(bytes.end(), begin, begin + sizeof header);
    bytes.insert(bytes.end(), body.begin(), body.end());
  }
  void add_socket(std::uint32_t sequence, std::uint32_t waits, std::uint8_t family = AF_INET) {
    inet_diag_msg message{};
    message.idiag_family = family;
    message.id.idiag_sport = htons(7777);
    message.idiag_rqueue = waits;
    add(SOCK_DIAG_BY_FAMILY, sequence, std::as_bytes(std::span(&message, 1)));
  }
  DiagPart parse(std::uint32_t sequence = 1) {
    found.clear();
    return parse_diag(bytes, sequence, [this](const SocketQueue& one) { found.push_back(one); });
  }
  std::vector<std::byte> bytes;
  std::vector<SocketQueue> found;
};

TEST(DiagAnswer, PartsAndEnd) {
  Answer answer;
  EXPECT_EQ(answer.parse(), DiagPart::more);
  answer.add_socket(1, 832);
  answer.add_socket(1, 1664, AF_INET6);
  answer.add_socket(9, 5);  // of a request that was given up
  EXPECT_EQ(answer.parse(), DiagPart::more);
  ASSERT_EQ(answer.found.size(), 2u);
  EXPECT_EQ(answer.found[1].bytes, 1664u);
  EXPECT_EQ(answer.found[1].port, 7777);
  EXPECT_EQ(answer.found[0].local, core::Address{});
  answer.add(NLMSG_DONE, 9, {});
  EXPECT_EQ(answer.parse(), DiagPart::more);
  answer.add(NLMSG_DONE, 1, {});
  EXPECT_EQ(answer.parse(), DiagPart::done);
}

TEST(DiagAnswer, WhatNoKernelSaysFails) {
  const std::byte body[4] = {};
  Answer refused;
  refused.add(NLMSG_ERROR, 1, body);
  EXPECT_EQ(refused.parse(), DiagPart::failed);
  Answer short_message;
  short_message.add(SOCK_DIAG_BY_FAMILY, 1, body);
  EXPECT_EQ(short_message.parse(), DiagPart::failed);
  for (const std::uint32_t claimed : {1u, 15u, 21u, 0xffffffffu}) {
    Answer lies;
    lies.add(SOCK_DIAG_BY_FAMILY, 2, body, claimed);
    EXPECT_EQ(lies.parse(), DiagPart::failed) << claimed;
  }
  Answer whole;
  whole.add_socket(1, 832);
  whole.add(NLMSG_DONE, 1, {});
  for (std::size_t length = 1; length < whole.bytes.size(); ++length) {
    Answer cut;
    cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<long>(length));
    const bool between = length == sizeof(nlmsghdr) + sizeof(inet_diag_msg);
    EXPECT_EQ(cut.parse(), between ? DiagPart::more : DiagPart::failed) << length;
  }
}

}  // namespace
}  // namespace edgeshed::host
