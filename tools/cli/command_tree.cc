// The whole command line as one tree: what edgeshed parses, and what its pages are made from.
#include "tools/cli/command_tree.h"

#include <CLI/CLI.hpp>

#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 refused because of others,\n"
    "            4 no privilege\n"
    "Order of use: edgeshed check FILE, edgeshed doctor, edgeshed attach, then start edgeshedd; "
    "or\n"
    "              edgeshed run.";

}  // namespace

void add_commands(CLI::App& app, Context& context) {
  app.name("edgeshed");
  app.description("EdgeShed: sheds the least valuable game packets at the network card");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.add_option("--pin-dir", context.globals.pin_dir, "Folder of the pinned maps")
      ->capture_default_str();
  app.add_option("--socket", context.globals.socket, "The daemon's control socket")
      ->capture_default_str();

  add_check(app, context);       // is this configuration valid, and what does it take
  add_doctor(app, context);      // what would stand in the way of an attach
  add_run(app, context);         // attach, then the daemon in the foreground
  add_attach(app, context);      // load, pin, attach
  add_confirm(app, context);     // keep what attach --confirm attached
  add_detach(app, context);      // the reverse; leaves nothing
  add_upgrade(app, context);     // this build's programs, in place
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
}

}  // namespace edgeshed::cli
