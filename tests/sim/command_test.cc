// edgeshed sim as people run it: what it refuses, and what it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace edgeshed {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code = -1;
  std::string text;  ///< of both streams
};

Outcome sim(const std::string& arguments, const std::string& before = "") {
  const std::string command = before + " '" + EDGESHED_CLI + "' sim " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) {
    outcome.text.append(part.data(), size);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class SimCommand : public testing::Test {
 protected:
  SimCommand() {
    std::string name = (std::filesystem::temp_directory_path() / "edgeshed_sim.XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~SimCommand() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) count += entry.exists();
    return count;
  }
  static std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(name).rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
};

void expect_usage(const Outcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr(part));
}

TEST_F(SimCommand, WrongUseIsToldBeforeAnythingRuns) {
  expect_usage(sim(""), "--scenario NAME");
  expect_usage(sim("--scenario nope"), "there is no such scenario");
  expect_usage(sim("--scenario step3"), "the nearest is step-3; allowed: constant-0.5, ");
  expect_usage(sim("--scenario step-3 --all"), "--all");
  expect_usage(sim("--scenario step-3 --seeds 0"), "1 to 1000");
  expect_usage(sim("--scenario step-3 --seeds 1001"), "1 to 1000");
  expect_usage(sim("--scenario step-3 --policy red"), "edgeshed,none,codel,dagor");
}

TEST_F(SimCommand, APathThatCannotBeWrittenIsToldBeforeAnythingRuns) {
  const std::string run = "--all --seeds 1000 ";  // would take minutes
  expect_usage(sim(run + "--json " + path("none/a.json")), "cannot be written");
  expect_usage(sim(run + "--json " + folder_.string()), "it is a folder");
  expect_usage(sim(run + "--json /dev/null"), "it is no plain file");
  expect_usage(sim("--scenario scale --plot " + path("none/a.svg")), "cannot be written");
  EXPECT_EQ(files(), 0u);
}

TEST_F(SimCommand, APlotIsOfOneScenarioAndOfAKindThatThereIs) {
  expect_usage(sim("--all --plot " + path("a.svg")), "exactly one --scenario");
  expect_usage(sim("--scenario step-3 --scenario flood --plot " + path("a.svg")),
               "exactly one --scenario");
  expect_usage(sim("--scenario step-3 --plot " + path("a.pdf")), ".svg or .png");
  expect_usage(sim("--scenario step-3 --plot " + path("a.svg"), "PATH=/nowhere"),
               "apt-get install gnuplot-nox");
  EXPECT_EQ(files(), 0u);
}

TEST_F(SimCommand, ListNamesTheScenarios) {
  const Outcome list = sim("--list");
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.text, HasSubstr("step-3 "));
  EXPECT_THAT(list.text, HasSubstr("three times the load for 10 s"));
}

TEST_F(SimCommand, TheExitCodeIsWhatTheReportSays) {
  const Outcome run = sim("--scenario constant-0.5 --seeds 2 --json " + path("a.json"));
  ASSERT_THAT(run.code, testing::AnyOf(0, 1)) << run.text;
  EXPECT_THAT(run.text, HasSubstr("targets met"));
  const auto report = boost::json::parse(read(path("a.json")));
  EXPECT_EQ(report.at("passed").as_bool(), run.code == 0);
  EXPECT_EQ(report.at("runs").as_array().size(), 2u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(SimCommand, OtherPoliciesAreOnlyCompared) {
  const Outcome run = sim("--scenario slow-2s-naive --policy none --seeds 1");
  EXPECT_EQ(run.code, 0) << run.text;
  EXPECT_THAT(run.text, HasSubstr("No targets"));
}

TEST_F(SimCommand, APlotIsWrittenWhole) {
  if (std::system("command -v gnuplot > /dev/null") != 0) {
    GTEST_SKIP() << "gnuplot is not installed: apt-get install gnuplot-nox";
  }
  const Outcome run = sim("--scenario slow-2s --seeds 1 --plot " + path("a.svg"));
  ASSERT_THAT(run.code, testing::AnyOf(0, 1)) << run.text;
  const std::string picture = read(path("a.svg"));
  EXPECT_THAT(picture, HasSubstr("The server takes three times as long for 2 s"));
  EXPECT_THAT(picture, HasSubstr("</svg>"));
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace edgeshed
