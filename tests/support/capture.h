// Reads capture files into memory for tests and replay.
// Must not filter or change frames: what the file holds is what the test sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/support/bytes.h"

namespace edgeshed::test {

struct CapturedFrame {
  int64_t time_ns = 0;    ///< since the epoch
  size_t wire_bytes = 0;  ///< before the snap length cut it
  Bytes bytes;            ///< as captured, from the link header on
};

struct Capture {
  int link_type = 0;  ///< 1 = Ethernet (LINKTYPE_ETHERNET)
  size_t snap_bytes = 0;
  std::vector<CapturedFrame> frames;
};

/// Throws std::runtime_error, naming the file and the cause, if it cannot be read to its end.
Capture read_capture(const std::string& path);

/// The same of a file's bytes; `name` stands in the errors.
Capture parse_capture(std::span<const uint8_t> bytes, const std::string& name);

/// The path of a capture of this repository, e.g. capture_path("enet_m0.pcap").
std::string capture_path(const std::string& file_name);

}  // namespace edgeshed::test
