// See capture.h.
#include "tests/support/capture.h"

#include <pcap/pcap.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace edgeshed::test {
namespace {

/// What libpcap hands on as the file has it.
void check(const pcap_pkthdr& header, const std::string& where) {
  if (header.caplen > header.len) {
    throw std::runtime_error(where + ": " + std::to_string(header.caplen) + " bytes of " +
                             std::to_string(header.len));
  }
  constexpr int64_t kSecondsMax = INT64_MAX / 1'000'000'000 - 1;  // as nanoseconds: year 2262
  if (header.ts.tv_sec < 0 || header.ts.tv_sec > kSecondsMax) {
    throw std::runtime_error(where + ": its time is no time");
  }
}

/// Closes `file`, which may be null with errno set.
Capture read_from(FILE* file, const std::string& name) {
  if (file == nullptr) throw std::runtime_error(name + ": " + std::strerror(errno));
  char error[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> pcap(
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error),
      &pcap_close);
  if (!pcap) {
    static_cast<void>(std::fclose(file));
    throw std::runtime_error(name + ": " + error);
  }

  Capture out;
  out.link_type = pcap_datalink(pcap.get());
  out.snap_bytes = static_cast<size_t>(pcap_snapshot(pcap.get()));
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(pcap.get(), &header, &data)) == 1) {
    check(*header, name + ": frame " + std::to_string(out.frames.size() + 1));
    // With nanosecond precision libpcap keeps nanoseconds in tv_usec.
    out.frames.push_back(
        {.time_ns = int64_t{header->ts.tv_sec} * 1'000'000'000 + int64_t{header->ts.tv_usec},
         .wire_bytes = header->len,
         .bytes = Bytes(data, data + header->caplen)});
  }
  if (status != PCAP_ERROR_BREAK) throw std::runtime_error(name + ": " + pcap_geterr(pcap.get()));
  return out;
}

}  // namespace

Capture read_capture(const std::string& path) {
  return read_from(std::fopen(path.c_str(), "rbe"), path);
}

Capture parse_capture(std::span<const uint8_t> bytes, const std::string& name) {
  if (bytes.empty()) throw std::runtime_error(name + ": it is empty");
  // Read only: what fmemopen takes as writable is not written in mode "r".
  auto* memory = const_cast<uint8_t*>(bytes.data());
  return read_from(fmemopen(memory, bytes.size(), "rb"), name);
}

std::string capture_path(const std::string& file_name) {
  return std::string(EDGESHED_CAPTURES_DIR) + "/" + file_name;
}

}  // namespace edgeshed::test
