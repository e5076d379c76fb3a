#include "userspace/kernel/attach_undo.h"

#include <net/if.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "userspace/kernel/error.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::kernel {
namespace {

std::optional<Attachment> attachment_on(const std::vector<Attachment>& all,
                                        const std::string& dev) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Attachment& one) { return one.dev == dev; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

void put_back(const DeviceBefore& before, const std::filesystem::path& pin_dir) {
  if (if_nametoindex(before.dev.c_str()) == 0) return;
  if (!before.attached) {
    detach(before.dev, pin_dir);
    return;
  }
  const auto now = attachment_on(attachments(pin_dir), before.dev);
  if (!now || now->faces == before.faces) return;
  AttachOptions options;
  options.dev = before.dev;
  options.faces = before.faces;
  options.pin_dir = pin_dir;
  if (now->xdp_generic) options.mode = XdpRequest::kGeneric;
  attach(options);
}

void put_pins_back(const AttachUndo& undo) {
  if (undo.pins_there) {
    if (!pins_exist(undo.pin_dir)) return;
    const auto maps = MapSet::from_pins(undo.pin_dir, Access::kReadWrite);
    __atomic_store_n(&maps.control().default_enforce, undo.default_enforce, __ATOMIC_RELAXED);
    return;
  }
  // Also what a killed attach left beside them.
  if (attachments(undo.pin_dir).empty()) remove_pins(undo.pin_dir);
}

}  // namespace

AttachUndo note_before_attach(const std::filesystem::path& pin_dir,
                              const std::vector<std::string>& devices) {
  AttachUndo undo;
  undo.pin_dir = pin_dir;
  undo.pins_there = pins_exist(pin_dir);
  if (undo.pins_there) {
    undo.default_enforce = MapSet::from_pins(pin_dir, Access::kRead).control().default_enforce;
  }
  const std::vector<Attachment> attached = attachments(pin_dir);
  for (const std::string& dev : devices) {
    DeviceBefore before;
    before.dev = dev;
    if (const auto now = attachment_on(attached, dev)) {
      before.attached = true;
      before.whole = now->of_pins && now->both();
      before.faces = now->faces;
    }
    undo.devices.push_back(std::move(before));
  }
  return undo;
}

void roll_back(const AttachUndo& undo) {
  std::optional<Error> first;
  const auto attempt = [&](const std::function<void()>& step) {
    try {
      step();
    } catch (const Error& error) {
      if (!first) first = error;
    }
  };
  for (auto before = undo.devices.rbegin(); before != undo.devices.rend(); ++before) {
    attempt([&] { put_back(*before, undo.pin_dir); });
  }
  attempt([&] { put_pins_back(undo); });
  if (first) throw Error(*first);
}

}  // namespace edgeshed::kernel
