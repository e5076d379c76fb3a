// Which program ids are ours. Must not attach or load.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "userspace/kernel/fd.h"

namespace edgeshed::kernel {

/// The four programs of bpf/edgeshed.bpf.c.
inline constexpr std::array<const char*, 4> kOurPrograms = {"es_xdp", "es_xdp_srv", "es_tc",
                                                            "es_tc_srv"};

/// True for their names.
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
  /// The pins of another EdgeShed beside ours, if the program with this id works on its maps.
  /// Empty: there is none, so a program with one of our names is ours, even if its pins are gone.
  std::filesystem::path other_pins_of(std::uint32_t id) const;

 private:
  std::map<std::uint32_t, std::string> pinned_;
  std::map<std::uint32_t, std::filesystem::path> others_;  ///< by the id of their control page
};

/// Whether this process may look programs up by id (CAP_SYS_ADMIN), which all that libxdp does with
/// a dispatcher takes.
bool may_look_up_programs();

/// An open program by id. Throws Error: gone, or no permission.
Fd open_program(std::uint32_t id);

/// The id of an open program. Throws Error.
std::uint32_t program_id(int fd);

}  // namespace edgeshed::kernel
