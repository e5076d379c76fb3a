// The demo's game clients: players and flooders in one process, each with an ENetHost of its own,
// so that each has an address and port that EdgeShed can know. All join before anything begins;
// then the phases run by the clock: calm, flood, step, back. At the end each says bye, and the
// server closes the connection once both sides acknowledged everything.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <stdexcept>
#include <vector>

#include "game_common.h"

namespace edgeshed::demo {
namespace {

struct ClientOptions : CommonOptions {
  std::size_t players = 60;        // that play from the start
  std::size_t players_more = 120;  // that begin to play with the step
  std::size_t flooders = 3;        // players of the first set
  double flood_factor = 40;        // of all that a player sends
  std::string local_host = "127.0.0.1";
  std::uint16_t base_port = 40000;  // client i sends from base_port + i
  // 54 messages a second, of which 2 % critical: 600 players at 230 us each are then 14 % of the
  // server's time, far below what placement allows.
  double event_hz = 1;
  double command_hz = 10;
  double state_hz = 43;
  std::size_t state_bytes = 60;
  std::size_t event_bytes = 40;
  std::array<double, kPhases> phase_s = {4, 1, 4, 1, 6, 9, 0};
  double join_seconds = 15;  // bound of the joins of all clients
  double joins_per_s = 200;  // below the cap on handshakes
};

enum class ClientState { kWaiting, kJoining, kPlaying, kLeaving, kLeft, kLost };

// What a client sends regularly.
struct Timer {
  TimePoint next_at{};
  Clock::duration interval{};

  // True when due. Who was away for long does not make up for it.
  bool due(TimePoint now) {
    if (now < next_at) return false;
    next_at += interval;
    if (now - next_at > std::chrono::milliseconds(100)) next_at = now + interval;
    return true;
  }
};

struct Client {
  std::string address;
  bool flooder = false;
  bool late = false;  // plays from the step on
  // Before `host`, because libenet counts into them while the host is destroyed.
  Delays round_trips;
  ReliableOut reliable_out;
  PhaseCounts sent{};
  std::uint32_t commands = 0, states = 0;
  std::uint64_t reliable_received = 0, reliable_late = 0, snapshots = 0;
  unsigned disconnects = 0;  // that it did not ask for
  ClientState state = ClientState::kWaiting;
  Timer event, command, regular_state, flood;
  bool sends = false;
  HostPtr host;
  ENetPeer* peer = nullptr;
};

class GameClients {
 public:
  explicit GameClients(const ClientOptions& options);
  void run();
  std::string final_json() const;

 private:
  void open_client(std::size_t index);
  void join_due(TimePoint now);
  void enter_phase(std::size_t phase);
  void start_sending(Client& client, std::size_t place);
  void step(TimePoint now);
  void service(Client& client);
  void handle(Client& client, ENetEvent& event);
  void note_received(Client& client, const ENetPacket& packet);
  bool send_due(Client& client, TimePoint now);
  void send(Client& client, MessageKind kind, std::uint32_t& number);
  void send_event(Client& client, MessageKind kind);
  void leave_all();
  std::size_t count(ClientState state) const;
  bool floods() const { return phase_ >= kFloodBegins && phase_ <= kStep; }
  void print_status();

  const ClientOptions options_;
  ENetAddress server_{};
  std::deque<Client> clients_;  // a deque: libenet holds pointers to the elements
  std::vector<pollfd> sockets_;
  std::array<std::uint64_t, kPhases> phase_began_ns_{};
  std::size_t phase_ = kCalm;
  std::size_t joins_begun_ = 0;
  TimePoint started_at_ = Clock::now();
  TimePoint next_status_at_ = started_at_;
  TierCounts sent_{}, flood_sent_{};
  std::string rows_;
};

GameClients::GameClients(const ClientOptions& options) : options_(options) {
  server_ = resolve(options_.server_host, options_.server_port);
  const std::size_t total = options_.players + options_.players_more + options_.flooders;
  for (std::size_t index = 0; index < total; ++index) open_client(index);
}

// Flooders first: they are few, and their numbers do not depend on how many play.
void GameClients::open_client(std::size_t index) {
  const ENetAddress local =
      resolve(options_.local_host, static_cast<std::uint16_t>(options_.base_port + index));
  Client& client = clients_.emplace_back();
  client.address = address_text(local);
  client.flooder = index < options_.flooders;
  client.late = index >= options_.flooders + options_.players;
  client.reliable_out.round_trips = &client.round_trips;
  client.host.reset(enet_host_create(&local, 1, kChannelCount, 0, 0));
  if (!client.host) {
    throw std::runtime_error(
        fmt::format("cannot bind client {} to {}: address not on this host "
                    "or port in use; choose with --local and --base-port",
                    index, client.address));
  }
  sockets_.push_back({client.host->socket, POLLIN, 0});
}

void GameClients::join_due(TimePoint now) {
  const double elapsed_s = milliseconds_between(started_at_, now) / 1000;
  const auto due = static_cast<std::size_t>(elapsed_s * options_.joins_per_s) + 1;
  for (; joins_begun_ < std::min(due, clients_.size()); ++joins_begun_) {
    Client& client = clients_[joins_begun_];
    client.peer = enet_host_connect(client.host.get(), &server_, kChannelCount, 0);
    if (client.peer == nullptr) {
      throw std::runtime_error(fmt::format("client {} cannot begin to join", client.address));
    }
    client.state = ClientState::kJoining;
  }
}

void GameClients::run() {
  const TimePoint join_by = started_at_ + seconds_duration(options_.join_seconds);
  while (!stop_requested() && count(ClientState::kPlaying) < clients_.size()) {
    if (Clock::now() > join_by) {
      throw std::runtime_error(
          fmt::format("{} of {} clients joined {}:{} within {} s; is the server up?",
                      count(ClientState::kPlaying), clients_.size(), options_.server_host,
                      options_.server_port, options_.join_seconds));
    }
    join_due(Clock::now());
    step(Clock::now());
  }
  for (std::size_t phase = kCalm; phase < kEnd; ++phase) {
    const TimePoint until = Clock::now() + seconds_duration(options_.phase_s[phase]);
    enter_phase(phase);
    while (!stop_requested() && Clock::now() < until) step(Clock::now());
  }
  enter_phase(kEnd);
  leave_all();
  print_status();
}

// Who plays, and who floods. Senders are spread over an interval: real players are not in step.
void GameClients::enter_phase(std::size_t phase) {
  phase_ = phase;
  phase_began_ns_[phase] = now_ns();
  const bool step = phase == kStepBegins || phase == kStep;
  std::size_t place = 0;
  for (Client& client : clients_) {
    const bool plays = phase != kEnd && (!client.late || step);
    if (plays && !client.sends) start_sending(client, place);
    client.sends = plays;
    place += client.flooder ? 0 : 1;
  }
  for (Client& client : clients_) client.flood.next_at = Clock::now();
  print_status();
}

void GameClients::start_sending(Client& client, std::size_t place) {
  const TimePoint now = Clock::now();
  const auto spread = [&](Timer& timer, double hz) {
    timer.interval = seconds_duration(1 / hz);
    // By the golden ratio, so that late players fall between those that play already.
    const double part = static_cast<double>(place) * 0.6180339887;
    timer.next_at = now + seconds_duration((part - std::floor(part)) / hz);
  };
  spread(client.event, options_.event_hz);
  spread(client.command, options_.command_hz);
  spread(client.regular_state, options_.state_hz);
  const double all_hz = options_.event_hz + options_.command_hz + options_.state_hz;
  spread(client.flood, all_hz * std::max(options_.flood_factor - 1, 0.01));
}

// One pass: wait at most 1 ms (the error of a send time), then receive, then send what is due.
void GameClients::step(TimePoint now) {
  poll(sockets_.data(), sockets_.size(), 1);
  now = Clock::now();
  for (std::size_t index = 0; index < clients_.size(); ++index) {
    Client& client = clients_[index];
    const bool readable = (sockets_[index].revents & POLLIN) != 0;
    const bool sent =
        client.state == ClientState::kPlaying && client.sends && send_due(client, now);
    // libenet's own timers (resends, pings) need a look now and then, also at a silent client.
    const bool looks = (now_ns() / 1'000'000 + index) % 16 == 0;
    if (readable || sent || looks || client.state == ClientState::kJoining) service(client);
  }
  if (now < next_status_at_) return;
  print_status();
  next_status_at_ = now + seconds_duration(options_.status_ms / 1000);
}

void GameClients::service(Client& client) {
  ENetEvent event;
  while (enet_host_service(client.host.get(), &event, 0) > 0) handle(client, event);
}

void GameClients::handle(Client& client, ENetEvent& event) {
  switch (event.type) {
    case ENET_EVENT_TYPE_CONNECT:
      disable_own_throttle(client.peer);
      client.state = ClientState::kPlaying;
      break;
    case ENET_EVENT_TYPE_RECEIVE:
      note_received(client, *event.packet);
      enet_packet_destroy(event.packet);
      break;
    case ENET_EVENT_TYPE_DISCONNECT:
      client.peer = nullptr;
      if (client.state == ClientState::kLeaving) {
        client.state = ClientState::kLeft;
      } else {
        client.state = ClientState::kLost;
        ++client.disconnects;
      }
      break;
    case ENET_EVENT_TYPE_NONE:
      break;
  }
}

void GameClients::note_received(Client& client, const ENetPacket& packet) {
  MessageHeader header;
  if (!read_header(packet, header)) return;
  if (header.kind == MessageKind::kSnapshot) {
    ++client.snapshots;
    return;
  }
  ++client.reliable_received;
  const double age_ms = static_cast<double>(now_ns() - header.sent_ns) / 1e6;
  if (age_ms > kCriticalLateMs) ++client.reliable_late;
}

bool GameClients::send_due(Client& client, TimePoint now) {
  bool sent = false;
  if (client.event.due(now)) {
    send_event(client, MessageKind::kEvent);
    sent = true;
  }
  if (client.command.due(now)) {
    send(client, MessageKind::kCommand, client.commands);
    sent = true;
  }
  if (client.regular_state.due(now)) {
    send(client, MessageKind::kState, client.states);
    sent = true;
  }
  if (!client.flooder || !floods()) return sent;
  for (int burst = 0; burst < 16 && client.flood.due(now); ++burst) {
    send(client, MessageKind::kState, client.states);
  }
  return true;
}

// Into a datagram of its own: what waits (acknowledgements) is flushed before.
void GameClients::send(Client& client, MessageKind kind, std::uint32_t& number) {
  enet_host_flush(client.host.get());
  queue_unreliable(client.peer, kind, ++number, phase_, options_.state_bytes);
  enet_host_flush(client.host.get());
  ++client.sent[phase_][tier_of(kind)];
  ++(client.flooder ? flood_sent_ : sent_)[tier_of(kind)];
}

void GameClients::send_event(Client& client, MessageKind kind) {
  enet_host_flush(client.host.get());
  queue_reliable(client.peer, client.reliable_out, kind, phase_, options_.event_bytes);
  enet_host_flush(client.host.get());
  ++client.sent[phase_][kCritical];
  ++(client.flooder ? flood_sent_ : sent_)[kCritical];
}

// The bye is the last message of the reliable series: when the server has it, it has all others.
void GameClients::leave_all() {
  for (Client& client : clients_) {
    if (client.state != ClientState::kPlaying) continue;
    send_event(client, MessageKind::kBye);
    client.state = ClientState::kLeaving;
  }
  const TimePoint give_up_at = Clock::now() + seconds_duration(options_.settle_seconds);
  while (count(ClientState::kLeaving) > 0 && Clock::now() < give_up_at) step(Clock::now());
  // The last to leave may have left datagrams on the way to the others' sockets: all hosts stay
  // open a little longer, so that nothing meets a closed port and everything is counted.
  const TimePoint linger_until = Clock::now() + std::chrono::milliseconds(150);
  while (Clock::now() < linger_until) step(Clock::now());
}

std::size_t GameClients::count(ClientState state) const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(),
                    [&](const Client& client) { return client.state == state; }));
}

// Also a row for the log: [time, sent by players, sent by flooders].
void GameClients::print_status() {
  unsigned disconnects = 0;
  for (const Client& client : clients_) disconnects += client.disconnects;
  const std::string sent = counts_json(sent_), flood_sent = counts_json(flood_sent_);
  const std::uint64_t t_ns = now_ns();
  rows_ += fmt::format("{}[{},{},{}]", rows_.empty() ? "" : ",\n", t_ns, sent, flood_sent);
  print_line(
      fmt::format(R"({{"side":"clients","t_ns":{},"phase":"{}","joined":{},"of":{},"sent":{},)"
                  R"("flood_sent":{},"disconnects":{}}})",
                  t_ns, phase_began_ns_[kCalm] == 0 ? "join" : phase_name(phase_),
                  count(ClientState::kPlaying), clients_.size(), sent, flood_sent, disconnects));
}

std::string GameClients::final_json() const {
  std::string clients, phases;
  Delays round_trips;
  for (const Client& client : clients_) {
    clients += fmt::format(
        R"({}{{"address":"{}","flooder":{},"late":{},"sent":{},"reliable_sent":{},)"
        R"("reliable_acked":{},"reliable_received":{},"reliable_late":{},"snapshots":{},)"
        R"("disconnects":{},"left_in_order":{},"host":{{{}}}}})",
        clients.empty() ? "" : ",\n", client.address, client.flooder, client.late,
        counts_json(client.sent), client.reliable_out.sent, client.reliable_out.acked,
        client.reliable_received, client.reliable_late, client.snapshots, client.disconnects,
        client.state == ClientState::kLeft, host_totals_json(*client.host));
    if (client.flooder) continue;
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const std::vector<float>& more = client.round_trips.ms[phase];
      round_trips.ms[phase].insert(round_trips.ms[phase].end(), more.begin(), more.end());
    }
  }
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    phases += fmt::format(R"({}"{}":{})", phases.empty() ? "" : ",", phase_name(phase),
                          phase_began_ns_[phase]);
  }
  return fmt::format(
      "{{\"phases\":{{{}}},\n\"round_trips\":{},\n\"rows\":[{}],\n\"clients\":[{}]}}\n", phases,
      round_trips.json(kCriticalLateMs), rows_, clients);
}

void add_client_options(CLI::App& app, ClientOptions& options) {
  const auto add = [&app](const char* name, auto& value, const char* what) {
    app.add_option(name, value, what)->check(CLI::Range(0.0, 100000.0))->capture_default_str();
  };
  add("--players", options.players, "players that play from the start");
  add("--players-more", options.players_more, "players that begin with the step");
  add("--flooders", options.flooders, "players that also flood");
  add("--flood-factor", options.flood_factor, "what a flooder sends, in what a player sends");
  app.add_option("--local", options.local_host, "address that the clients send from")
      ->capture_default_str();
  app.add_option("--base-port", options.base_port, "client i sends from this port + i")
      ->check(CLI::Range(1024, 60000))
      ->capture_default_str();
  add("--event-hz", options.event_hz, "reliable events per second and player");
  add("--command-hz", options.command_hz, "commands per second and player");
  add("--state-hz", options.state_hz, "state messages per second and player");
  add("--joins-per-s", options.joins_per_s, "joins begun per second");
  add("--join-seconds", options.join_seconds, "longest wait for all joins");
  for (std::size_t phase = kCalm; phase < kEnd; ++phase) {
    app.add_option(fmt::format("--{}-s", phase_name(phase)), options.phase_s[phase], "seconds")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
  }
}

int run_clients(int argc, char** argv) {
  ClientOptions options;
  CLI::App app{"EdgeShed demo: libenet game clients, one ENetHost each"};
  add_common_options(app, options);
  add_client_options(app, options);
  CLI11_PARSE(app, argc, argv);
  start_program();
  GameClients clients(options);
  clients.run();
  if (!options.log_file.empty()) write_file(options.log_file, clients.final_json());
  return 0;
}

}  // namespace
}  // namespace edgeshed::demo

int main(int argc, char** argv) {
  try {
    return edgeshed::demo::run_clients(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "edgeshed_demo_clients: {}\n", error.what());
    return 1;
  }
}
