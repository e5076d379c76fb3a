// edgeshed drain: a shard takes no new rooms, so that it empties while its matches play on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

struct DrainOptions {
  daemon::DrainRequest request;
  bool off = false;
};

int run_drain(const DrainOptions& options, const Globals& globals) {
  daemon::DrainRequest request = options.request;
  request.on = !options.off;
  const Reply reply = ask_daemon(globals.socket, request);
  if (reply.code != kExitOk) return fail(reply.code, reply.error);
  const bool changed = reply.answer.at("changed").as_bool();
  fmt::print("shard {}: {}{}\n", request.shard,
             request.on ? "takes no new rooms" : "takes rooms again", changed ? "" : ", as before");
  return kExitOk;
}

}  // namespace

void add_drain(CLI::App& app, Context& context) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* command = add_command(
      app, "drain", "Close a shard for new rooms; those that are open go on",
      "  edgeshed drain arena && edgeshed status    # placement: draining, until rooms is 0\n"
      "  edgeshed drain arena --off\n"
      "Its server gets an event with the code shard_draining. It outlasts a reload and the "
      "server,\n"
      "not the daemon.\n");
  command->add_option("shard", options->request.shard, "The shard's name")->required();
  command->add_flag("--off", options->off, "Take rooms again");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_drain(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
