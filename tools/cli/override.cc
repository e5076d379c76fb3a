// edgeshed override: holds a shard at a rung by hand, for a stated time.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

int run_override(const daemon::OverrideRequest& override, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, override);
  return reply.code == kExitOk ? kExitOk : fail(reply.code, reply.error);
}

}  // namespace

void add_override(CLI::App& app, Context& context) {
  auto options = std::make_shared<daemon::OverrideRequest>();
  CLI::App* command =
      add_command(app, "override", "Hold a shard at a rung; it expires by itself",
                  "  edgeshed override --shard arena --rung 2 --for-s 30\n"
                  "  edgeshed override --shard arena --rung 0 --for-s 0   # ends\n");
  command->add_option("--shard", options->shard, "The shard's name")->required();
  command->add_option("--rung", options->rung, "0 to 5")->required();
  command->add_option("--for-s", options->for_s, "Seconds, up to 86400; 0 ends an override")
      ->required();
  command->callback([options, &context] {
    context.run = [options, &context] { return run_override(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
