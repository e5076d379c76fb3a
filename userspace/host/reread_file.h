// A file of /proc, /sys or a cgroup that is read again and again. Must not know what it says.
#pragma once

#include <string>
#include <string_view>

#include "userspace/kernel/fd.h"

namespace edgeshed::host {

/// Longer ones are cut: the rows of 1,000 CPUs in softnet_stat are 140 KB.
inline constexpr std::size_t kFileBytesMax = 256 * 1024;

class RereadFile {
 public:
  explicit RereadFile(std::string path) : path_(std::move(path)) {}

  /// The whole text, valid until the next call; empty if the file cannot be opened or read. Opens
  /// it where it is not open; allocates only while the text is longer than any before.
  std::string_view read();

 private:
  std::string path_;
  kernel::Fd fd_;
  std::string text_;
};

}  // namespace edgeshed::host
