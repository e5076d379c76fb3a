// Grace periods: see grace.h.
#include "userspace/kernel/grace.h"

#include <linux/membarrier.h>
#include <bpf/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "userspace/kernel/error.h"
#include "userspace/kernel/fd.h"

namespace edgeshed::kernel {
namespace {

int membarrier(int command) { return static_cast<int>(syscall(__NR_membarrier, command, 0, 0)); }

/// An array of maps with one entry: the kernel runs synchronize_rcu() after each update of it, so
/// that no program still uses the map that was replaced.
struct MapOfMaps {
  Fd inner;
  Fd outer;
};

Fd create_map(bpf_map_type type, const char* name, int inner_fd) {
  DECLARE_LIBBPF_OPTS(bpf_map_create_opts, options);
  if (inner_fd >= 0) options.inner_map_fd = static_cast<__u32>(inner_fd);
  const int fd = bpf_map_create(type, name, sizeof(__u32), sizeof(__u32), 1, &options);
  if (fd < 0) fail_errno(fd, "create the map that grace periods are waited by", name);
  return Fd(fd);
}

Grace map_of_maps_grace() {
  auto maps = std::make_shared<MapOfMaps>();
  maps->inner = create_map(BPF_MAP_TYPE_ARRAY, "es_grace_inner", -1);
  maps->outer = create_map(BPF_MAP_TYPE_ARRAY_OF_MAPS, "es_grace", maps->inner.get());
  return [maps] {
    const __u32 key = 0;
    const int inner = maps->inner.get();
    const int err = bpf_map_update_elem(maps->outer.get(), &key, &inner, BPF_ANY);
    if (err != 0) fail_errno(err, "wait for the packets in flight", "by es_grace");
  };
}

}  // namespace

Grace make_grace() {
  const int commands = membarrier(MEMBARRIER_CMD_QUERY);
  if (commands < 0 || (commands & MEMBARRIER_CMD_GLOBAL) == 0) return map_of_maps_grace();
  return [] {
    if (membarrier(MEMBARRIER_CMD_GLOBAL) != 0) {
      fail_errno(errno, "wait for the packets in flight", "by membarrier");
    }
  };
}

}  // namespace edgeshed::kernel
