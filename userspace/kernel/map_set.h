// All maps of one installation, opened and checked together. Must not decide anything about their
// content: writers are plan_writer.h, slot_table.h and the CLI's bypass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "maps/connection.h"
#include "maps/control.h"
#include "maps/counters.h"
#include "maps/plan.h"
#include "maps/slot_table.h"
#include "userspace/kernel/fd.h"
#include "userspace/kernel/map_view.h"

struct bpf_object;

namespace edgeshed::kernel {

/// Either every map is open and fits the geometry in es_control, or the constructor has thrown and
/// nothing is. Spans stay valid as long as the MapSet (moves included). With Access::kRead a store
/// through any of them is a fault; the types are mutable because most users write.
class MapSet {
 public:
  /// Opens the pins under `pin_dir` (from `edgeshed attach`).
  /// Throws Error, one line: no pins (not attached), no permission, another magic or schema (says
  /// both schema numbers and how to get out), a map whose size contradicts the geometry.
  static MapSet from_pins(const std::filesystem::path& pin_dir, Access access);

  /// The maps of a loaded object, read-write. The object may be closed afterwards.
  /// Throws Error as from_pins. es_control must be filled already (object.h does that).
  static MapSet from_object(const bpf_object* object);

  es_control& control() const { return control_.span()[0]; }
  const es_geometry& geometry() const { return control().geometry; }
  /// Endpoint number by local port in host order: ES_PORTS bytes.
  std::span<std::uint8_t> ports() const { return ports_.span()[0].endpoint; }

  /// Ports that lead to an endpoint; 0: everything passes.
  std::size_t registered_ports() const;

  /// Rows of copy 0 or 1, index: number of the endpoint, room or class.
  std::span<es_plan_endpoint> plan_endpoints(unsigned copy) const;
  std::span<es_plan_room> plan_rooms(unsigned copy) const;
  std::span<es_plan_class> plan_classes(unsigned copy) const;

  /// geometry().buckets buckets, and the stash bucket as the last one.
  std::span<es_bucket> buckets() const { return buckets_.span(); }
  std::span<es_connection> connections() const { return connections_.span(); }
  std::span<es_flow_state> connections_in() const { return connections_in_.span(); }
  std::span<es_flow_state> connections_out() const { return connections_out_.span(); }
  /// Block 0 belongs to nobody; a connection's stream_block is 1 to geometry().stream_blocks.
  std::span<es_stream_block> streams() const { return streams_.span(); }

  /// Index: cpu * geometry().endpoints + endpoint.
  std::span<es_endpoint_counters> endpoint_counters() const { return endpoint_counters_.span(); }
  /// Index: cpu * geometry().rooms + room.
  std::span<es_room_counters> room_counters() const { return room_counters_.span(); }

  /// The event ring's map fd (for ring_buffer__new, or an mmap of one's own). Owned by the MapSet.
  int events_fd() const { return events_.get(); }

 private:
  using OpenMap = std::function<Fd(std::string_view name)>;
  /// detach: the command that takes the maps away, for people.
  MapSet(const OpenMap& open_map, std::string_view where, const std::string& detach, Access access);

  MappedArray<es_control> control_;
  MappedArray<es_ports_page> ports_;
  MappedArray<es_plan_endpoint> plan_endpoints_;
  MappedArray<es_plan_room> plan_rooms_;
  MappedArray<es_plan_class> plan_classes_;
  MappedArray<es_bucket> buckets_;
  MappedArray<es_connection> connections_;
  MappedArray<es_flow_state> connections_in_;
  MappedArray<es_flow_state> connections_out_;
  MappedArray<es_stream_block> streams_;
  MappedArray<es_endpoint_counters> endpoint_counters_;
  MappedArray<es_room_counters> room_counters_;
  Fd events_;
};

}  // namespace edgeshed::kernel
