#include "tools/cli/confirm_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

#include "userspace/core/error_type.h"
#include "userspace/kernel/error.h"

namespace edgeshed::cli {
namespace {

namespace json = boost::json;

const char* phase_name(ConfirmPhase phase) {
  switch (phase) {
    case ConfirmPhase::kWaiting:
      return "waiting";
    case ConfirmPhase::kRolledBack:
      return "rolled_back";
    case ConfirmPhase::kFailed:
      return "failed";
    case ConfirmPhase::kNone:
      break;
  }
  return "none";
}

ConfirmPhase phase_of(std::string_view name) {
  for (const auto phase :
       {ConfirmPhase::kWaiting, ConfirmPhase::kRolledBack, ConfirmPhase::kFailed}) {
    if (name == phase_name(phase)) return phase;
  }
  return ConfirmPhase::kNone;
}

std::string text_of(const ConfirmState& state) {
  json::array devices;
  for (const kernel::DeviceBefore& one : state.undo.devices) {
    devices.push_back(json::object{{"dev", one.dev},
                                   {"attached", one.attached},
                                   {"whole", one.whole},
                                   {"faces", kernel::faces_name(one.faces)}});
  }
  return json::serialize(json::object{{"state", phase_name(state.phase)},
                                      {"watcher_pid", state.watcher_pid},
                                      {"until_ms", state.until_ms},
                                      {"error", state.error},
                                      {"pin_dir", state.undo.pin_dir.string()},
                                      {"pins_there", state.undo.pins_there},
                                      {"default_enforce", state.undo.default_enforce},
                                      {"devices", std::move(devices)}});
}

/// Throws for anything that text_of() does not write.
ConfirmState state_of(const json::value& value) {
  ConfirmState state;
  state.phase = phase_of(value.at("state").as_string());
  state.watcher_pid = value.at("watcher_pid").to_number<int>();
  state.until_ms = value.at("until_ms").to_number<std::uint64_t>();
  state.error = value.at("error").as_string();
  state.undo.pin_dir = std::string(value.at("pin_dir").as_string());
  state.undo.pins_there = value.at("pins_there").as_bool();
  state.undo.default_enforce = value.at("default_enforce").to_number<std::uint32_t>();
  for (const json::value& one : value.at("devices").as_array()) {
    kernel::DeviceBefore before;
    before.dev = one.at("dev").as_string();
    before.attached = one.at("attached").as_bool();
    before.whole = one.at("whole").as_bool();
    if (one.at("faces").as_string() == kernel::faces_name(kernel::Faces::kServers)) {
      before.faces = kernel::Faces::kServers;
    }
    state.undo.devices.push_back(std::move(before));
  }
  return state;
}

/// Of an open file, from its beginning.
std::optional<ConfirmState> state_in(int fd) {
  std::string text(16 * 1024, '\0');
  const ssize_t bytes = pread(fd, text.data(), text.size(), 0);
  text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  try {
    return state_of(json::parse(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// The caller's or root's, and a file.
bool is_trusted(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == 0 || info.st_uid == geteuid());
}

void make_folder_of(const std::string& path) {
  std::error_code ignored;  // opening says better what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
}

double seconds_from(std::uint64_t begin_ms, std::uint64_t end_ms) {
  return end_ms <= begin_ms ? 0 : static_cast<double>(end_ms - begin_ms) / 1000;
}

}  // namespace

std::uint64_t boottime_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

std::string confirm_path(const std::string& socket) { return socket + ".confirm"; }

ConfirmState read_confirm(const std::string& socket) {
  const std::string path = confirm_path(socket);
  const kernel::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    kernel::fail_errno(errno, "open", path);
  }
  if (!is_trusted(fd.get())) return {};
  // One of another version, or somebody's, holds nothing that could be put back.
  ConfirmState state = state_in(fd.get()).value_or(ConfirmState{});
  // The watcher holds the file exclusively for as long as it lives.
  state.watched = state.phase == ConfirmPhase::kWaiting &&
                  flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return state;
}

kernel::Fd write_confirm(const std::string& socket, const ConfirmState& state) {
  const std::string path = confirm_path(socket);
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  make_folder_of(path);
  kernel::Fd fd(open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) kernel::fail_errno(errno, "write", fresh);
  const std::string text = text_of(state);
  const bool written =
      flock(fd.get(), LOCK_EX | LOCK_NB) == 0 &&
      write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      rename(fresh.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    unlink(fresh.c_str());
    kernel::fail_errno(error, "write", path);
  }
  return fd;
}

bool restart_confirm_clock(const std::string& socket, double seconds) {
  const std::string path = confirm_path(socket);
  const kernel::Fd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return false;
  if (!fd) kernel::fail_errno(errno, "open", path);
  auto state = state_in(fd.get());
  if (!state || state->phase != ConfirmPhase::kWaiting) return false;
  state->until_ms = boottime_ms() + static_cast<std::uint64_t>(std::llround(seconds * 1000));
  // In place, since the watcher's lock is on this file. Later is never shorter.
  const std::string text = text_of(*state);
  if (pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    kernel::fail_errno(errno, "write", path);
  }
  return true;
}

std::optional<std::uint64_t> confirm_until_ms(int fd) {
  const auto state = state_in(fd);
  return state ? std::optional(state->until_ms) : std::nullopt;
}

void forget_confirm(const std::string& socket) {
  const std::string path = confirm_path(socket);
  // Emptied first: a file that only went, as with a folder that a service manager cleans up, was
  // not confirmed by anybody.
  const kernel::Fd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
  unlink(path.c_str());
}

kernel::Fd lock_confirm(const std::string& socket, std::uint32_t timeout_ms) {
  const std::string path = confirm_path(socket) + ".lock";
  make_folder_of(path);
  kernel::Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) kernel::fail_errno(errno, "open the lock", path);
  const std::uint64_t until_ms = boottime_ms() + timeout_ms;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) kernel::fail_errno(errno, "lock", path);
    if (boottime_ms() >= until_ms) {
      throw Error(
          fmt::format("{} is held by an attach or a rollback that is under way; try again", path),
          kExitRefused);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return fd;
}

kernel::Fd lock_confirm_if_possible(const std::string& socket, std::uint32_t timeout_ms) {
  if (access((confirm_path(socket) + ".lock").c_str(), F_OK) != 0) return {};
  try {
    return lock_confirm(socket, timeout_ms);
  } catch (const Error&) {
    return {};
  }
}

void refuse_foreign_state(const std::string& socket) {
  const std::string path = confirm_path(socket);
  const kernel::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || is_trusted(fd.get())) return;
  throw Error(
      fmt::format("{} belongs to another user, so that what it says of an attach that waits "
                  "to be confirmed is not believed: remove it, and if one waits it is there "
                  "again within a second (`edgeshed status`)",
                  path),
      kExitRefused);
}

void require_none_waits(const std::string& socket) {
  refuse_foreign_state(socket);
  const ConfirmState state = read_confirm(socket);
  if (state.phase != ConfirmPhase::kWaiting) return;
  throw Error("an attach waits to be confirmed (" + confirm_line(state) +
                  "): edgeshed confirm first, or edgeshed confirm --rollback",
              kExitRefused);
}

json::value confirm_json(const ConfirmState& state) {
  if (state.phase == ConfirmPhase::kNone) return nullptr;
  json::array devices;
  for (const kernel::DeviceBefore& one : state.undo.devices) devices.emplace_back(one.dev);
  json::object object{{"state", phase_name(state.phase)},
                      {"watched", state.watched},
                      {"devices", std::move(devices)},
                      {"error", state.error}};
  if (state.phase == ConfirmPhase::kWaiting) {
    object["rolls_back_in_s"] = seconds_from(boottime_ms(), state.until_ms);
  } else {
    object["since_s"] = seconds_from(state.until_ms, boottime_ms());
  }
  return object;
}

std::string confirm_line(const ConfirmState& state) {
  switch (state.phase) {
    case ConfirmPhase::kWaiting:
      if (!state.watched) {
        return fmt::format(
            "the watcher of `attach --confirm` (process {}) died, nothing is rolled back by "
            "itself: `edgeshed confirm` keeps it, `edgeshed confirm --rollback` takes it off",
            state.watcher_pid);
      }
      return fmt::format("rolls back in {:.0f} s unless `edgeshed confirm`",
                         seconds_from(boottime_ms(), state.until_ms));
    case ConfirmPhase::kRolledBack:
      return fmt::format("rolled back {:.0f} s ago: nobody said `edgeshed confirm`",
                         seconds_from(state.until_ms, boottime_ms()));
    case ConfirmPhase::kFailed:
      return fmt::format("rolling back failed {:.0f} s ago: {}; `{}` takes all off",
                         seconds_from(state.until_ms, boottime_ms()), state.error,
                         core::command_at(state.undo.pin_dir.string(), "detach"));
    case ConfirmPhase::kNone:
      break;
  }
  return {};
}

}  // namespace edgeshed::cli
