#include "tests/bpf/harness.h"

#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "maps/limits.h"
#include "userspace/kernel/object.h"

namespace edgeshed::test {
namespace {

constexpr std::uint64_t kStartJiffies = 1'000'000'000;
constexpr const char* kProgramNames[] = {"es_xdp", "es_tc", "es_xdp_srv", "es_tc_srv"};

bool is_tc(Program program) { return program == Program::kTc || program == Program::kTcServers; }

std::bitset<ES_REASONS>& seen_set() {
  static std::bitset<ES_REASONS> seen;
  return seen;
}

/// The counter rows are per CPU, so a test stays on one.
unsigned pin_to_one_cpu() {
  static const unsigned pinned = [] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    unsigned cpu = 0;
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &allowed)) ++cpu;
    return cpu;
  }();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(pinned, &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) throw std::runtime_error("sched_setaffinity");
  return pinned;
}

std::uint16_t default_lane_tiers() {
  std::uint16_t tiers = 0;
#define X(name, tier, text) \
  tiers = static_cast<std::uint16_t>(tiers | (ES_TIER_##tier << (2 * ES_LANE_##name)));
  ES_LANE_LIST(X)
#undef X
  return tiers;
}

es_plan_room room_that_sheds_nothing() {
  es_plan_room room{};
  room.room_bytes_per_cpu = ~0ull;
  for (auto& cost : room.packet_cost) cost = 256;
  for (auto& rules : room.rules) std::fill_n(rules.keep_q16, ES_LANES, ES_KEEP_ALL);
  return room;
}

template <typename T>
void zero(std::span<T> span) {
  std::memset(static_cast<void*>(span.data()), 0, span.size_bytes());
}

/// Zeroes a map that cannot be mmapped.
void zero_words(const bpf_object* object, const char* name, std::uint32_t entries) {
  const int fd = bpf_object__find_map_fd_by_name(object, name);
  std::vector<std::uint32_t> keys(entries);
  for (std::uint32_t i = 0; i < entries; ++i) keys[i] = i;
  const std::vector<std::uint64_t> values(entries, 0);
  std::uint32_t count = entries;
  if (bpf_map_update_batch(fd, keys.data(), values.data(), &count, nullptr) != 0)
    throw std::runtime_error(std::string("cannot zero ") + name);
}

/// Adds all words of `from` to `to`: the counter rows consist of u64 after their scratch.
template <typename T>
void add_words(T& to, const T& from) {
  auto* sum = reinterpret_cast<std::uint64_t*>(&to);
  const auto* part = reinterpret_cast<const std::uint64_t*>(&from);
  for (std::size_t i = 0; i < sizeof(T) / 8; ++i) sum[i] += part[i];
}

void read_cells(const es_endpoint_counters& before, const es_endpoint_counters& after,
                unsigned direction, Verdict& verdict) {
  unsigned found = 0;
  for (unsigned row = 0; row < ES_ROWS; ++row) {
    for (unsigned reason = 0; reason < ES_REASON_COLUMNS; ++reason) {
      const std::uint64_t more =
          after.cell[direction][row][reason] - before.cell[direction][row][reason];
      if (more == 0) continue;
      found += static_cast<unsigned>(more);
      verdict.direction = static_cast<std::uint8_t>(direction);
      verdict.row = static_cast<std::uint8_t>(row);
      verdict.reason = static_cast<std::uint8_t>(reason);
      verdict.bytes = after.bytes[direction][row] - before.bytes[direction][row];
      verdict.bytes_shed = after.bytes_shed[direction][row] - before.bytes_shed[direction][row];
      verdict.rejected = after.rejected[direction][row] != before.rejected[direction][row];
    }
  }
  EXPECT_LE(found, 1u) << "one packet was counted " << found << " times";
  EXPECT_EQ(after.seen[direction] - before.seen[direction], found) << "the ledger broke";
  for (unsigned reason = 0; reason < ES_REASON_COLUMNS; ++reason) {
    if (after.shadow[direction][reason] != before.shadow[direction][reason])
      verdict.shadowed = static_cast<std::uint8_t>(reason);
  }
}

}  // namespace

std::string_view reason_name(std::uint8_t reason) {
  static constexpr std::string_view kNames[] = {
#define X(name, verdict, outcome, text) #name,
      ES_REASON_LIST(X)
#undef X
  };
  return reason < ES_REASONS ? kNames[reason] : "none";
}

std::string_view row_name(std::uint8_t row) {
  static constexpr std::string_view kNames[] = {
#define X(name, tier, text) #name,
      ES_LANE_LIST(X)
#undef X
          "demoted",
      "unclassified",
  };
  return row < ES_ROWS ? kNames[row] : "none";
}

const std::bitset<ES_REASONS>& reasons_seen() { return seen_set(); }

void PrintTo(const Verdict& verdict, std::ostream* out) {
  *out << "{action " << verdict.action << ", endpoint " << int{verdict.endpoint} << ", "
       << (verdict.direction == ES_IN ? "in" : "out") << ", row " << row_name(verdict.row)
       << ", reason " << reason_name(verdict.reason) << ", " << verdict.bytes << " B}";
}

// --- the loaded object -------------------------------------------------------------------------

struct World::Machine {
  explicit Machine(const WorldSizes& wanted)
      : sizes(wanted), object(load(wanted)), maps(object.maps()) {
    for (unsigned i = 0; i < 4; ++i) fd[i] = object.program_fd(kProgramNames[i]);
    ring = ring_buffer__new(maps.events_fd(), on_event, this, nullptr);
  }

  static kernel::Object load(const WorldSizes& sizes) {
    kernel::ObjectOptions options;
    options.map_clock = true;
    options.event_sample_mask = ~0u;
    options.geometry.endpoints = sizes.endpoints;
    options.geometry.rooms = sizes.rooms;
    options.geometry.classes = sizes.classes;
    options.geometry.connections = sizes.connections;
    options.geometry.stream_blocks = sizes.stream_blocks;
    options.geometry.buckets = sizes.buckets;
    options.geometry.hz = sizes.hz;
    return kernel::Object::load(options);
  }

  static int on_event(void* context, void* data, std::size_t bytes) {
    es_event event{};
    std::memcpy(&event, data, std::min(bytes, sizeof(event)));
    static_cast<Machine*>(context)->events.push_back(event);
    return 0;
  }

  WorldSizes sizes;
  kernel::Object object;
  kernel::MapSet maps;
  int fd[4] = {};
  ring_buffer* ring = nullptr;  // lives as long as the process
  std::vector<es_event> events;
};

World::Machine& World::machine_of(const WorldSizes& sizes) {
  static std::vector<std::unique_ptr<Machine>> machines;
  for (const auto& machine : machines) {
    if (machine->sizes == sizes) return *machine;
  }
  machines.push_back(std::make_unique<Machine>(sizes));
  return *machines.back();
}

World::World(const WorldSizes& sizes)
    : sizes_(sizes),
      machine_(machine_of(sizes)),
      maps_(machine_.maps),
      endpoints_(sizes.endpoints),
      rooms_(sizes.rooms, room_that_sheds_nothing()),
      classes_(sizes.classes),
      cpu_(pin_to_one_cpu()) {
  reset();
}

World::~World() { check_ledger(); }

void World::reset() {
  zero(maps_.ports());
  for (const unsigned copy : {0u, 1u}) {
    zero(maps_.plan_endpoints(copy));
    zero(maps_.plan_rooms(copy));
    zero(maps_.plan_classes(copy));
  }
  zero(maps_.buckets());
  zero(maps_.connections());
  zero(maps_.connections_in());
  zero(maps_.connections_out());
  zero(maps_.streams());
  zero(maps_.endpoint_counters());
  zero(maps_.room_counters());
  zero_words(machine_.object.get(), "es_frags", ES_FRAGMENT_SLOTS);
  zero_words(machine_.object.get(), "es_rej_prefix", ES_REJECT_PREFIX_SLOTS);
  events();
  es_control& page = control();
  page.generation = 0;
  page.event_sample_mask = ~0u;
  page.valid_until_jiffies = ~0ull >> 1;
  page.bypass = 0;
  page.stash_used = 0;
  page.clock_jiffies = kStartJiffies;
  page.rejects_per_cpu = ~0u;
  const es_geometry& geometry = maps_.geometry();
  table_ = std::make_unique<kernel::SlotTable>(
      kernel::SlotTableMemory{.buckets = maps_.buckets(),
                              .connections = maps_.connections(),
                              .connections_in = maps_.connections_in(),
                              .connections_out = maps_.connections_out(),
                              .stash_used = &page.stash_used,
                              .seed = {geometry.seed[0], geometry.seed[1]}},
      [] {});
}

// --- the plan ----------------------------------------------------------------------------------

World& World::endpoint(const EndpointSpec& spec) {
  es_plan_endpoint& row = endpoint_row(spec.number);
  row = {};
  row.protocol = static_cast<__u8>(spec.protocol);
  row.flags = static_cast<__u8>(spec.flags | (spec.address.empty() ? ES_EP_ANY_ADDRESS : 0));
  row.default_lane = spec.default_lane;
  if (!spec.address.empty()) {
    const es_key local = key_of(spec.address, 0);
    row.local_addr_hi = local.addr_hi;
    row.local_addr_lo = local.addr_lo;
  }
  row.lane_tiers = default_lane_tiers();
  row.handshakes_per_cpu = ~0u;
  row.retry_standard_10ms = 50;
  row.retry_join_ms = 500;
  if (spec.protocol == ES_PROTOCOL_enet)
    std::fill_n(row.classifier.enet_channel, ES_ENET_CHANNELS,
                static_cast<__u8>(ES_LANE_event << 4 | ES_LANE_snapshot));
  if (spec.protocol == ES_PROTOCOL_dscp)
    std::fill_n(row.classifier.dscp_lane, 64, static_cast<__u8>(ES_LANE_command));
  row.next_same_port = maps_.ports()[spec.port];
  maps_.ports()[spec.port] = spec.number;
  return *this;
}

World& World::publish(std::optional<std::uint32_t> generation) {
  const std::uint32_t next = generation.value_or(control().generation + 1);
  const unsigned copy = next & 1;
  for (std::size_t i = 1; i < endpoints_.size(); ++i) {
    // A row without tiers was never given: there is no such endpoint.
    if (endpoints_[i].lane_tiers == 0) continue;
    endpoints_[i].generation = next;
    for (const unsigned direction : {ES_IN, ES_OUT})
      endpoints_[i].lane_actions[direction] = es_lane_actions_of(&endpoints_[i], direction);
    maps_.plan_endpoints(copy)[i] = endpoints_[i];
  }
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    rooms_[i].generation = next;
    maps_.plan_rooms(copy)[i] = rooms_[i];
  }
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    classes_[i].generation = next;
    maps_.plan_classes(copy)[i] = classes_[i];
  }
  __atomic_store_n(&control().generation, next, __ATOMIC_RELEASE);
  return *this;
}

void World::tear_endpoint(std::uint8_t number) {
  maps_.plan_endpoints(generation() & 1)[number].generation += 2;
}

void World::tear_room(std::uint32_t number) {
  maps_.plan_rooms(generation() & 1)[number].generation += 2;
}

void World::tear_class(std::uint32_t number) {
  maps_.plan_classes(generation() & 1)[number].generation += 2;
}

// --- connections and time ----------------------------------------------------------------------

World& World::connect(const std::string& address, std::uint16_t port, const ConnectionSpec& spec) {
  es_policy policy{};
  policy.room = spec.room;
  policy.contract_class = spec.contract_class;
  policy.priority = spec.priority;
  policy.flags = spec.flags;
  policy.weight_inverse_q8 = spec.weight_inverse_q8;
  const auto record =
      table_->insert(key_of(address, port, spec.endpoint), policy, 0, spec.stream_block);
  if (!record) throw std::runtime_error("the slot table is full");
  last_record_ = *record;
  return *this;
}

bool World::disconnect(const std::string& address, std::uint16_t port, std::uint8_t endpoint) {
  return table_->remove(key_of(address, port, endpoint));
}

es_flow_state& World::flow_state(std::uint32_t record, es_direction direction) const {
  return direction == ES_IN ? maps_.connections_in()[record] : maps_.connections_out()[record];
}

World& World::at_jiffies(std::uint64_t jiffies) {
  control().clock_jiffies = jiffies;
  return *this;
}

// --- packets -----------------------------------------------------------------------------------

int World::program_fd(Program program) const { return machine_.fd[static_cast<int>(program)]; }

Bytes World::execute(Program program, const Bytes& frame, const TcContext& context, int& action) {
  Bytes out(frame.size() + 256);
  __sk_buff skb{};
  skb.gso_segs = context.gso_segs;
  skb.wire_len = context.wire_len;
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.data_in = frame.data();
  options.data_out = out.data();
  options.data_size_in = static_cast<__u32>(frame.size());
  options.data_size_out = static_cast<__u32>(out.size());
  if (is_tc(program)) {
    options.ctx_in = &skb;
    options.ctx_size_in = sizeof(skb);
  }
  const int error = bpf_prog_test_run_opts(program_fd(program), &options);
  if (error != 0)
    throw std::runtime_error("PROG_RUN of " + std::to_string(frame.size()) +
                             " bytes: " + std::strerror(-error));
  action = static_cast<int>(options.retval);
  out.resize(options.data_size_out);
  return out;
}

int World::action(Program program, const Bytes& frame, const TcContext& context) {
  int action = -1;
  execute(program, frame, context, action);
  return action;
}

Verdict World::run(Program program, const Bytes& frame, const TcContext& context) {
  const auto rows =
      maps_.endpoint_counters().subspan(std::size_t{cpu_} * sizes_.endpoints, sizes_.endpoints);
  const std::vector<es_endpoint_counters> before(rows.begin(), rows.end());
  Verdict verdict;
  verdict.at_tc = is_tc(program);
  verdict.frame = execute(program, frame, context, verdict.action);
  unsigned counted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::memcmp(&before[i], &rows[i], sizeof(rows[i])) == 0) continue;
    ++counted;
    verdict.endpoint = static_cast<std::uint8_t>(i);
    for (const unsigned direction : {ES_IN, ES_OUT}) {
      read_cells(before[i], rows[i], direction, verdict);
      if (rows[i].walk_errors[direction] != before[i].walk_errors[direction])
        verdict.walk_error = true;
    }
    verdict.rejects_withheld =
        static_cast<unsigned>(rows[i].not_rejected[0] - before[i].not_rejected[0] +
                              rows[i].not_rejected[1] - before[i].not_rejected[1]);
  }
  EXPECT_LE(counted, 1u) << "one packet was counted for " << counted << " endpoints";
  if (verdict.reason < ES_REASONS) seen_set().set(verdict.reason);
  return verdict;
}

// --- what was counted --------------------------------------------------------------------------

es_endpoint_counters World::endpoint_counters(std::uint8_t number) const {
  es_endpoint_counters sum{};
  for (std::uint32_t cpu = 0; cpu < maps_.geometry().cpus; ++cpu)
    add_words(sum, maps_.endpoint_counters()[cpu * sizes_.endpoints + number]);
  sum.scratch = cpu_row(number).scratch;
  return sum;
}

es_room_counters World::room_counters(std::uint32_t number) const {
  es_room_counters sum{};
  for (std::uint32_t cpu = 0; cpu < maps_.geometry().cpus; ++cpu)
    add_words(sum, maps_.room_counters()[cpu * sizes_.rooms + number]);
  return sum;
}

std::uint64_t World::cell(es_direction direction, unsigned row, unsigned reason,
                          std::uint8_t endpoint_number) const {
  return endpoint_counters(endpoint_number).cell[direction][row][reason];
}

es_endpoint_counters& World::cpu_row(std::uint8_t number) const {
  return maps_.endpoint_counters()[cpu_ * sizes_.endpoints + number];
}

std::vector<es_event> World::events() {
  machine_.events.clear();
  ring_buffer__consume(machine_.ring);
  return machine_.events;
}

void World::check_ledger() const {
  for (std::uint32_t number = 0; number < sizes_.endpoints; ++number) {
    const es_endpoint_counters row = endpoint_counters(static_cast<std::uint8_t>(number));
    for (const unsigned direction : {ES_IN, ES_OUT}) {
      std::uint64_t cells = 0;
      for (unsigned lane = 0; lane < ES_ROWS; ++lane) {
        std::uint64_t drops = 0;
        for (unsigned reason = 0; reason < ES_REASON_COLUMNS; ++reason) {
          cells += row.cell[direction][lane][reason];
          if (reason < ES_REASONS && es_reason_verdict(reason) == ES_VERDICT_drop)
            drops += row.cell[direction][lane][reason];
        }
        EXPECT_LE(row.rejected[direction][lane], drops) << "endpoint " << number;
        EXPECT_LE(row.bytes_shed[direction][lane], row.bytes[direction][lane]);
      }
      EXPECT_EQ(row.seen[direction], cells) << "endpoint " << number << " direction " << direction;
    }
  }
}

}  // namespace edgeshed::test
