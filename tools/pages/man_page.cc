#include "tools/pages/man_page.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

namespace edgeshed::pages {
namespace {

/// Text for troff. A hyphen is written as the character of the keyboard, so that what is copied
/// from a page can be typed; a dot or a quote at the beginning of a line would be a request.
std::string troff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char letter : text) {
    if (line_begins && (letter == '.' || letter == '\'')) out += "\\&";
    line_begins = letter == '\n';
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& letter : text) {
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

/// "sheds packets", of "EdgeShed: sheds packets": the line that apropos shows names the page
/// itself.
std::string summary(const Command& command) {
  const auto colon = command.description.find(": ");
  std::string text =
      colon == std::string::npos ? command.description : command.description.substr(colon + 2);
  if (!text.empty() && text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string synopsis(const Command& command, const std::string& words) {
  std::string text = fmt::format(".B {}\n[OPTIONS]", troff(words));
  for (const Option& positional : command.positionals) {
    const std::string name = positional.label.substr(0, positional.label.find(' '));
    text += positional.required ? " " + troff(name) : " [" + troff(name) + "]";
  }
  if (!command.subcommands.empty()) text += " COMMAND";
  return text + "\n";
}

std::string option_list(const char* title, const std::vector<Option>& options) {
  if (options.empty()) return {};
  std::string text = fmt::format(".SH {}\n", title);
  for (const Option& option : options) {
    text += fmt::format(".TP\n.B {}\n{}\n", troff(option.label), troff(option.description));
  }
  return text;
}

std::string command_list(const Command& command, const std::string& words) {
  if (command.subcommands.empty()) return {};
  std::string text = ".SH COMMANDS\n";
  for (const Command& sub : command.subcommands) {
    text += fmt::format(".TP\n.B {}\n{}: see\n.BR {}\\-{} (1)\n", troff(sub.name),
                        troff(sub.description), troff(words), troff(sub.name));
  }
  return text;
}

/// What --help says below the options, line by line as it stands there.
std::string footer(const Command& command) {
  constexpr std::string_view kExamples = "Examples:\n";
  std::string_view text = command.footer;
  const bool examples = text.starts_with(kExamples);
  if (examples) text.remove_prefix(kExamples.size());
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return {};
  return fmt::format(".SH {}\n.nf\n{}\n.fi\n", examples ? "EXAMPLES" : "NOTES", troff(text));
}

std::string see_also(const std::vector<std::string>& pages) {
  std::string text;
  for (const std::string& page : pages) {
    const auto open = page.find('(');
    text += fmt::format("{}.BR {} {}", text.empty() ? "" : " ,\n", troff(page.substr(0, open)),
                        page.substr(open));
  }
  return text.empty() ? text : ".SH SEE ALSO\n" + text + "\n";
}

}  // namespace

std::string man_page(const ManPage& page, const Command& command, const std::string& words) {
  return fmt::format(
      ".TH {} {} \"\" \"EdgeShed {}\" \"EdgeShed\"\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}.SH DESCRIPTION\n{}.\n{}{}{}{}{}",
      upper(troff(page.name)), page.section, page.version, troff(page.name),
      troff(summary(command)), synopsis(command, words), troff(command.description),
      command_list(command, words), option_list("ARGUMENTS", command.positionals),
      option_list("OPTIONS", command.options), footer(command), see_also(page.see_also));
}

}  // namespace edgeshed::pages
