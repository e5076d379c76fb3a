// The cases of one CPU and the rows made of them: see packet_rows.h.
#include "tests/bench/packet_rows.h"

#include <linux/bpf.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tests/bench/case_set.h"
#include "tests/bench/filter_peer.h"
#include "tests/bench/scenarios.h"
#include "tests/bench/test_run.h"
#include "tests/bench/world.h"

namespace edgeshed::bench {
namespace {

/// What a bare XDP_DROP costs per packet end to end, on native XDP over veth.
/// PROG_TEST_RUN has no driver, so a goal against bare drop is (this + net) / this.
constexpr double kBareEndToEndNs = 24.5;
constexpr std::uint32_t kPacketsPerSample = 250'000;
constexpr std::uint32_t kPacketsPerSampleQuick = 150'000;

std::string size_name(std::uint32_t connections) {
  return connections >= 1'000'000 ? fmt::format("{} M", connections / 1'000'000)
                                  : fmt::format("{} k", connections / 1'000);
}

class PacketBench {
 public:
  explicit PacketBench(const RunOptions& options) : options_(options) {}

  std::vector<Row> run() {
    load();
    add_class_decided();
    add_table_decided();
    add_enet();
    cases_->check();
    pin_to_cpu(0);
    const std::uint32_t packets = options_.quick ? kPacketsPerSampleQuick : kPacketsPerSample;
    for (unsigned round = 0; round < options_.rounds(); ++round) cases_->run_round(round, packets);
    baseline_rows();
    class_rows();
    table_rows();
    hash_rows();
    enet_rows();
    return std::move(rows_);
  }

 private:
  void load();
  void add_class_decided();
  void add_table_decided();
  void add_enet();
  void add_bare(const std::string& name, int program_fd, const test::Bytes& frame);
  void add(const std::string& name, World& world, test::Bytes frame, const Scenario& scenario,
           es_reason reason);
  std::vector<std::uint32_t> sizes() const;
  World& world(std::uint32_t connections) { return worlds_.at({Table::kSlots, connections}); }
  bool has(const std::string& name) const { return numbers_.contains(name); }

  Cost net(const std::string& name) const;
  void end_to_end(const std::string& name, std::optional<double> at_most);
  void against(const std::string& name, const std::string& peer, std::optional<Goal> goal);
  void flat(const std::string& kind);
  void baseline_rows();
  void class_rows();
  void table_rows();
  void hash_rows();
  void enet_rows();

  RunOptions options_;
  std::map<std::pair<Table, std::uint32_t>, World> worlds_;
  std::optional<FilterPeer> filter_;
  std::optional<CaseSet> cases_;  ///< after the worlds
  std::map<std::string, std::size_t> numbers_;
  std::vector<Row> rows_;
};

/// Cost beyond the generator; of xdp-filter also without the jump to it.
Cost PacketBench::net(const std::string& name) const {
  Cost cost = cases_->net(numbers_.at(name));
  if (name == "xdp-filter") {
    const Cost jump = cases_->net(numbers_.at("filter bare"));
    cost.median -= jump.median;
    cost.quartile -= jump.quartile;
  }
  return cost;
}

std::vector<std::uint32_t> PacketBench::sizes() const {
  if (options_.quick) return {1'000, 10'000};
  return {1'000, 10'000, 100'000, 1'000'000};
}

void PacketBench::load() {
  for (const std::uint32_t size : sizes()) {
    for (const Table table : {Table::kSlots, Table::kHash}) {
      worlds_.try_emplace({table, size}, table, size);
    }
  }
  cases_.emplace(world(1000).program_fd("bench_bare"));
  filter_ = FilterPeer::load();
  const test::Bytes frame = enet_frame(1);
  if (!filter_) return;
  add_bare("filter bare", filter_->bare_fd(), frame);
  add_bare("xdp-filter", filter_->program_fd(), frame);
}

/// A program without a plan, that drops everything.
void PacketBench::add_bare(const std::string& name, int program_fd, const test::Bytes& frame) {
  Case added;
  added.name = name;
  added.program_fd = program_fd;
  added.frame = frame;
  added.verdict = XDP_DROP;
  numbers_[name] = cases_->add(std::move(added));
}

void PacketBench::add(const std::string& name, World& world, test::Bytes frame,
                      const Scenario& scenario, es_reason reason) {
  Case added;
  added.name = name;
  added.program_fd = world.program_fd("bench_shed");
  added.frame = std::move(frame);
  added.verdict = es_reason_verdict(reason) == ES_VERDICT_drop ? XDP_DROP : XDP_PASS;
  added.world = &world;
  added.scenario = scenario;
  added.reason = reason;
  numbers_[name] = cases_->add(std::move(added));
}

void PacketBench::add_class_decided() {
  for (const std::uint32_t size : {sizes().front(), sizes().back()}) {
    const std::string at = fmt::format(" {}", size_name(size));
    add("class drop, dscp" + at, world(size), plain_frame(), class_drop(ES_PROTOCOL_dscp),
        ES_REASON_lane_paused);
    add("class drop, lane" + at, world(size), lane_header_frame(), class_drop(ES_PROTOCOL_lane),
        ES_REASON_lane_paused);
    add("class drop, opaque" + at, world(size), plain_frame(), class_drop(ES_PROTOCOL_opaque),
        ES_REASON_lane_paused);
    add("class pass, dscp" + at, world(size), plain_frame(), class_pass(ES_PROTOCOL_dscp),
        ES_REASON_class_pass);
  }
}

void PacketBench::add_table_decided() {
  for (const std::uint32_t size : sizes()) {
    const std::string at = fmt::format(" {}", size_name(size));
    World& slots = world(size);
    World& hash = worlds_.at({Table::kHash, size});
    add("slot drop" + at, slots, plain_frame(), slot_drop(ES_PROTOCOL_dscp),
        ES_REASON_slot_priority);
    add("table drop" + at, slots, plain_frame(), table_drop(ES_PROTOCOL_dscp), ES_REASON_priority);
    add("table pass" + at, slots, plain_frame(), open_plan(ES_PROTOCOL_dscp), ES_REASON_admitted);
    add("table pass, quotas charged" + at, slots, plain_frame(),
        table_pass_charged(ES_PROTOCOL_dscp), ES_REASON_admitted);
    add("HASH drop" + at, hash, plain_frame(), table_drop(ES_PROTOCOL_dscp), ES_REASON_priority);
  }
}

void PacketBench::add_enet() {
  for (const unsigned commands : {1u, 3u}) {
    const std::string kind = fmt::format("enet, {} command{}", commands, commands > 1 ? "s" : "");
    for (const std::uint32_t size : {sizes().front(), sizes().back()}) {
      add("class drop, " + kind + " " + size_name(size), world(size), enet_frame(commands),
          class_drop(ES_PROTOCOL_enet), ES_REASON_lane_paused);
    }
    for (const std::uint32_t size : {1'000u, 10'000u}) {
      add("table drop, " + kind + " " + size_name(size), world(size), enet_frame(commands),
          table_drop(ES_PROTOCOL_enet), ES_REASON_priority);
    }
  }
}

/// A row against a bare drop, end to end.
void PacketBench::end_to_end(const std::string& name, std::optional<double> at_most) {
  if (!has(name)) return;
  std::optional<Goal> goal;
  if (at_most) goal = Goal{Goal::Side::kAtMost, *at_most};
  const Cost cost = net(name);
  rows_.push_back(
      compare(name, "bare drop end to end", kBareEndToEndNs + cost.median, kBareEndToEndNs, goal));
  rows_.back().ratio_quartile = (kBareEndToEndNs + cost.quartile) / kBareEndToEndNs;
}

/// A row against another case, both net.
void PacketBench::against(const std::string& name, const std::string& peer,
                          std::optional<Goal> goal) {
  if (!has(name) || !has(peer)) return;
  const Cost own = net(name), other = net(peer);
  rows_.push_back(compare(name + ", net", peer + ", net", own.median, other.median, goal));
  const bool at_least = goal && goal->side == Goal::Side::kAtLeast;
  rows_.back().ratio_quartile =
      at_least ? other.quartile / own.quartile : own.quartile / other.quartile;
}

/// The largest size against the smallest, end to end.
void PacketBench::flat(const std::string& kind) {
  const std::string large = kind + " " + size_name(sizes().back());
  const std::string small = kind + " " + size_name(sizes().front());
  const Cost large_net = net(large), small_net = net(small);
  rows_.push_back(compare(large, small, kBareEndToEndNs + large_net.median,
                          kBareEndToEndNs + small_net.median, Goal{Goal::Side::kAtMost, 1.10}));
  rows_.back().ratio_quartile =
      (kBareEndToEndNs + large_net.quartile) / (kBareEndToEndNs + small_net.quartile);
}

void PacketBench::baseline_rows() {
  const Cost bare = cases_->reference();
  rows_.push_back(compare("generator and bare drop, as measured", "quiet machine", bare.median,
                          kReferenceNs, std::nullopt));
  rows_.back().ratio_quartile = bare.quartile / kReferenceNs;
}

void PacketBench::class_rows() {
  for (const char* protocol : {"dscp", "lane", "opaque"}) {
    const std::string kind = std::string("class drop, ") + protocol;
    for (const std::uint32_t size : {sizes().front(), sizes().back()}) {
      end_to_end(kind + " " + size_name(size), 1.20);
    }
    flat(kind);
  }
  end_to_end("class pass, dscp " + size_name(sizes().front()), std::nullopt);
  end_to_end("class pass, dscp " + size_name(sizes().back()), std::nullopt);
}

void PacketBench::table_rows() {
  const std::map<std::uint32_t, std::pair<double, double>> slot_and_table_goals = {
      {10'000, {1.7, 2.0}}, {100'000, {2.5, 4.5}}, {1'000'000, {5.0, 10.0}}};
  for (const char* kind : {"slot drop", "table drop", "table pass", "table pass, quotas charged"}) {
    for (const std::uint32_t size : sizes()) {
      std::optional<double> goal;
      const auto goals = slot_and_table_goals.find(size);
      if (goals != slot_and_table_goals.end()) {
        if (std::string_view(kind) == "slot drop") goal = goals->second.first;
        if (std::string_view(kind) == "table drop") goal = goals->second.second;
      }
      end_to_end(std::string(kind) + " " + size_name(size), goal);
    }
  }
}

void PacketBench::hash_rows() {
  const std::map<std::uint32_t, double> goals = {
      {1'000, 1.3}, {10'000, 2.5}, {100'000, 3.5}, {1'000'000, 2.5}};
  for (const std::uint32_t size : sizes()) {
    against("table drop " + size_name(size), "HASH drop " + size_name(size),
            Goal{Goal::Side::kAtLeast, goals.at(size)});
  }
}

void PacketBench::enet_rows() {
  const std::string largest = size_name(sizes().back());
  end_to_end("class drop, enet, 1 command 1 k", 1.5);
  end_to_end("class drop, enet, 1 command " + largest, 1.5);
  end_to_end("class drop, enet, 3 commands 1 k", std::nullopt);
  end_to_end("table drop, enet, 1 command 10 k", std::nullopt);
  end_to_end("table drop, enet, 3 commands 10 k", std::nullopt);
  flat("class drop, enet, 1 command");
  const Goal no_dearer{Goal::Side::kAtMost, 1.0};
  against("table drop, enet, 1 command 1 k", "xdp-filter", no_dearer);
  against("table drop, enet, 1 command 10 k", "xdp-filter", std::nullopt);
  against("class drop, enet, 1 command 1 k", "xdp-filter", std::nullopt);
}

}  // namespace

std::vector<Row> packet_rows(const RunOptions& options) { return PacketBench(options).run(); }

}  // namespace edgeshed::bench
