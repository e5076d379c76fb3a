// What attach and run share: what to attach to, and doing it.
#ifndef EDGESHED_TOOLS_CLI_ATTACH_PLAN_H_
#define EDGESHED_TOOLS_CLI_ATTACH_PLAN_H_

#include <string>

#include "tools/cli/cli.h"
#include "userspace/kernel/attach.h"

namespace edgeshed::cli {

struct AttachPlan {
  std::string config;
  std::string dev;  // empty: every [[interface]] of the configuration
  std::string faces = "clients";
  bool shadow = false;
  bool enforce = false;
  bool generic = false;
  bool idle = false;            // nothing may be in force, now or by this
  double confirm_s = 0;         // rolled back after that unless `edgeshed confirm`; 0: never
  bool becomes_daemon = false;  // the process that attaches; a rollback ends it
};

/// --config, --dev and what else attach takes.
void add_attach_options(CLI::App& command, AttachPlan& plan);

/// One line: "eth0: XDP native, TC egress, faces clients; why not better".
std::string describe(const kernel::Attachment& attachment);

/// Loads and pins unless that is done, and attaches; says what stands. What is attached already in
/// the way that is asked for is left alone. Throws Error; then all is as it was before.
void attach_all(const AttachPlan& plan, const Globals& globals);

}  // namespace edgeshed::cli

#endif
