// Devices: see attach.h. The hooks themselves are xdp_hook.h and tc_hook.h.
#include "userspace/kernel/attach.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "userspace/kernel/error.h"
#include "userspace/kernel/link_stack.h"
#include "userspace/kernel/tc_hook.h"
#include "userspace/kernel/xdp_hook.h"

namespace edgeshed::kernel {
namespace {

std::string_view xdp_program_name(Faces faces) {
  return faces == Faces::kClients ? "es_xdp" : "es_xdp_srv";
}

std::string_view tc_program_name(Faces faces) {
  return faces == Faces::kClients ? "es_tc" : "es_tc_srv";
}

int index_of(const std::string& dev) {
  const unsigned index = if_nametoindex(dev.c_str());
  if (index == 0) fail_errno(errno, "find the device", dev, errno_hint(ENODEV));
  return static_cast<int>(index);
}

bool is_loopback(const std::string& dev) {
  const Fd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, dev.c_str(), IFNAMSIZ - 1);
  if (!any || ioctl(any.get(), SIOCGIFFLAGS, &request) != 0) {
    fail_errno(errno, "read the flags of the device", dev);
  }
  return (request.ifr_flags & IFF_LOOPBACK) != 0;
}

XdpState state_of(const XdpStanding& standing) {
  // Where our egress filter is, what holds the other hook is taken for the dispatcher ours is in.
  if (standing.hidden) return XdpState::kDispatcher;
  if (standing.our_id == 0) return XdpState::kNone;
  if (standing.dispatcher) return XdpState::kDispatcher;
  return standing.generic ? XdpState::kGeneric : XdpState::kNative;
}

/// What can be said afterwards; the attach itself knows the kernel's words.
std::string standing_reason(const XdpStanding& standing) {
  if (standing.hidden) {
    return fmt::format(
        "taken for a dispatcher: this process may not look program {} up "
        "(CAP_SYS_ADMIN)",
        standing.main_id);
  }
  if (standing.our_id == 0) return "XDP is not attached: packets are only seen at TC egress";
  std::string reason;
  if (!standing.dispatcher) reason = "not in a dispatcher: the kernel has no freplace";
  if (standing.generic) {
    if (!reason.empty()) reason += "; ";
    reason += "generic mode: asked for, or the driver has no native XDP";
  }
  return reason;
}

std::optional<Attachment> attachment_of(const std::string& dev, int ifindex,
                                        const ProgramNames& names) {
  const XdpStanding xdp = query_xdp(ifindex, names);
  const TcStanding tc = query_tc(ifindex, names);
  if (xdp.our_id == 0 && !tc.ours) return std::nullopt;
  Attachment found;
  found.dev = dev;
  found.ifindex = ifindex;
  const std::string name = xdp.our_id != 0 ? xdp.name : names.name_of(tc.program);
  found.faces = name.ends_with("_srv") ? Faces::kServers : Faces::kClients;
  found.xdp = state_of(xdp);
  found.xdp_generic = (xdp.our_id != 0 || xdp.hidden) && xdp.generic;
  found.fallback_reason = standing_reason(xdp);
  found.xdp_program = xdp.our_id;
  found.tc_program = tc.ours ? tc.program : 0;
  const bool tc_of_pins =
      found.tc_program == 0 || found.tc_program == names.pinned_id(tc_program_name(found.faces));
  const bool xdp_of_pins = found.xdp_program == 0 || xdp.dispatcher || xdp.hidden ||
                           found.xdp_program == names.pinned_id(xdp_program_name(found.faces));
  found.of_pins = tc_of_pins && xdp_of_pins;
  return found;
}

/// What the kernel or libxdp would refuse, in words, or allow although it must not be.
void refuse_in_words(const AttachOptions& options, const XdpStanding& xdp, const TcStanding& tc,
                     const LinkStack& stack, const ProgramNames& names) {
  const std::string& dev = options.dev;
  const std::string other = (xdp.other_pins.empty() ? tc.other_pins : xdp.other_pins).string();
  if (!other.empty()) {
    throw Error(fmt::format("{} already has another EdgeShed, whose pins are in {}: use that one, "
                            "or take it off first (`{}`)",
                            dev, other, core::command_at(other, "detach --dev " + dev)),
                kExitRefused);
  }
  if (xdp.anything || options.only_replace) return;
  const std::string above = xdp_above(stack.above, names);
  if (above.empty()) return;
  throw Error(fmt::format("{} is under {}, which has an XDP program, and the kernel lets only one "
                          "of the two have any: attach to {} instead, or take that one off first",
                          dev, above, above),
              kExitRefused);
}

/// AttachOptions::only_replace.
Attachment replace(const AttachOptions& options, const XdpStanding& xdp, const TcStanding& tc,
                   const ProgramNames& names) {
  const int ifindex = index_of(options.dev);
  const std::string_view xdp_name = xdp_program_name(options.faces);
  const std::string_view tc_name = tc_program_name(options.faces);
  if (xdp.our_id != 0 && (xdp.dispatcher || xdp.our_id != names.pinned_id(xdp_name))) {
    attach_xdp(ifindex, xdp_name, options, xdp, names);
  }
  if (tc.ours && tc.program != names.pinned_id(tc_name)) {
    attach_tc(ifindex, tc_name, options.pin_dir, tc);
  }
  auto replaced = attachment_of(options.dev, ifindex, names);
  if (!replaced) {
    throw Error(fmt::format("{} has no program of ours any more: somebody took them off meanwhile",
                            options.dev));
  }
  return std::move(*replaced);
}

}  // namespace

std::string_view faces_name(Faces faces) {
  return faces == Faces::kClients ? "clients" : "servers";
}

std::string_view xdp_state_name(XdpState state) {
  switch (state) {
    case XdpState::kNative:
      return "native";
    case XdpState::kGeneric:
      return "generic";
    case XdpState::kDispatcher:
      return "dispatcher";
    case XdpState::kNone:
      break;
  }
  return "none";
}

Attachment attach(const AttachOptions& options) {
  const int ifindex = index_of(options.dev);
  if (is_loopback(options.dev)) {
    throw Error(fmt::format("{} is the loopback device: its packets are never dropped early, so "
                            "shedding there costs and saves nothing; name a network device",
                            options.dev),
                kExitRefused);
  }
  const ProgramNames names(options.pin_dir);
  const XdpStanding before = query_xdp(ifindex, names);
  const TcStanding tc = query_tc(ifindex, names);
  const LinkStack stack = link_stack(ifindex);
  refuse_in_words(options, before, tc, stack, names);
  if (options.only_replace) return replace(options, before, tc, names);
  const XdpResult xdp =
      attach_xdp(ifindex, xdp_program_name(options.faces), options, before, names);

  Attachment done;
  try {
    done.tc_program = attach_tc(ifindex, tc_program_name(options.faces), options.pin_dir, tc);
  } catch (const Error&) {
    if (before.our_id == 0) detach_xdp(ifindex, query_xdp(ifindex, names), names);
    throw;
  }
  done.dev = options.dev;
  done.ifindex = ifindex;
  done.faces = options.faces;
  done.xdp = xdp.state;
  done.xdp_generic = xdp.generic;
  done.fallback_reason = xdp.fallback_reason;
  if (xdp.generic && !stack.below.empty()) {
    done.fallback_reason += fmt::format("; {} is on top of {}: attach to {} instead", options.dev,
                                        joined(stack.below), joined(stack.below));
  }
  done.xdp_program = xdp.program;
  done.of_pins = true;
  return done;
}

std::string xdp_above(const std::vector<std::string>& above, const ProgramNames& names) {
  for (const std::string& one : above) {
    if (query_xdp(index_of(one), names).anything) return one;
  }
  return {};
}

std::vector<Attachment> attachments(const std::filesystem::path& pin_dir) {
  const std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)> devices(
      if_nameindex(), if_freenameindex);
  if (devices == nullptr) fail_errno(errno, "list the network devices", "");
  const ProgramNames names(pin_dir);
  std::vector<Attachment> found;
  for (const struct if_nameindex* device = devices.get(); device->if_index != 0; ++device) {
    try {
      auto attachment = attachment_of(device->if_name, static_cast<int>(device->if_index), names);
      if (attachment) found.push_back(std::move(*attachment));
    } catch (const Error&) {
      // Gone since it was listed: it carries nothing any more.
      if (if_nametoindex(device->if_name) == device->if_index) throw;
    }
  }
  return found;
}

bool detach(const std::string& dev, const std::filesystem::path& pin_dir) {
  const int ifindex = index_of(dev);
  const ProgramNames names(pin_dir);
  const bool xdp = detach_xdp(ifindex, query_xdp(ifindex, names), names);
  const bool tc = detach_tc(ifindex, query_tc(ifindex, names));
  return xdp || tc;
}

std::vector<std::string> detach_all(const std::filesystem::path& pin_dir) {
  std::vector<std::string> devices;
  for (const Attachment& attachment : attachments(pin_dir)) {
    if (detach(attachment.dev, pin_dir)) devices.push_back(attachment.dev);
  }
  return devices;
}

}  // namespace edgeshed::kernel
