// See capture.h.
#include "tests/support/capture.h"

#include <pcap/pcap.h>

#include <memory>
#include <stdexcept>

namespace edgeshed::test {

Capture read_capture(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error),
      &pcap_close);
  if (!file) throw std::runtime_error(path + ": " + error);

  Capture out;
  out.link_type = pcap_datalink(file.get());
  out.snap_bytes = static_cast<size_t>(pcap_snapshot(file.get()));
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(file.get(), &header, &data)) == 1) {
    // With nanosecond precision libpcap keeps nanoseconds in tv_usec.
    out.frames.push_back(
        {.time_ns = int64_t{header->ts.tv_sec} * 1'000'000'000 + int64_t{header->ts.tv_usec},
         .wire_bytes = header->len,
         .bytes = Bytes(data, data + header->caplen)});
  }
  if (status != PCAP_ERROR_BREAK) throw std::runtime_error(path + ": " + pcap_geterr(file.get()));
  return out;
}

std::string capture_path(const std::string& file_name) {
  return std::string(EDGESHED_CAPTURES_DIR) + "/" + file_name;
}

}  // namespace edgeshed::test
