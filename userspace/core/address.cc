// Address text, by the C library's two pure converters.
#include "userspace/core/address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstdint>
#include <cstring>

namespace edgeshed::core {
namespace {

constexpr unsigned char kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Address from_bytes(const unsigned char (&bytes)[16]) {
  Address address;
  std::memcpy(&address.hi, bytes, 8);
  std::memcpy(&address.lo, bytes + 8, 8);
  return address;
}

}  // namespace

bool parse_address(std::string_view text, Address& address) {
  const std::string terminated(text);
  unsigned char bytes[16];
  std::memcpy(bytes, kMappedPrefix, sizeof kMappedPrefix);
  if (inet_pton(AF_INET, terminated.c_str(), bytes + sizeof kMappedPrefix) != 1 &&
      inet_pton(AF_INET6, terminated.c_str(), bytes) != 1) {
    return false;
  }
  // An embedded NUL would hide what follows it from inet_pton.
  if (terminated.size() != std::strlen(terminated.c_str())) return false;
  address = from_bytes(bytes);
  return true;
}

std::string address_text(const Address& address) {
  unsigned char bytes[16];
  std::memcpy(bytes, &address.hi, 8);
  std::memcpy(bytes + 8, &address.lo, 8);
  char text[INET6_ADDRSTRLEN] = "";
  if (std::memcmp(bytes, kMappedPrefix, sizeof kMappedPrefix) == 0) {
    inet_ntop(AF_INET, bytes + sizeof kMappedPrefix, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, bytes, text, sizeof text);
  }
  return text;
}

bool parse_remote(std::string_view text, struct es_key& key) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets nobody can say where an IPv6 address ends and its port begins.
  if (bracketed != (host.find(':') != std::string_view::npos)) return false;

  uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its end is passed too
  const auto parsed = std::from_chars(port_text.data(), end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end || port == 0) return false;
  Address address;
  if (!parse_address(host, address)) return false;
  key.addr_hi = address.hi;
  key.addr_lo = address.lo;
  key.port = htons(port);
  return true;
}

std::string remote_text(const struct es_key& key) {
  std::string host = address_text({key.addr_hi, key.addr_lo});
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return host + ":" + std::to_string(ntohs(key.port));
}

}  // namespace edgeshed::core
