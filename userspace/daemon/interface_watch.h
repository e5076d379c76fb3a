// The interfaces that carry the packet path: gone, back, moved, made anew. The kernel takes the
// programs off with the interface; when one of its name is back, they are put on again. What
// somebody took off stays off, and status says that the interface is unprotected. Service thread
// only.
#ifndef EDGESHED_USERSPACE_DAEMON_INTERFACE_WATCH_H_
#define EDGESHED_USERSPACE_DAEMON_INTERFACE_WATCH_H_

#include <array>
#include <boost/asio/generic/raw_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/array.hpp>
#include <chrono>
#include <map>
#include <span>
#include <string>

#include "maps/control.h"
#include "userspace/core/model.h"
#include "userspace/kernel/attach.h"

namespace edgeshed::daemon {

class InterfaceWatch {
 public:
  /// `control`: page of the maps that the daemon works on. `configured`: [[interface]] tables; what
  /// is attached already is watched too. Throws boost::system::system_error: no netlink socket.
  InterfaceWatch(boost::asio::io_context& context, std::string pin_dir, const es_control& control,
                 std::span<const core::Interface> configured);

  /// A reload.
  void use(std::span<const core::Interface> configured);

  /// [{"dev":"eth0","state":"attached","why":""}]; state: attached, absent or unprotected.
  [[nodiscard]] boost::json::array to_json() const;

 private:
  enum class State { kUnknown, kAttached, kAbsent, kUnprotected };
  struct Watched {
    kernel::AttachOptions options;
    int ifindex = 0;  // that carried, or carries, the programs; 0: none so far
    State state = State::kUnknown;
    bool half_seen = false;                          // at the last look, too
    bool owed = false;                               // it came back, and could not be put on again
    std::chrono::steady_clock::time_point next_try;  // of what is owed
    std::string why;
  };

  void receive();
  void reconcile_soon();
  void reconcile_later();
  void reconcile();
  bool is_being_upgraded();
  void adopt_attached(const std::map<std::string, kernel::Attachment>& attached);
  void check(const std::string& dev, Watched& watched,
             const std::map<std::string, kernel::Attachment>& attached);
  void put_back(const std::string& dev, Watched& watched, int ifindex);
  /// Why an interface with one of the two programs is unprotected.
  static std::string half_of(const kernel::Attachment& half);
  static void change(const std::string& dev, Watched& watched, State state, std::string why);
  static const char* state_name(State state);

  boost::asio::generic::raw_protocol::socket netlink_;
  boost::asio::steady_timer soon_;
  boost::asio::steady_timer later_;
  bool due_ = false;
  int looks_put_off_ = 0;  // while programs are exchanged
  std::array<char, 16384> buffer_{};
  std::string pin_dir_;
  const es_control& control_;
  std::map<std::string, Watched> watched_;  // by name
};

}  // namespace edgeshed::daemon

#endif
