// Ranges of the control constants. No defaults here: they stand beside their reasons.
#include "userspace/core/control_config.h"

#include <cmath>

namespace edgeshed::core {

std::string check_control_config(const ControlConfig& config) {
  struct Range {
    const char* name;
    double value;
    double low;
    double high;
    const char* allowed;
  };
  const Range ranges[] = {
      {"exit_ratio", config.exit_ratio, 0.1, 1, "0.1 to 1"},
      {"hold_s", config.hold_s, 0.05, 60, "0.05 to 60"},
      {"next_hold_s", config.next_hold_s, 0.05, 60, "0.05 to 60"},
      {"confirm_s", config.confirm_s, 0, 10, "0 to 10"},
      {"reentry_window_s", config.reentry_window_s, 0, 600, "0 to 600"},
      {"hold_factor_max", config.hold_factor_max, 1, 64, "1 to 64"},
      {"best_effort_ramp_per_s", config.best_effort_ramp_per_s, 0.01, 10, "0.01 to 10"},
      {"standard_ramp_per_s", config.standard_ramp_per_s, 0.01, 10, "0.01 to 10"},
      {"report_timeout_s", config.report_timeout_s, 0.1, 60, "0.1 to 60"},
      {"ce_pressure_low", config.ce_pressure_low, 0, 2, "0 to 2"},
      {"ce_pressure_high", config.ce_pressure_high, 0, 2, "0 to 2"},
  };
  for (const Range& range : ranges) {
    if (std::isfinite(range.value) && range.value >= range.low && range.value <= range.high) {
      continue;
    }
    return std::string(range.name) + " must be " + range.allowed;
  }
  if (config.ce_pressure_high <= config.ce_pressure_low) {
    return "ce_pressure_high must be above ce_pressure_low";
  }
  return "";
}

}  // namespace edgeshed::core
