#include "tools/cli/confirm_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <exception>
#include <iterator>

#include "userspace/core/error_type.h"
#include "userspace/kernel/error.h"

namespace edgeshed::cli {
namespace {

constexpr int kStartTimeoutMs = 5000;
constexpr int kDaemonStopTimeoutMs = 3000;
constexpr std::uint32_t kAttachTimeoutMs = 60'000;
constexpr long kLookEveryNs = 100'000'000;

// glibc 2.36 declares both without extern "C".
int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
bool signal_process(int fd, int number) {
  return syscall(SYS_pidfd_send_signal, fd, number, nullptr, 0) == 0;
}

volatile std::sig_atomic_t told_to_end = 0;

void on_terminate(int) { told_to_end = 1; }

void set_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE}) std::signal(number, SIG_IGN);
  struct sigaction action{};
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
}

// Where the descriptors are that a watcher keeps.
constexpr int kStateFd = 3, kDaemonFd = 4, kStartedFd = 5;

/// Out of the caller's terminal, folder and files; only the three stay open. daemon may be -1.
void leave_caller(int state, int daemon, int started) {
  const int nothing = open("/dev/null", O_RDWR);
  const int kept[] = {nothing, nothing, nothing, state, daemon, started};
  int high[std::size(kept)];
  for (std::size_t i = 0; i < std::size(kept); ++i) high[i] = fcntl(kept[i], F_DUPFD, 10);
  for (std::size_t i = 0; i < std::size(kept); ++i) {
    if (high[i] < 0 || dup2(high[i], static_cast<int>(i)) < 0) close(static_cast<int>(i));
  }
  close_range(kStartedFd + 1, ~0u, 0);
  prctl(PR_SET_NAME, "edgeshed-watch");
  // Else it would keep a mount busy.
  if (chdir("/") != 0) return;
}

/// Empty is confirmed, or taken off by hand (forget_confirm()).
bool still_waits() {
  struct stat info{};
  return fstat(kStateFd, &info) == 0 && info.st_size > 0;
}

/// SIGTERM, or time that is up as the file has it now.
bool is_due(std::uint64_t until_ms) {
  return told_to_end != 0 || boottime_ms() >= confirm_until_ms(kStateFd).value_or(until_ms);
}

/// A file that only went, as with a folder that a service manager cleans up, is made anew: else
/// nobody could see or confirm what waits here, and a second attach would be taken back with it.
void keep_state_there(const std::string& socket, ConfirmState state) {
  if (access(confirm_path(socket).c_str(), F_OK) == 0 || !still_waits()) return;
  state.until_ms = confirm_until_ms(kStateFd).value_or(state.until_ms);
  try {
    const kernel::Fd anew = write_confirm(socket, state);
    dup2(anew.get(), kStateFd);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // What waits goes on waiting, unseen.
  }
}

/// True: it is due. False: confirmed.
bool wait_for_confirm(const std::string& socket, const ConfirmState& state) {
  const timespec step{0, kLookEveryNs};
  while (still_waits()) {
    if (is_due(state.until_ms)) return true;
    keep_state_there(socket, state);
    nanosleep(&step, nullptr);
  }
  return false;
}

/// The daemon that the caller became ends before its maps go.
void stop_daemon() {
  if (!signal_process(kDaemonFd, SIGTERM)) return;
  pollfd ended{kDaemonFd, POLLIN, 0};
  if (poll(&ended, 1, kDaemonStopTimeoutMs) == 0) signal_process(kDaemonFd, SIGKILL);
}

void roll_back_and_say(const std::string& socket, ConfirmState state, bool with_daemon) {
  if (with_daemon) stop_daemon();
  state.phase = ConfirmPhase::kRolledBack;
  try {
    kernel::roll_back(state.undo);
  } catch (const std::exception& error) {
    state.phase = ConfirmPhase::kFailed;
    state.error = error.what();
  }
  state.until_ms = boottime_ms();
  write_confirm(socket, state);
}

/// The watcher's life. The lock on the state's file says that somebody watches.
void watch(const std::string& socket, const ConfirmState& state, bool with_daemon) {
  while (wait_for_confirm(socket, state)) {
    // An attach that is still under way comes to its end first, so that all of it is taken back;
    // or so that its time begins.
    // One that hangs goes all the same, with what it did so far.
    const kernel::Fd lock = lock_confirm_if_possible(socket, kAttachTimeoutMs);
    if (!still_waits() || !is_due(state.until_ms)) continue;
    std::signal(SIGTERM, SIG_IGN);
    roll_back_and_say(socket, state, with_daemon);
    return;
  }
}

/// In the grandchild. Never returns.
[[noreturn]] void become_watcher(const ConfirmWatch& watch_for, pid_t caller, int started_fd) {
  int code = kExitOk;
  try {
    set_signals();
    ConfirmState state;
    state.phase = ConfirmPhase::kWaiting;
    state.watcher_pid = getpid();
    state.until_ms =
        boottime_ms() + static_cast<std::uint64_t>(std::llround(watch_for.seconds * 1000));
    state.undo = watch_for.undo;
    // The number of a process that has not ended yet: it waits for this one to start.
    const int daemon = watch_for.stop_caller ? open_process(caller) : -1;
    kernel::Fd state_file = write_confirm(watch_for.socket, state);
    leave_caller(state_file.get(), daemon, started_fd);
    if (write(kStartedFd, "", 1) == 1) {
      close(kStartedFd);
      watch(watch_for.socket, state, daemon >= 0);
    }
  } catch (const std::exception&) {
    code = kExitFailure;
  }
  _exit(code);
}

/// Waits for the byte that says that it watches; false: it ended without, or took too long.
bool wait_for_start(int fd) {
  pollfd ready{fd, POLLIN, 0};
  char byte = 0;
  return poll(&ready, 1, kStartTimeoutMs) == 1 && read(fd, &byte, 1) == 1;
}

}  // namespace

void start_confirm_watch(const ConfirmWatch& watch) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) kernel::fail_errno(errno, "make a pipe", "");
  const kernel::Fd reading(ends[0]);
  kernel::Fd writing(ends[1]);
  const pid_t caller = getpid();
  const pid_t child = fork();
  if (child < 0) kernel::fail_errno(errno, "start the watcher of the confirmation", "");
  if (child == 0) {
    // Twice, so that nobody waits for it and it can never get a terminal.
    setsid();
    if (fork() == 0) become_watcher(watch, caller, writing.get());
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  writing = kernel::Fd();
  if (wait_for_start(reading.get())) return;
  forget_confirm(watch.socket);
  throw Error(
      fmt::format("the process that would take the attach back did not start: can {} be "
                  "written?",
                  confirm_path(watch.socket)));
}

}  // namespace edgeshed::cli
