// One BPF_F_MMAPABLE array as a span: loads and stores instead of a syscall per entry. Must not
// know which map it is; what the rows mean stands in maps/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace edgeshed::kernel {

/// What a process may do with the maps. kRead maps the pages read-only: a store is a fault.
enum class Access { kRead, kReadWrite };

/// An mmap of a whole array. Movable only; stays valid after the map's fd is closed.
class MappedBytes {
 public:
  MappedBytes() = default;
  /// Checks by bpf_obj_get_info_by_fd that `fd` is an mmapable array of `entries` values of
  /// `value_bytes` (0 entries: any number), and maps it. `name` is for errors only.
  /// Throws Error: another type or size, or the mmap was refused.
  MappedBytes(int fd, std::string_view name, std::size_t value_bytes, std::size_t entries,
              Access access);
  MappedBytes(MappedBytes&& other) noexcept;
  MappedBytes& operator=(MappedBytes&& other) noexcept;
  ~MappedBytes();

  std::byte* data() const { return data_; }
  std::size_t entries() const { return entries_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t entries_ = 0;
};

/// MappedBytes as values of T.
template <typename T>
class MappedArray {
  // The kernel pads a value to 8 bytes; a T that needs no padding makes the array a plain T[].
  static_assert(sizeof(T) % 8 == 0);

 public:
  MappedArray() = default;
  /// As MappedBytes; `entries` 0 accepts any number.
  MappedArray(int fd, std::string_view name, std::size_t entries, Access access)
      : bytes_(fd, name, sizeof(T), entries, access) {}

  std::span<T> span() const { return {reinterpret_cast<T*>(bytes_.data()), bytes_.entries()}; }

 private:
  MappedBytes bytes_;
};

}  // namespace edgeshed::kernel
