// Address text: IPv4 as mapped words in network order, IPv6, remotes, and what is refused.
#include "userspace/core/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

namespace edgeshed::core {
namespace {

TEST(Address, Ipv4IsMappedInNetworkOrder) {
  Address address;
  ASSERT_TRUE(parse_address("10.91.0.1", address));
  unsigned char bytes[16];
  std::memcpy(bytes, &address.hi, 8);
  std::memcpy(bytes + 8, &address.lo, 8);
  const unsigned char expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 91, 0, 1};
  EXPECT_EQ(std::memcmp(bytes, expected, 16), 0);
  EXPECT_EQ(address_text(address), "10.91.0.1");
}

TEST(Address, Ipv6RoundTrip) {
  Address address;
  ASSERT_TRUE(parse_address("2001:db8::1", address));
  EXPECT_EQ(address_text(address), "2001:db8::1");
  Address mapped;
  ASSERT_TRUE(parse_address("::ffff:10.0.0.1", mapped));
  EXPECT_EQ(address_text(mapped), "10.0.0.1");
}

TEST(Address, RefusesWhatIsNoAddress) {
  Address address;
  for (const char* text : {"", "10.0.0", "10.0.0.256", "host", "::1::", "10.0.0.1 "}) {
    EXPECT_FALSE(parse_address(text, address)) << text;
  }
  EXPECT_FALSE(parse_address(std::string_view("10.0.0.1\0x", 10), address));
}

TEST(Address, RemotesRoundTrip) {
  for (const char* text : {"10.91.0.2:40000", "[::1]:4000", "[2001:db8::2]:65535"}) {
    struct es_key key = {};
    key.endpoint = 7;
    ASSERT_TRUE(parse_remote(text, key)) << text;
    EXPECT_EQ(remote_text(key), text);
    EXPECT_EQ(key.endpoint, 7);
  }
  struct es_key key = {};
  ASSERT_TRUE(parse_remote("1.2.3.4:258", key));
  unsigned char port[2];
  std::memcpy(port, &key.port, 2);
  EXPECT_EQ(port[0], 1);
  EXPECT_EQ(port[1], 2);
}

TEST(Address, RefusesWhatIsNoRemote) {
  struct es_key key = {};
  for (const char* text : {"10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "::1:4000",
                           "[10.0.0.1]:80", "[::1]", "10.0.0.1:80x", ":80", "10.0.0.1:-1"}) {
    EXPECT_FALSE(parse_remote(text, key)) << text;
  }
}

}  // namespace
}  // namespace edgeshed::core
