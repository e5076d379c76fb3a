// edgeshed report: tells the daemon how loaded a shard is, for game servers without a session.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

int run_report(const daemon::ReportRequest& report, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, report);
  return reply.code == kExitOk ? kExitOk : fail(reply.code, reply.error);
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<daemon::ReportRequest>();
  CLI::App* command =
      add_command(app, "report", "Tell the daemon how loaded a shard is",
                  "  edgeshed report --shard arena --tick-p99-ms 14.2\n"
                  "  edgeshed report --shard arena --tick-p99-ms 31 --ring 0.9 --rooms 12\n"
                  "A report is good for a second or so: send one each second, or more often.\n");
  command->add_option("--shard", options->shard, "The shard's name in the configuration")
      ->required();
  command
      ->add_option("--tick-p99-ms", options->tick_p99_ms,
                   "p99 of the tick over the last second, milliseconds")
      ->required();
  command->add_option("--running-tick-age-ms", options->running_tick_age_ms,
                      "Age of the tick that runs now, milliseconds");
  command->add_option("--ring", options->ring, "Occupancy of its outbound ring, 0 to 1");
  command->add_option("--rooms", options->rooms, "Rooms that it runs");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_report(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
