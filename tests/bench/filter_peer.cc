// Loading of xdp-filter: see filter_peer.h.
#include "tests/bench/filter_peer.h"

#include <bpf/bpf.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "userspace/kernel/object.h"

namespace edgeshed::bench {
namespace {

/// Where the package of this architecture puts its objects: allow what no rule matches.
constexpr const char* kObject = "/usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_all.o";
constexpr const char* kProgram = "xdpfilt_alw_all";
/// A rule's value per CPU: direction and protocol, with a hit counter above bit 6.
constexpr std::uint64_t kDestination = 1u << 1;
constexpr std::uint64_t kUdp = 1u << 3;

void set_port_rule(const bpf_object* filter) {
  const std::uint32_t port = __builtin_bswap16(BENCH_SERVER_PORT);
  const std::vector<std::uint64_t> rule(kernel::possible_cpus(), kDestination | kUdp);
  if (bpf_map_update_elem(bpf_map__fd(find_map(filter, "filter_ports")), &port, rule.data(),
                          BPF_ANY) != 0) {
    throw std::runtime_error("cannot set a rule of xdp-filter");
  }
}

void set_next(const bpf_object* front, std::uint32_t slot, int program_fd) {
  if (bpf_map_update_elem(bpf_map__fd(find_map(front, "filter_next")), &slot, &program_fd,
                          BPF_ANY) != 0) {
    throw std::runtime_error(fmt::format("cannot set slot {} of the tail calls", slot));
  }
}

}  // namespace

std::optional<FilterPeer> FilterPeer::load() {
  if (!std::filesystem::exists(kObject)) return std::nullopt;
  FilterPeer peer;
  peer.filter_ = open_object(kObject);
  load_object(peer.filter_.get());
  set_port_rule(peer.filter_.get());
  peer.front_ = open_object(BENCH_FILTER_OBJECT);
  load_object(peer.front_.get());
  const bpf_map* generators = find_map(peer.front_.get(), "bench_generators");
  const kernel::MappedArray<bench_generator> rows(bpf_map__fd(generators), "bench_generators", 0,
                                                  kernel::Access::kReadWrite);
  for (bench_generator& row : rows.span()) {
    row.random = 0x1234567;
    row.flows = 1000;
  }
  set_next(peer.front_.get(), 0, bench::program_fd(peer.filter_.get(), kProgram));
  set_next(peer.front_.get(), 1, bench::program_fd(peer.front_.get(), "filter_bare"));
  return peer;
}

}  // namespace edgeshed::bench
