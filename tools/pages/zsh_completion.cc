#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "tools/pages/completion.h"

namespace edgeshed::pages {
namespace {

/// Text inside of single quotes, with `special` letters behind a backslash.
std::string quoted(std::string_view text, std::string_view special) {
  std::string out;
  for (const char letter : text) {
    if (letter == '\'') {
      out += "'\\''";
      continue;
    }
    if (special.find(letter) != std::string_view::npos) out += '\\';
    out += letter;
  }
  return out;
}

std::string action(const Option& option) {
  if (!option.values.empty()) return fmt::format("({})", fmt::join(option.values, " "));
  for (const std::string& name : option.names) {
    if (name == "--dev") return "_net_interfaces";
  }
  return "_files";
}

/// One argument of _arguments for each name of the option.
std::string specs(const Option& option, const std::string& indent) {
  std::string text;
  for (const std::string& name : option.names) {
    text += fmt::format("{}'{}{}[{}]{}'", indent, name, option.takes_value ? "=" : "",
                        quoted(option.description, "[]\\"),
                        option.takes_value ? ":value:" + action(option) : "");
  }
  return text;
}

std::string subcommand(const Command& command, const Command& program) {
  const std::string indent = " \\\n            ";
  std::string text = fmt::format("        {})\n          _arguments", command.name);
  for (const Option& option : command.options) text += specs(option, indent);
  for (const Option& option : program.options) {
    if (option.takes_value) text += specs(option, indent);
  }
  for (std::size_t i = 0; i < command.positionals.size(); ++i) {
    const Option& positional = command.positionals[i];
    text += fmt::format("{}'{}:{}:{}'", indent, i + 1, quoted(positional.description, ":\\"),
                        action(positional));
  }
  return text + " ;;\n";
}

}  // namespace

std::string zsh_completion(const Command& program) {
  std::string text =
      "#compdef edgeshed\n"
      "# Completion of edgeshed for zsh; written by edgeshed_pages from the command line's own "
      "tree.\n"
      "_edgeshed() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  local -a commands=(\n";
  for (const Command& sub : program.subcommands) {
    text += fmt::format("    '{}:{}'\n", sub.name, quoted(sub.description, "\\"));
  }
  text += "  )\n  _arguments -C";
  for (const Option& option : program.options) text += specs(option, " \\\n    ");
  text +=
      " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n"
      "  case $state in\n"
      "    command) _describe -t commands command commands ;;\n"
      "    argument)\n"
      "      case $line[1] in\n";
  for (const Command& sub : program.subcommands) text += subcommand(sub, program);
  text +=
      "      esac ;;\n"
      "  esac\n"
      "}\n"
      "_edgeshed \"$@\"\n";
  return text;
}

}  // namespace edgeshed::pages
