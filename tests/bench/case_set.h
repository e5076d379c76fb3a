// Packet cases measured in turns: every round runs every case once, so that what else the machine
// does hits all alike. Must not know what a case means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "maps/reasons.h"
#include "tests/bench/scenarios.h"
#include "tests/bench/world.h"

namespace edgeshed::bench {

struct Case {
  std::string name;
  int program_fd = -1;
  test::Bytes frame;
  std::uint32_t verdict = 0;  ///< enum xdp_action that every packet gets
  World* world = nullptr;     ///< null: a program without a plan
  Scenario scenario{};
  std::optional<es_reason> reason;  ///< under which the world counts every packet
};

/// What `bench_bare` costs per packet on the 2-core virtual machine where kBareEndToEndNs was
/// measured, when it is quiet, ns. A host that is shared runs at half that speed for seconds: every
/// sample is taken together with one of bench_bare, and is told in ns of the quiet machine by the
/// ratio of both.
inline constexpr double kReferenceNs = 5.7;

/// A cost by two figures: the median of the rounds, and the lower quartile, which other load
/// disturbs less. (Not the minimum: a sample is the difference of two runs, and may be too low.)
struct Cost {
  double median = 0;
  double quartile = 0;
};

Cost cost_of(std::vector<double> samples);

class CaseSet {
 public:
  /// `reference_fd` is bench_bare.
  explicit CaseSet(int reference_fd) : reference_fd_(reference_fd) {}

  /// Returns the number of the case.
  std::size_t add(Case added);

  /// Runs every case once and compares verdict and reason with what it should be: figures of a
  /// wrong decision are worth nothing. Throws std::runtime_error.
  void check();
  /// One more sample of every case, of `packets` each; the order changes from round to round.
  void run_round(unsigned round, std::uint32_t packets);

  /// Cost of bench_bare as it was, ns.
  Cost reference() const;
  /// Cost of a case beyond bench_bare, reference ns.
  Cost net(std::size_t number) const;

 private:
  int reference_fd_;
  std::vector<Case> cases_;
  std::vector<std::vector<double>> samples_;     ///< by case and round, ns
  std::vector<std::vector<double>> references_;  ///< bench_bare beside each, ns
};

}  // namespace edgeshed::bench
