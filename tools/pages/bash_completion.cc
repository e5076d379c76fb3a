#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/pages/completion.h"

namespace edgeshed::pages {
namespace {

constexpr char kHead[] =
    R"(# Completion of edgeshed for bash; written by edgeshed_pages from the command line's own tree.
_edgeshed() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command= place=0 words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case $command:${COMP_WORDS[i]} in
)";

constexpr char kAfterValues[] = R"(      *:-*) ;;
      :*) command=${COMP_WORDS[i]} ;;
      *) place=$((place + 1)) ;;
    esac
  done
  case $command:$previous in
)";

// An option whose value can be anything gets what the shell completes by itself: files.
constexpr char kAfterOptions[] = R"(    *)
      case $command:$current in
)";

constexpr char kAfterFlags[] = R"(        *)
          case $command:$place in
)";

constexpr char kTail[] = R"(          esac ;;
      esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _edgeshed edgeshed
)";

constexpr char kInterfaces[] = "$(ls /sys/class/net)";

/// "attach:--config|attach:--dev"
std::string pattern(const std::string& command, const Option& option) {
  std::string text;
  for (const std::string& name : option.names) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : "|", command, name);
  }
  return text;
}

std::string words_of(const Option& option) {
  for (const std::string& name : option.names) {
    if (name == "--dev") return kInterfaces;
  }
  return fmt::format("{}", fmt::join(option.values, " "));
}

/// The program before any subcommand, then each subcommand; options of the program are everybody's.
std::vector<Command> all_of(const Command& program) {
  std::vector<Command> all{program};
  all[0].name.clear();
  for (const Command& sub : program.subcommands) {
    all.push_back(sub);
    for (const Option& option : program.options) {
      if (option.takes_value) all.back().options.push_back(option);
    }
  }
  return all;
}

}  // namespace

std::string bash_completion(const Command& program) {
  const std::vector<Command> all = all_of(program);
  std::string skipped;
  std::string values;
  std::string flags;
  std::string places;
  for (const Command& command : all) {
    std::vector<std::string> names;
    for (const Option& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (!option.takes_value) continue;
      skipped += fmt::format("      {}) i=$((i + 1)) ;;\n", pattern(command.name, option));
      values +=
          fmt::format("    {}) words=\"{}\" ;;\n", pattern(command.name, option), words_of(option));
    }
    flags += fmt::format("        {}:-*) words=\"{}\" ;;\n", command.name, fmt::join(names, " "));
    for (std::size_t i = 0; i < command.positionals.size(); ++i) {
      const std::string words = words_of(command.positionals[i]);
      if (words.empty()) continue;
      places += fmt::format("            {}:{}) words=\"{}\" ;;\n", command.name, i, words);
    }
  }
  std::vector<std::string> subcommands;
  for (const Command& sub : program.subcommands) subcommands.push_back(sub.name);
  places += fmt::format("            :0) words=\"{}\" ;;\n", fmt::join(subcommands, " "));
  return kHead + skipped + kAfterValues + values + kAfterOptions + flags + kAfterFlags + places +
         kTail;
}

}  // namespace edgeshed::pages
