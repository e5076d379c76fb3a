#include "userspace/doctor/peer.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "userspace/doctor/ethtool.h"
#include "userspace/kernel/fd.h"

namespace edgeshed::doctor {
namespace {

namespace fs = std::filesystem;

/// In the namespace of the calling thread.
void look(int ifindex, PeerFacts& peer) {
  std::array<char, IFNAMSIZ> name{};
  if (if_indextoname(static_cast<unsigned>(ifindex), name.data()) == nullptr) return;
  peer.dev = name.data();
  const DriverView driver = ask_driver(peer.dev);
  peer.tx = driver.channels.tx;
  peer.gro = driver.gro;
  __u32 program = 0;
  peer.xdp = bpf_xdp_query_id(ifindex, 0, &program) == 0 && program != 0;
  peer.found = true;
}

/// A namespace stays entered for as long as its thread lives, so it gets one of its own.
void look_inside(int netns_fd, int ifindex, PeerFacts& peer) {
  std::thread([&] {
    if (setns(netns_fd, CLONE_NEWNET) == 0) look(ifindex, peer);
  }).join();
}

/// Every file of a network namespace once, named ones first, until `stop` says true.
void for_each_namespace(const std::function<bool(const fs::path&, int fd)>& stop) {
  std::set<ino_t> seen;
  const auto visit = [&](const fs::path& path) {
    const kernel::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info{};
    if (!fd || fstat(fd.get(), &info) != 0 || !seen.insert(info.st_ino).second) return false;
    return stop(path, fd.get());
  };
  std::error_code error;
  for (fs::directory_iterator it("/run/netns", error), end; !error && it != end;
       it.increment(error)) {
    if (visit(it->path())) return;
  }
  error.clear();
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (visit(it->path() / "ns/net")) return;
  }
}

}  // namespace

PeerFacts look_at_peer(Netlink& route, const Link& veth) {
  PeerFacts peer;
  if (veth.link == 0) return peer;
  if (!veth.link_netns) {
    look(veth.link, peer);
    return peer;
  }
  for_each_namespace([&](const fs::path& path, int fd) {
    if (netns_id(route, fd) != veth.link_netns) return false;
    peer.netns_file = path;
    look_inside(fd, veth.link, peer);
    return true;
  });
  return peer;
}

}  // namespace edgeshed::doctor
