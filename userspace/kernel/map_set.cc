// Opening and checking of all maps: see map_set.h.
#include "userspace/kernel/map_set.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "userspace/kernel/error.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/schema.h"

namespace edgeshed::kernel {
namespace {

void check_identity(const es_control& control, std::string_view where, const std::string& detach) {
  if (control.magic != ES_CONTROL_MAGIC) {
    throw Error(fmt::format(
        "the maps of {} are not EdgeShed's or were never filled (magic {:#x}): run `{}`, then "
        "`edgeshed attach`",
        where, control.magic, detach));
  }
  if (control.schema_version != schema_version()) {
    throw Error(fmt::format(
        "the maps of {} have schema {}, this program knows schema {}: run `{}`, then `edgeshed "
        "attach` of this version; counters begin anew",
        where, control.schema_version, schema_version(), detach));
  }
  const es_geometry& geometry = control.geometry;
  if (geometry.endpoints == 0 || geometry.rooms == 0 || geometry.classes == 0 ||
      geometry.connections == 0 || geometry.buckets == 0 || geometry.cpus == 0 ||
      geometry.hz == 0) {
    throw Error(fmt::format(
        "the control page of {} names no sizes: run `{}`, then `edgeshed attach`", where, detach));
  }
}

template <typename T>
std::span<T> copy_of(std::span<T> both, unsigned copy) {
  return both.subspan((copy & 1) * (both.size() / 2), both.size() / 2);
}

}  // namespace

MapSet::MapSet(const OpenMap& open_map, std::string_view where, const std::string& detach,
               Access access) {
  const auto map = [&]<typename T>(MappedArray<T>& view, std::string_view name,
                                   std::size_t entries) {
    const Fd fd = open_map(name);
    view = MappedArray<T>(fd.get(), name, entries, access);
  };
  map(control_, "es_control", 1);
  check_identity(control(), where, detach);
  const es_geometry& size = geometry();
  map(ports_, "es_ports", 1);
  map(plan_endpoints_, "es_plan_ep", std::size_t{2} * size.endpoints);
  map(plan_rooms_, "es_plan_room", std::size_t{2} * size.rooms);
  map(plan_classes_, "es_plan_class", std::size_t{2} * size.classes);
  map(buckets_, "es_buckets", std::size_t{size.buckets} + 1);
  map(connections_, "es_conns", size.connections);
  map(connections_in_, "es_conns_in", size.connections);
  map(connections_out_, "es_conns_out", size.connections);
  map(streams_, "es_streams", std::size_t{size.stream_blocks} + 1);
  map(endpoint_counters_, "es_count_ep", std::size_t{size.cpus} * size.endpoints);
  map(room_counters_, "es_count_room", std::size_t{size.cpus} * size.rooms);
  events_ = open_map("es_events");
}

MapSet MapSet::from_pins(const std::filesystem::path& pin_dir, Access access) {
  const auto open_map = [&](std::string_view name) {
    const std::string path = (pin_dir / name).string();
    // Not BPF_F_RDONLY, also for kRead: the kernel refuses to mmap a map through such an fd.
    const int fd = bpf_obj_get(path.c_str());
    if (fd < 0) fail_errno(fd, "open the pinned map", path, hint_for_pin(fd, pin_dir));
    return Fd(fd);
  };
  return MapSet(open_map, pin_dir.string(), core::command_at(pin_dir.string(), "detach"), access);
}

MapSet MapSet::from_object(const bpf_object* object) {
  const auto open_map = [&](std::string_view name) {
    const int fd = bpf_object__find_map_fd_by_name(object, std::string(name).c_str());
    if (fd < 0) fail_errno(fd, "find in the BPF object the map", name, "rebuild the object");
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) fail_errno(errno, "duplicate the descriptor of the map", name);
    return Fd(copy);
  };
  return MapSet(open_map, "the loaded object", "edgeshed detach", Access::kReadWrite);
}

std::size_t MapSet::registered_ports() const {
  const auto all = ports();
  return all.size() - static_cast<std::size_t>(std::count(all.begin(), all.end(), 0));
}

std::span<es_plan_endpoint> MapSet::plan_endpoints(unsigned copy) const {
  return copy_of(plan_endpoints_.span(), copy);
}

std::span<es_plan_room> MapSet::plan_rooms(unsigned copy) const {
  return copy_of(plan_rooms_.span(), copy);
}

std::span<es_plan_class> MapSet::plan_classes(unsigned copy) const {
  return copy_of(plan_classes_.span(), copy);
}

}  // namespace edgeshed::kernel
