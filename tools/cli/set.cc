// edgeshed set: holds a shard or a room at a rung by hand, for a stated time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "tools/cli/duration.h"
#include "userspace/core/codes.h"

namespace edgeshed::cli {
namespace {

struct SetOptions {
  std::string kind;
  std::string name;
  std::string what;
  std::string rung;
  std::string for_text;
};

/// The order that the words mean. Throws Error (kExitUsage) that says which word is wrong.
daemon::SetRequest order_of(const SetOptions& options) {
  if (options.kind != "shard" && options.kind != "room") {
    throw Error(fmt::format("\"{}\" cannot be set; allowed: shard, room", options.kind),
                kExitUsage);
  }
  if (options.what != "rung") {
    throw Error(
        fmt::format("\"{}\" cannot be set of a {}; allowed: rung", options.what, options.kind),
        kExitUsage);
  }
  daemon::SetRequest order{options.kind, options.name, {}, 0};
  if (options.rung == "auto") {
    if (options.for_text.empty()) return order;
    throw Error("--for belongs to a rung; rung auto lasts until the next order", kExitUsage);
  }
  if (options.rung.size() != 1 || options.rung < "0" || options.rung > "5") {
    throw Error(fmt::format("rung is \"{}\"; allowed: 0 to 5, or auto", options.rung), kExitUsage);
  }
  if (options.for_text.empty()) {
    throw Error("--for is missing: a rung by hand ends by itself; say when, as in --for 60s",
                kExitUsage);
  }
  order.rung = static_cast<std::uint32_t>(options.rung[0] - '0');
  order.for_s = parse_duration_s(options.for_text, "--for");
  if (order.for_s < daemon::kSetSecondsMin || order.for_s > daemon::kSetSecondsMax) {
    throw Error(fmt::format("--for is {}; allowed: above 0, up to 24h", options.for_text),
                kExitUsage);
  }
  return order;
}

int run_set(const SetOptions& options, const Globals& globals) {
  const daemon::SetRequest order = order_of(options);
  const Reply reply = ask_daemon(globals.socket, order);
  if (reply.code != kExitOk) return fail(reply.code, reply.error);
  if (!order.rung) {
    fmt::print("{} {}: {} decides again\n", order.kind, order.name,
               order.kind == "room" ? "its shard" : "the ladder");
  } else {
    const auto code = core::rung_code(static_cast<std::uint8_t>(*order.rung));
    fmt::print("{} {}: held at rung {} ({}) for {:g} s\n", order.kind, order.name, *order.rung,
               core::code_info(code).name, order.for_s);
  }
  return kExitOk;
}

}  // namespace

void add_set(CLI::App& app, Context& context) {
  auto options = std::make_shared<SetOptions>();
  CLI::App* command = add_command(
      app, "set", "Hold a shard or a room at a rung by hand; it expires by itself",
      "  edgeshed set shard arena rung 2 --for 60s\n"
      "  edgeshed set room match-7 rung 0 --for 15m    # this room sheds nothing\n"
      "  edgeshed set shard arena rung auto            # the ladder decides again, now\n"
      "A rung by hand wins over the ladder, and a room's over its shard's. A shard gives back "
      "what\n"
      "it shed along its ramp, a room at once. It outlasts a reload, not the daemon. Critical is\n"
      "never shed, at no rung.\n");
  command->add_option("kind", options->kind, "shard or room")->required();
  command->add_option("name", options->name, "Its name in the configuration")->required();
  command->add_option("what", options->what, "rung")->required();
  command->add_option("value", options->rung, "0 to 5, or auto: end it")->required();
  command->add_option("--for", options->for_text, "How long: 60s, 15m, 1h, at most 24h");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_set(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
