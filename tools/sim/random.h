// Random numbers that are the same on every machine: the standard's engines are, its distributions
// are not.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace edgeshed::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * unit(); }
  /// 0 to count - 1.
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(unit() * count); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace edgeshed::sim
