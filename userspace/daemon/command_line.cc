#include "userspace/daemon/command_line.h"

#include <CLI/CLI.hpp>

namespace edgeshed::daemon {

void add_daemon_options(CLI::App& app, DaemonOptions& options) {
  app.name("edgeshedd");
  app.description("edgeshedd: decides per tick what the packet path may shed");
  app.add_option("--config", options.config, "The configuration, TOML")->required();
  app.add_option("--pin-dir", options.pin_dir, "Folder of the pinned maps")->capture_default_str();
  app.add_option("--socket", options.socket, "The control socket to listen on")
      ->capture_default_str();
  app.add_option("--session-socket", options.session_socket,
                 "The socket for game servers (default: session.sock beside --socket)");
  app.add_option("--audit-log", options.audit_log,
                 "File for what people order, a JSON line each (default: [host] audit_log, else "
                 "the log)");
  app.add_flag("--fifo", options.fifo, "Run the tick thread SCHED_FIFO");
  app.footer(
      "Runs in the foreground and logs to standard error. First: edgeshed attach.\n"
      "SIGTERM and SIGINT stop it and leave everything attached; SIGHUP reads the\n"
      "configuration anew (edgeshed reload says whether it was accepted).\n"
      "Exit codes: 0 stopped, 1 failed, 2 usage or configuration, 3 refused because of\n"
      "            another daemon, 4 no privilege");
}

}  // namespace edgeshed::daemon
