#include "tools/pages/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace edgeshed::pages {
namespace {

/// The words of --help for an option, which CLI11 keeps to its formatters.
class Labels : public CLI::Formatter {
 public:
  [[nodiscard]] std::string of(const CLI::Option& option) const {
    return make_option_name(&option, option.nonpositional() ? false : option.get_positional()) +
           make_option_opts(&option);
  }
};

/// "TEXT:{clients,servers}": CLI11 tells the allowed values in the name of the type only.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos) return values;
  for (std::size_t at = open + 1; at < close;) {
    const auto end = std::min(type.find(',', at), close);
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

Option read_option(const CLI::Option& option) {
  Option read;
  for (const std::string& name : option.get_snames()) read.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) read.names.push_back("--" + name);
  read.label = Labels().of(option);
  read.description = option.get_description();
  read.values = values_of(option);
  read.takes_value = option.get_items_expected_max() > 0;
  read.required = option.get_required();
  return read;
}

}  // namespace

Command read_command(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.description = app.get_description();
  command.footer = app.get_footer();
  // An empty group is how CLI11 hides.
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); })) {
    Option read = read_option(*option);
    (read.names.empty() ? command.positionals : command.options).push_back(std::move(read));
  }
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    command.subcommands.push_back(read_command(*sub));
  }
  return command;
}

}  // namespace edgeshed::pages
