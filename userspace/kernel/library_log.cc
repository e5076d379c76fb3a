// Captured warnings of libbpf and libxdp: see library_log.h.
#include "userspace/kernel/library_log.h"

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace edgeshed::kernel {
namespace {

thread_local std::string* g_current = nullptr;
libbpf_print_fn_t g_libbpf_before = nullptr;
libxdp_print_fn_t g_libxdp_before = nullptr;

int append(const char* format, va_list args) {
  if (g_current == nullptr) return 0;
  // A verifier log comes as one argument and may be megabytes long.
  char* text = nullptr;
  const int length = vasprintf(&text, format, args);
  if (length < 0) return 0;
  g_current->append(text, static_cast<std::size_t>(length));
  free(text);
  return length;
}

int on_libbpf(libbpf_print_level level, const char* format, va_list args) {
  return level == LIBBPF_WARN ? append(format, args) : 0;
}

int on_libxdp(libxdp_print_level level, const char* format, va_list args) {
  return level != LIBXDP_DEBUG ? append(format, args) : 0;
}

/// The text between `before` and `after`, the first such place at or behind `from`.
std::string_view between(std::string_view text, std::string_view before, std::string_view after,
                         std::size_t from = 0) {
  const std::size_t start = text.find(before, from);
  if (start == std::string_view::npos) return {};
  const std::size_t begin = start + before.size();
  const std::size_t end = text.find(after, begin);
  return end == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin);
}

std::string_view trimmed(std::string_view line) {
  for (const std::string_view prefix : {"libbpf: ", "libxdp: ", " ", "\t", "\n"}) {
    while (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  return line;
}

/// Calls `visit` with each line from the last to the first, until it returns true.
template <typename Visit>
void lines_backwards(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t newline = text.rfind('\n', text.size() - 1);
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (visit(trimmed(text.substr(begin)))) return;
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(0, newline);
  }
}

std::string verifier_reason(std::string_view log) {
  std::string reason;
  lines_backwards(log, [&](std::string_view line) {
    if (line.empty() || line.starts_with("processed ")) return false;
    reason = line;
    return true;
  });
  return reason;
}

}  // namespace

LibraryLog::LibraryLog() : outer_(std::exchange(g_current, &text_)) {
  if (outer_ != nullptr) return;
  g_libbpf_before = libbpf_set_print(on_libbpf);
  g_libxdp_before = libxdp_set_print(on_libxdp);
}

LibraryLog::~LibraryLog() {
  g_current = outer_;
  if (outer_ != nullptr) return;
  libbpf_set_print(g_libbpf_before);
  libxdp_set_print(g_libxdp_before);
}

std::string LibraryLog::line_with(std::string_view words) const {
  std::string found;
  lines_backwards(text_, [&](std::string_view line) {
    if (line.find(words) == std::string_view::npos) return false;
    found = line;
    return true;
  });
  return found;
}

std::string LibraryLog::last_reason() const {
  constexpr std::string_view kKernel = "Kernel error message: ";
  const std::string said = line_with(kKernel);
  if (!said.empty()) return said.substr(said.find(kKernel) + kKernel.size());
  std::string reason;
  lines_backwards(text_, [&](std::string_view line) {
    reason = line;
    return !line.empty();
  });
  return reason;
}

LoadFailure parse_load_failure(std::string_view log) {
  LoadFailure failure;
  const std::size_t refused = log.find(": BPF program load failed");
  if (refused != std::string_view::npos) {
    const std::size_t start = log.rfind("prog '", refused);
    if (start != std::string_view::npos) failure.program = between(log, "prog '", "'", start);
  }
  failure.verifier_line =
      verifier_reason(between(log, "BEGIN PROG LOAD LOG --\n", "-- END PROG LOAD LOG"));
  const std::size_t creation = log.find("failed to create: ");
  if (creation != std::string_view::npos) {
    const std::size_t start = log.rfind("map '", creation);
    if (start != std::string_view::npos) failure.map = between(log, "map '", "'", start);
  }
  return failure;
}

}  // namespace edgeshed::kernel
