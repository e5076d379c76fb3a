// The CPU work of a message: real work over memory, not sleep, of an amount that is set once by a
// calibration. So it takes longer when the machine is slower, as a game's would.
#ifndef EDGESHED_TOOLS_DEMO_GAME_WORK_H_
#define EDGESHED_TOOLS_DEMO_GAME_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace edgeshed::demo {

class Work {
 public:
  // Measures how much of it fits into a microsecond: about 50 ms.
  Work();

  // 180 to 280 us, 230 on average; which of it is decided by `seed`.
  void run(std::uint64_t seed);

  static constexpr double kMeanUs = 230;

 private:
  void spin(std::size_t steps);

  std::vector<std::uint32_t> memory_;
  std::uint32_t state_ = 1;
  double steps_per_us_ = 0;
};

}  // namespace edgeshed::demo

#endif  // EDGESHED_TOOLS_DEMO_GAME_WORK_H_
