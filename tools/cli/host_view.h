// The pinned maps, read-only, with the names that the daemon has for their numbers: what status and
// dump share.
#ifndef EDGESHED_TOOLS_CLI_HOST_VIEW_H_
#define EDGESHED_TOOLS_CLI_HOST_VIEW_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/cli/cli.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::cli {

/// Names by number. Without a daemon a name is "#" and the number.
struct Names {
  std::vector<std::string> endpoints;  // index: endpoint number; 0 is the host
  std::vector<std::string> rooms;
  std::vector<std::string> classes;

  [[nodiscard]] static std::string of(const std::vector<std::string>& names, std::size_t number);
};

/// Asks the daemon; stays empty if it does not answer.
[[nodiscard]] Names ask_names(const std::string& socket);

/// Names of a configuration for the numbers of the live plan: rows carry a hash of their name.
[[nodiscard]] Names names_of_config(const core::Model& model, const kernel::MapSet& maps);

class HostView {
 public:
  /// Names are the daemon's; if it does not answer, those of the configuration `config` (empty:
  /// none). Throws Error: not attached, no permission, a configuration that is wrong.
  explicit HostView(const Globals& globals, const std::string& config = "");

  [[nodiscard]] const kernel::MapSet& maps() const { return maps_; }
  [[nodiscard]] const Names& names() const { return names_; }

  /// The plan that packets are decided by, 0: none.
  [[nodiscard]] std::uint32_t generation() const;
  /// Numbers of the live plan's endpoints, ascending.
  [[nodiscard]] std::vector<std::uint8_t> endpoints() const;
  /// The row of an endpoint in the copy that was live a moment ago.
  [[nodiscard]] const es_plan_endpoint& endpoint(std::uint8_t number) const;
  /// The local port of an endpoint, 0: none (it stands behind another one of its port).
  [[nodiscard]] std::uint32_t port_of(std::uint8_t number) const;
  /// True if the plan has expired and tier shedding opens.
  [[nodiscard]] bool expired() const;

  [[nodiscard]] std::string endpoint_name(std::uint8_t number) const;
  [[nodiscard]] std::string room_name(std::uint32_t number) const;
  [[nodiscard]] std::string class_name(std::uint32_t number) const;

 private:
  kernel::MapSet maps_;
  Names names_;
};

/// "shadow" or "enforce", as a plan row says.
[[nodiscard]] const char* mode_of(const es_plan_endpoint& row);
/// "in" or "out".
[[nodiscard]] const char* direction_name(int direction);
/// A lane's name, "demoted" or "unclassified".
[[nodiscard]] std::string row_name(unsigned row);

}  // namespace edgeshed::cli

#endif
