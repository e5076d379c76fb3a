#include "userspace/daemon/ticker.h"

#include <unistd.h>

#include <algorithm>
#include <variant>

#include "userspace/core/codes.h"
#include "userspace/core/expiry.h"
#include "userspace/core/time_units.h"
#include "userspace/session/plan_board.h"

namespace edgeshed::daemon {
namespace {

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

}  // namespace

Ticker::Ticker(Setup& setup, const TickerEdges& edges)
    : setup_(&setup), edges_(edges), writer_(edges.plan), rows_(edges.plan.control->geometry) {
  const es_geometry& geometry = edges_.plan.control->geometry;
  timing_.hz = geometry.hz;
  timing_.tick_hz = setup.model.host.tick_hz;
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
  snapshot.shape_for(model);
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
  rate_due_ = now_ns_ - rate_from_ns_ >= core::kNsPerS;
  for (std::size_t i = 0; i < setup_->endpoints.size(); ++i) sample_endpoint(i);
  sample_demand();
  if (rate_due_) rate_from_ns_ = now_ns_;
  if (events_ready && edges_.events != nullptr) edges_.events->consume(events_, edges_.refusals);
}

void Ticker::apply(const ShardReport& report) {
  if (report.shard >= setup_->shards.size()) return;  // gone with a reload
  ShardReport& last = setup_->shards[report.shard].told;
  const std::uint32_t rooms = report.rooms == kRoomsUnchanged ? last.rooms : report.rooms;
  last = report;
  last.rooms = last.at_ns != 0 ? rooms : kRoomsUnchanged;
}

void Ticker::apply(const RungOverride& override) {
  if (override.shard >= setup_->shards.size()) return;  // gone with a reload
  core::ShardState& state = setup_->shards[override.shard].law.state;
  if (override.until_ns == 0) {
    core::ShardController::clear_override(state);
  } else {
    core::ShardController::force(state, override.rung, override.until_ns);
  }
}

void Ticker::apply(const RoomRungOverride& order) {
  if (order.room >= setup_->room_overrides.size()) return;  // gone with a reload
  if (core::exists(setup_->model.rooms[order.room])) hold_room(order.room, order.override);
}

void Ticker::apply(const SessionChange& change) {
  if (change.shard >= setup_->shards.size()) return;  // gone with a reload
  ShardSlot& shard = setup_->shards[change.shard];
  shard.boards = change.boards;
  shard.board_reader = {};
  shard.rooms_opened = 0;
  shard.law.cost.begun = false;  // another process, and other totals
}

void Ticker::apply(const RoomsOpened& opened) {
  if (opened.shard >= setup_->shards.size()) return;  // gone with a reload
  setup_->shards[opened.shard].rooms_opened = opened.rooms;
}

void Ticker::apply(const ServerThins& thins) {
  // A room may be gone by the time its server is.
  if (thins.room < setup_->server_thins.size()) setup_->server_thins[thins.room] = thins.thins;
}

void Ticker::apply(const ExemptCount& exempt) {
  const std::size_t index = exempt.endpoint - std::size_t{1};
  if (index < setup_->exempt.size()) setup_->exempt[index] = exempt.connections;
}

void Ticker::apply(const ThrottledCount& throttled) {
  const std::size_t index = throttled.endpoint - std::size_t{1};
  if (index < setup_->throttled.size()) setup_->throttled[index] = throttled.connections;
}

void Ticker::apply(const RoomWeight& weight) {
  if (weight.room < setup_->room_weight.size()) setup_->room_weight[weight.room] = weight.weight;
}

void Ticker::apply(const SetupChange& change) {
  change.next->take_over(*setup_);
  setup_ = change.next;
  timing_.tick_hz = setup_->model.host.tick_hz;
  writer_.identify(static_cast<std::uint32_t>(getpid()), timing_.tick_hz);
}

void Ticker::sample_endpoint(std::size_t index) {
  if (!core::exists(setup_->model.endpoints[index])) return;
  const std::uint32_t rows = edges_.plan.control->geometry.endpoints;
  EndpointView& view = setup_->endpoints[index];
  view.seen = {};
  // One cache line per CPU; the other lines of a row are for dumps.
  for (std::uint32_t cpu = 0; cpu < timing_.cpus; ++cpu) {
    const es_endpoint_counters& row =
        edges_.counters.endpoints[std::size_t{cpu} * rows + index + 1];
    for (int d = 0; d < ES_DIRECTIONS; ++d) view.seen[d] += load_once(row.seen[d]);
  }
  if (!rate_due_) return;
  const double seconds = static_cast<double>(now_ns_ - rate_from_ns_) / core::kNsPerS;
  for (int d = 0; d < ES_DIRECTIONS; ++d) {
    const std::uint64_t from = setup_->rate_from[index][d];
    const std::uint64_t more = from == kNeverSeen ? 0 : view.seen[d] - from;
    view.packets_per_s[d] = static_cast<double>(more) / seconds;
  }
  setup_->rate_from[index] = view.seen;
}

void Ticker::sample_demand() {
  // Rooms first: what the table decided.
  for (ShardSlot& work : setup_->shards) {
    if (work.has_costs()) {
      sample_rooms(edges_.counters, work.rooms, work.sample.lane_tiers, work.arrivals);
    }
  }
  // Then endpoints: what was decided by lane alone, shared among the shards of their rooms. Shares
  // of one endpoint stand together; where no shard's costs are known nobody would use them.
  std::uint8_t looked_at = 0;
  ClassDecided decided;
  for (const EndpointShare& share : setup_->endpoint_shares) {
    ShardSlot& work = setup_->shards[share.shard];
    if (!work.has_costs()) continue;
    if (share.endpoint != looked_at) {
      looked_at = share.endpoint;
      decided = sample_class_decided(edges_.counters, looked_at,
                                     setup_->endpoint_arrivals[looked_at - 1]);
    }
    add_share(decided, share.share, work.arrivals);
  }
}

void Ticker::detect() {
  for (std::size_t i = 0; i < setup_->shards.size(); ++i) detect_shard(i);
}

void Ticker::detect_shard(std::size_t index) {
  const core::Shard& shard = setup_->model.shards[index];
  ShardSlot& work = setup_->shards[index];
  core::ShardSample& sample = work.sample;
  sample.signals.frame_budget_ms = shard.frame_budget_ms;
  sample.signals.room_capacity = shard.room_capacity;
  sample.arrived = work.arrivals.arrived;
  sample.passed = work.arrivals.passed;
  sample.done = {};
  sample.has_session = work.boards.report != nullptr;
  sample.weights = 0;
  for (const std::uint16_t room : work.rooms) sample.weights += setup_->room_weight[room];

  const SignalSample none;
  take(edges_.signals == nullptr ? none : edges_.signals->latest(), setup_->model, index, work.law,
       now_ns_, sample.signals);

  // A server with a session speaks for itself; `edgeshed report` is for those without one.
  if (sample.has_session) {
    read_board(index);
  } else {
    read_told(work.told, sample.signals);
  }
}

void Ticker::read_told(const ShardReport& report, core::ShardSignals& signals) {
  signals.tick_p99_ms = report.tick_p99_ms;
  signals.running_tick_age_ms = report.running_tick_age_ms;
  signals.ring_occupancy = report.ring_occupancy;
  signals.reported_at_ns = report.at_ns;
  // The configured rooms are places, not matches: only the server knows how many it runs.
  signals.room_count = report.rooms == kRoomsUnchanged ? 0 : report.rooms;
}

void Ticker::read_board(std::size_t index) {
  ShardSlot& work = setup_->shards[index];
  const es_report_board& board = *work.boards.report;
  const bool fresh = work.board_reader.read(board, now_ns_, edges_.plan.control->geometry.rooms);
  const session::ServerReport& last = work.board_reader.last();
  core::ShardSignals& signals = work.sample.signals;
  signals.tick_p99_ms = last.tick_p99_ms;
  signals.running_tick_age_ms = session::ReportReader::running_tick_age_ms(board, now_ns_);
  signals.ring_occupancy = last.ring_occupancy;
  // A tick that runs is news by itself: a server that hangs in it reports nothing any more.
  signals.reported_at_ns = signals.running_tick_age_ms > 0 ? now_ns_ : last.reported_ns;
  signals.room_count = last.rooms == ES_SESSION_NONE ? work.rooms_opened : last.rooms;
  if (!fresh) return;
  work.sample.done = {last.reported_ns, last.busy_ns, {}};
}

void Ticker::climb() {
  for (std::size_t i = 0; i < setup_->shards.size(); ++i) {
    ShardSlot& work = setup_->shards[i];
    const auto change = setup_->law.step(work.law, work.sample, now_ns_);
    watch_fuse(work);
    setup_->states[i] = work.law.state;
    setup_->states[i].effects = work.law.effects;
    setup_->retries[i] = work.law.retry;
    for (std::uint32_t tier = 0; tier < core::kSheddableTiers; ++tier) {
      setup_->levels[i][tier] = work.law.level[tier].per_s;
    }
    if (change) tell({&setup_->model, static_cast<std::uint32_t>(i), *change, -1});
  }
  for (std::size_t room = 0; room < setup_->room_overrides.size(); ++room) {
    if (setup_->room_overrides[room].is_over(now_ns_)) hold_room(room, {});
  }
}

void Ticker::tell(const ShardChange& entry) {
  if (!edges_.changes->try_push(entry)) ++changes_unlogged_;
}

core::RoomInForce Ticker::in_force(std::size_t room) const {
  return core::room_in_force(setup_->model, setup_->states, setup_->room_overrides, room);
}

void Ticker::hold_room(std::size_t room, const core::RoomOverride& next) {
  core::RungChange change;
  change.from = in_force(room).rung;
  setup_->room_overrides[room] = next;
  change.to = in_force(room).rung;
  if (change.from == change.to) return;
  change.cause = next.holds() ? core::Cause::manual : core::Cause::manual_ended;
  change.at_ns = now_ns_;
  ++room_changes_[static_cast<std::size_t>(change.cause)];
  tell({&setup_->model, setup_->model.rooms[room].shard, change, static_cast<int>(room)});
}

void Ticker::watch_fuse(ShardSlot& work) const {
  const core::ShardSignals& signals = work.law.signals;
  const bool fresh = work.law.state.report == core::ReportState::fresh;
  const double tick_ms = std::max(signals.tick_p99_ms, signals.running_tick_age_ms);
  const double ratio = fresh ? core::tick_ratio(tick_ms, signals.frame_budget_ms) : 0;
  work.tick_twice_s = core::step(work.fuse, ratio, now_ns_);
}

void Ticker::allocate() {
  // `edgeshed attach --enforce` may change what endpoints that say nothing do, while we run.
  host_mode_ = host_mode(setup_->model.host.mode, *edges_.plan.control);
  for (std::size_t i = 0; i < setup_->endpoints.size(); ++i) {
    setup_->endpoints[i].shadow = core::is_shadow(host_mode_, setup_->model.endpoints[i]);
  }
  timing_.now_jiffies = edges_.jiffies();
  timing_.tick = tick_count_;
  const core::PlanExtras extras{
      host_mode_,      setup_->exempt, setup_->throttled,     setup_->server_thins,
      setup_->retries, setup_->levels, setup_->room_overrides};
  core::fill_plan_rows(setup_->model, setup_->states, timing_, rows_.rooms, rows_, extras);
}

void Ticker::publish() {
  kernel::Plan plan;
  // Only the rows that exist: the writer publishes what lies beyond them as absent.
  const core::Model& model = setup_->model;
  plan.endpoints = std::span(rows_.endpoints).first(model.endpoints.size() + 1);
  plan.rooms = std::span(rows_.rooms).first(model.rooms.size());
  plan.classes = std::span(rows_.classes).first(model.classes.size());
  plan.valid_until_jiffies =
      timing_.now_jiffies + core::plan_valid_jiffies(timing_.tick_hz, timing_.hz);
  plan.rejects_per_cpu = static_cast<std::uint32_t>(core::allowance(kRejectsPerSecond, timing_));
  plan.stream_hint_q8 = static_cast<std::uint32_t>(model.host.stream_hint_ratio * 256);
  plan.holes = true;
  writer_.publish(plan, now_ns_);
  for (std::size_t i = 0; i < setup_->shards.size(); ++i) publish_board(i);
  ++tick_count_;
}

void Ticker::publish_board(std::size_t index) {
  const ShardSlot& work = setup_->shards[index];
  if (work.boards.plan == nullptr) return;
  const core::ShardState& state = setup_->states[index];
  for (const std::uint16_t room : work.rooms) {
    const core::RoomInForce own = in_force(room);
    session::write_room(work.boards.plan->room[room], own.effects, setup_->best_effort_lanes[room],
                        own.rung, core::code_info(core::rung_code(own.rung)).retry_after_ms);
  }
  const std::uint64_t valid_ns =
      core::plan_valid_jiffies(timing_.tick_hz, timing_.hz) * core::kNsPerS / timing_.hz;
  session::write_head(*work.boards.plan, writer_.generation(), now_ns_ + valid_ns, state.rung,
                      state.refuse_joins());
}

void Ticker::report(const LoopFigures& figures) {
  Snapshot& snapshot = edges_.snapshots->spare();
  snapshot.now_ns = now_ns_;
  snapshot.tick_count = tick_count_;
  snapshot.ticks_skipped = figures.ticks_skipped;
  snapshot.late_max_ns = figures.late_max_ns;
  snapshot.duration_max_ns = figures.duration_max_ns;
  snapshot.late = figures.late;
  snapshot.duration = figures.duration;
  snapshot.changes_unlogged = changes_unlogged_;
  snapshot.generation = writer_.generation();
  snapshot.shape_for(setup_->model);
  for (std::size_t i = 0; i < setup_->shards.size(); ++i) {
    const ShardSlot& work = setup_->shards[i];
    snapshot.shards[i] = {setup_->states[i],
                          work.law.degree.now,
                          work.law.demand,
                          work.law.retry,
                          work.boards.report != nullptr,
                          work.law.signals,
                          work.tick_twice_s,
                          work.board_reader.accepted(),
                          work.board_reader.refused(),
                          work.board_reader.refusal()};
  }
  std::copy(setup_->endpoints.begin(), setup_->endpoints.end(), snapshot.endpoints.begin());
  std::copy(setup_->room_overrides.begin(), setup_->room_overrides.end(), snapshot.rooms.begin());
  snapshot.room_changes = room_changes_;
  snapshot.events = events_;
  edges_.snapshots->publish();
}

}  // namespace edgeshed::daemon
