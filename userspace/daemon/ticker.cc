#include "userspace/daemon/ticker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <variant>

#include "userspace/core/error_type.h"

namespace edgeshed::daemon {
namespace {

constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

/// One aligned word that the packet path or another process writes meanwhile.
template <typename Word>
Word load_once(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

/// What endpoints do whose configuration says nothing.
core::Mode host_mode(core::Mode configured, const es_control& control) {
  if (configured != core::Mode::unset) return configured;
  return load_once(control.default_enforce) != 0 ? core::Mode::enforce : core::Mode::shadow;
}

void check_fits(const char* what, std::size_t wanted, std::size_t rows) {
  if (wanted <= rows) return;
  throw Error(
      fmt::format("the configuration has {} {}, the attached maps hold {}; raise [host] {}_max "
                  "if needed, then edgeshed detach and edgeshed attach",
                  wanted, what, rows, what));
}

}  // namespace

std::uint64_t dead_man_jiffies(std::uint32_t tick_hz, std::uint32_t hz) {
  const std::uint64_t ms = std::max<std::uint64_t>(150, (5 * 1000 + tick_hz - 1) / tick_hz);
  return (ms * hz + 999) / 1000;
}

Ticker::Ticker(const core::Model& model, const TickerEdges& edges)
    : model_(model),
      configured_mode_(model.host.mode),
      edges_(edges),
      controller_(model.control, model.ladder),
      writer_(edges.plan),
      rows_(edges.plan.control->geometry),
      last_report_(model.shards.size()),
      signals_(model.shards.size()),
      states_(model.shards.size()),
      endpoints_(model.endpoints.size()),
      rate_from_(model.endpoints.size()) {
  check_fits("endpoints", model_.endpoints.size() + 1, rows_.endpoints.size());
  check_fits("rooms", model_.rooms.size(), rows_.rooms.size());
  check_fits("classes", model_.classes.size(), rows_.classes.size());
  const es_geometry& geometry = edges_.plan.control->geometry;
  timing_.hz = geometry.hz;
  timing_.tick_hz = model_.host.tick_hz;
  timing_.cpus = geometry.cpus;
  writer_.identify(static_cast<std::uint32_t>(getpid()), timing_.tick_hz);
  // A former daemon's level clocks run on: connections' debts are relative to them.
  const std::uint32_t live = writer_.generation();
  if (live == 0) return;
  const auto published =
      edges_.plan.rooms.subspan((live & 1) * std::size_t{geometry.rooms}, geometry.rooms);
  for (std::size_t i = 0; i < published.size(); ++i) {
    if (published[i].generation == live) rows_.rooms[i] = published[i];
  }
}

Snapshot Ticker::empty_snapshot(const core::Model& model) {
  Snapshot snapshot;
  snapshot.shards.resize(model.shards.size());
  snapshot.endpoints.resize(model.endpoints.size());
  return snapshot;
}

void Ticker::tick(std::uint64_t now_ns, bool events_ready, const LoopFigures& figures) {
  now_ns_ = now_ns;

  // Commands that came, packets that were seen, sheds that were sampled.
  sample(events_ready);
  // From samples to the signals of each shard.
  detect();
  // Each shard's rung, and what is in force along its ramp.
  climb();
  // From rungs to rows: masks, keeps, thresholds, levels, allowances.
  allocate();
  // All rows at once, by one store.
  publish();
  // What was decided and why, for status and the log.
  report(figures);
}

void Ticker::sample(bool events_ready) {
  Command command;
  while (edges_.commands->try_pop(command)) {
    std::visit([this](const auto& one) { apply(one); }, command);
  }
  rate_due_ = now_ns_ - rate_from_ns_ >= kNanosPerSecond;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) sample_endpoint(i);
  if (rate_due_) rate_from_ns_ = now_ns_;
  if (events_ready && edges_.events != nullptr) edges_.events->consume(events_);
}

void Ticker::apply(const ShardReport& report) {
  ShardReport& last = last_report_[report.shard];
  const std::uint32_t rooms = report.rooms == kRoomsUnchanged ? last.rooms : report.rooms;
  last = report;
  last.rooms = last.at_ns != 0 ? rooms : kRoomsUnchanged;
}

void Ticker::apply(const RungOverride& override) {
  core::ShardState& state = states_[override.shard];
  if (override.until_ns == 0) {
    core::ShardController::clear_override(state);
  } else {
    core::ShardController::force(state, override.rung, override.until_ns);
  }
}

void Ticker::sample_endpoint(std::size_t index) {
  const std::uint32_t rows = edges_.plan.control->geometry.endpoints;
  EndpointView& view = endpoints_[index];
  view.seen = {};
  // One cache line per CPU; the other lines of a row are for dumps.
  for (std::uint32_t cpu = 0; cpu < timing_.cpus; ++cpu) {
    const es_endpoint_counters& row =
        edges_.endpoint_counters[std::size_t{cpu} * rows + model_.endpoints[index].number];
    for (int d = 0; d < ES_DIRECTIONS; ++d) view.seen[d] += load_once(row.seen[d]);
  }
  if (!rate_due_) return;
  const double seconds = static_cast<double>(now_ns_ - rate_from_ns_) / kNanosPerSecond;
  for (int d = 0; d < ES_DIRECTIONS; ++d) {
    const bool first = rate_from_ns_ == 0;
    const std::uint64_t more = first ? 0 : view.seen[d] - rate_from_[index][d];
    view.packets_per_s[d] = static_cast<double>(more) / seconds;
  }
  rate_from_[index] = view.seen;
}

void Ticker::detect() {
  for (std::size_t i = 0; i < signals_.size(); ++i) {
    const core::Shard& shard = model_.shards[i];
    const ShardReport& report = last_report_[i];
    core::ShardSignals& signals = signals_[i];
    signals.tick_p99_ms = report.tick_p99_ms;
    signals.running_tick_age_ms = report.running_tick_age_ms;
    signals.ring_occupancy = report.ring_occupancy;
    signals.reported_at_ns = report.at_ns;
    signals.frame_budget_ms = shard.frame_budget_ms;
    signals.room_capacity = shard.room_capacity;
    // The configured rooms are places, not matches: only the server knows how many it runs.
    signals.room_count = report.rooms == kRoomsUnchanged ? 0 : report.rooms;
    // The cost of a packet is not measured yet: this signal stays out of the maximum.
    signals.offered_cost_ratio = 0;
  }
}

void Ticker::climb() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto change = controller_.step(states_[i], signals_[i], now_ns_);
    if (!change) continue;
    const ShardChange entry{static_cast<std::uint32_t>(i), *change};
    if (!edges_.changes->try_push(entry)) ++changes_unlogged_;
  }
}

void Ticker::allocate() {
  // `edgeshed attach --enforce` may change what endpoints that say nothing do, while we run.
  model_.host.mode = host_mode(configured_mode_, *edges_.plan.control);
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    endpoints_[i].shadow = core::is_shadow(model_.host, model_.endpoints[i]);
  }
  timing_.now_jiffies = edges_.jiffies();
  timing_.tick = tick_count_;
  core::fill_plan_rows(model_, states_, timing_, rows_.rooms, rows_);
}

void Ticker::publish() {
  kernel::Plan plan;
  // Only the rows that exist: the writer publishes what lies beyond them as absent.
  plan.endpoints = std::span(rows_.endpoints).first(model_.endpoints.size() + 1);
  plan.rooms = std::span(rows_.rooms).first(model_.rooms.size());
  plan.classes = std::span(rows_.classes).first(model_.classes.size());
  plan.valid_until_jiffies = timing_.now_jiffies + dead_man_jiffies(timing_.tick_hz, timing_.hz);
  plan.rejects_per_cpu = static_cast<std::uint32_t>(core::allowance(kRejectsPerSecond, timing_));
  writer_.publish(plan, now_ns_);
  ++tick_count_;
}

void Ticker::report(const LoopFigures& figures) {
  Snapshot& snapshot = edges_.snapshots->spare();
  snapshot.now_ns = now_ns_;
  snapshot.tick_count = tick_count_;
  snapshot.ticks_skipped = figures.ticks_skipped;
  snapshot.late_max_ns = figures.late_max_ns;
  snapshot.duration_max_ns = figures.duration_max_ns;
  snapshot.changes_unlogged = changes_unlogged_;
  snapshot.generation = writer_.generation();
  for (std::size_t i = 0; i < states_.size(); ++i) snapshot.shards[i] = {states_[i], signals_[i]};
  std::copy(endpoints_.begin(), endpoints_.end(), snapshot.endpoints.begin());
  snapshot.events = events_;
  edges_.snapshots->publish();
}

}  // namespace edgeshed::daemon
