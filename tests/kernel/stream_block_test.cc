// Streams closed and opened from user space, over plain memory.
#include "userspace/kernel/stream_block.h"

#include <gtest/gtest.h>

namespace edgeshed::kernel::test {
namespace {

constexpr std::uint32_t kNow = 50000;
constexpr std::uint32_t kHz = 250;

/// A block in which streams 0 to `streams` - 1 play.
es_stream_block playing(std::uint32_t streams) {
  es_stream_block block{};
  for (std::uint32_t i = 0; i < streams; ++i) block.slot[i] = {i + 1, kNow - 100, 5, 6};
  return block;
}

TEST(StreamBlock, AStreamThatPlaysIsClosedInItsPlaceAndOpenedAgain) {
  es_stream_block block = playing(3);
  EXPECT_EQ(set_stream(block, {1, true, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
  EXPECT_EQ(block.slot[1].stream_id, 2u | ES_STREAM_CLOSED);
  EXPECT_EQ(block.slot[1].seen_jiffies, kNow) << "remembered from now on";
  EXPECT_EQ(block.slot[1].samples_window, 5u);
  EXPECT_EQ(set_stream(block, {1, true, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done)
      << "asked twice";
  EXPECT_EQ(set_stream(block, {1, false, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
  EXPECT_EQ(block.slot[1].stream_id, 2u);
  EXPECT_EQ(block.slot[3].stream_id, 0u);
}

TEST(StreamBlock, AStreamThatNeverSentTakesAFreePlaceToBeClosedAndNoneToBeOpened) {
  es_stream_block block = playing(2);
  EXPECT_EQ(set_stream(block, {65535, false, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
  EXPECT_EQ(block.slot[2].stream_id, 0u);
  EXPECT_EQ(set_stream(block, {65535, true, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
  EXPECT_EQ(block.slot[2].stream_id, 65536u | ES_STREAM_CLOSED);
  EXPECT_EQ(block.slot[2].seen_jiffies, kNow);
}

TEST(StreamBlock, WithoutAPlaceItSaysSo) {
  es_stream_block block = playing(ES_STREAM_SLOTS);
  EXPECT_EQ(set_stream(block, {100, true, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::no_slot);
  EXPECT_EQ(set_stream(block, {100, false, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
  EXPECT_EQ(set_stream(block, {7, true, kNow, kHz}, ES_STREAM_SLOTS), StreamChange::done);
}

TEST(StreamBlock, OnlySlotsThatThePacketPathLooksAtAreTakenAndForgottenOnesAreFree) {
  es_stream_block block = playing(4);
  EXPECT_EQ(set_stream(block, {100, true, kNow, kHz}, 4), StreamChange::no_slot);
  block.slot[2].seen_jiffies = kNow - ES_STREAM_IDLE_SECONDS * kHz - 1;
  EXPECT_EQ(set_stream(block, {100, true, kNow, kHz}, 4), StreamChange::done);
  EXPECT_EQ(block.slot[2].stream_id, 101u | ES_STREAM_CLOSED);
  EXPECT_EQ(set_stream(block, {101, true, kNow, kHz}, 4), StreamChange::no_slot);
}

}  // namespace
}  // namespace edgeshed::kernel::test
