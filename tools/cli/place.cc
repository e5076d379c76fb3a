// edgeshed place: could this room be placed on its shard now? Asks, changes nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

struct PlaceOptions {
  daemon::PlaceRequest request;
  bool json = false;
};

int run_place(const PlaceOptions& options, const Globals& globals) {
  const Reply reply = ask_daemon(globals.socket, options.request);
  if (reply.code != kExitOk) return fail(reply.code, reply.error);
  const bool admitted = reply.answer.at("admitted").as_bool();
  if (options.json) {
    fmt::print("{}\n", json::serialize(reply.answer));
  } else if (admitted) {
    fmt::print("admitted\n");
  } else {
    fmt::print(
        "refused: {} ({}): {}; {}\n", std::string(reply.answer.at("code").as_string()),
        std::string(reply.answer.at("category").as_string()),
        std::string(reply.answer.at("why").as_string()),
        reply.answer.at("retry_after_ms").to_number<std::uint32_t>() == 0
            ? "do not retry"
            : fmt::format("retry after {} ms", json::serialize(reply.answer.at("retry_after_ms"))));
  }
  return admitted ? kExitOk : kExitRefused;
}

}  // namespace

void add_place(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlaceOptions>();
  CLI::App* command =
      add_command(app, "place", "Could a room be placed on its shard now? Changes nothing",
                  "  edgeshed place --room match-7 --players 16\n"
                  "  edgeshed place --room match-7 --players 16 --json | jq -r .code\n"
                  "Exit code 0: admitted, 3: refused, with the first scope that is full.\n");
  command->add_option("--room", options->request.room, "The room's name")->required();
  command->add_option("--players", options->request.players, "Expected players")
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_place(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
