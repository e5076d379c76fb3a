// See bytes.h.
#include "tests/support/bytes.h"

#include <stdexcept>

namespace edgeshed::test {
namespace {

void require_room(size_t have, size_t offset, size_t need) {
  if (offset > have || have - offset < need) {
    throw std::out_of_range("byte " + std::to_string(offset) + " + " + std::to_string(need) +
                            " of " + std::to_string(have));
  }
}

}  // namespace

void put_be16(Bytes& out, uint16_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8));
  out.push_back(static_cast<uint8_t>(value & 0xff));
}

void put_be32(Bytes& out, uint32_t value) {
  put_be16(out, static_cast<uint16_t>(value >> 16));
  put_be16(out, static_cast<uint16_t>(value & 0xffff));
}

void put_bytes(Bytes& out, ByteView bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

void set_be16(Bytes& bytes, size_t offset, uint16_t value) {
  require_room(bytes.size(), offset, 2);
  bytes[offset] = static_cast<uint8_t>(value >> 8);
  bytes[offset + 1] = static_cast<uint8_t>(value & 0xff);
}

void set_be32(Bytes& bytes, size_t offset, uint32_t value) {
  require_room(bytes.size(), offset, 4);
  set_be16(bytes, offset, static_cast<uint16_t>(value >> 16));
  set_be16(bytes, offset + 2, static_cast<uint16_t>(value & 0xffff));
}

uint8_t u8_at(ByteView bytes, size_t offset) {
  require_room(bytes.size(), offset, 1);
  return bytes[offset];
}

uint16_t be16_at(ByteView bytes, size_t offset) {
  require_room(bytes.size(), offset, 2);
  return static_cast<uint16_t>(bytes[offset] << 8 | bytes[offset + 1]);
}

uint32_t be32_at(ByteView bytes, size_t offset) {
  require_room(bytes.size(), offset, 4);
  return static_cast<uint32_t>(be16_at(bytes, offset)) << 16 | be16_at(bytes, offset + 2);
}

Bytes filler(size_t size, uint8_t first) {
  Bytes out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(first + i);
  return out;
}

std::string hex(ByteView bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 0x0f];
  }
  return out;
}

uint16_t internet_sum(ByteView bytes, uint32_t sum) {
  // 64 bits hold the sum of any frame, so folding can wait until the end.
  uint64_t wide = sum;
  for (size_t i = 0; i < bytes.size(); ++i) {
    wide += (i % 2 == 0) ? static_cast<uint64_t>(bytes[i]) << 8 : bytes[i];
  }
  while (wide > 0xffff) wide = (wide & 0xffff) + (wide >> 16);
  return static_cast<uint16_t>(wide);
}

uint32_t crc32_ieee(ByteView bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

}  // namespace edgeshed::test
