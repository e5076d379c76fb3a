// The BPF object: open, size, set the knobs, load, fill the control page. Must not attach
// (attach.h) nor pin (pins.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "maps/control.h"
#include "userspace/kernel/map_set.h"

struct bpf_object;

namespace edgeshed::kernel {

/// $EDGESHED_OBJECT if set and not empty, else the path that the build was configured with.
std::filesystem::path default_object_path();

/// Rows of the per-CPU counters on this host. Throws Error: /sys is not mounted.
std::uint32_t possible_cpus();

/// CRC-32 of an object file: whether the programs that are pinned are those of this build
/// (es_control.object_hash). 0: there is no such file.
std::uint32_t object_hash(const std::filesystem::path& path);

struct ObjectOptions {
  std::filesystem::path path = default_object_path();
  /// Sizes, from core::derive_geometry(). Fields that are 0 are filled in: cpus (possible CPUs), hz
  /// (measured), seed (getrandom, if both words are 0).
  es_geometry geometry{};
  /// Endpoints that say nothing: enforce, or shadow (the default: a first run sheds nothing).
  bool default_enforce = false;
  /// Replaces jiffies by es_control.clock_jiffies: replay and tests control time.
  bool map_clock = false;
  /// An event for one in (mask + 1) sheds per CPU; ~0: none. 1023 keeps a flood of 10 M sheds/s at
  /// about 10,000 events/s.
  std::uint32_t event_sample_mask = 1023;
};

/// A loaded object. Its programs and maps go when it goes, unless they are pinned or attached.
class Object {
 public:
  /// Loads all programs. On failure nothing stays behind.
  /// Throws Error, one line: no object file, an object of another build (no knobs, another schema),
  /// no permission, no memory for the tables (how much, which config key), the verifier's refusal
  /// (which program, the last line of its log).
  static Object load(const ObjectOptions& options);

  /// As load(), but on maps that exist already, under `pin_dir`: geometry, seed and knobs are taken
  /// from the pinned control page, which is left as it is. For libxdp, which loads its own copy of
  /// a program. `only_program` is the one program that will be loaded; the object is opened and not
  /// loaded.
  static Object open_on_pins(const std::filesystem::path& path,
                             const std::filesystem::path& pin_dir, std::string_view only_program);

  /// The same with all programs, loaded.
  static Object load_on_pins(const std::filesystem::path& path,
                             const std::filesystem::path& pin_dir);

  bpf_object* get() const { return object_.get(); }
  const es_geometry& geometry() const { return geometry_; }
  /// The maps of this object, read-write.
  MapSet maps() const { return MapSet::from_object(object_.get()); }
  /// The fd of a loaded program ("es_xdp"), owned by the object. Throws Error: no such program.
  int program_fd(std::string_view name) const;

 private:
  struct Closer {
    void operator()(bpf_object* object) const;
  };
  explicit Object(bpf_object* object) : object_(object) {}
  static Object with_maps_of(const std::filesystem::path& path,
                             const std::filesystem::path& pin_dir);

  std::unique_ptr<bpf_object, Closer> object_;
  es_geometry geometry_{};
};

}  // namespace edgeshed::kernel
