#include "userspace/host/reread_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace edgeshed::host {
namespace {

constexpr std::size_t kChunk = 4096;

}  // namespace

std::string_view RereadFile::read() {
  if (!fd_) fd_ = kernel::Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_) return {};
  std::size_t length = 0;
  while (length < kFileBytesMax) {
    if (text_.size() < length + kChunk) text_.resize(length + kChunk);
    // A file of /proc may end a read at any line.
    const ssize_t got = ::pread(fd_.get(), text_.data() + length, text_.size() - length,
                                static_cast<off_t>(length));
    if (got < 0) {
      fd_ = {};  // a cgroup that is gone: opened anew, if it ever is there again
      return {};
    }
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return std::string_view(text_).substr(0, std::min(length, kFileBytesMax));
}

}  // namespace edgeshed::host
