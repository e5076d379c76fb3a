// edgeshed disconnect: tells the daemon that a remote is no player any more.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

int run_disconnect(const daemon::DisconnectRequest& disconnect, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, disconnect);
  return reply.code == kExitOk ? kExitOk : fail(reply.code, reply.error);
}

}  // namespace

void add_disconnect(CLI::App& app, Context& context) {
  auto options = std::make_shared<daemon::DisconnectRequest>();
  CLI::App* command = add_command(app, "disconnect", "Remove a connection",
                                  "  edgeshed disconnect 203.0.113.7:40000 --endpoint game\n");
  command->add_option("remote", options->remote, "ADDR:PORT of the remote")->required();
  command->add_option("--endpoint", options->endpoint, "The endpoint's name")->required();
  command->callback([options, &context] {
    context.run = [options, &context] { return run_disconnect(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
