// Byte-level helpers that the test support shares: big-endian access, filler data, checksums.
// Must not know any protocol above the internet checksum and CRC32, and must include nothing of
// the project: what these files compute is compared with what the project computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace edgeshed::test {

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

void put_be16(Bytes& out, uint16_t value);
void put_be32(Bytes& out, uint32_t value);
void put_bytes(Bytes& out, ByteView bytes);

/// Overwrites two or four bytes at `offset` (in bytes); throws std::out_of_range past the end.
void set_be16(Bytes& bytes, size_t offset, uint16_t value);
void set_be32(Bytes& bytes, size_t offset, uint32_t value);

/// Read at `offset` (in bytes); each throws std::out_of_range past the end.
uint8_t u8_at(ByteView bytes, size_t offset);
uint16_t be16_at(ByteView bytes, size_t offset);
uint32_t be32_at(ByteView bytes, size_t offset);

/// `size` bytes that count up from `first`, so that a shifted or cut payload is never equal.
Bytes filler(size_t size, uint8_t first = 0x64);

/// Lower-case hex without separators, for failure messages.
std::string hex(ByteView bytes);

/// One's complement sum (RFC 1071) of big-endian 16-bit words, added to `sum` and folded to 16 bit.
/// An odd last byte counts as the high half of a word.
uint16_t internet_sum(ByteView bytes, uint32_t sum = 0);

/// CRC-32 with polynomial 0xedb88320 (reflected), initial value and final xor 0xffffffff.
/// crc32_ieee("123456789") is 0xcbf43926.
uint32_t crc32_ieee(ByteView bytes);

}  // namespace edgeshed::test
