// Builds ENet 1.3 datagrams (UDP payloads) command by command for tests.
// Must not decode, and must not share code with enet_decoder or with the project's own dissector.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/support/bytes.h"

namespace edgeshed::test {

struct EnetHeader {
  uint16_t peer_id = 1;  ///< 12 bit; 0xfff = not connected
  uint8_t session = 0;   ///< 2 bit
  /// Bit 0x8000 and the field after it. Unset = what ENet does: present if and only if a command
  /// requires an acknowledgement. A compressed datagram has to say it itself.
  std::optional<bool> sent_time = std::nullopt;
  uint16_t sent_time_ms = 0x1234;
  bool compressed = false;  ///< bit 0x4000 only: nothing is compressed; use raw() for the body
  bool crc = false;         ///< whether the 4-byte CRC32 is there (no flag tells of it)
  uint32_t connect_id = 0;  ///< what the CRC is seeded with once a connection exists
  std::optional<uint32_t> crc_value = std::nullopt;  ///< instead of the right one
};

/// The part of a fragment command that places it in its message.
struct EnetFragment {
  uint8_t channel = 0;
  uint16_t seq = 1;        ///< the command's own reliable sequence number
  uint16_t start_seq = 1;  ///< that of the first fragment (unreliable: the unreliable sequence)
  uint16_t n_bytes = 100;  ///< of this fragment
  uint32_t count = 2;
  uint32_t number = 0;
  uint32_t total_bytes = 200;
  uint32_t offset_bytes = 0;
};

/// A datagram under construction; commands are written in the order of the calls. Data is filler().
///
///   EnetDatagram({.peer_id = 3}).ack(0, 7, 0x1000).unreliable(1, 7, 42, 200).bytes()
class EnetDatagram {
 public:
  explicit EnetDatagram(const EnetHeader& header = {}) : header_(header) {}

  /// `time_ms`: the sent time that the acknowledged datagram carried, echoed.
  EnetDatagram& ack(uint8_t channel, uint16_t seq, uint16_t time_ms);
  EnetDatagram& connect(uint32_t connect_id = 0x11223344);
  EnetDatagram& verify(uint32_t connect_id = 0x11223344);
  /// `acked` = the peer must acknowledge (0x84); otherwise unsequenced and final (0x44).
  EnetDatagram& disconnect(bool acked = true);
  EnetDatagram& ping(uint16_t seq = 1);
  EnetDatagram& reliable(uint8_t channel, uint16_t seq, uint16_t n_bytes);
  EnetDatagram& unreliable(uint8_t channel, uint16_t seq, uint16_t unreliable_seq,
                           uint16_t n_bytes);
  EnetDatagram& fragment(const EnetFragment& fields = {});
  EnetDatagram& unsequenced(uint8_t channel, uint16_t group, uint16_t n_bytes);
  EnetDatagram& bandwidth(uint32_t in_bytes_per_s = 0, uint32_t out_bytes_per_s = 0);
  EnetDatagram& throttle(uint32_t interval_ms = 5000);
  EnetDatagram& unreliable_fragment(const EnetFragment& fields = {});
  /// Bytes as they are: an invalid command, a cut one, or a compressed body.
  EnetDatagram& raw(const Bytes& bytes);

  /// The UDP payload.
  Bytes bytes() const;

 private:
  void command(uint8_t first_byte, uint8_t channel, uint16_t seq);
  void handshake_tail(uint32_t connect_id);
  void fragment_tail(const EnetFragment& fields);

  EnetHeader header_;
  bool needs_ack_ = false;
  Bytes commands_;
};

}  // namespace edgeshed::test
