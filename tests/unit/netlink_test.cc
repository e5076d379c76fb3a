// Answers of netlink that come in parts, late, or torn: no kernel says them.
#include "userspace/doctor/netlink.h"

#include <linux/netlink.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace edgeshed::doctor {
namespace {

constexpr unsigned kSequence = 7;
constexpr unsigned kPort = 0;  // of the kernel's own

std::vector<char> message(std::uint16_t type, std::uint16_t flags) {
  struct {
    nlmsghdr header;
    int error;
  } one{};
  one.header.nlmsg_len = sizeof(one);
  one.header.nlmsg_type = type;
  one.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_MULTI | flags);
  one.header.nlmsg_seq = kSequence;
  std::vector<char> bytes(sizeof(one));
  std::memcpy(bytes.data(), &one, sizeof(one));
  return bytes;
}

/// One after the other; an empty one is a signal that comes before anything else does.
Receive saying(std::vector<std::vector<char>> messages) {
  return [messages, next = std::size_t{0}](std::span<char> buffer) mutable -> ssize_t {
    if (next == messages.size()) {
      errno = EAGAIN;
      return -1;
    }
    const std::vector<char>& one = messages[next++];
    if (one.empty()) {
      errno = EINTR;
      return -1;
    }
    std::copy(one.begin(), one.end(), buffer.begin());
    return static_cast<ssize_t>(one.size());
  };
}

constexpr std::uint16_t kSomething = NLMSG_MIN_TYPE;

TEST(Netlink, ASignalDoesNotEndAnAnswer) {
  std::vector<std::vector<char>> parts;
  const Receive receive =
      saying({{}, message(kSomething, 0), {}, message(kSomething, 0), {}, message(NLMSG_DONE, 0)});
  EXPECT_EQ(take_answer(receive, kSequence, kPort, parts), 0);
  EXPECT_EQ(parts.size(), 3u);
}

TEST(Netlink, ATornDumpIsTold) {
  std::vector<std::vector<char>> parts;
  const Receive receive = saying(
      {message(kSomething, 0), message(kSomething, NLM_F_DUMP_INTR), message(NLMSG_DONE, 0)});
  EXPECT_EQ(take_answer(receive, kSequence, kPort, parts), EINTR);
}

TEST(Netlink, ACutAnswerIsNone) {
  std::vector<std::vector<char>> parts;
  EXPECT_EQ(take_answer(saying({message(kSomething, 0)}), kSequence, kPort, parts), EAGAIN);
}

}  // namespace
}  // namespace edgeshed::doctor
