#include "tests/unit/doctor_cases.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "tools/cli/command_tree.h"

namespace edgeshed::doctor {
namespace {

constexpr std::uint64_t kAllCapabilities = ~std::uint64_t{0};

using Words = std::vector<std::string>;

/// As a shell splits it; only the quotes that the doctor writes.
Words words_of(std::string_view line) {
  Words words;
  bool inside = false, any = false;
  std::string word;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    const bool end = i == line.size();
    if (end || (line[i] == ' ' && !inside)) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
      continue;
    }
    any = true;
    if (line[i] == '\'') {
      inside = !inside;
    } else if (line[i] == '\\' && !inside && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += line[i];
    }
  }
  EXPECT_FALSE(inside) << "a quote that does not end";
  return words;
}

/// The commands of a line, which && joins.
std::vector<Words> steps_of(std::string_view line) {
  std::vector<Words> steps(1);
  for (std::string& word : words_of(line)) {
    if (word == "&&") {
      steps.emplace_back();
    } else {
      steps.back().push_back(std::move(word));
    }
  }
  return steps;
}

/// N, FILE, PEER, <dev>, ... or an ellipsis stands for something that the reader would have to
/// know.
bool is_placeholder(const std::string& word) {
  if (word.find("...") != std::string::npos || word.find_first_of("<>{}") != std::string::npos) {
    return true;
  }
  return std::all_of(word.begin(), word.end(),
                     [](unsigned char one) { return std::isupper(one) != 0 || one == '_'; });
}

void expect_parses(const Words& words) {
  cli::Context context;
  CLI::App app;
  cli::add_commands(app, context);
  // CLI11 takes them from the back.
  Words arguments(words.rbegin(), words.rend() - 1);
  EXPECT_NO_THROW(app.parse(std::move(arguments)));
}

/// Without what runs another one elsewhere.
Words inner_of(Words step) {
  const auto drop = [&](std::string_view start) {
    if (!step.empty() && step.front().starts_with(start)) step.erase(step.begin());
  };
  drop("sudo");
  if (step.empty() || step.front() != "nsenter") return step;
  drop("nsenter");
  EXPECT_TRUE(!step.empty() && step.front().starts_with("--net=/")) << "nsenter into nothing";
  drop("--net=");
  return step;
}

void expect_command(const std::string& line) {
  static const std::set<std::string> kPrograms = {"bpftool", "edgeshed", "ethtool", "ip",
                                                  "mkdir",   "mount",    "prlimit", "rm",
                                                  "sh",      "tc",       "sysctl",  "xdp-loader"};
  for (const Words& step : steps_of(line)) {
    const Words words = inner_of(step);
    ASSERT_FALSE(words.empty());
    EXPECT_TRUE(kPrograms.contains(words.front())) << words.front();
    if (words.front() == "edgeshed") expect_parses(words);
    if (words.front() == "sh") continue;  // its own script: a redirection is none of ours
    for (const std::string& word : words) EXPECT_FALSE(is_placeholder(word)) << word;
  }
}

}  // namespace

void expect_remedy(const Finding& finding) {
  SCOPED_TRACE(finding.check + ": " + finding.found + " | " + finding.command + " | " +
               finding.advice);
  EXPECT_FALSE(finding.found.empty());
  EXPECT_EQ((finding.found + finding.command + finding.advice).find('\n'), std::string::npos);
  if (finding.level == Level::kOk) {
    EXPECT_EQ(finding.command + finding.advice, "");
    return;
  }
  EXPECT_NE(finding.command.empty(), finding.advice.empty()) << "exactly one of the two";
  if (!finding.command.empty()) expect_command(finding.command);
}

Case of_device(std::string check, Level level, std::string found, std::string fix,
               std::function<void(DeviceFacts&)> change) {
  return {std::move(check), level, std::move(found), std::move(fix),
          [change = std::move(change)](Facts& facts) { change(facts.devices[0]); }};
}

Facts good_facts() {
  Facts facts;
  HostFacts& host = facts.host;
  host.kernel_release = "6.1.0-28-amd64";
  host.kernel_btf = true;
  host.jit_enable = 1;
  host.jit_harden = 0;
  host.root = true;
  host.capabilities = kAllCapabilities;
  host.unprivileged_bpf_disabled = 2;
  host.bpf = host.freplace = host.io_uring = {true, 0};
  host.io_uring_disabled = 0;
  host.lockdown = "none";
  host.memory.available_bytes = std::uint64_t{4} << 30;
  host.memory.tables_bytes = 100 << 20;
  host.clock.hz = 250;
  host.clock.hz_source = "measured";
  host.clock.source = "tsc";
  host.clock.sources = {"tsc", "hpet", "acpi_pm"};
  host.cpu_pressure = true;
  host.cgroups = CgroupLayout::kUnified;
  host.cpus = 4;
  PinFacts& pins = facts.pins;
  pins.dir = "/sys/fs/bpf/edgeshed";
  pins.parent = pins.mount = "/sys/fs/bpf";
  pins.on_bpffs = pins.readable = pins.attached_known = true;
  pins.write = {true, 0};
  facts.config = "game.toml";
  DeviceFacts card;
  card.name = "eth0";
  card.exists = card.up = card.carrier = card.hardware = true;
  card.driver = "ixgbe";
  card.mtu = 1500;
  card.xdp_features = 0x23;
  card.channels = {4, 4, 0, 64, 4};
  card.lro = {false, false};
  card.gro_hw = {false, true};
  facts.devices = {card};
  return facts;
}

DeviceFacts veth() {
  DeviceFacts device;
  device.name = "veth1";
  device.exists = device.up = device.carrier = true;
  device.kind = device.driver = "veth";
  device.mtu = 1500;
  device.xdp_features = 0x23;
  device.channels.rx = 1;
  device.peer = {true, "veth0", "", 1, true, false};
  return device;
}

Finding finding_of(const Facts& facts, const std::string& check) {
  for (const Finding& one : judge(facts)) {
    if (one.check == check) return one;
  }
  return {};
}

void expect_remedies(Facts facts) {
  for (const Finding& one : judge(facts)) expect_remedy(one);
  facts.host.root = !facts.host.root;
  facts.pins.dir = "/mnt/b p f/b/pins";
  facts.config = "my game.toml";
  facts.config_has_devices = true;
  for (DeviceFacts& device : facts.devices) device.name = "a;reboot'";
  for (const Finding& one : judge(facts)) expect_remedy(one);
  facts.config.clear();
  facts.config_has_devices = false;
  for (const Finding& one : judge(facts)) expect_remedy(one);
}

void expect(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    Facts facts = good_facts();
    facts.host.root = one.level != Level::kSkipped;
    one.change(facts);
    const Finding finding = finding_of(facts, one.check);
    SCOPED_TRACE(one.check + ": " + finding.found);
    EXPECT_EQ(level_name(finding.level), level_name(one.level));
    EXPECT_NE(finding.found.find(one.found), std::string::npos) << one.found;
    if (one.fix.starts_with('~')) {
      EXPECT_NE(finding.advice.find(one.fix.substr(1)), std::string::npos) << finding.advice;
    } else {
      EXPECT_EQ(finding.command, one.fix);
    }
    expect_remedies(facts);
  }
}

}  // namespace edgeshed::doctor
