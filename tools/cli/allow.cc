// edgeshed allow: an address that is never shed, for a while.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "tools/cli/duration.h"
#include "tools/cli/table.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

struct AllowOptions {
  std::string address;
  std::string for_text = "1h";
  bool end = false;
  bool json = false;
};

int run_allow(const AllowOptions& options, const Globals& globals) {
  daemon::AllowRequest request;
  request.address = options.address;
  request.for_s = options.end ? 0 : parse_duration_s(options.for_text, "--for");
  const Reply reply = ask_daemon(globals.socket, request);
  if (reply.code != kExitOk) return fail(reply.code, reply.error);
  if (options.json) {
    fmt::print("{}\n", json::serialize(reply.answer));
    return kExitOk;
  }
  Table table({"ALLOWED", "FOR ANOTHER S"});
  for (const auto& one : reply.answer.at("allowed").as_array()) {
    table.add(
        {std::string(one.at("address").as_string()), json::serialize(one.at("seconds_left"))});
  }
  table.print("nobody is allowed by hand");
  return kExitOk;
}

}  // namespace

void add_allow(CLI::App& app, Context& context) {
  auto options = std::make_shared<AllowOptions>();
  CLI::App* command = add_command(
      app, "allow", "Never shed the connections of an address, for a while",
      "  edgeshed allow 203.0.113.7 --for 1h\n  edgeshed allow 203.0.113.7 --end\n"
      "It is about connections: those of the configuration, of sessions and of edgeshed connect,\n"
      "present and to come. It survives a restart of the daemon, not a reboot. While it lasts, "
      "the\n"
      "endpoints of these connections decide every packet by the table.\n");
  command->add_option("address", options->address, "IPv4 or IPv6, without a port")->required();
  CLI::Option* duration =
      command->add_option("--for", options->for_text, "How long: 90s, 15m, 1h, at most 30d")
          ->capture_default_str();
  command->add_flag("--end", options->end, "End it now")->excludes(duration);
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_allow(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
