// A tree of CLI11 as plain values: what pages and completions are made from.
#ifndef EDGESHED_TOOLS_PAGES_COMMAND_H_
#define EDGESHED_TOOLS_PAGES_COMMAND_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace edgeshed::pages {

struct Option {
  std::vector<std::string> names;  // "--config"; empty: positional
  std::string label;               // how --help calls it: "--config TEXT REQUIRED"
  std::string description;
  std::vector<std::string> values;  // all that it may be; empty: anything
  bool takes_value = false;
  bool required = false;
};

struct Command {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<Option> options;
  std::vector<Option> positionals;
  std::vector<Command> subcommands;
};

Command read_command(const CLI::App& app);

}  // namespace edgeshed::pages

#endif
