// Replacing of programs: see upgrade.h.
#include "userspace/kernel/upgrade.h"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <string>
#include <utility>

#include "userspace/kernel/error.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/programs.h"

namespace edgeshed::kernel {
namespace {

bool is_gone(const Attachment& one) {
  return if_nametoindex(one.dev.c_str()) != static_cast<unsigned>(one.ifindex);
}

class Upgrade {
 public:
  Upgrade(const std::filesystem::path& object_path, const std::filesystem::path& pin_dir)
      : object_path_(object_path),
        pin_dir_(pin_dir),
        maps_(MapSet::from_pins(pin_dir, Access::kReadWrite)),
        old_hash_(maps_.control().object_hash) {}

  bool is_needed() const {
    if (!are_from(maps_.control(), object_path_)) return true;
    const std::vector<Attachment> all = attachments(pin_dir_);
    return std::any_of(all.begin(), all.end(), [](const Attachment& one) { return !one.of_pins; });
  }

  std::vector<Attachment> run() {
    // Before it is loaded: a file that is exchanged in between is then known by its old hash.
    const std::uint32_t new_hash = object_hash(object_path_);
    ProgramPins pins(Object::load_on_pins(object_path_, pin_dir_), pin_dir_);
    const std::vector<Attachment> before = attachments(pin_dir_);
    std::vector<Attachment> done;
    // Until all is done nobody knows: a run that was killed half-way is seen, and done again.
    note_hash(0);
    try {
      pins.exchange();
    } catch (const Error&) {
      note_hash(old_hash_);
      throw;
    }
    try {
      for (const Attachment& one : before) {
        copied_ = copied_ || one.xdp == XdpState::kDispatcher;
        if (auto replaced = replace(one)) done.push_back(std::move(*replaced));
      }
    } catch (const Error& error) {
      undo(pins, error);
    }
    note_hash(new_hash);
    return done;
  }

 private:
  void note_hash(std::uint32_t hash) const {
    __atomic_store_n(&maps_.control().object_hash, hash, __ATOMIC_RELAXED);
  }

  /// The pinned programs in the place of ours on a device, in its mode and with its faces. Nothing
  /// where it is gone since it was listed: it needs no protection.
  std::optional<Attachment> replace(const Attachment& before) const {
    if (is_gone(before)) return std::nullopt;
    AttachOptions options;
    options.dev = before.dev;
    options.faces = before.faces;
    options.pin_dir = pin_dir_;
    options.object_path = object_path_;
    options.only_replace = true;
    if (before.xdp_generic) options.mode = XdpRequest::kGeneric;
    try {
      return attach(options);
    } catch (const Error&) {
      if (is_gone(before)) return std::nullopt;
      throw;
    }
  }

  /// Puts all back, then throws `error`, with what could not be put back.
  [[noreturn]] void undo(ProgramPins& pins, const Error& error) const {
    try {
      pins.exchange();
      put_back();
    } catch (const Error& second) {
      throw Error(fmt::format("{}; and the old programs could not be put back: {}", error.what(),
                              second.what()),
                  error.exit_code());
    }
    throw Error(error);
  }

  /// The old programs on each device that has new ones; what keeps one from it does not keep the
  /// others. Throws Error afterwards: the first failure.
  void put_back() const {
    std::optional<Error> first;
    for (const Attachment& one : attachments(pin_dir_)) {
      if (one.of_pins) continue;
      try {
        replace(one);
      } catch (const Error& error) {
        if (!first) first = error;
      }
    }
    if (first) throw Error(*first);
    if (!copied_) note_hash(old_hash_);
  }

  const std::filesystem::path& object_path_;
  const std::filesystem::path& pin_dir_;
  const MapSet maps_;
  const std::uint32_t old_hash_;
  /// A dispatcher was touched. libxdp's copy comes from the object file, which is the new one: what
  /// is undone there keeps it, or both.
  bool copied_ = false;
};

}  // namespace

bool are_from(const es_control& control, const std::filesystem::path& object_path) {
  return control.object_hash != 0 && control.object_hash == object_hash(object_path);
}

std::optional<std::vector<Attachment>> upgrade_programs(const std::filesystem::path& object_path,
                                                        const std::filesystem::path& pin_dir,
                                                        bool again) {
  if (!may_look_up_programs()) {
    throw Error(
        "cannot see which programs are attached: upgrade as root, or with CAP_SYS_ADMIN too",
        kExitEnvironment);
  }
  Upgrade upgrade(object_path, pin_dir);
  if (!again && !upgrade.is_needed()) return std::nullopt;
  return upgrade.run();
}

}  // namespace edgeshed::kernel
