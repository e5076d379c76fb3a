// edgeshed reload: the daemon reads its configuration anew.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

void print_names(const char* what, const json::value& names) {
  for (const auto& name : names.as_array()) {
    fmt::print("{} {}\n", what, std::string(name.as_string()));
  }
}

int run_reload(bool as_json, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, daemon::ReloadRequest{});
  if (reply.code != kExitOk) return fail(reply.code, reply.error);
  if (as_json) {
    fmt::print("{}\n", json::serialize(reply.answer));
    return kExitOk;
  }
  print_names("added", reply.answer.at("added"));
  print_names("removed", reply.answer.at("removed"));
  fmt::print("reloaded: in force from plan generation {} on, {} connections removed\n",
             json::serialize(reply.answer.at("generation")),
             json::serialize(reply.answer.at("connections_removed")));
  return kExitOk;
}

}  // namespace

void add_reload(CLI::App& app, Context& context) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = add_command(
      app, "reload", "Apply the daemon's configuration file anew, whole or not at all",
      "  edgeshed check /etc/edgeshed/edgeshed.toml && edgeshed reload\n"
      "Names keep their numbers, and connections their debts. Capacities ([host] ..._max)\n"
      "belong to the attached maps: to raise one, detach and attach.\n");
  command->add_flag("--json", *as_json, "Print JSON");
  command->callback([as_json, &context] {
    context.run = [as_json, &context] { return run_reload(*as_json, context.globals); };
  });
}

}  // namespace edgeshed::cli
