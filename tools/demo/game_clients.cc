// The demo's game clients: N of them in one process, each with an ENetHost of its own, so that
// each has an address and port that EdgeShed can know. Each sends 60 inputs a second (unreliable)
// and 5 numbered events a second (reliable) and counts what comes back. At the end each says bye,
// and the server closes the connection once both sides acknowledged everything.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <stdexcept>
#include <vector>

#include "game_common.h"

namespace edgeshed::demo {
namespace {

struct ClientOptions : CommonOptions {
  std::size_t clients = 12;
  std::string local_host = "127.0.0.1";
  std::uint16_t base_port = 40000;  // client i sends from base_port + i
  double input_hz = 60;             // the usual rate of a client's frames
  double event_hz = 5;
  std::size_t input_bytes = 60;
  std::size_t event_bytes = 40;
  double join_seconds = 5;  // bound of the joins of all clients
};

Clock::duration seconds_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

enum class ClientState { kJoining, kPlaying, kLeaving, kLeft, kLost };

struct Client {
  std::string address;
  // Before `host`, because libenet counts into it while the host is destroyed.
  ReliableOut reliable_out;
  SeriesIn reliable_in;
  SeriesIn snapshots_in;
  std::uint32_t inputs_sent = 0;
  unsigned disconnects = 0;  // that it did not ask for
  ClientState state = ClientState::kJoining;
  bool said_bye = false;
  TimePoint next_input_at{};
  TimePoint next_event_at{};
  HostPtr host;
  ENetPeer* peer = nullptr;
};

class GameClients {
 public:
  explicit GameClients(const ClientOptions& options);
  void run();
  std::string final_json() const;
  bool all_joined() const { return joined_ == clients_.size(); }

 private:
  void open_client(std::size_t index, const ENetAddress& server);
  void start_playing(Client& client);
  void step(TimePoint now);
  void service(Client& client);
  void handle(Client& client, ENetEvent& event);
  void send_due(Client& client, TimePoint now);
  void leave(Client& client);
  bool all_in_state(ClientState first, ClientState second) const;
  void print_status() const;
  void run_until(TimePoint end_at, bool until_left);

  const ClientOptions options_;
  std::deque<Client> clients_;  // a deque: libenet holds pointers to the elements
  std::vector<pollfd> sockets_;
  TimePoint started_at_ = Clock::now();
  TimePoint next_status_at_ = started_at_;
  std::size_t joined_ = 0;
};

GameClients::GameClients(const ClientOptions& options) : options_(options) {
  const ENetAddress server = resolve(options_.server_host, options_.server_port);
  for (std::size_t index = 0; index < options_.clients; ++index) open_client(index, server);
}

void GameClients::open_client(std::size_t index, const ENetAddress& server) {
  const ENetAddress local =
      resolve(options_.local_host, static_cast<std::uint16_t>(options_.base_port + index));
  Client& client = clients_.emplace_back();
  client.address = address_text(local);
  client.host.reset(enet_host_create(&local, 1, kChannelCount, 0, 0));
  if (!client.host) {
    throw std::runtime_error(
        fmt::format("cannot bind client {} to {}: address not on this host "
                    "or port in use; choose with --local and --base-port",
                    index, client.address));
  }
  client.peer = enet_host_connect(client.host.get(), &server, kChannelCount, 0);
  if (client.peer == nullptr) {
    throw std::runtime_error(fmt::format("client {} cannot begin to join", client.address));
  }
  sockets_.push_back({client.host->socket, POLLIN, 0});
}

void GameClients::run() {
  const TimePoint end_at = started_at_ + seconds_duration(options_.seconds);
  const TimePoint join_by = started_at_ + seconds_duration(options_.join_seconds);
  while (!stop_requested() && !all_joined()) {
    if (Clock::now() > join_by) {
      throw std::runtime_error(fmt::format(
          "{} of {} clients joined {}:{} within {} s; is the server up?", joined_, clients_.size(),
          options_.server_host, options_.server_port, options_.join_seconds));
    }
    step(Clock::now());
  }
  run_until(end_at, false);
  for (Client& client : clients_) leave(client);
  run_until(Clock::now() + seconds_duration(options_.settle_seconds), true);
  // The last to leave may have left datagrams on the way to the others' sockets: all hosts stay
  // open a little longer, so that nothing meets a closed port and everything is counted.
  const TimePoint linger_until = Clock::now() + std::chrono::milliseconds(150);
  while (Clock::now() < linger_until) step(Clock::now());
  print_status();
}

void GameClients::run_until(TimePoint end_at, bool until_left) {
  while (Clock::now() < end_at) {
    if (until_left && all_in_state(ClientState::kLeft, ClientState::kLost)) return;
    if (!until_left && stop_requested()) return;
    step(Clock::now());
  }
}

// One pass: wait at most 2 ms (the error of a send time), then receive, then send what is due.
void GameClients::step(TimePoint now) {
  poll(sockets_.data(), sockets_.size(), 2);
  for (std::size_t index = 0; index < clients_.size(); ++index) {
    Client& client = clients_[index];
    const bool readable = (sockets_[index].revents & POLLIN) != 0;
    const bool due = client.state != ClientState::kPlaying || now >= client.next_input_at;
    if (readable || due) service(client);
    if (client.state == ClientState::kPlaying) send_due(client, now);
  }
  if (now >= next_status_at_) {
    print_status();
    next_status_at_ += seconds_duration(options_.status_ms / 1000);
  }
}

void GameClients::service(Client& client) {
  ENetEvent event;
  while (enet_host_service(client.host.get(), &event, 0) > 0) handle(client, event);
}

void GameClients::handle(Client& client, ENetEvent& event) {
  switch (event.type) {
    case ENET_EVENT_TYPE_CONNECT:
      start_playing(client);
      break;
    case ENET_EVENT_TYPE_RECEIVE: {
      MessageHeader header;
      if (read_header(*event.packet, header)) {
        const bool snapshot = header.kind == MessageKind::kSnapshot;
        (snapshot ? client.snapshots_in : client.reliable_in).note(header.number, Clock::now());
      }
      enet_packet_destroy(event.packet);
      break;
    }
    case ENET_EVENT_TYPE_DISCONNECT:
      client.peer = nullptr;
      if (client.said_bye) {
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

void GameClients::start_playing(Client& client) {
  disable_own_throttle(client.peer);
  client.state = ClientState::kPlaying;
  // Spread the clients over an input interval and an event interval: real players are not in step.
  const double part = static_cast<double>(joined_) / static_cast<double>(clients_.size());
  client.next_input_at = Clock::now() + seconds_duration(part / options_.input_hz);
  client.next_event_at = Clock::now() + seconds_duration(part / options_.event_hz);
  ++joined_;
}

void GameClients::send_due(Client& client, TimePoint now) {
  if (now >= client.next_event_at) {
    client.next_event_at += seconds_duration(1 / options_.event_hz);
    send_reliable(client.peer, client.reliable_out, MessageKind::kEvent, options_.event_bytes);
  }
  if (now >= client.next_input_at) {
    client.next_input_at += seconds_duration(1 / options_.input_hz);
    send_unreliable(client.peer, MessageKind::kInput, ++client.inputs_sent, options_.input_bytes);
  }
}

// The bye is the last message of the reliable series: when the server has it, it has all others.
void GameClients::leave(Client& client) {
  if (client.state != ClientState::kPlaying) return;
  send_reliable(client.peer, client.reliable_out, MessageKind::kBye, options_.event_bytes);
  client.said_bye = true;
  client.state = ClientState::kLeaving;
}

bool GameClients::all_in_state(ClientState first, ClientState second) const {
  return std::all_of(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.state == first || client.state == second;
  });
}

void GameClients::print_status() const {
  std::uint64_t connected = 0, sent = 0, acked = 0, reliable_received = 0, inputs = 0;
  std::uint64_t snapshots = 0, disconnects = 0, datagrams_sent = 0, datagrams_received = 0;
  double gap_ms_max = 0;
  for (const Client& client : clients_) {
    connected += client.state == ClientState::kPlaying || client.state == ClientState::kLeaving;
    sent += client.reliable_out.sent;
    acked += client.reliable_out.acked;
    reliable_received += client.reliable_in.received;
    inputs += client.inputs_sent;
    snapshots += client.snapshots_in.received;
    disconnects += client.disconnects;
    datagrams_sent += client.host->totalSentPackets;
    datagrams_received += client.host->totalReceivedPackets;
    gap_ms_max = std::max(gap_ms_max, client.snapshots_in.gap_ms_max);
  }
  print_line(fmt::format(
      R"({{"side":"clients","t_ms":{:.0f},"connected":{},"reliable_sent":{},"reliable_acked":{},)"
      R"("reliable_received":{},"unreliable_sent":{},"unreliable_received":{},"disconnects":{},)"
      R"("snapshot_gap_ms_max":{:.1f},"datagrams_sent":{},"datagrams_received":{}}})",
      milliseconds_between(started_at_, Clock::now()), connected, sent, acked, reliable_received,
      inputs, snapshots, disconnects, gap_ms_max, datagrams_sent, datagrams_received));
}

std::string GameClients::final_json() const {
  std::string clients;
  for (const Client& client : clients_) {
    clients += fmt::format(
        R"({}{{"address":"{}","reliable_in":{},"snapshots_in":{},"reliable_sent":{},)"
        R"("reliable_acked":{},"unreliable_sent":{},"disconnects":{},"left_in_order":{},)"
        R"("host":{{{}}}}})",
        clients.empty() ? "" : ",\n", client.address, client.reliable_in.json(),
        client.snapshots_in.json(), client.reliable_out.sent, client.reliable_out.acked,
        client.inputs_sent, client.disconnects, client.state == ClientState::kLeft,
        host_totals_json(*client.host));
  }
  return fmt::format("{{\"side\":\"clients\",\"clients\":[{}]}}\n", clients);
}

void add_client_options(CLI::App& app, ClientOptions& options) {
  app.add_option("--clients", options.clients, "number of clients")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--local", options.local_host, "address that the clients send from")
      ->capture_default_str();
  app.add_option("--base-port", options.base_port, "client i sends from this port + i")
      ->check(CLI::Range(1024, 64000))
      ->capture_default_str();
  app.add_option("--input-hz", options.input_hz, "inputs per second and client")
      ->check(CLI::Range(1.0, 240.0))
      ->capture_default_str();
  app.add_option("--event-hz", options.event_hz, "reliable events per second and client")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
  app.add_option("--join-seconds", options.join_seconds, "longest wait for all joins")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
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
