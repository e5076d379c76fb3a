// Which program ids are ours. Must not attach or load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "userspace/kernel/fd.h"

namespace edgeshed::kernel {

/// True for the names of the four programs of bpf/edgeshed.bpf.c.
bool is_our_program(std::string_view name);

/// Names of programs by id: of any program if this process may look programs up by id
/// (CAP_SYS_ADMIN), else of the pinned ones.
class ProgramNames {
 public:
  explicit ProgramNames(const std::filesystem::path& pin_dir);

  /// Empty: unknown, or gone meanwhile.
  std::string name_of(std::uint32_t id) const;
  /// The pinned program with that name; 0: none.
  std::uint32_t pinned_id(std::string_view name) const;

 private:
  std::map<std::uint32_t, std::string> pinned_;
};

/// An open program by id. Throws Error: gone, or no permission.
Fd open_program(std::uint32_t id);

/// The id of an open program. Throws Error.
std::uint32_t program_id(int fd);

}  // namespace edgeshed::kernel
