// One loaded benchmark object with its flows registered: the maps of the product, sized for a
// number of connections. Must not measure.
#pragma once

#include <bpf/libbpf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "maps/plan.h"
#include "maps/reasons.h"
#include "tests/bench/flow_tuple.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/map_view.h"
#include "userspace/kernel/plan_writer.h"

namespace edgeshed::bench {

struct BpfObjectCloser {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using BpfObject = std::unique_ptr<bpf_object, BpfObjectCloser>;

/// Opens an object file that the build made, without its pins. Throws std::runtime_error.
BpfObject open_object(const std::string& path);
/// Loads it. Throws std::runtime_error.
void load_object(bpf_object* object);
/// A map or a loaded program of an object. Throws std::runtime_error: no such one.
bpf_map* find_map(const bpf_object* object, const char* name);
int program_fd(const bpf_object* object, const char* name);

/// Where a world keeps its connections.
enum class Table { kSlots, kHash };

/// What one kind of packet meets: how the endpoint, every room and class 0 are configured.
struct Scenario {
  es_plan_endpoint endpoint{};
  es_plan_room room{};
  es_plan_class contract{};
};

class World {
 public:
  /// Loads the object of that table and registers flows 0 to `connections` - 1 in rooms of 100, at
  /// most 1,000 rooms. Throws std::runtime_error.
  World(Table table, std::uint32_t connections);

  std::uint32_t connections() const { return connections_; }
  std::uint32_t rooms() const { return rooms_; }
  int program_fd(const char* name) const { return bench::program_fd(object_.get(), name); }

  /// Publishes a scenario, by the daemon's own writer.
  void enter(const Scenario& scenario);
  /// Flows that a CPU draws from: `flows` from `first` on.
  void draw(unsigned cpu, std::uint32_t first, std::uint32_t flows);
  /// Packets that endpoint 1 has counted under a reason, and all that it has seen.
  std::uint64_t counted(es_reason reason) const;
  std::uint64_t seen() const;

  const kernel::MapSet& maps() const { return *maps_; }

 private:
  void size_maps(const es_geometry& geometry);
  void set_knob(const char* name, const void* value, std::size_t bytes);
  void fill_control(const es_geometry& geometry);
  void register_in_slots();
  void register_in_hash();
  es_policy policy_of(std::uint32_t flow) const;

  Table table_;
  std::uint32_t connections_;
  std::uint32_t rooms_;
  BpfObject object_;
  std::optional<kernel::MapSet> maps_;
  std::optional<kernel::PlanWriter> writer_;
  kernel::MappedArray<bench_generator> generators_;
  std::vector<es_plan_room> plan_rooms_;
};

/// The key of a flow as the packet path makes it.
es_key key_of(std::uint32_t flow);

}  // namespace edgeshed::bench
