// Loading of the BPF object: see object.h.
#include "userspace/kernel/object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <atomic>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "userspace/kernel/error.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/library_log.h"
#include "userspace/kernel/schema.h"

namespace edgeshed::kernel {
namespace {

/// Maps whose entries the geometry decides; the others keep the size that the object states.
struct SizedMap {
  const char* name;
  const char* config_key;
  std::uint32_t (*entries)(const es_geometry&);
};

constexpr std::array<SizedMap, 10> kSizedMaps = {{
    {"es_plan_ep", "endpoints_max", [](const es_geometry& g) { return 2 * g.endpoints; }},
    {"es_plan_room", "rooms_max", [](const es_geometry& g) { return 2 * g.rooms; }},
    {"es_plan_class", "classes_max", [](const es_geometry& g) { return 2 * g.classes; }},
    {"es_buckets", "connections_max", [](const es_geometry& g) { return g.buckets + 1; }},
    {"es_conns", "connections_max", [](const es_geometry& g) { return g.connections; }},
    {"es_conns_in", "connections_max", [](const es_geometry& g) { return g.connections; }},
    {"es_conns_out", "connections_max", [](const es_geometry& g) { return g.connections; }},
    {"es_streams", "streams_max", [](const es_geometry& g) { return g.stream_blocks + 1; }},
    {"es_count_ep", "endpoints_max", [](const es_geometry& g) { return g.cpus * g.endpoints; }},
    {"es_count_room", "rooms_max", [](const es_geometry& g) { return g.cpus * g.rooms; }},
}};

es_geometry complete(es_geometry geometry) {
  if (geometry.cpus == 0) geometry.cpus = possible_cpus();
  if (geometry.hz == 0) geometry.hz = measure_hz();
  if (geometry.seed[0] == 0 && geometry.seed[1] == 0 &&
      getrandom(geometry.seed, sizeof(geometry.seed), 0) != sizeof(geometry.seed)) {
    fail_errno(errno, "draw the secret of the tables", "by getrandom");
  }
  return geometry;
}

bpf_object* open_object(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(fmt::format(
        "no BPF object at {}: build or install EdgeShed, or name the object by EDGESHED_OBJECT",
        path.string()));
  }
  const LibraryLog log;
  bpf_object* object = bpf_object__open_file(path.c_str(), nullptr);
  if (object == nullptr) fail_errno(errno, "open the BPF object", path.string(), log.last_reason());
  return object;
}

[[noreturn]] void fail_other_build(std::string_view what) {
  throw Error(fmt::format(
      "the BPF object is of another build: {}; build the object and the programs together", what));
}

bpf_map* find_map(const bpf_object* object, const char* name) {
  bpf_map* map = bpf_object__find_map_by_name(object, name);
  if (map == nullptr) fail_other_build(fmt::format("it has no map {}", name));
  return map;
}

/// Writes a constant of .rodata before load. Its place comes from the object's BTF.
void set_knob(const bpf_object* object, std::string_view name, const void* value,
              std::size_t bytes) {
  const btf* types = bpf_object__btf(object);
  const int section = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  if (section < 0) fail_other_build("it has no .rodata");
  std::size_t data_bytes = 0;
  // Before load libbpf hands out its own copy, which it then writes into the map.
  auto* data = static_cast<std::byte*>(
      const_cast<void*>(bpf_map__initial_value(find_map(object, ".rodata"), &data_bytes)));
  const btf_type* type = btf__type_by_id(types, static_cast<__u32>(section));
  const btf_var_secinfo* variables = btf_var_secinfos(type);
  for (unsigned i = 0; i < btf_vlen(type); ++i) {
    const btf_type* variable = btf__type_by_id(types, variables[i].type);
    if (name != btf__name_by_offset(types, variable->name_off)) continue;
    if (variables[i].size != bytes || variables[i].offset + bytes > data_bytes) {
      fail_other_build(
          fmt::format("{} has {} bytes instead of {}", name, variables[i].size, bytes));
    }
    std::memcpy(data + variables[i].offset, value, bytes);
    return;
  }
  fail_other_build(fmt::format("it has no {}", name));
}

void set_knobs(const bpf_object* object, const es_geometry& geometry, bool map_clock) {
  const __u32 clock = map_clock ? 1 : 0;
  set_knob(object, "knob_geometry", &geometry, sizeof(geometry));
  set_knob(object, "knob_map_clock", &clock, sizeof(clock));
}

void set_sizes(const bpf_object* object, const es_geometry& geometry) {
  for (const SizedMap& sized : kSizedMaps) {
    const std::uint32_t entries = sized.entries(geometry);
    const int err = bpf_map__set_max_entries(find_map(object, sized.name), entries);
    if (err != 0) fail_errno(err, fmt::format("size to {} entries the map", entries), sized.name);
  }
}

[[noreturn]] void fail_map(const bpf_object* object, int err, const std::string& name) {
  const bpf_map* map = bpf_object__find_map_by_name(object, name.c_str());
  const std::uint64_t entries = map != nullptr ? bpf_map__max_entries(map) : 0;
  const std::uint64_t bytes = map != nullptr ? entries * bpf_map__value_size(map) : 0;
  std::string hint;
  for (const SizedMap& sized : kSizedMaps) {
    if (name != sized.name || (err != -ENOMEM && err != -E2BIG && err != -EINVAL)) continue;
    hint = fmt::format("lower {} in [host] of the configuration, or give the process more memory",
                       sized.config_key);
  }
  fail_errno(err,
             fmt::format("get {} KiB ({} entries) for the table", (bytes + 1023) / 1024, entries),
             name, hint);
}

/// One line from libbpf's many. The verifier's refusals come as EACCES, EINVAL, E2BIG, ENOSPC or
/// EPERM: what tells them from a missing privilege is that the verifier has written a log.
[[noreturn]] void fail_load(const bpf_object* object, int err, const LibraryLog& log) {
  const LoadFailure failure = parse_load_failure(log.text());
  if (!failure.map.empty()) fail_map(object, err, failure.map);
  if (failure.program.empty()) fail_errno(err, "load the BPF object", "", log.last_reason());
  if (failure.verifier_line.empty()) fail_errno(err, "load the BPF program", failure.program);
  fail_errno(err, "load the BPF program", failure.program,
             fmt::format("the verifier says: {}; EdgeShed is tested on Linux 6.1, 6.12 and 6.18, "
                         "please report this with `uname -r`",
                         failure.verifier_line));
}

void fill_control(es_control& control, const ObjectOptions& options, const es_geometry& geometry) {
  control.geometry = geometry;
  control.schema_version = schema_version();
  control.object_hash = object_hash(options.path);
  control.event_sample_mask = options.event_sample_mask;
  control.default_enforce = options.default_enforce ? 1 : 0;
  // Last: an adopter that sees the magic sees the rest.
  std::atomic_ref<__u32>(control.magic).store(ES_CONTROL_MAGIC, std::memory_order_release);
}

}  // namespace

std::filesystem::path default_object_path() {
  const char* path = std::getenv("EDGESHED_OBJECT");
  return path != nullptr && *path != '\0' ? path : EDGESHED_OBJECT_PATH;
}

std::uint32_t object_hash(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) return 0;
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::uint32_t possible_cpus() {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0)
    fail_errno(cpus, "read the possible CPUs", "from /sys/devices/system/cpu/possible");
  return static_cast<std::uint32_t>(cpus);
}

void Object::Closer::operator()(bpf_object* object) const { bpf_object__close(object); }

Object Object::load(const ObjectOptions& options) {
  Object object(open_object(options.path));
  object.geometry_ = complete(options.geometry);
  set_sizes(object.get(), object.geometry_);
  set_knobs(object.get(), object.geometry_, options.map_clock);
  const LibraryLog log;
  const int err = bpf_object__load(object.get());
  if (err != 0) fail_load(object.get(), err, log);

  const int control_fd = bpf_map__fd(find_map(object.get(), "es_control"));
  const MappedArray<es_control> control(control_fd, "es_control", 1, Access::kReadWrite);
  fill_control(control.span()[0], options, object.geometry_);
  object.maps();  // checks every size while nothing is pinned yet
  return object;
}

Object Object::with_maps_of(const std::filesystem::path& path,
                            const std::filesystem::path& pin_dir) {
  Object object(open_object(path));
  object.geometry_ = MapSet::from_pins(pin_dir, Access::kRead).geometry();
  set_knobs(object.get(), object.geometry_, false);
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    if (bpf_map__is_internal(map)) continue;
    const std::string pin = (pin_dir / bpf_map__name(map)).string();
    const Fd fd(bpf_obj_get(pin.c_str()));
    if (!fd) fail_errno(errno, "open the pinned map", pin);
    const int err = bpf_map__reuse_fd(map, fd.get());
    if (err != 0) fail_errno(err, "reuse the pinned map", pin);
  }
  return object;
}

Object Object::open_on_pins(const std::filesystem::path& path, const std::filesystem::path& pin_dir,
                            std::string_view only_program) {
  Object object = with_maps_of(path, pin_dir);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    bpf_program__set_autoload(program, bpf_program__name(program) == only_program);
  }
  return object;
}

Object Object::load_on_pins(const std::filesystem::path& path,
                            const std::filesystem::path& pin_dir) {
  Object object = with_maps_of(path, pin_dir);
  const LibraryLog log;
  const int err = bpf_object__load(object.get());
  if (err != 0) fail_load(object.get(), err, log);
  return object;
}

int Object::program_fd(std::string_view name) const {
  const bpf_program* program =
      bpf_object__find_program_by_name(object_.get(), std::string(name).c_str());
  const int fd = program != nullptr ? bpf_program__fd(program) : -1;
  if (fd < 0) fail_other_build(fmt::format("it has no program {}", name));
  return fd;
}

}  // namespace edgeshed::kernel
