// See enet_decoder.h. Plain on purpose: no tables, so that it cannot repeat a table's mistake.
#include "tests/support/enet_decoder.h"

#include <algorithm>

namespace edgeshed::test {
namespace {

constexpr size_t commands_max = 32;

struct SizeRule {
  size_t fixed_bytes;
  size_t length_offset;  // of the BE16 data length within the command; 0 = no data
};

std::optional<SizeRule> size_rule(uint8_t id) {
  switch (id) {
    case 1:  // ACK
      return SizeRule{8, 0};
    case 2:  // CONNECT
      return SizeRule{48, 0};
    case 3:  // VERIFY
      return SizeRule{44, 0};
    case 4:  // DISCONNECT
      return SizeRule{8, 0};
    case 5:  // PING
      return SizeRule{4, 0};
    case 6:  // RELIABLE
      return SizeRule{6, 4};
    case 7:  // UNRELIABLE
      return SizeRule{8, 6};
    case 8:  // FRAGMENT
      return SizeRule{24, 6};
    case 9:  // UNSEQUENCED
      return SizeRule{8, 6};
    case 10:  // BANDWIDTH
      return SizeRule{12, 0};
    case 11:  // THROTTLE
      return SizeRule{16, 0};
    case 12:  // UNRELIABLE FRAGMENT
      return SizeRule{24, 6};
    default:
      return std::nullopt;
  }
}

// Reads the command at `offset` into `out`; anything but `none` leaves `out` unfinished.
EnetError read_command(ByteView payload, size_t offset, EnetCommand& out) {
  const size_t left = payload.size() - offset;
  out.id = u8_at(payload, offset) & 0x0f;
  const std::optional<SizeRule> rule = size_rule(out.id);
  if (!rule) return EnetError::bad_command;
  if (left < rule->fixed_bytes) return EnetError::truncated_command;
  out.ack_required = (payload[offset] & 0x80) != 0;
  out.unsequenced = (payload[offset] & 0x40) != 0;
  out.channel = payload[offset + 1];
  out.reliable_seq = be16_at(payload, offset + 2);
  out.offset = offset;
  out.size = rule->fixed_bytes;
  if (rule->length_offset != 0) out.size += be16_at(payload, offset + rule->length_offset);
  if (left < out.size) return EnetError::truncated_command;
  if (out.id == 1) {
    out.acked_seq = be16_at(payload, offset + 4);
    out.echoed_time_ms = be16_at(payload, offset + 6);
  }
  return EnetError::none;
}

EnetError read_commands(ByteView payload, size_t offset, std::vector<EnetCommand>& out) {
  if (offset == payload.size()) return EnetError::no_command;
  while (offset < payload.size()) {
    if (out.size() == commands_max) return EnetError::too_many_commands;
    EnetCommand command;
    const EnetError error = read_command(payload, offset, command);
    if (error != EnetError::none) return error;
    out.push_back(command);
    offset += command.size;
  }
  return EnetError::none;
}

std::optional<EnetClass> classify(const std::vector<EnetCommand>& commands) {
  bool handshake = false;
  bool control = false;
  bool reliable = false;
  bool fragment = false;
  bool ack = false;
  bool unreliable = false;
  for (const EnetCommand& command : commands) {
    switch (command.id) {
      case 1:
        ack = true;
        break;
      case 2:
      case 3:
        handshake = true;
        break;
      case 4:
      case 5:
      case 10:
      case 11:
        control = true;
        break;
      case 6:
        reliable = true;
        break;
      case 8:
        fragment = true;
        break;
      default:  // 7, 9 and 12: read_command lets nothing else through
        unreliable = true;
        break;
    }
  }
  if (handshake) return EnetClass::handshake;
  if (control) return EnetClass::critical_control;
  if (reliable) return EnetClass::reliable;
  if (fragment) return EnetClass::fragment;
  if (ack && unreliable) return EnetClass::ack_and_unreliable;
  if (ack) return EnetClass::ack_only;
  if (unreliable) return EnetClass::unreliable_only;
  return std::nullopt;
}

// False if the header does not fit.
bool read_header(ByteView payload, bool crc, EnetDecoded& out) {
  if (payload.size() < 2) return false;
  const uint16_t word = be16_at(payload, 0);
  out.peer_id = word & 0x0fff;
  out.session = static_cast<uint8_t>(word >> 12 & 0x3);
  out.compressed = (word & 0x4000) != 0;
  out.has_sent_time = (word & 0x8000) != 0;
  const size_t crc_offset = out.has_sent_time ? 4 : 2;
  out.header_bytes = crc_offset + (crc ? 4 : 0);
  if (payload.size() < out.header_bytes) return false;
  if (out.has_sent_time) out.sent_time_ms = be16_at(payload, 2);
  if (crc) out.crc = be32_at(payload, crc_offset);
  return true;
}

}  // namespace

const char* to_string(EnetClass klass) {
  switch (klass) {
    case EnetClass::handshake:
      return "handshake";
    case EnetClass::critical_control:
      return "critical_control";
    case EnetClass::reliable:
      return "reliable";
    case EnetClass::ack_only:
      return "ack_only";
    case EnetClass::fragment:
      return "fragment";
    case EnetClass::ack_and_unreliable:
      return "ack_and_unreliable";
    case EnetClass::unreliable_only:
      return "unreliable_only";
    case EnetClass::compressed_sent_time:
      return "compressed_sent_time";
    case EnetClass::compressed_no_sent_time:
      return "compressed_no_sent_time";
    case EnetClass::invalid:
      return "invalid";
  }
  return "?";
}

const char* to_string(EnetError error) {
  switch (error) {
    case EnetError::none:
      return "none";
    case EnetError::short_header:
      return "short_header";
    case EnetError::no_command:
      return "no_command";
    case EnetError::bad_command:
      return "bad_command";
    case EnetError::truncated_command:
      return "truncated_command";
    case EnetError::too_many_commands:
      return "too_many_commands";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, EnetClass klass) { return out << to_string(klass); }
std::ostream& operator<<(std::ostream& out, EnetError error) { return out << to_string(error); }

bool EnetDecoded::has_ack_required() const {
  return std::any_of(commands.begin(), commands.end(),
                     [](const EnetCommand& command) { return command.ack_required; });
}

bool EnetDecoded::has(uint8_t command_id) const {
  return std::any_of(commands.begin(), commands.end(),
                     [command_id](const EnetCommand& command) { return command.id == command_id; });
}

EnetDecoded decode_enet(ByteView udp_payload, const EnetDecodeOptions& options) {
  EnetDecoded out;
  if (!read_header(udp_payload, options.crc, out)) {
    out.error = EnetError::short_header;
    return out;
  }
  if (out.compressed) {
    out.klass =
        out.has_sent_time ? EnetClass::compressed_sent_time : EnetClass::compressed_no_sent_time;
    out.best_class = out.klass;
    return out;
  }
  out.error = read_commands(udp_payload, out.header_bytes, out.commands);
  out.best_class = classify(out.commands);
  out.klass = out.error == EnetError::none ? *out.best_class : EnetClass::invalid;
  return out;
}

std::optional<uint32_t> enet_connect_id(ByteView udp_payload, const EnetDecodeOptions& options) {
  for (const EnetCommand& command : decode_enet(udp_payload, options).commands) {
    if (command.id == 2 || command.id == 3) return be32_at(udp_payload, command.offset + 40);
  }
  return std::nullopt;
}

bool enet_crc_is_right(ByteView udp_payload, uint32_t connect_id) {
  const EnetDecoded decoded = decode_enet(udp_payload, {.crc = true});
  if (!decoded.crc) return false;
  Bytes seeded(udp_payload.begin(), udp_payload.end());
  set_be32(seeded, decoded.header_bytes - 4, connect_id);
  return crc32_ieee(seeded) == *decoded.crc;
}

}  // namespace edgeshed::test
