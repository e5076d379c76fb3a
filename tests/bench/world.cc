// Loading and filling: see world.h.
#include "tests/bench/world.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "tests/bench/hash_record.h"
#include "userspace/core/geometry.h"
#include "userspace/kernel/counters_reader.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::bench {
namespace {

constexpr std::uint32_t kConnectionsPerRoom = 100;
constexpr std::uint32_t kRoomsMax = 1000;
constexpr std::uint32_t kEndpoints = 4;
constexpr std::uint32_t kClasses = 2;
constexpr std::uint8_t kPriority = 100;  // quartile 1 of 0 to 3

es_geometry geometry_for(std::uint32_t connections, std::uint32_t rooms) {
  core::Host host{};
  host.endpoints_max = kEndpoints - 1;
  host.rooms_max = rooms;
  host.classes_max = kClasses - 1;
  host.connections_max = connections;
  host.streams_max = 1;
  es_geometry geometry = core::derive_geometry(host, kernel::possible_cpus(), kernel::measure_hz());
  if (getrandom(geometry.seed, sizeof(geometry.seed), 0) != sizeof(geometry.seed)) {
    throw std::runtime_error("cannot draw a seed by getrandom");
  }
  return geometry;
}

const char* object_path(Table table) {
  return table == Table::kSlots ? BENCH_PRODUCT_OBJECT : BENCH_HASH_OBJECT;
}

}  // namespace

BpfObject open_object(const std::string& path) {
  libbpf_set_print(nullptr);
  BpfObject object(bpf_object__open_file(path.c_str(), nullptr));
  if (!object) throw std::runtime_error(fmt::format("cannot open {}", path));
  bpf_map* map = nullptr;
  // Peers ask for pins by name: a benchmark leaves none.
  bpf_object__for_each_map(map, object.get()) bpf_map__set_pin_path(map, nullptr);
  return object;
}

void load_object(bpf_object* object) {
  const int err = bpf_object__load(object);
  if (err != 0) {
    throw std::runtime_error(
        fmt::format("cannot load {}: {}", bpf_object__name(object), std::strerror(-err)));
  }
}

bpf_map* find_map(const bpf_object* object, const char* name) {
  bpf_map* map = bpf_object__find_map_by_name(object, name);
  if (map == nullptr) throw std::runtime_error(fmt::format("the object has no map {}", name));
  return map;
}

int program_fd(const bpf_object* object, const char* name) {
  const bpf_program* program = bpf_object__find_program_by_name(object, name);
  const int fd = program != nullptr ? bpf_program__fd(program) : -1;
  if (fd < 0) throw std::runtime_error(fmt::format("the object has no program {}", name));
  return fd;
}

es_key key_of(std::uint32_t flow) {
  es_key key{};
  key.addr_lo = 0xffff0000u | (std::uint64_t{__builtin_bswap32(bench_flow_address(flow))} << 32);
  key.port = __builtin_bswap16(bench_flow_port(flow));
  key.endpoint = BENCH_ENDPOINT;
  return key;
}

World::World(Table table, std::uint32_t connections)
    : table_(table),
      connections_(connections),
      rooms_(std::clamp(connections / kConnectionsPerRoom, 1u, kRoomsMax)),
      object_(open_object(object_path(table))),
      plan_rooms_(rooms_) {
  const es_geometry geometry = geometry_for(connections, rooms_);
  size_maps(geometry);
  constexpr __u32 kJiffiesClock = 0;
  set_knob("knob_geometry", &geometry, sizeof(geometry));
  set_knob("knob_map_clock", &kJiffiesClock, sizeof(kJiffiesClock));
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object_.get()) {
    const std::string_view name = bpf_program__name(program);
    bpf_program__set_autoload(program, name.starts_with("bench_"));
  }
  load_object(object_.get());
  fill_control(geometry);
  maps_.emplace(kernel::MapSet::from_object(object_.get()));
  writer_.emplace(*maps_);
  generators_ = {bpf_map__fd(find_map(object_.get(), "bench_generators")), "bench_generators", 0,
                 kernel::Access::kReadWrite};
  for (unsigned cpu = 0; cpu < BENCH_CPUS_MAX; ++cpu) {
    generators_.span()[cpu].random = 0x1234567u + cpu;
    draw(cpu, 0, connections);
  }
  maps_->ports()[BENCH_SERVER_PORT] = BENCH_ENDPOINT;
  if (table == Table::kSlots) {
    register_in_slots();
  } else {
    register_in_hash();
  }
}

void World::size_maps(const es_geometry& geometry) {
  for (const core::MapMemory& map : core::map_memory(geometry)) {
    if (std::string_view(map.name) == "es_events") continue;  // a ring: its entries are bytes
    bpf_map__set_max_entries(find_map(object_.get(), map.name), static_cast<__u32>(map.entries));
  }
  if (table_ == Table::kHash) {
    bpf_map__set_max_entries(find_map(object_.get(), "bench_hash"), connections_);
  }
}

void World::set_knob(const char* name, const void* value, std::size_t bytes) {
  const btf* types = bpf_object__btf(object_.get());
  const int section = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
  const btf_type* type = section < 0 ? nullptr : btf__type_by_id(types, section);
  std::size_t data_bytes = 0;
  bpf_map* map = find_map(object_.get(), ".rodata");
  auto* data = static_cast<std::byte*>(const_cast<void*>(bpf_map__initial_value(map, &data_bytes)));
  for (unsigned i = 0; type != nullptr && i < btf_vlen(type); ++i) {
    const btf_var_secinfo& variable = btf_var_secinfos(type)[i];
    const btf_type* var_type = btf__type_by_id(types, variable.type);
    if (std::string_view(btf__name_by_offset(types, var_type->name_off)) != name) continue;
    if (variable.size != bytes || variable.offset + bytes > data_bytes) break;
    std::memcpy(data + variable.offset, value, bytes);
    return;
  }
  throw std::runtime_error(fmt::format("the object has no knob {} of {} bytes", name, bytes));
}

void World::fill_control(const es_geometry& geometry) {
  const kernel::MappedArray<es_control> control(bpf_map__fd(find_map(object_.get(), "es_control")),
                                                "es_control", 1, kernel::Access::kReadWrite);
  es_control& page = control.span()[0];
  page.geometry = geometry;
  page.schema_version = ES_SCHEMA_VERSION;
  page.event_sample_mask = kernel::ObjectOptions{}.event_sample_mask;
  page.default_enforce = 1;
  page.magic = ES_CONTROL_MAGIC;
}

es_policy World::policy_of(std::uint32_t flow) const {
  es_policy policy{};
  policy.room = static_cast<__u16>(flow / kConnectionsPerRoom % rooms_);
  policy.priority = kPriority;
  policy.weight_inverse_q8 = 256;
  return policy;
}

void World::register_in_slots() {
  kernel::SlotTableMemory memory;
  memory.buckets = maps_->buckets();
  memory.connections = maps_->connections();
  memory.connections_in = maps_->connections_in();
  memory.connections_out = maps_->connections_out();
  memory.stash_used = &maps_->control().stash_used;
  std::ranges::copy(maps_->geometry().seed, memory.seed);
  // No packet passes yet: there is no reader to wait for.
  kernel::SlotTable slots(memory, [] {});
  for (std::uint32_t flow = 0; flow < connections_; ++flow) {
    if (!slots.insert(key_of(flow), policy_of(flow))) {
      throw std::runtime_error(fmt::format("the slot table is full at connection {}", flow));
    }
  }
  slots.reclaim();
}

void World::register_in_hash() {
  std::vector<es_key> keys(connections_);
  std::vector<bench_hash_record> records(connections_);
  for (std::uint32_t flow = 0; flow < connections_; ++flow) {
    keys[flow] = key_of(flow);
    records[flow] = {.connection = {.key = keys[flow], .policy = policy_of(flow)},
                     .record = flow,
                     .reserved = 0};
  }
  __u32 count = connections_;
  const int fd = bpf_map__fd(find_map(object_.get(), "bench_hash"));
  if (bpf_map_update_batch(fd, keys.data(), records.data(), &count, nullptr) != 0) {
    throw std::runtime_error("cannot fill the HASH");
  }
}

void World::enter(const Scenario& scenario) {
  std::array<es_plan_endpoint, 2> endpoints{};
  endpoints[BENCH_ENDPOINT] = scenario.endpoint;
  std::ranges::fill(plan_rooms_, scenario.room);
  kernel::Plan plan;
  plan.endpoints = endpoints;
  plan.rooms = plan_rooms_;
  plan.classes = {&scenario.contract, 1};
  plan.valid_until_jiffies = std::numeric_limits<std::uint64_t>::max();
  writer_->publish(plan, 0);
}

void World::draw(unsigned cpu, std::uint32_t first, std::uint32_t flows) {
  generators_.span()[cpu].first = first;
  generators_.span()[cpu].flows = flows;
}

std::uint64_t World::counted(es_reason reason) const {
  es_endpoint_counters sum;
  kernel::CountersReader(*maps_).read_endpoint(BENCH_ENDPOINT, sum);
  std::uint64_t packets = 0;
  for (const auto& row : sum.cell[ES_IN]) packets += row[reason];
  return packets;
}

std::uint64_t World::seen() const {
  es_endpoint_counters sum;
  kernel::CountersReader(*maps_).read_endpoint(BENCH_ENDPOINT, sum);
  return sum.seen[ES_IN];
}

}  // namespace edgeshed::bench
