// SPDX-License-Identifier: Apache-2.0
//
// Loads every program of BPF object files into the running kernel, prints what the verifier
// thought of each, and unloads them. Attaches nothing and pins nothing, so it may run beside a
// working daemon.
//
// Kept to libbpf and the standard library: it also runs in a guest whose whole file system is an
// initramfs made of this file and the shared libraries it names.

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kExitOk = 0;
constexpr int kExitRejected = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNotRoot = 77;

// Large enough for the whole log of a program at the verifier's limit of a million instructions;
// older kernels keep the head of a log that does not fit, and the reason is at its end.
constexpr size_t kLogBytes = size_t{64} << 20;
constexpr size_t kLogTailLines = 12;
// Statistics only (BPF_LOG_STATS in the kernel): cheap, and the same for all kernels we support.
constexpr uint32_t kLogLevelStats = 4;

struct ObjectCloser {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};
using Object = std::unique_ptr<bpf_object, ObjectCloser>;

struct ProgramLog {
  bpf_program* program = nullptr;
  std::unique_ptr<char[]> text;
};

// libbpf reports the reason of a failure (a missing map type, a bad section) only through this.
std::string* g_libbpf_warnings = nullptr;

int CollectWarnings(libbpf_print_level level, const char* format, va_list args) {
  if (level != LIBBPF_WARN || g_libbpf_warnings == nullptr) return 0;
  char line[1024];
  // The format comes from libbpf itself.
  const int length = vsnprintf(line, sizeof line, format, args);
  // With our own log buffers libbpf does not repeat the verifier log here, so lines stay short.
  if (length > 0) g_libbpf_warnings->append(line);
  return length;
}

// libbpf has error numbers of its own, which strerror() does not know.
std::string ErrorText(int error) {
  char text[128];
  libbpf_strerror(error, text, sizeof text);
  return text;
}

std::string KernelRelease() {
  utsname names{};
  return uname(&names) == 0 ? names.release : "unknown";
}

// The last lines of a verifier log: the rejected instruction and why.
std::string_view Tail(std::string_view text, size_t lines) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  size_t start = text.size();
  for (size_t seen = 0; seen < lines; ++seen) {
    const size_t newline = text.rfind('\n', start == 0 ? 0 : start - 1);
    if (newline == std::string_view::npos) return text;
    start = newline;
  }
  return text.substr(start + 1);
}

// The line that says why: the last one that is not the verifier's statistics.
std::string_view Reason(std::string_view log) {
  size_t end = log.size();
  while (end > 0) {
    const size_t newline = log.rfind('\n', end - 1);
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = log.substr(start, end - start);
    const bool is_statistics = line.starts_with("processed ") ||
                               line.starts_with("verification time ") ||
                               line.starts_with("stack depth ");
    if (!line.empty() && line != "\n" && !is_statistics) return line;
    if (newline == std::string_view::npos) break;
    end = newline;
  }
  return "no reason given";
}

// "processed N insns (limit ...": -1 when the log has no such line.
int64_t InsnsProcessed(std::string_view log) {
  constexpr std::string_view kKey = "processed ";
  const size_t at = log.rfind(kKey);
  if (at == std::string_view::npos) return -1;
  return strtoll(log.data() + at + kKey.size(), nullptr, 10);
}

std::vector<ProgramLog> PrepareLogs(bpf_object* object) {
  std::vector<ProgramLog> logs;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    // Left uninitialised on purpose: only the pages that the kernel writes become memory.
    ProgramLog log{program, std::make_unique_for_overwrite<char[]>(kLogBytes)};
    log.text[0] = '\0';
    bpf_program__set_log_level(program, kLogLevelStats);
    bpf_program__set_log_buf(program, log.text.get(), kLogBytes);
    bpf_program__set_autoload(program, true);
    logs.push_back(std::move(log));
  }
  return logs;
}

void ForgetPins(bpf_object* object) {
  bpf_map* map = nullptr;
  // A map pinned by name would be shared with a running daemon, or left behind.
  bpf_object__for_each_map(map, object) bpf_map__set_pin_path(map, nullptr);
}

void PrintRow(const std::string& kernel, const ProgramLog& log) {
  bpf_prog_info info{};
  uint32_t info_bytes = sizeof info;
  const int fd = bpf_program__fd(log.program);
  const bool have_info = fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &info_bytes) == 0;
  int64_t insns = InsnsProcessed(log.text.get());
  if (insns < 0 && have_info) insns = info.verified_insns;
  printf("%-34s %-28s %15lld %12u %11u %s\n", kernel.c_str(), bpf_program__name(log.program),
         static_cast<long long>(insns), info.xlated_prog_len, info.jited_prog_len, "ok");
}

int ReportRejection(const char* path, const std::string& kernel, int error,
                    const std::vector<ProgramLog>& logs, const std::string& warnings) {
  // Programs load in turn and libbpf stops at the first that fails: it has the last log written.
  const ProgramLog* rejected = nullptr;
  for (const ProgramLog& log : logs) {
    if (log.text[0] != '\0') rejected = &log;
  }
  if (rejected == nullptr || warnings.find("prog '") == std::string::npos) {
    const std::string_view said = warnings.empty() ? "no reason given" : Tail(warnings, 1);
    fprintf(stderr,
            "edgeshed_verify_object: %s: kernel %s did not take the object: %s (%.*s): "
            "a program or map needs more than this kernel or its memory has; see the lines "
            "above, kernels from 6.1 on are supported\n",
            path, kernel.c_str(), ErrorText(error).c_str(), static_cast<int>(said.size()),
            said.data());
    return kExitRejected;
  }
  const std::string_view log = rejected->text.get();
  const std::string_view tail = Tail(log, kLogTailLines);
  const std::string_view reason = Reason(log);
  const char* name = bpf_program__name(rejected->program);
  fprintf(stderr, "%.*s\n", static_cast<int>(tail.size()), tail.data());
  fprintf(stderr,
          "edgeshed_verify_object: %s: program %s: kernel %s rejects it: %.*s (%s): "
          "change the program so that the verifier of this kernel accepts it; the end of its "
          "log is above\n",
          path, name, kernel.c_str(), static_cast<int>(reason.size()), reason.data(),
          ErrorText(error).c_str());
  return kExitRejected;
}

int Verify(const char* path, const std::string& kernel) {
  std::string warnings;
  g_libbpf_warnings = &warnings;
  const Object object(bpf_object__open_file(path, nullptr));
  if (object == nullptr) {
    const int error = errno;
    const std::string_view said = warnings.empty() ? "no reason given" : Tail(warnings, 1);
    fprintf(stderr,
            "edgeshed_verify_object: %s: cannot open as a BPF object: %s (%.*s): give the path of "
            "a .bpf.o file that tools/dev build made\n",
            path, ErrorText(error).c_str(), static_cast<int>(said.size()), said.data());
    g_libbpf_warnings = nullptr;
    return kExitRejected;
  }
  ForgetPins(object.get());
  const std::vector<ProgramLog> logs = PrepareLogs(object.get());
  if (logs.empty()) {
    fprintf(stderr,
            "edgeshed_verify_object: %s: holds no BPF program: give the path of a .bpf.o file "
            "with at least one SEC(...) function\n",
            path);
    g_libbpf_warnings = nullptr;
    return kExitRejected;
  }
  const int result = bpf_object__load(object.get());
  g_libbpf_warnings = nullptr;
  if (result != 0) return ReportRejection(path, kernel, -result, logs, warnings);
  for (const ProgramLog& log : logs) PrintRow(kernel, log);
  return kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first.empty() || first.starts_with("-")) {
    const bool asked = first == "--help" || first == "-h";
    fprintf(asked ? stdout : stderr,
            "usage: edgeshed_verify_object FILE.bpf.o...\n"
            "Loads each program into this kernel and prints what the verifier did; needs root.\n"
            "exit status: 0 all accepted, 1 one refused, 2 wrong usage, 77 not root\n");
    return asked ? kExitOk : kExitUsage;
  }
  if (geteuid() != 0) {
    fprintf(stderr, "edgeshed_verify_object: needs root to load BPF programs: run it with sudo\n");
    return kExitNotRoot;
  }
  libbpf_set_print(CollectWarnings);
  const std::string kernel = KernelRelease();
  printf("%-34s %-28s %15s %12s %11s %s\n", "kernel", "program", "insns_processed", "xlated_bytes",
         "jited_bytes", "result");
  for (int i = 1; i < argc; ++i) {
    if (const int status = Verify(argv[i], kernel); status != kExitOk) return status;
  }
  return kExitOk;
}
