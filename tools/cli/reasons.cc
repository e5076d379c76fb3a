// edgeshed reasons: every reason that a packet's verdict can have.
#include "maps/reasons.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "tools/cli/table.h"

namespace edgeshed::cli {
namespace {

struct Reason {
  const char* name;
  const char* verdict;
  const char* outcome;
  const char* text;
};

constexpr Reason kReasons[] = {
#define X(name, verdict, outcome, text) {#name, #verdict, #outcome, text},
    ES_REASON_LIST(X)
#undef X
};

struct ReasonsOptions {
  bool json = false;
};

int run_reasons(const ReasonsOptions& options) {
  if (options.json) {
    boost::json::array list;
    for (const Reason& reason : kReasons) {
      list.push_back(boost::json::object{{"name", reason.name},
                                         {"verdict", reason.verdict},
                                         {"outcome", reason.outcome},
                                         {"text", reason.text}});
    }
    fmt::print("{}\n", boost::json::serialize(list));
    return kExitOk;
  }
  Table table({"REASON", "VERDICT", "LEDGER", "MEANING"});
  for (const Reason& reason : kReasons) {
    table.add({reason.name, reason.verdict, reason.outcome, reason.text});
  }
  table.print("");
  return kExitOk;
}

}  // namespace

void add_reasons(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReasonsOptions>();
  CLI::App* command = add_command(app, "reasons", "List the reasons a verdict can have",
                                  "  edgeshed reasons\n  edgeshed reasons --json\n");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &context] { context.run = [options] { return run_reasons(*options); }; });
}

}  // namespace edgeshed::cli
