// Puts the pinned programs on a network device and takes them off again. Must not load the object
// (object.h) nor touch the pins (pins.h). Programs of others are never changed or removed.
//
// XDP goes on by libxdp's dispatcher where the kernel has freplace, so that programs of others keep
// running; else as the one plain program of the device. Native mode first, generic with a reason.
// TC egress goes on by clsact, with a handle and priority of our own. What is attached is asked of
// the kernel each time: there is no state file that could be stale.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/programs.h"

namespace edgeshed::kernel {

/// Who is at the other end of the device. kClients: what arrives comes from remotes (es_xdp,
/// es_tc). kServers: what arrives comes from game servers (es_xdp_srv, es_tc_srv).
enum class Faces { kClients, kServers };

/// What the caller asks for. kAuto: native, else generic with a stated reason. kNative: native or
/// an error. kGeneric: generic.
enum class XdpRequest { kAuto, kNative, kGeneric };

/// What stands. kDispatcher runs in libxdp's dispatcher, and Attachment::xdp_generic says how.
enum class XdpState { kNone, kNative, kGeneric, kDispatcher };

/// "clients" or "servers"; "none", "native", "generic" or "dispatcher".
std::string_view faces_name(Faces faces);
std::string_view xdp_state_name(XdpState state);

struct Attachment {
  std::string dev;
  int ifindex = 0;
  Faces faces = Faces::kClients;
  XdpState xdp = XdpState::kNone;
  bool xdp_generic = false;       ///< also under kDispatcher
  std::string fallback_reason;    ///< why not the better mode; empty: nothing better exists
  std::uint32_t xdp_program = 0;  ///< program id; 0: none
  std::uint32_t tc_program = 0;   ///< program id; 0: none
  /// True if what stands is of the pins; false after pin_object() replaced the pins and before
  /// attach() was called again. In a dispatcher only the TC program is compared.
  bool of_pins = false;

  /// XDP and TC; one alone is what a crash, somebody's `tc qdisc del` or a move to another network
  /// namespace left.
  bool both() const { return xdp != XdpState::kNone && tc_program != 0; }
};

struct AttachOptions {
  std::string dev;
  Faces faces = Faces::kClients;
  XdpRequest mode = XdpRequest::kAuto;
  std::filesystem::path pin_dir = kDefaultPinDir;
  std::filesystem::path object_path = default_object_path();  ///< for libxdp's own copy
  /// Of the two programs, one that is not there is not put on, and one of the pins is left alone.
  bool only_replace = false;
};

/// Attaches XDP and TC egress, or replaces ours in place (never a moment without a program).
/// If TC fails after XDP was new, XDP is taken off again.
/// Throws Error: no such device, no pins, no permission; with exit code kExitRefused and nothing
/// changed: `lo`, a foreign XDP program without a dispatcher, another EdgeShed (its pins are beside
/// pin_dir), a device above this one that has an XDP program.
Attachment attach(const AttachOptions& options);

/// The first of the devices above one (link_stack.h) that has an XDP program, so that the kernel
/// lets the one below have none; empty: there is none. Throws Error: one of them is gone.
std::string xdp_above(const std::vector<std::string>& above, const ProgramNames& names);

/// Devices of this network namespace that carry one of our programs, by interface index. Which are
/// ours is told by program names where the process may look programs up by id (CAP_SYS_ADMIN), else
/// by the pinned programs' ids alone. Throws Error: the devices could not be listed.
std::vector<Attachment> attachments(const std::filesystem::path& pin_dir = kDefaultPinDir);

/// Takes ours off one device: XDP in whatever mode, and our TC filter. The clsact qdisc stays if a
/// filter of somebody else is in it. False: nothing of ours was there. Throws Error: no such
/// device, no permission. Call remove_pins() after the last device.
bool detach(const std::string& dev, const std::filesystem::path& pin_dir = kDefaultPinDir);

/// detach() for every device that carries ours; their names.
std::vector<std::string> detach_all(const std::filesystem::path& pin_dir = kDefaultPinDir);

}  // namespace edgeshed::kernel
