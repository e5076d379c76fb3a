#include "userspace/daemon/interface_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <fmt/format.h>
#include <net/if.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <utility>

#include "userspace/core/error_type.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::daemon {
namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;

namespace {

/// Interfaces come and go in several messages: one look after the last of them.
constexpr auto kSettle = std::chrono::milliseconds(50);
constexpr int kLooksPutOffMax = 600;  // 30 s
/// Between tries to put it on again. Each try that fails half-way makes messages of its own, and
/// may reset the link.
constexpr auto kRetry = std::chrono::seconds(5);

asio::generic::raw_protocol::endpoint interface_messages() {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_TC;
  return {&address, sizeof(address), NETLINK_ROUTE};
}

std::map<std::string, kernel::Attachment> attached_now(const std::string& pin_dir) {
  std::map<std::string, kernel::Attachment> attached;
  for (kernel::Attachment& one : kernel::attachments(pin_dir)) {
    attached.emplace(one.dev, std::move(one));
  }
  return attached;
}

}  // namespace

InterfaceWatch::InterfaceWatch(asio::io_context& context, std::string pin_dir,
                               const es_control& control,
                               std::span<const core::Interface> configured)
    : netlink_(context, asio::generic::raw_protocol(AF_NETLINK, NETLINK_ROUTE)),
      soon_(context),
      later_(context),
      pin_dir_(std::move(pin_dir)),
      control_(control) {
  netlink_.bind(interface_messages());
  use(configured);
  receive();
}

void InterfaceWatch::use(std::span<const core::Interface> configured) {
  for (const core::Interface& interface : configured) {
    kernel::AttachOptions options;
    options.dev = interface.dev;
    options.pin_dir = pin_dir_;
    if (interface.faces_servers) options.faces = kernel::Faces::kServers;
    if (interface.generic) options.mode = kernel::XdpRequest::kGeneric;
    watched_[interface.dev].options = options;
  }
  reconcile();
}

void InterfaceWatch::receive() {
  // What a message says is not read: the kernel is asked instead, so a lost one costs nothing.
  netlink_.async_receive(asio::buffer(buffer_), [this](const error_code& error, std::size_t) {
    if (error == asio::error::operation_aborted || error == asio::error::bad_descriptor) return;
    reconcile_soon();
    receive();
  });
}

void InterfaceWatch::reconcile_soon() {
  if (std::exchange(due_, true)) return;
  soon_.expires_after(kSettle);
  soon_.async_wait([this](const error_code& error) {
    due_ = false;
    if (!error) reconcile();
  });
}

/// What was in the way may go without a message.
void InterfaceWatch::reconcile_later() {
  later_.expires_after(kRetry);
  later_.async_wait([this](const error_code& error) {
    if (!error) reconcile();
  });
}

void InterfaceWatch::reconcile() {
  if (!kernel::pins_exist(pin_dir_)) return;  // detached: nothing is to be put back
  try {
    if (is_being_upgraded()) return reconcile_soon();
    const auto attached = attached_now(pin_dir_);
    adopt_attached(attached);
    for (auto& [dev, watched] : watched_) check(dev, watched, attached);
  } catch (const Error& error) {
    spdlog::warn("interfaces could not be looked at: {}", error.what());
  }
}

/// Between the pins and the devices of `edgeshed upgrade` whose programs those are is not known.
/// One that was killed there is not waited for.
bool InterfaceWatch::is_being_upgraded() {
  const bool unknown = __atomic_load_n(&control_.object_hash, __ATOMIC_RELAXED) == 0;
  if (!unknown) looks_put_off_ = 0;
  return unknown && ++looks_put_off_ <= kLooksPutOffMax;
}

void InterfaceWatch::adopt_attached(const std::map<std::string, kernel::Attachment>& attached) {
  for (const auto& [dev, one] : attached) {
    if (watched_.contains(dev)) continue;
    kernel::AttachOptions options;
    options.dev = dev;
    options.pin_dir = pin_dir_;
    options.faces = one.faces;
    if (one.xdp_generic) options.mode = kernel::XdpRequest::kGeneric;
    watched_[dev].options = options;
  }
}

std::string InterfaceWatch::half_of(const kernel::Attachment& half) {
  return fmt::format("its {} program is gone; edgeshed attach puts it on again",
                     half.tc_program == 0 ? "TC egress" : "XDP");
}

void InterfaceWatch::check(const std::string& dev, Watched& watched,
                           const std::map<std::string, kernel::Attachment>& attached) {
  const int ifindex = static_cast<int>(if_nametoindex(dev.c_str()));
  if (ifindex == 0) {
    watched.next_try = {};
    change(dev, watched, State::kAbsent, "there is no interface of that name");
    return;
  }
  const auto found = attached.find(dev);
  // A move to another network namespace and back keeps the number, and takes the TC half.
  const bool came_back =
      watched.owed ||
      (watched.ifindex != 0 && (watched.ifindex != ifindex || watched.state == State::kAbsent));
  if (found != attached.end() && found->second.both()) {
    watched.ifindex = ifindex;
    watched.half_seen = watched.owed = false;
    change(dev, watched, State::kAttached, "");
  } else if (came_back) {
    put_back(dev, watched, ifindex);
  } else if (found != attached.end()) {
    watched.ifindex = ifindex;
    // An attach and a detach put on and take off one after the other.
    if (!std::exchange(watched.half_seen, true)) return reconcile_soon();
    change(dev, watched, State::kUnprotected, half_of(found->second));
  } else {
    // Taken off on purpose, or never put on: a device of that name that comes later is not ours.
    watched.ifindex = 0;
    change(dev, watched, State::kUnprotected, "not attached; edgeshed attach puts it on");
  }
}

void InterfaceWatch::put_back(const std::string& dev, Watched& watched, int ifindex) {
  const auto now = std::chrono::steady_clock::now();
  if (watched.owed && now < watched.next_try) return;
  watched.owed = true;
  watched.next_try = now + kRetry;
  try {
    kernel::attach(watched.options);
    watched.owed = false;
    watched.ifindex = ifindex;
    spdlog::info("{}: the interface is back; the packet path is on it again", dev);
    change(dev, watched, State::kAttached, "");
  } catch (const Error& error) {
    change(dev, watched, State::kUnprotected, error.what());
    reconcile_later();
  }
}

void InterfaceWatch::change(const std::string& dev, Watched& watched, State state,
                            std::string why) {
  const bool news = watched.state != state || watched.why != why;
  watched.state = state;
  watched.why = std::move(why);
  if (!news || state == State::kAttached) return;
  spdlog::warn("{}: {}: {}", dev, state_name(state), watched.why);
}

const char* InterfaceWatch::state_name(State state) {
  switch (state) {
    case State::kAttached:
      return "attached";
    case State::kAbsent:
      return "absent";
    case State::kUnprotected:
      return "unprotected";
    case State::kUnknown:
      break;
  }
  return "unknown";
}

json::array InterfaceWatch::to_json() const {
  json::array list;
  for (const auto& [dev, watched] : watched_) {
    list.push_back(
        json::object{{"dev", dev}, {"state", state_name(watched.state)}, {"why", watched.why}});
  }
  return list;
}

}  // namespace edgeshed::daemon
