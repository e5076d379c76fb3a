// A tree of commands as completion scripts. One level of subcommands, whose options the options of
// the program itself may stand among: what the command line of edgeshed is.
#ifndef EDGESHED_TOOLS_PAGES_COMPLETION_H_
#define EDGESHED_TOOLS_PAGES_COMPLETION_H_

#include <string>

#include "tools/pages/command.h"

namespace edgeshed::pages {

std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);

}  // namespace edgeshed::pages

#endif
