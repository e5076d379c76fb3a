// See enet_messages.h.
#include "tests/support/enet_messages.h"

namespace edgeshed::test {
namespace {

constexpr uint8_t flag_ack = 0x80;
constexpr uint8_t flag_unsequenced = 0x40;
constexpr uint8_t system_channel = 0xff;

}  // namespace

void EnetDatagram::command(uint8_t first_byte, uint8_t channel, uint16_t seq) {
  if ((first_byte & flag_ack) != 0) needs_ack_ = true;
  commands_.push_back(first_byte);
  commands_.push_back(channel);
  put_be16(commands_, seq);
}

EnetDatagram& EnetDatagram::ack(uint8_t channel, uint16_t seq, uint16_t time_ms) {
  command(1, channel, seq);
  put_be16(commands_, seq);
  put_be16(commands_, time_ms);
  return *this;
}

void EnetDatagram::handshake_tail(uint32_t connect_id) {
  put_be16(commands_, 0);      // the sender's own peer id
  commands_.push_back(0xff);   // incoming session
  commands_.push_back(0xff);   // outgoing session
  put_be32(commands_, 1392);   // MTU in bytes
  put_be32(commands_, 32768);  // window in bytes
  put_be32(commands_, 2);      // channels
  put_be32(commands_, 0);      // incoming bandwidth, 0 = no limit
  put_be32(commands_, 0);      // outgoing bandwidth
  put_be32(commands_, 5000);   // throttle interval in ms
  put_be32(commands_, 2);      // throttle acceleration
  put_be32(commands_, 2);      // throttle deceleration
  put_be32(commands_, connect_id);
}

EnetDatagram& EnetDatagram::connect(uint32_t connect_id) {
  command(flag_ack | 2, system_channel, 1);
  handshake_tail(connect_id);
  put_be32(commands_, 0);  // user data, which VERIFY does not have
  return *this;
}

EnetDatagram& EnetDatagram::verify(uint32_t connect_id) {
  command(flag_ack | 3, system_channel, 1);
  handshake_tail(connect_id);
  return *this;
}

EnetDatagram& EnetDatagram::disconnect(bool acked) {
  command(static_cast<uint8_t>((acked ? flag_ack : flag_unsequenced) | 4), system_channel, 0);
  put_be32(commands_, 0);
  return *this;
}

EnetDatagram& EnetDatagram::ping(uint16_t seq) {
  command(flag_ack | 5, system_channel, seq);
  return *this;
}

EnetDatagram& EnetDatagram::reliable(uint8_t channel, uint16_t seq, uint16_t n_bytes) {
  command(flag_ack | 6, channel, seq);
  put_be16(commands_, n_bytes);
  put_bytes(commands_, filler(n_bytes));
  return *this;
}

EnetDatagram& EnetDatagram::unreliable(uint8_t channel, uint16_t seq, uint16_t unreliable_seq,
                                       uint16_t n_bytes) {
  command(7, channel, seq);
  put_be16(commands_, unreliable_seq);
  put_be16(commands_, n_bytes);
  put_bytes(commands_, filler(n_bytes));
  return *this;
}

void EnetDatagram::fragment_tail(const EnetFragment& fields) {
  put_be16(commands_, fields.start_seq);
  put_be16(commands_, fields.n_bytes);
  put_be32(commands_, fields.count);
  put_be32(commands_, fields.number);
  put_be32(commands_, fields.total_bytes);
  put_be32(commands_, fields.offset_bytes);
  put_bytes(commands_, filler(fields.n_bytes));
}

EnetDatagram& EnetDatagram::fragment(const EnetFragment& fields) {
  command(flag_ack | 8, fields.channel, fields.seq);
  fragment_tail(fields);
  return *this;
}

EnetDatagram& EnetDatagram::unsequenced(uint8_t channel, uint16_t group, uint16_t n_bytes) {
  command(flag_unsequenced | 9, channel, 0);
  put_be16(commands_, group);
  put_be16(commands_, n_bytes);
  put_bytes(commands_, filler(n_bytes));
  return *this;
}

EnetDatagram& EnetDatagram::bandwidth(uint32_t in_bytes_per_s, uint32_t out_bytes_per_s) {
  command(flag_ack | 10, system_channel, 1);
  put_be32(commands_, in_bytes_per_s);
  put_be32(commands_, out_bytes_per_s);
  return *this;
}

EnetDatagram& EnetDatagram::throttle(uint32_t interval_ms) {
  command(flag_ack | 11, system_channel, 1);
  put_be32(commands_, interval_ms);
  put_be32(commands_, 2);
  put_be32(commands_, 2);
  return *this;
}

EnetDatagram& EnetDatagram::unreliable_fragment(const EnetFragment& fields) {
  command(12, fields.channel, fields.seq);
  fragment_tail(fields);
  return *this;
}

EnetDatagram& EnetDatagram::raw(const Bytes& bytes) {
  put_bytes(commands_, bytes);
  return *this;
}

Bytes EnetDatagram::bytes() const {
  const bool sent_time = header_.sent_time.value_or(needs_ack_);
  Bytes out;
  put_be16(out, static_cast<uint16_t>((sent_time ? 0x8000 : 0) | (header_.compressed ? 0x4000 : 0) |
                                      (header_.session & 0x3) << 12 | (header_.peer_id & 0x0fff)));
  if (sent_time) put_be16(out, header_.sent_time_ms);
  const size_t crc_offset = out.size();
  // While the CRC is computed, its place holds the connect id, or zero before there is one.
  if (header_.crc) put_be32(out, header_.connect_id);
  put_bytes(out, commands_);
  if (header_.crc) set_be32(out, crc_offset, header_.crc_value.value_or(crc32_ieee(out)));
  return out;
}

}  // namespace edgeshed::test
