// Bytes as a capture file. Nothing but std::runtime_error may come out, naming the file; what is
// read keeps what capture.h says of a frame.
#include <exception>
#include <stdexcept>

#include "tests/fuzz/target.h"
#include "tests/support/capture.h"

namespace edgeshed::test {
namespace {

std::string capture_fault(const Capture& capture, size_t file_bytes) {
  size_t bytes = 0;
  for (const CapturedFrame& frame : capture.frames) {
    if (frame.bytes.size() > frame.wire_bytes) return "more captured than was on the wire";
    // libpcap cuts what is longer, as a file may say what it likes.
    if (frame.bytes.size() > capture.snap_bytes) return "more captured than the snap length";
    bytes += frame.bytes.size();
  }
  return bytes > file_bytes ? "frames from outside of the file" : "";
}

}  // namespace

const char* const kTargetName = "capture";

std::string run_target(std::span<const uint8_t> bytes) {
  try {
    return capture_fault(parse_capture(bytes, "fuzz.pcap"), bytes.size());
  } catch (const std::runtime_error& error) {
    return std::string(error.what()).find("fuzz.pcap") == 0
               ? ""
               : std::string("an error that does not name the file: ") + error.what();
  } catch (const std::exception& other) {
    return std::string("another exception: ") + other.what();
  }
}

}  // namespace edgeshed::test
