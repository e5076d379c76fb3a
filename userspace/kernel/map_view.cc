// mmap of BPF arrays: see map_view.h.
#include "userspace/kernel/map_view.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "userspace/kernel/error.h"

namespace edgeshed::kernel {

MappedBytes::MappedBytes(int fd, std::string_view name, std::size_t value_bytes,
                         std::size_t entries, Access access) {
  bpf_map_info info{};
  __u32 info_bytes = sizeof(info);
  const int err = bpf_obj_get_info_by_fd(fd, &info, &info_bytes);
  if (err != 0) fail_errno(err, "inspect the map", name);
  if (info.type != BPF_MAP_TYPE_ARRAY || (info.map_flags & BPF_F_MMAPABLE) == 0 ||
      info.value_size != value_bytes) {
    throw Error(fmt::format(
        "the map {} is not an mmapable array of {} bytes per value (type {}, flags {:#x}, {} "
        "bytes): "
        "it was made by another version; detach with that version, then attach with this one",
        name, value_bytes, info.type, info.map_flags, info.value_size));
  }
  if (entries != 0 && info.max_entries != entries) {
    throw Error(fmt::format(
        "the map {} has {} entries where the control page says {}: detach, then attach again", name,
        info.max_entries, entries));
  }
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (value_bytes * info.max_entries + page - 1) / page * page;
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* memory = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    fail_errno(errno, fmt::format("mmap {} bytes of the map", bytes), name);
  }
  data_ = static_cast<std::byte*>(memory);
  mapped_bytes_ = bytes;
  entries_ = info.max_entries;
}

MappedBytes::MappedBytes(MappedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      entries_(std::exchange(other.entries_, 0)) {}

MappedBytes& MappedBytes::operator=(MappedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(entries_, other.entries_);
  return *this;
}

MappedBytes::~MappedBytes() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

}  // namespace edgeshed::kernel
