// What drivers say by the ethtool ioctl, in the network namespace of the calling thread.
#pragma once

#include <optional>
#include <string>

#include "userspace/doctor/facts.h"

namespace edgeshed::doctor {

struct DriverView {
  std::string driver;  ///< empty: it does not say
  ChannelFacts channels;
  std::optional<FeatureFacts> lro;
  std::optional<FeatureFacts> gro_hw;
  std::optional<bool> gro;
};

/// Needs no privilege. What a driver does not say stays empty; receive queues then come from /sys.
DriverView ask_driver(const std::string& dev);

}  // namespace edgeshed::doctor
