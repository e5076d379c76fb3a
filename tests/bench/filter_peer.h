// xdp-filter of Debian's package xdp-tools, loaded without attaching, behind the generator.
#pragma once

#include <optional>

#include "tests/bench/world.h"

namespace edgeshed::bench {

class FilterPeer {
 public:
  /// Empty when the package is not installed. Throws std::runtime_error: it does not load.
  static std::optional<FilterPeer> load();

  /// The generator, then xdp-filter with all features, which drops by the destination port.
  int program_fd() const { return bench::program_fd(front_.get(), "bench_filter"); }
  /// The generator, then the same jump to a bare drop.
  int bare_fd() const { return bench::program_fd(front_.get(), "bench_filter_bare"); }

 private:
  FilterPeer() = default;
  BpfObject filter_;
  BpfObject front_;
};

}  // namespace edgeshed::bench
