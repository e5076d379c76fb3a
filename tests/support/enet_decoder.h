// An independent reading of ENet 1.3 datagrams: the oracle that the packet path is compared with.
// Written from the protocol alone, plainly: one switch for the sizes, one for the classes. Must not
// include anything of the project or of enet_messages, and must not be tuned to agree with either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "tests/support/bytes.h"

namespace edgeshed::test {

/// What the most valuable command of a datagram makes of it, most valuable first.
enum class EnetClass {
  handshake,             ///< CONNECT or VERIFY
  critical_control,      ///< PING, DISCONNECT, BANDWIDTH or THROTTLE, with or without others
  reliable,              ///< RELIABLE
  ack_only,              ///< ACKs and nothing else
  fragment,              ///< FRAGMENT, the reliable kind
  ack_and_unreliable,    ///< ACKs together with unreliable kinds
  unreliable_only,       ///< UNRELIABLE, UNSEQUENCED, UNRELIABLE FRAGMENT
  compressed_sent_time,  ///< not readable, bit 0x8000 set
  compressed_no_sent_time,
  invalid,  ///< the walk failed: see `error`, and `best_class` for what it had found
};

enum class EnetError {
  none,
  short_header,       ///< the header does not fit the payload
  no_command,         ///< a header and nothing after it
  bad_command,        ///< command 0, or 13 and above
  truncated_command,  ///< a command, with the data it claims, ends after the payload
  too_many_commands,  ///< bytes are left after the 32nd command
};

const char* to_string(EnetClass klass);
const char* to_string(EnetError error);
std::ostream& operator<<(std::ostream& out, EnetClass klass);
std::ostream& operator<<(std::ostream& out, EnetError error);

struct EnetCommand {
  uint8_t id = 0;             ///< 1 to 12
  bool ack_required = false;  ///< flag 0x80
  bool unsequenced = false;   ///< flag 0x40
  uint8_t channel = 0;        ///< 0xff = system
  uint16_t reliable_seq = 0;
  size_t offset = 0;  ///< bytes from the start of the UDP payload
  size_t size = 0;    ///< bytes, with data
  // ACK only.
  uint16_t acked_seq = 0;
  uint16_t echoed_time_ms = 0;
};

struct EnetDecoded {
  EnetClass klass = EnetClass::invalid;
  EnetError error = EnetError::none;
  /// The class of the commands before an error; equals `klass` without one; empty if there were
  /// none.
  std::optional<EnetClass> best_class;

  uint16_t peer_id = 0;
  uint8_t session = 0;
  bool compressed = false;
  bool has_sent_time = false;
  uint16_t sent_time_ms = 0;
  std::optional<uint32_t> crc;        ///< as stored, if the host is said to use it
  size_t header_bytes = 0;            ///< with sent time and CRC
  std::vector<EnetCommand> commands;  ///< those that fit; none if compressed

  /// Whether any command, or this kind of command, is there.
  bool has_ack_required() const;
  bool has(uint8_t command_id) const;
};

/// `crc`: a host setting that no bit of the datagram shows.
struct EnetDecodeOptions {
  bool crc = false;
};

EnetDecoded decode_enet(ByteView udp_payload, const EnetDecodeOptions& options = {});

/// The connect id that a CONNECT or VERIFY in this datagram carries.
std::optional<uint32_t> enet_connect_id(ByteView udp_payload, const EnetDecodeOptions& options);

/// Whether the CRC32 of an uncompressed datagram verifies. `connect_id`: that of the connection, 0
/// for datagrams to peer 0xfff. (For compressed ones the CRC is over the uncompressed bytes.)
bool enet_crc_is_right(ByteView udp_payload, uint32_t connect_id);

}  // namespace edgeshed::test
