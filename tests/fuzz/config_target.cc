// Bytes as a configuration. Nothing but an Error of one line that names the file may come out, and
// what is accepted must lead on: the memory that `edgeshed check` prints, and a plan at every rung.
#include <algorithm>
#include <exception>

#include "tests/fuzz/law_invariants.h"
#include "tests/fuzz/target.h"
#include "userspace/config/config.h"
#include "userspace/core/geometry.h"
#include "userspace/core/plan_rows.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::test {
namespace {

using namespace core;

constexpr char kFile[] = "fuzz.toml";
constexpr uint32_t kCpus = 4;

bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; });
}

std::string memory_fault(const Model& model) {
  const es_geometry geometry = derive_geometry(model.host, kCpus, 250);
  if (model.endpoints.size() >= geometry.endpoints) return "more endpoints than rows";
  if (model.rooms.size() > geometry.rooms) return "more rooms than rows";
  if (model.classes.size() > geometry.classes) return "more classes than rows";
  if (model.connections.size() > geometry.connections) return "more connections than records";
  return memory_bytes(geometry) == 0 ? "maps without memory" : "";
}

/// The rows of the model with all shards on one rung.
std::string plan_fault(const Model& model, uint8_t rung) {
  // The rows that are used: the maps may have many more.
  PlanRows rows(static_cast<uint32_t>(model.endpoints.size()) + 1,
                static_cast<uint32_t>(model.rooms.size()),
                static_cast<uint32_t>(model.classes.size()));
  ShardState state;
  state.rung = state.load_rung = rung;
  state.effects = model.law.ladder[rung];
  const std::vector<ShardState> shards(model.shards.size(), state);
  PlanTiming timing;
  timing.tick_hz = model.host.tick_hz;
  timing.cpus = kCpus;
  fill_plan_rows(model, shards, timing, {}, rows);
  timing.now_jiffies = 1000;
  timing.tick = 1;
  fill_plan_rows(model, shards, timing, rows.rooms, rows);
  return rows_fault(model, rows);
}

std::string model_fault(const Model& model) {
  std::string fault = memory_fault(model);
  for (uint8_t rung = 0; rung < kRungs && fault.empty(); ++rung) fault = plan_fault(model, rung);
  es_ports_page ports = {};
  fill_ports_page(model, ports);
  // What the daemon starts with; throws if the checks of the sections have let something through.
  static_cast<void>(ShardLaw(model.law));
  return fault;
}

}  // namespace

const char* const kTargetName = "config";

std::string run_target(std::span<const uint8_t> bytes) {
  const std::string text(bytes.begin(), bytes.end());
  Model model;
  try {
    model = config::parse(text, kFile);
  } catch (const Error& error) {
    const std::string line = error.what();
    if (!is_one_line(line)) return "an error of several lines, or with control characters: " + line;
    if (line.find(kFile) != 0) return "an error that does not name the file: " + line;
    if (error.exit_code() != kExitUsage) return "an error with another exit code: " + line;
    return "";
  } catch (const std::exception& other) {
    return std::string("another exception: ") + other.what();
  }
  try {
    return model_fault(model);
  } catch (const std::exception& thrown) {
    return std::string("accepted, but: ") + thrown.what();
  }
}

}  // namespace edgeshed::test
