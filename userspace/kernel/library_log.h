// What libbpf and libxdp would have printed, kept for the one line of an Error. Must not print.
#pragma once

#include <string>
#include <string_view>

namespace edgeshed::kernel {

/// While it lives, warnings of both libraries, and what libxdp says about its fallbacks,
/// on this thread go here instead of to stderr (warnings of other threads are dropped). The
/// innermost one gets them.
class LibraryLog {
 public:
  LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;
  ~LibraryLog();

  const std::string& text() const { return text_; }
  void clear() { text_.clear(); }

  /// The last line that contains `words`, trimmed; empty if none does.
  std::string line_with(std::string_view words) const;

  /// The kernel's own words ("Kernel error message: ..."), else the last line; may be empty.
  std::string last_reason() const;

 private:
  std::string text_;
  std::string* outer_;
};

/// What the log says about a failed load. Empty strings: it does not say.
struct LoadFailure {
  std::string program;        ///< the program that the verifier refused
  std::string verifier_line;  ///< the last line of the verifier's log that gives a reason
  std::string map;            ///< the map that could not be created
};

/// Finds the failure in libbpf's warnings (libbpf 1.1 to 1.5 word them alike).
LoadFailure parse_load_failure(std::string_view log);

}  // namespace edgeshed::kernel
