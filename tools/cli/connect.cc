// edgeshed connect: tells the daemon that a remote is a player of a room.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

int run_connect(const daemon::ConnectRequest& connect, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, connect);
  return reply.code == kExitOk ? kExitOk : fail(reply.code, reply.error);
}

}  // namespace

void add_connect(CLI::App& app, Context& context) {
  auto options = std::make_shared<daemon::ConnectRequest>();
  CLI::App* command =
      add_command(app, "connect", "Register a remote as a connection of a room",
                  "  edgeshed connect 203.0.113.7:40000 --endpoint game\n"
                  "  edgeshed connect '[2001:db8::7]:40000' --endpoint game --room lobby "
                  "--priority 200 --weight 2\n"
                  "Again with other options: changes the connection.\n");
  command->add_option("remote", options->remote, "ADDR:PORT of the remote")->required();
  command->add_option("--endpoint", options->endpoint, "The endpoint's name")->required();
  command->add_option("--room", options->room, "Default: the endpoint's first room");
  command->add_option("--class", options->contract_class, "Contract class; default: the room's");
  command->add_option("--priority", options->priority, "0 to 255, higher is kept longer");
  command->add_option("--weight", options->weight, "Share of the tier, 1 is normal");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_connect(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
