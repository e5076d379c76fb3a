#include "userspace/daemon/ports.h"

#include <cstddef>

#include "userspace/core/plan_rows.h"

namespace edgeshed::daemon {

Ports::Ports(const core::Model& model, std::span<std::uint8_t> live)
    : live_(live), wanted_(std::make_unique<es_ports_page>()) {
  core::fill_ports_page(model, *wanted_);
}

void Ports::clear_changed() {
  for (std::size_t port = 0; port < live_.size(); ++port) {
    if (live_[port] != wanted_->endpoint[port]) {
      __atomic_store_n(&live_[port], std::uint8_t{0}, __ATOMIC_RELAXED);
    }
  }
}

void Ports::publish() {
  for (std::size_t port = 0; port < live_.size(); ++port) {
    if (live_[port] != wanted_->endpoint[port]) {
      __atomic_store_n(&live_[port], wanted_->endpoint[port], __ATOMIC_RELEASE);
    }
  }
}

}  // namespace edgeshed::daemon
