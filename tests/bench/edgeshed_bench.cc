// Benchmarks of the packet path and of the tick, against their peers and goals. Prints a table and
// writes JSON; attaches nothing and pins nothing. Figures are of PROG_TEST_RUN: relate them to each
// other, never to hardware.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/bench/lateness_rows.h"
#include "tests/bench/packet_rows.h"
#include "tests/bench/report.h"
#include "tests/bench/tick_rows.h"
#include "tests/bench/two_cpu_rows.h"

namespace {

using edgeshed::bench::Row;

std::vector<Row> measure(const edgeshed::bench::RunOptions& options) {
  std::vector<Row> rows = edgeshed::bench::packet_rows(options);
  for (Row& row : edgeshed::bench::two_cpu_rows(options)) rows.push_back(std::move(row));
  for (Row& row : edgeshed::bench::tick_rows(options)) rows.push_back(std::move(row));
  for (Row& row : edgeshed::bench::lateness_rows(options)) rows.push_back(std::move(row));
  return rows;
}

int run(const edgeshed::bench::RunOptions& options, const std::string& json_path) {
  // Fewer interruptions, and caches that others displace less; without the right it works too.
  setpriority(PRIO_PROCESS, 0, -20);
  const std::vector<Row> rows = measure(options);
  edgeshed::bench::print_table(std::cout, rows);
  if (json_path.empty()) return 0;
  std::ofstream json(json_path);
  edgeshed::bench::write_json(json, rows);
  json.close();
  if (json) return 0;
  std::cerr << "edgeshed_bench: cannot write " << json_path << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("EdgeShed's benchmarks. Needs root.");
  edgeshed::bench::RunOptions options;
  std::string json_path;
  app.add_option("--json", json_path, "write the rows to this file too");
  app.add_flag("--quick", options.quick, "1 k and 10 k connections only, few rounds");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, json_path);
  } catch (const std::exception& error) {
    std::cerr << "edgeshed_bench: " << error.what() << "\n";
    return 1;
  }
}
