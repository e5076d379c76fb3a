// Bytes as what game servers do: messages on their sockets, well formed or not, and whatever they
// like in the memory of their report boards, while the daemon ticks. A message that breaks the
// rules ends its own session and no other; every answer is sound; no number that a server made up
// reaches a record or the plan outside of its range.
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

#include "tests/fuzz/law_invariants.h"
#include "tests/fuzz/target.h"
#include "userspace/config/config.h"
#include "userspace/daemon/desk_world.h"
#include "userspace/session/session.h"

namespace edgeshed::test {
namespace {

constexpr char kConfig[] = R"(
[host]
connections_max = 8
endpoints_max = 2
rooms_max = 4
classes_max = 2
streams_max = 4
mode = "enforce"
[placement]
shard_players_max = 6
[[shard]]
name = "arena"
[[shard]]
name = "other"
[[room]]
name = "lobby"
shard = "arena"
stream_cap = 2
stream_samples_per_s = 30
[[room]]
name = "attic"
shard = "other"
[[class]]
name = "player"
standard = { packets_per_s = 60 }
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "lane"
rooms = ["lobby", "attic"]
)";
constexpr std::array kNames = {"arena", "other", "lobby", "attic", "game", "player", "", "none"};
constexpr size_t kServers = 3;

/// Takes values off the bytes; 0 once they are used up.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return bytes_.empty(); }
  template <typename Value = uint8_t>
  Value raw() {
    Value value{};
    const size_t count = std::min(sizeof(value), bytes_.size());
    std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }
  /// Mostly a small number.
  uint32_t number() {
    const uint8_t byte = raw();
    return byte < 250 ? byte % 10 : raw<uint32_t>();
  }
  /// Mostly a share of `sane`.
  double real(double sane) {
    const uint8_t byte = raw();
    return byte < 250 ? sane * byte / 200 : raw<double>();
  }
  template <size_t kBytes>
  void name(char (&to)[kBytes]) {
    const uint8_t byte = raw();
    if (byte >= 250) {
      std::memset(to, byte, kBytes);  // without an end
    } else if (byte >= 240) {
      for (size_t i = 0; i < 8; ++i) to[i] = static_cast<char>(raw());
    } else {
      std::strncpy(to, kNames[byte % kNames.size()], kBytes - 1);
    }
  }

 private:
  std::span<const uint8_t> bytes_;
};

template <size_t kBytes>
bool is_line(const char (&text)[kBytes]) {
  const char* const end = std::find(std::begin(text), std::end(text), '\0');
  return end != std::end(text) &&
         std::all_of(std::begin(text), end, [](char c) { return c >= ' ' && c <= '~'; });
}

template <typename Message>
std::optional<Message> as(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message;
}

template <size_t kBytes>
bool has_end(const char (&text)[kBytes]) {
  return std::memchr(text, 0, kBytes) != nullptr;
}

/// Whether wire.h forbids a server to send this, wherever the session stands.
bool breaks_rules(std::span<const std::byte> bytes) {
  es_session_head head{};
  if (bytes.size() < sizeof(head)) return true;
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (head.bytes != bytes.size()) return true;
  switch (head.type) {
    case ES_SESSION_hello: {
      const auto hello = as<es_session_hello>(bytes);
      return !hello || hello->magic != ES_SESSION_MAGIC || hello->version != ES_SESSION_VERSION ||
             !has_end(hello->shard) || !has_end(hello->server);
    }
    case ES_SESSION_room_open: {
      const auto open = as<es_session_room_open>(bytes);
      return !open || !has_end(open->room);
    }
    case ES_SESSION_connect: {
      const auto peer = as<es_session_connect>(bytes);
      return !peer || !has_end(peer->endpoint) || !has_end(peer->contract_class);
    }
    case ES_SESSION_room_close:
      return bytes.size() != sizeof(es_session_room_close);
    case ES_SESSION_disconnect:
      return bytes.size() != sizeof(es_session_disconnect);
    case ES_SESSION_stream:
      return bytes.size() != sizeof(es_session_stream);
    default:
      return true;
  }
}

/// A server's end: judges what it is sent, and maps the board that it gets.
class Output : public session::SessionOutput {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() override {
    if (board_ != nullptr) munmap(board_, bytes_);
  }

  bool send(std::span<const std::byte> message, std::initializer_list<int> fds) override {
    if (fds.size() == 2) map(*fds.begin());
    if (!sound(message)) fault = "a message that is not sound";
    return true;
  }
  void end() override { fault = "ended without a reload"; }

  es_report_board* board() const { return board_; }
  std::string fault;

 private:
  static bool sound(std::span<const std::byte> message) {
    const auto code_sound = [](const es_session_code& code) {
      return is_line(code.name) && is_line(code.text);
    };
    es_session_head head{};
    std::memcpy(&head, message.data(), sizeof(head));
    if (head.bytes != message.size()) return false;
    if (const auto welcome = as<es_session_welcome>(message)) {
      return head.type == ES_SESSION_welcome && code_sound(welcome->refused);
    }
    if (const auto opened = as<es_session_room_opened>(message)) {
      return head.type == ES_SESSION_room_opened && code_sound(opened->refused);
    }
    const auto event = as<es_session_event>(message);
    return event && head.type == ES_SESSION_event && event->kind < ES_SESSION_EVENT_KINDS &&
           code_sound(event->code);
  }

  void map(int fd) {
    struct stat info = {};
    fstat(fd, &info);
    bytes_ = static_cast<size_t>(info.st_size);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) board_ = static_cast<es_report_board*>(memory);
  }

  es_report_board* board_ = nullptr;
  size_t bytes_ = 0;
};

struct Server {
  session::SessionId id = 0;
  std::unique_ptr<Output> output;
  std::unique_ptr<session::Session> session;
};

const core::Model& model() {
  static const core::Model model = config::parse(kConfig, "fuzz.toml");
  return model;
}

class Scene {
 public:
  explicit Scene(Reader& reader) : reader_(reader), world_(model()) {
    for (Server& server : servers_) begin(server);
    tick();
  }
  ~Scene() {
    for (Server& server : servers_) server.session.reset();  // before the desk that it tells
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  std::string step() {
    const uint8_t what = reader_.raw();
    Server& server = servers_[(what >> 6) % kServers];
    const auto others = lives(&server);
    std::string fault = act(what & 63, server);
    if (fault.empty() && lives(&server) != others) fault = "another session ended";
    for (const Server& one : servers_) {
      if (fault.empty()) fault = one.output->fault;
    }
    if (fault.empty()) fault = records_fault();
    return fault.empty() ? plan_fault() : fault;
  }

 private:
  void begin(Server& server) {
    server.session.reset();
    server.output = std::make_unique<Output>();
    server.id = ++last_id_;
    server.session = std::make_unique<session::Session>(server.id, session::ServerIdentity{},
                                                        *world_.sessions_, *server.output);
  }

  std::array<bool, kServers> lives(const Server* but) const {
    std::array<bool, kServers> out = {};
    for (size_t i = 0; i < kServers; ++i) {
      out[i] = &servers_[i] != but && world_.sessions_->lives(servers_[i].id);
    }
    return out;
  }

  std::string act(uint8_t what, Server& server) {
    switch (what % 16) {
      case 0:
        tick();
        return "";
      case 1:
        world_.now_ns_ += uint64_t{reader_.raw()} * 100'000'000;
        world_.sessions_->upkeep();
        return "";
      case 2:
        begin(server);
        return "";
      case 3:
        write_report(server);
        return "";
      case 4:
        write_connection(server);
        return "";
      case 5:
        world_.sessions_->drain(reader_.raw() & 1, (reader_.raw() & 1) != 0);
        return "";
      case 6:
        refuse();
        return "";
      case 7: {
        std::string bytes(reader_.raw(), '\0');
        for (char& byte : bytes) byte = static_cast<char>(reader_.raw());
        return say(server, std::move(bytes), true);
      }
      default:
        return say(server, message(what % 8), what >= 48);
    }
  }

  /// Time for the tick thread, and for the service thread after it.
  void tick() {
    world_.tick();
    daemon::ShardChange change;
    while (world_.changes_.try_pop(change)) world_.sessions_->rung_changed(change);
    world_.sessions_->upkeep();
  }

  std::string message(uint8_t kind) {
    switch (kind) {
      case 0:
      case 1:
        return hello();
      case 2:
        return room_open();
      case 3:
        return with_head(ES_SESSION_room_close, es_session_room_close{{}, reader_.number(), 0});
      case 4:
        return with_head(ES_SESSION_disconnect, es_session_disconnect{{}, reader_.number(), 0});
      case 5:
        return with_head(ES_SESSION_stream,
                         es_session_stream{{}, reader_.number(), reader_.raw(), reader_.raw(), 0});
      default:
        return connect();
    }
  }

  template <typename Message>
  static std::string with_head(es_session_type type, Message message) {
    message.head = {static_cast<uint16_t>(type), sizeof(Message), 1};
    return {reinterpret_cast<const char*>(&message), sizeof(message)};
  }

  std::string hello() {
    es_session_hello hello{};
    hello.magic = ES_SESSION_MAGIC;
    hello.version = ES_SESSION_VERSION;
    hello.flags = reader_.raw();
    hello.rows = reader_.number();
    reader_.name(hello.shard);
    reader_.name(hello.server);
    return with_head(ES_SESSION_hello, hello);
  }

  std::string room_open() {
    es_session_room_open open{};
    open.players = reader_.number();
    reader_.name(open.room);
    return with_head(ES_SESSION_room_open, open);
  }

  std::string connect() {
    es_session_connect peer{};
    peer.row = reader_.number();
    peer.room = reader_.number();
    peer.addr[10] = peer.addr[11] = 0xff;
    peer.addr[15] = reader_.raw();
    peer.port = 4000;
    peer.priority = reader_.raw();
    peer.weight = reader_.raw<float>();
    peer.player = peer.row;
    reader_.name(peer.endpoint);
    reader_.name(peer.contract_class);
    return with_head(ES_SESSION_connect, peer);
  }

  /// One message; `broken`: bytes of it are others, or it is longer or shorter.
  std::string say(Server& server, std::string bytes, bool broken) {
    if (broken && !bytes.empty()) {
      bytes[reader_.raw<uint16_t>() % bytes.size()] = static_cast<char>(reader_.raw());
      bytes.resize(bytes.size() + static_cast<size_t>(reader_.raw() % 3) - 1);
    }
    const auto packet = std::as_bytes(std::span(bytes));
    const size_t connections = world_.connections_->size();
    const std::string over = server.session->handle(packet);
    if (over.empty()) {
      if (breaks_rules(packet)) return "goes on after a message against the rules";
      const auto peer = as<es_session_connect>(packet);
      if (peer && peer->room >= model().rooms.size() && world_.connections_->size() > connections) {
        return "a connection in no room";
      }
      return world_.sessions_->lives(server.id) ? "" : "goes on, but is not known";
    }
    const bool is_text =
        std::none_of(over.begin(), over.end(), [](unsigned char c) { return c < ' '; });
    begin(server);  // as the socket's owner does: the session is over
    return is_text ? "" : "the log gets what is no line: " + over;
  }

  void write_report(Server& server) {
    es_report_board* const board = server.output->board();
    if (board == nullptr) return;
    es_board_report& report = board->report;
    const uint8_t how = reader_.raw();
    report.seq += 2 + (how & 1);  // odd: being written
    report.number += how >> 4;
    report.reported_ns = (how & 2) != 0 ? reader_.raw<uint64_t>() : world_.now_ns_;
    report.rooms = reader_.number();
    report.tick_p99_ms = reader_.real(60);
    report.ring_occupancy = reader_.real(0.8);
    report.ticks = (how & 4) != 0 ? reader_.raw<uint64_t>() : report.ticks + 1;
    report.busy_ns = (how & 8) != 0 ? reader_.raw<uint64_t>() : report.busy_ns + 30'000'000;
    board->tick_started_ns = reader_.raw<uint64_t>();
  }

  void write_connection(Server& server) {
    es_report_board* const board = server.output->board();
    if (board == nullptr) return;
    const uint32_t row = reader_.raw();
    // What the board says of its own size is not what the daemon goes by.
    const uint8_t how = reader_.raw();
    if (row < board->rows && board->rows <= 10) {
      es_board_connection& at = board->connection[row];
      at.latest_seq += reader_.number();
      at.acked_seq += reader_.number();
      at.buffered_bytes = reader_.raw<uint32_t>();
      at.rejects[how & 1] += reader_.number();
    }
    if (how == 0xff) board->rows = reader_.raw<uint32_t>();
  }

  /// The packet path refused something of somebody.
  void refuse() {
    es_event event{};
    event.remote.addr_lo = __builtin_bswap64(0x0000ffff00000000ull | reader_.raw());
    event.remote.port = __builtin_bswap16(4000);
    event.remote.endpoint = 1;
    event.room = reader_.raw() % 4;
    event.reason = reader_.raw() % ES_REASONS;
    event.verdict = es_reason_verdict(event.reason);
    event.stream = reader_.raw();
    static_cast<void>(world_.refusals_.try_push(event));
  }

  std::string records_fault() const {
    if (world_.connections_->size() > world_.connections_->capacity()) return "too many records";
    for (const es_connection& record : world_.records_) {
      if (world_.connections_->owner_of(record.key).session == 0) continue;
      const es_policy& policy = record.policy;
      if (policy.room >= model().rooms.size()) return "a record in no room";
      if (policy.contract_class >= model().classes.size()) return "a record of no class";
      if (policy.weight_inverse_q8 == 0 || policy.weight_inverse_q8 > 64'000) {
        return "a weight out of range";
      }
      if (record.key.endpoint != 1) return "a record of no endpoint";
    }
    return "";
  }

  std::string plan_fault() {
    const es_geometry& geometry = world_.control_->geometry;
    const uint32_t copy = world_.control_->generation & 1;
    std::copy_n(&world_.endpoints_[copy * geometry.endpoints], geometry.endpoints,
                rows_.endpoints.begin());
    std::copy_n(&world_.rooms_[copy * geometry.rooms], geometry.rooms, rows_.rooms.begin());
    for (const daemon::ShardView& view : world_.box_->latest().shards) {
      const core::ShardSignals& signals = view.signals;
      const auto within = [](double value, double most) { return value >= 0 && value <= most; };
      if (!within(signals.tick_p99_ms, session::kTickMsMax) ||
          !within(signals.running_tick_age_ms, session::kTickMsMax) ||
          !within(signals.ring_occupancy, 1) || !within(signals.ack_lag_p95, 0xffffffff) ||
          !within(signals.rejected_share, 1)) {
        return "a signal out of range";
      }
    }
    return rows_fault(model(), rows_);
  }

  Reader& reader_;
  daemon::DeskWorld world_;
  core::PlanRows rows_{world_.control_->geometry};
  std::array<Server, kServers> servers_;
  session::SessionId last_id_ = 1;
};

}  // namespace

const char* const kTargetName = "session";

std::string run_target(std::span<const uint8_t> bytes) {
  spdlog::set_level(spdlog::level::off);
  Reader reader(bytes);
  try {
    Scene scene(reader);
    for (int step = 0; !reader.done(); ++step) {
      const std::string fault = scene.step();
      if (!fault.empty()) return "step " + std::to_string(step) + ": " + fault;
    }
  } catch (const std::exception& thrown) {
    return std::string("thrown: ") + thrown.what();
  }
  return "";
}

}  // namespace edgeshed::test
