// TC egress filter: see tc_hook.h.
#include "userspace/kernel/tc_hook.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "userspace/kernel/error.h"
#include "userspace/kernel/library_log.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::kernel {
namespace {

bpf_tc_hook hook_of(int ifindex, int points) {
  DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook);
  hook.ifindex = ifindex;
  hook.attach_point = static_cast<bpf_tc_attach_point>(points);
  return hook;
}

bpf_tc_opts our_place() {
  DECLARE_LIBBPF_OPTS(bpf_tc_opts, options);
  options.handle = kTcHandle;
  options.priority = kTcPriority;
  return options;
}

/// Number of filters at a parent of clsact. Empty: the kernel did not say.
std::optional<unsigned> count_filters(int ifindex, __u32 parent) {
  const Fd socket_fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket_fd) return std::nullopt;
  struct {
    nlmsghdr header;
    tcmsg message;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_GETTFILTER;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.message.tcm_family = AF_UNSPEC;
  request.message.tcm_ifindex = ifindex;
  request.message.tcm_parent = parent;
  if (send(socket_fd.get(), &request, sizeof(request), 0) < 0) return std::nullopt;
  unsigned filters = 0;
  alignas(nlmsghdr) std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t received =
        TEMP_FAILURE_RETRY(recv(socket_fd.get(), buffer.data(), buffer.size(), 0));
    if (received <= 0) return std::nullopt;
    auto left = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE) return filters;
      if (header->nlmsg_type == NLMSG_ERROR) return std::nullopt;
      if (header->nlmsg_type == RTM_NEWTFILTER) ++filters;
    }
  }
}

[[noreturn]] void refuse_foreign(int ifindex) {
  std::array<char, IF_NAMESIZE> dev{};
  if_indextoname(static_cast<unsigned>(ifindex), dev.data());
  throw Error(fmt::format("the TC egress filter with handle {:#x} and priority {} is not "
                          "EdgeShed's: remove it first (`tc filter del dev {} egress pref {}`)",
                          kTcHandle, kTcPriority, dev.data(), kTcPriority),
              kExitRefused);
}

/// Removes clsact if it is certain that nobody has a filter in it.
void remove_empty_clsact(int ifindex) {
  const auto ingress = count_filters(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS));
  const auto egress = count_filters(ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
  if (ingress != 0u || egress != 0u) return;
  bpf_tc_hook hook = hook_of(ifindex, BPF_TC_INGRESS | BPF_TC_EGRESS);
  // A failure leaves an empty qdisc, which costs nothing.
  bpf_tc_hook_destroy(&hook);
}

}  // namespace

TcStanding query_tc(int ifindex, const ProgramNames& names) {
  const LibraryLog log;  // a missing qdisc is an error to libbpf, not to us
  const bpf_tc_hook hook = hook_of(ifindex, BPF_TC_EGRESS);
  bpf_tc_opts place = our_place();
  if (bpf_tc_query(&hook, &place) != 0) return {};
  TcStanding standing;
  standing.program = place.prog_id;
  if (standing.program == 0) return standing;  // no eBPF program
  const std::string name = names.name_of(standing.program);
  standing.hidden = name.empty() && !may_look_up_programs();
  if (!is_our_program(name)) return standing;
  standing.other_pins = names.other_pins_of(standing.program);
  standing.ours = standing.other_pins.empty();
  return standing;
}

std::uint32_t attach_tc(int ifindex, std::string_view name, const std::filesystem::path& pin_dir,
                        const TcStanding& standing) {
  if (standing.program != 0 && !standing.ours) refuse_foreign(ifindex);
  const Fd program = open_pinned_program(pin_dir, name);
  const LibraryLog log;
  bpf_tc_hook hook = hook_of(ifindex, BPF_TC_EGRESS);
  const int created = bpf_tc_hook_create(&hook);
  if (created != 0 && created != -EEXIST) {
    fail_errno(created, "add the clsact qdisc", "to the device", log.last_reason());
  }
  bpf_tc_opts place = our_place();
  place.prog_fd = program.get();
  if (standing.ours) place.flags = BPF_TC_F_REPLACE;
  const int err = bpf_tc_attach(&hook, &place);
  if (err != 0) {
    if (created == 0) remove_empty_clsact(ifindex);
    // A filter that is no eBPF program has no id to be asked for.
    if (err == -EEXIST) refuse_foreign(ifindex);
    fail_errno(err, "attach the TC egress filter", "to the device", log.last_reason());
  }
  return place.prog_id;
}

bool detach_tc(int ifindex, const TcStanding& standing) {
  if (!standing.ours) return false;
  const LibraryLog log;
  const bpf_tc_hook hook = hook_of(ifindex, BPF_TC_EGRESS);
  const bpf_tc_opts place = our_place();
  const int err = bpf_tc_detach(&hook, &place);
  if (err != 0) fail_errno(err, "remove the TC egress filter", "of the device", log.last_reason());
  remove_empty_clsact(ifindex);
  return true;
}

}  // namespace edgeshed::kernel
