// The subcommands: each adds itself to the command line, one file per function.
#ifndef EDGESHED_TOOLS_CLI_COMMANDS_H_
#define EDGESHED_TOOLS_CLI_COMMANDS_H_

#include "tools/cli/cli.h"

namespace edgeshed::cli {

// The packet path.
void add_doctor(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_attach(CLI::App& app, Context& context);
void add_confirm(CLI::App& app, Context& context);
void add_detach(CLI::App& app, Context& context);
void add_upgrade(CLI::App& app, Context& context);
void add_bypass(CLI::App& app, Context& context);

// What it does.
void add_status(CLI::App& app, Context& context);
void add_dump(CLI::App& app, Context& context);

// What the daemon is told.
void add_report(CLI::App& app, Context& context);
void add_connect(CLI::App& app, Context& context);
void add_disconnect(CLI::App& app, Context& context);
void add_set(CLI::App& app, Context& context);
void add_drain(CLI::App& app, Context& context);
void add_allow(CLI::App& app, Context& context);
void add_place(CLI::App& app, Context& context);
void add_reload(CLI::App& app, Context& context);

// Without a host.
void add_check(CLI::App& app, Context& context);
void add_reasons(CLI::App& app, Context& context);
void add_codes(CLI::App& app, Context& context);
void add_sim(CLI::App& app, Context& context);

}  // namespace edgeshed::cli

#endif
