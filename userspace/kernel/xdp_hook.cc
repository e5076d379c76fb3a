// XDP attachment: see xdp_hook.h.
//
// The dispatcher is libxdp's: it loads a copy of our program as an extension (freplace) of its own
// program, so it gets a second, unloaded instance of the object that works on the pinned maps. On a
// kernel without freplace libxdp puts that copy on the device plainly; then the pinned program
// takes its place in one step, so that what runs is always what is pinned. Asking by attaching is
// the one probe that cannot be wrong: kernels refuse freplace at different steps.
#include "userspace/kernel/xdp_hook.h"

#include <linux/if_link.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <xdp/libxdp.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "userspace/kernel/error.h"
#include "userspace/kernel/library_log.h"

namespace edgeshed::kernel {
namespace {

constexpr std::string_view kDispatcherName = "xdp_dispatcher";

struct MultiprogCloser {
  void operator()(xdp_multiprog* programs) const { xdp_multiprog__close(programs); }
};
using Multiprog = std::unique_ptr<xdp_multiprog, MultiprogCloser>;

struct ProgramCloser {
  void operator()(xdp_program* program) const { xdp_program__close(program); }
};
using Program = std::unique_ptr<xdp_program, ProgramCloser>;

Multiprog multiprog_of(int ifindex) {
  xdp_multiprog* programs = xdp_multiprog__get_from_ifindex(ifindex);
  if (libxdp_get_error(programs) != 0) return nullptr;
  return Multiprog(programs);
}

/// Ours inside of a dispatcher, except the program with the id `not_id`; owned by `programs`. What
/// is another EdgeShed's is passed over, and `other_pins` told.
xdp_program* ours_in(const Multiprog& programs, const ProgramNames& names, std::uint32_t not_id = 0,
                     std::filesystem::path* other_pins = nullptr) {
  if (programs == nullptr || xdp_multiprog__is_legacy(programs.get())) return nullptr;
  for (xdp_program* program = xdp_multiprog__next_prog(nullptr, programs.get()); program != nullptr;
       program = xdp_multiprog__next_prog(program, programs.get())) {
    const char* name = xdp_program__name(program);
    if (name == nullptr || !is_our_program(name) || xdp_program__id(program) == not_id) continue;
    const std::filesystem::path other = names.other_pins_of(xdp_program__id(program));
    if (other.empty()) return program;
    if (other_pins != nullptr) *other_pins = other;
  }
  return nullptr;
}

/// What can be done about the reason that the kernel gave; empty: nothing is known.
std::string_view remedy_of(std::string_view said) {
  // virtio_net: "Can't set XDP while host is implementing GRO_HW/CSUM, disable GRO_HW/CSUM first".
  // Where the guest cannot disable it, it is the host's to do.
  if (said.find("host is implementing") != std::string_view::npos) {
    return ": turn the card's offloads off, here by `ethtool -K` (rx-gro-hw, lro, rx) or, where "
           "that is refused, on the host of this virtual machine (qemu: ctrl_guest_offloads=on, or "
           "guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off)";
  }
  return {};
}

std::string reason_of(int err, const LibraryLog& log) {
  const std::string said = log.last_reason();
  const std::string_view code = std::strerror(std::abs(err));
  return said.empty() ? std::string(code) : fmt::format("{} ({}){}", code, said, remedy_of(said));
}

__u32 mode_flag(bool generic) { return generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE; }

void add_reason(XdpResult& result, const std::string& reason) {
  if (!result.fallback_reason.empty()) result.fallback_reason += "; ";
  result.fallback_reason += reason;
}

/// Puts `fd` where the program `old_id` is. The kernel compares and swaps: if somebody else's came
/// between, it refuses.
void replace_plain(int ifindex, int fd, std::uint32_t old_id, bool generic) {
  const Fd old = open_program(old_id);
  DECLARE_LIBBPF_OPTS(bpf_xdp_attach_opts, options);
  options.old_prog_fd = old.get();
  const LibraryLog log;
  const int err = bpf_xdp_attach(ifindex, fd, mode_flag(generic) | XDP_FLAGS_REPLACE, &options);
  if (err != 0) fail_errno(err, "replace the XDP program", "of the device", log.last_reason());
}

/// Plain attach to a device without any program. Native first, unless generic is asked for.
void attach_plain(int ifindex, int fd, XdpRequest request, XdpResult& result) {
  LibraryLog log;
  if (request != XdpRequest::kGeneric) {
    const int err =
        bpf_xdp_attach(ifindex, fd, XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST, nullptr);
    if (err == 0) {
      result.state = XdpState::kNative;
      return;
    }
    const std::string reason = reason_of(err, log);
    if (request == XdpRequest::kNative || err == -EPERM || err == -EBUSY || err == -EEXIST) {
      fail_errno(err, "attach XDP in native mode", "", log.last_reason());
    }
    add_reason(result, fmt::format("no native mode: {}", reason));
    log.clear();
  } else {
    add_reason(result, "generic mode was asked for");
  }
  const int err =
      bpf_xdp_attach(ifindex, fd, XDP_FLAGS_SKB_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST, nullptr);
  if (err != 0) fail_errno(err, "attach XDP in generic mode", "", log.last_reason());
  result.state = XdpState::kGeneric;
  result.generic = true;
}

[[noreturn]] void refuse_generic(const AttachOptions& options) {
  throw Error(
      fmt::format("{} has XDP in generic mode, and the kernel cannot swap modes in place: "
                  "`{}` first, or attach without asking for native mode",
                  options.dev,
                  core::command_at(options.pin_dir.string(), "detach --dev " + options.dev)),
      kExitRefused);
}

/// What came of trying the dispatcher. `program` 0: it was refused, for the reason `no_dispatcher`,
/// and a program of ours may stand plainly (libxdp's fallback). `no_native` is set if native mode
/// was tried and refused.
struct DispatcherTry {
  std::uint32_t program = 0;
  bool generic = false;
  std::string no_dispatcher;
  std::string no_native;
};

int attach_by_libxdp(xdp_program* program, int ifindex, XdpRequest request, const LibraryLog& log,
                     std::string& no_native) {
  int err = -EOPNOTSUPP;
  if (request != XdpRequest::kGeneric) {
    err = xdp_program__attach(program, ifindex, XDP_MODE_NATIVE, 0);
    if (err == 0) return 0;
    no_native = reason_of(err, log);
    if (request == XdpRequest::kNative) return err;
  }
  return xdp_program__attach(program, ifindex, XDP_MODE_SKB, 0);
}

DispatcherTry try_dispatcher(int ifindex, std::string_view name, const AttachOptions& options) {
  if (!may_look_up_programs()) {
    DispatcherTry refused;
    refused.no_dispatcher = "this process may not look programs up (CAP_SYS_ADMIN)";
    return refused;
  }
  const Object copy = Object::open_on_pins(options.object_path, options.pin_dir, name);
  LibraryLog log;
  const std::string program_name(name);
  DECLARE_LIBXDP_OPTS(xdp_program_opts, create);
  create.obj = copy.get();
  create.prog_name = program_name.c_str();
  DispatcherTry result;
  xdp_program* created = xdp_program__create(&create);
  const long failed = libxdp_get_error(created);
  if (failed != 0) {
    result.no_dispatcher = reason_of(static_cast<int>(failed), log);
    return result;
  }
  const Program program(created);
  const int err = attach_by_libxdp(program.get(), ifindex, options.mode, log, result.no_native);
  const Multiprog now = multiprog_of(ifindex);
  if (err == 0 && now != nullptr && !xdp_multiprog__is_legacy(now.get())) {
    result.generic = xdp_multiprog__attach_mode(now.get()) == XDP_MODE_SKB;
    result.program = xdp_program__id(program.get());
    return result;
  }
  // libxdp says this line once in a process.
  result.no_dispatcher = log.line_with("Compatibility check");
  if (result.no_dispatcher.empty()) {
    result.no_dispatcher =
        err != 0 ? reason_of(err, log) : "the kernel refuses to extend programs (freplace)";
  }
  return result;
}

void take_reasons(const DispatcherTry& tried, bool generic, XdpRequest request, XdpResult& result) {
  if (!tried.no_dispatcher.empty()) add_reason(result, "no dispatcher: " + tried.no_dispatcher);
  if (!generic) return;
  add_reason(result, request == XdpRequest::kGeneric ? "generic mode was asked for"
                                                     : "no native mode: " + tried.no_native);
}

XdpResult in_dispatcher(const DispatcherTry& tried, XdpRequest request) {
  XdpResult result;
  result.state = XdpState::kDispatcher;
  result.generic = tried.generic;
  result.program = tried.program;
  take_reasons(tried, tried.generic, request, result);
  return result;
}

[[noreturn]] void refuse_foreign(const std::string& dev, const XdpStanding& standing) {
  // libxdp finds its dispatchers by the interface's number.
  const char* whose = standing.name == kDispatcherName
                          ? "which libxdp does not know by this interface's number (it came from "
                            "another network namespace)"
                          : "which is not EdgeShed's and shares with nobody";
  throw Error(fmt::format("{} already has the XDP program {} (id {}), {}: detach it first (`ip "
                          "link set dev {} {} off`)",
                          dev, standing.name.empty() ? "?" : standing.name, standing.main_id, whose,
                          dev, standing.generic ? "xdpgeneric" : "xdp"),
              kExitRefused);
}

/// The new one joins first, then the old one leaves: for a moment both decide, never neither.
XdpResult replace_in_dispatcher(int ifindex, std::string_view name, const AttachOptions& options,
                                const XdpStanding& standing, const ProgramNames& names) {
  // A dispatcher has one mode for all; ours follows it.
  AttachOptions joining = options;
  joining.mode = standing.generic ? XdpRequest::kGeneric : XdpRequest::kNative;
  if (standing.generic && options.mode == XdpRequest::kNative) refuse_generic(options);
  const DispatcherTry tried = try_dispatcher(ifindex, name, joining);
  if (tried.program == 0) {
    throw Error("cannot join the XDP dispatcher of " + options.dev + ": " + tried.no_dispatcher);
  }
  const XdpResult result = in_dispatcher(tried, joining.mode);
  if (standing.our_id == 0) return result;
  // Killed ones may have left several.
  for (;;) {
    const Multiprog programs = multiprog_of(ifindex);
    xdp_program* old = ours_in(programs, names, result.program);
    if (old == nullptr) return result;
    const LibraryLog log;
    const int err =
        xdp_program__detach(old, ifindex, xdp_multiprog__attach_mode(programs.get()), 0);
    if (err != 0) {
      fail_errno(err, "take the old program", "out of the dispatcher", log.last_reason());
    }
  }
}

}  // namespace

XdpStanding query_xdp(int ifindex, const ProgramNames& names) {
  DECLARE_LIBBPF_OPTS(bpf_xdp_query_opts, query);
  const int err = bpf_xdp_query(ifindex, 0, &query);
  if (err != 0) fail_errno(err, "ask for the XDP program", "of the device");
  XdpStanding standing;
  standing.main_id = query.drv_prog_id != 0   ? query.drv_prog_id
                     : query.skb_prog_id != 0 ? query.skb_prog_id
                                              : query.prog_id;
  if (standing.main_id == 0) return standing;
  standing.anything = true;
  standing.generic = query.drv_prog_id == 0 && query.skb_prog_id != 0;
  standing.name = names.name_of(standing.main_id);
  if (is_our_program(standing.name)) {
    standing.other_pins = names.other_pins_of(standing.main_id);
    if (standing.other_pins.empty()) standing.our_id = standing.main_id;
    return standing;
  }
  if (standing.name.empty() && !may_look_up_programs()) {
    standing.hidden = true;
    return standing;
  }
  const LibraryLog log;  // libxdp warns about programs that it does not know
  const Multiprog programs = multiprog_of(ifindex);
  standing.dispatcher = programs != nullptr && !xdp_multiprog__is_legacy(programs.get());
  if (const xdp_program* ours = ours_in(programs, names, 0, &standing.other_pins)) {
    standing.our_id = xdp_program__id(ours);
    standing.name = xdp_program__name(ours);
  }
  return standing;
}

XdpResult attach_xdp(int ifindex, std::string_view name, const AttachOptions& options,
                     const XdpStanding& standing, const ProgramNames& names) {
  if (standing.dispatcher) return replace_in_dispatcher(ifindex, name, options, standing, names);
  if (standing.anything && standing.our_id == 0) refuse_foreign(options.dev, standing);
  const Fd pinned = open_pinned_program(options.pin_dir, name);
  XdpResult result;
  result.program = program_id(pinned.get());
  if (standing.our_id != 0) {
    if (standing.generic && options.mode == XdpRequest::kNative) refuse_generic(options);
    replace_plain(ifindex, pinned.get(), standing.our_id, standing.generic);
    result.state = standing.generic ? XdpState::kGeneric : XdpState::kNative;
    result.generic = standing.generic;
    add_reason(result, "replaced in place, in the mode that it had");
    return result;
  }
  const DispatcherTry tried = try_dispatcher(ifindex, name, options);
  if (tried.program != 0) return in_dispatcher(tried, options.mode);
  const XdpStanding fallback = query_xdp(ifindex, names);
  if (fallback.our_id == 0) {
    add_reason(result, "no dispatcher: " + tried.no_dispatcher);
    attach_plain(ifindex, pinned.get(), options.mode, result);
    return result;
  }
  replace_plain(ifindex, pinned.get(), fallback.our_id, fallback.generic);
  result.state = fallback.generic ? XdpState::kGeneric : XdpState::kNative;
  result.generic = fallback.generic;
  take_reasons(tried, fallback.generic, options.mode, result);
  return result;
}

bool detach_xdp(int ifindex, const XdpStanding& standing, const ProgramNames& names) {
  if (standing.our_id == 0) return false;
  const LibraryLog log;
  if (!standing.dispatcher) {
    const Fd ours = open_program(standing.our_id);
    DECLARE_LIBBPF_OPTS(bpf_xdp_attach_opts, options);
    options.old_prog_fd = ours.get();
    const int err =
        bpf_xdp_detach(ifindex, mode_flag(standing.generic) | XDP_FLAGS_REPLACE, &options);
    if (err != 0) fail_errno(err, "detach the XDP program", "of the device", log.last_reason());
    return true;
  }
  // A crash between joining and leaving may have left two of ours.
  for (;;) {
    const Multiprog programs = multiprog_of(ifindex);
    xdp_program* ours = ours_in(programs, names);
    if (ours == nullptr) return true;
    const int err =
        xdp_program__detach(ours, ifindex, xdp_multiprog__attach_mode(programs.get()), 0);
    if (err != 0) fail_errno(err, "leave the dispatcher", "of the device", log.last_reason());
  }
}

}  // namespace edgeshed::kernel
