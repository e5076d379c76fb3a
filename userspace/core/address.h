// Text to address words and back. Text only: must not resolve names or open anything.
#pragma once

#include <string>
#include <string_view>

#include "maps/connection.h"

namespace edgeshed::core {

/// Address in network order, as in struct es_key: IPv4 is ::ffff:a.b.c.d.
struct Address {
  __u64 hi = 0;
  __u64 lo = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

/// "10.0.0.1" or "2001:db8::1"; false when it is neither. IPv6 text of an IPv4 address is IPv4.
bool parse_address(std::string_view text, Address& address);
std::string address_text(const Address& address);

/// "10.0.0.1:40000" or "[2001:db8::1]:4000" into address and port of the key, the rest untouched;
/// false when malformed, or when the port is not 1 to 65535.
bool parse_remote(std::string_view text, struct es_key& key);
std::string remote_text(const struct es_key& key);

}  // namespace edgeshed::core
