// What attach and run share: what to attach to, and doing it.
#ifndef EDGESHED_TOOLS_CLI_ATTACH_PLAN_H_
#define EDGESHED_TOOLS_CLI_ATTACH_PLAN_H_

#include <string>

#include "tools/cli/cli.h"

namespace edgeshed::cli {

struct AttachPlan {
  std::string config;
  std::string dev;  // empty: every [[interface]] of the configuration
  std::string faces = "clients";
  bool shadow = false;
  bool enforce = false;
  bool generic = false;
};

/// --config, --dev and what else attach takes.
void add_attach_options(CLI::App& command, AttachPlan& plan);

/// Loads and pins unless that is done, and attaches; says what stands. Throws Error; then nothing
/// that was not there before is left.
void attach_all(const AttachPlan& plan, const Globals& globals);

}  // namespace edgeshed::cli

#endif
