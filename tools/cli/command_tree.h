#ifndef EDGESHED_TOOLS_CLI_COMMAND_TREE_H_
#define EDGESHED_TOOLS_CLI_COMMAND_TREE_H_

#include "tools/cli/cli.h"

namespace edgeshed::cli {

/// Makes `app` the command line of edgeshed. `context` lives as long as `app`.
void add_commands(CLI::App& app, Context& context);

}  // namespace edgeshed::cli

#endif
