// Remotes that an operator exempts for a while (`edgeshed allow`): never shed, whatever the load.
// Kept in a file beside the socket, so that a restarted daemon still honours it; a reboot ends it.
// Service thread only. Must not touch the tables: connections.h acts on it.
#ifndef EDGESHED_USERSPACE_DAEMON_ALLOW_LIST_H_
#define EDGESHED_USERSPACE_DAEMON_ALLOW_LIST_H_

#include <boost/json/array.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "maps/connection.h"
#include "userspace/core/address.h"

namespace edgeshed::daemon {

struct Allowed {
  core::Address address;
  std::uint64_t until_ns = 0;  // CLOCK_MONOTONIC
};

class AllowList {
 public:
  /// A list by hand: more is a mistake, and each packet of theirs is decided by the table.
  static constexpr std::size_t kAllowedMax = 256;

  /// `path`: the file; empty: none. A file that cannot be read or understood counts as empty, with
  /// a warning in the log: an exemption is a courtesy, never a reason not to start.
  explicit AllowList(std::string path);

  /// Adds an address, or changes its end; until_ns in the past removes it. False: was not there.
  /// The caller has seen to kAllowedMax.
  bool set(const core::Address& address, std::uint64_t until_ns, std::uint64_t now_ns);

  /// Removes what has expired. True: something has.
  bool expire(std::uint64_t now_ns);

  [[nodiscard]] bool allows(const es_key& key) const;
  [[nodiscard]] const std::vector<Allowed>& entries() const { return entries_; }
  /// [{"address":"203.0.113.7","seconds_left":3540}].
  [[nodiscard]] boost::json::array to_json(std::uint64_t now_ns) const;

 private:
  void load();
  void save() const;

  std::string path_;
  std::vector<Allowed> entries_;
};

}  // namespace edgeshed::daemon

#endif
