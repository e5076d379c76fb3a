// edgeshed codes: every code that a peer or an operator can be told.
#include "userspace/core/codes.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/table.h"
#include "userspace/core/codes_text.h"

namespace edgeshed::cli {
namespace {

struct CodesOptions {
  bool json = false;
  bool markdown = false;
};

void print_json() {
  boost::json::array list;
  for (const core::CodeInfo& info : core::kCodes) {
    list.push_back(boost::json::object{{"name", info.name},
                                       {"category", info.category},
                                       {"scope", info.scope},
                                       {"retry", info.retry},
                                       {"retry_after_ms", info.retry_after_ms},
                                       {"close_code", info.close_code},
                                       {"hint", core::hint_name(info.hint)},
                                       {"sentence", info.sentence}});
  }
  fmt::print("{}\n", boost::json::serialize(list));
}

void print_table() {
  Table table({"CODE", "CATEGORY", "SCOPE", "RETRY_MS", "CLOSE", "SENTENCE"});
  for (const core::CodeInfo& info : core::kCodes) {
    table.add({info.name, info.category, info.scope, std::to_string(info.retry_after_ms),
               std::to_string(info.close_code), info.sentence});
  }
  table.print("");
}

int run_codes(const CodesOptions& options) {
  if (options.json) {
    print_json();
  } else if (options.markdown) {
    fmt::print("{}", core::codes_markdown());
  } else {
    print_table();
  }
  return kExitOk;
}

}  // namespace

void add_codes(CLI::App& app, Context& context) {
  auto options = std::make_shared<CodesOptions>();
  CLI::App* command =
      add_command(app, "codes", "List the codes that a peer or an operator can be told",
                  "  edgeshed codes\n  edgeshed codes --json\n"
                  "  edgeshed codes --markdown > docs/codes.md\n");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print the page of docs/")->excludes(json);
  command->callback(
      [options, &context] { context.run = [options] { return run_codes(*options); }; });
}

}  // namespace edgeshed::cli
