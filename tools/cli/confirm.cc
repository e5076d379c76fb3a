// edgeshed confirm: keeps what `attach --confirm` attached, or takes it back at once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/confirm_state.h"
#include "userspace/core/error_type.h"

namespace edgeshed::cli {
namespace {

constexpr std::uint32_t kLockTimeoutMs = 15'000;
constexpr int kRollbackTimeoutMs = 15'000;

struct ConfirmOptions {
  bool rollback = false;
  bool json = false;
};

[[noreturn]] void fail_not_waiting(const ConfirmState& state) {
  if (state.phase == ConfirmPhase::kNone) {
    throw Error("nothing waits to be confirmed: `edgeshed attach --confirm 60s` comes first");
  }
  throw Error("too late: " + confirm_line(state) + "; attach again");
}

/// Kept, if the lock is got before the watcher gets it.
void keep(const Globals& globals) {
  const kernel::Fd lock = lock_confirm(globals.socket, kLockTimeoutMs);
  const ConfirmState state = read_confirm(globals.socket);
  if (state.phase != ConfirmPhase::kWaiting) fail_not_waiting(state);
  forget_confirm(globals.socket);
}

/// Of an attach whose watcher died, by hand.
void take_back_unwatched(const Globals& globals) {
  const kernel::Fd lock = lock_confirm(globals.socket, kLockTimeoutMs);
  const ConfirmState now = read_confirm(globals.socket);
  if (now.phase != ConfirmPhase::kWaiting) fail_not_waiting(now);
  if (now.watched) {
    throw Error("another attach has begun meanwhile; `edgeshed status` shows it", kExitRefused);
  }
  kernel::roll_back(now.undo);
  forget_confirm(globals.socket);
}

/// What the watcher has said is seen, and need not stay; unless another attach has begun since.
void put_away_outcome(const Globals& globals) {
  const kernel::Fd lock = lock_confirm(globals.socket, kLockTimeoutMs);
  if (read_confirm(globals.socket).phase == ConfirmPhase::kRolledBack) {
    forget_confirm(globals.socket);
  }
}

void tell_watcher(int pid) {
  if (kill(pid, SIGTERM) == 0) return;
  if (errno == ESRCH) {
    throw Error(fmt::format("process {}, which watched, has just ended; try again", pid));
  }
  throw Error(fmt::format("process {}, which watches, cannot be told: run as root", pid),
              kExitEnvironment);
}

/// By the watcher, which knows what the caller became; by hand if it died.
void take_back(const ConfirmState& state, const Globals& globals) {
  if (!state.watched) return take_back_unwatched(globals);
  tell_watcher(state.watcher_pid);
  for (int waited_ms = 0; waited_ms < kRollbackTimeoutMs; waited_ms += 50) {
    const ConfirmState now = read_confirm(globals.socket);
    if (now.phase == ConfirmPhase::kFailed) throw Error(confirm_line(now));
    if (now.phase == ConfirmPhase::kRolledBack) return put_away_outcome(globals);
    if (now.phase == ConfirmPhase::kNone) {
      throw Error("it was kept, or taken off, by somebody else; `edgeshed status` shows it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  throw Error(fmt::format("process {} has not rolled back within {} s; {} takes all off",
                          state.watcher_pid, kRollbackTimeoutMs / 1000,
                          core::command_at(state.undo.pin_dir.string(), "detach")));
}

int run_confirm(const ConfirmOptions& options, const Globals& globals) {
  refuse_foreign_state(globals.socket);
  const ConfirmState state = read_confirm(globals.socket);
  if (state.phase != ConfirmPhase::kWaiting) fail_not_waiting(state);
  if (options.rollback) {
    take_back(state, globals);
  } else {
    keep(globals);
  }
  std::vector<std::string> devices;
  for (const kernel::DeviceBefore& one : state.undo.devices) devices.push_back(one.dev);
  if (options.json) {
    boost::json::array list(devices.begin(), devices.end());
    fmt::print("{}\n", boost::json::serialize(
                           boost::json::object{{"state", options.rollback ? "rolled_back" : "kept"},
                                               {"devices", std::move(list)}}));
  } else {
    fmt::print("{}: {}\n", fmt::join(devices, ", "), options.rollback ? "rolled back" : "kept");
  }
  return kExitOk;
}

}  // namespace

void add_confirm(CLI::App& app, Context& context) {
  auto options = std::make_shared<ConfirmOptions>();
  CLI::App* command =
      add_command(app, "confirm", "Keep what attach --confirm attached",
                  "  edgeshed attach --config game.toml --dev eth0 --confirm 60s\n"
                  "  edgeshed confirm               # within a minute, or all is as before\n"
                  "  edgeshed confirm --rollback    # as before, at once\n"
                  "edgeshed status says how much time is left.\n");
  command->add_flag("--rollback", options->rollback, "Take it back at once instead");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_confirm(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
