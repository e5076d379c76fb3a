// edgeshed, the command line: the table of its subcommands.
#include <CLI/CLI.hpp>
#include <exception>

#include "tools/cli/cli.h"
#include "tools/cli/commands.h"
#include "userspace/core/error_type.h"

namespace edgeshed::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 refused because of others,\n"
    "            4 no privilege\n"
    "Order of use: edgeshed check FILE, edgeshed attach, then start edgeshedd; or edgeshed run.";

int run(int argc, char** argv) {
  Context context;
  CLI::App app("EdgeShed: sheds the least valuable game packets at the network card", "edgeshed");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.add_option("--pin-dir", context.globals.pin_dir, "Folder of the pinned maps")
      ->capture_default_str();
  app.add_option("--socket", context.globals.socket, "The daemon's control socket")
      ->capture_default_str();

  add_check(app, context);       // is this configuration valid, and what does it take
  add_run(app, context);         // attach, then the daemon in the foreground
  add_attach(app, context);      // load, pin, attach
  add_detach(app, context);      // the reverse; leaves nothing
  add_bypass(app, context);      // pass everything, at once
  add_status(app, context);      // what is shed, why, and what would release it
  add_dump(app, context);        // the maps, also without a daemon
  add_report(app, context);      // a shard's load, for scripts
  add_connect(app, context);     // a remote is a player
  add_disconnect(app, context);  // and no longer
  add_set(app, context);         // a rung by hand, for a while
  add_drain(app, context);       // no new rooms on a shard
  add_allow(app, context);       // an address that is never shed, for a while
  add_place(app, context);       // could a room be placed
  add_reload(app, context);      // the configuration anew
  add_reasons(app, context);     // the list of reasons
  add_codes(app, context);       // and of codes
  add_sim(app, context);         // games under load, in one process

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return context.run();
}

}  // namespace
}  // namespace edgeshed::cli

int main(int argc, char** argv) {
  try {
    return edgeshed::cli::run(argc, argv);
  } catch (const edgeshed::Error& error) {
    return edgeshed::cli::fail(static_cast<edgeshed::ExitCode>(error.exit_code()), error.what());
  } catch (const std::exception& error) {
    return edgeshed::cli::fail(edgeshed::kExitFailure, error.what());
  }
}
