#include "tools/sim/plot.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "userspace/core/error_type.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::sim {
namespace {

/// What is sent and handled is a mean over this, what a tick took the longest within it: a tick is
/// two samples, one of which would be empty.
constexpr double kSmoothS = 0.1;
/// A share of messages is a mean over longer: it has two noises.
constexpr double kShareSmoothS = 0.2;

// Of Okabe and Ito, apart for every kind of colour vision, and by brightness.
constexpr const char* kTierColour[ES_TIERS] = {"#D55E00", "#0072B2", "#7CC4EE"};
constexpr const char* kTickColour = "#404040";
constexpr const char* kRungColour = "#CC79A7";
constexpr const char* kTierText[ES_TIERS] = {"critical: must arrive", "standard: commands",
                                             "best-effort: snapshots, voice"};

/// What is longer is written smaller.
constexpr std::size_t kLongTitle = 60;
constexpr const char* kLimit = "dashed: all that the server can do";

/// Panels from the top, as shares of the picture: top and bottom edge of their plots.
struct Panel {
  double top, bottom;
};
constexpr Panel kPanels[] = {{0.858, 0.703}, {0.616, 0.476}, {0.389, 0.279}, {0.192, 0.062}};

/// What gnuplot draws of a sample: tiers are stacked, critical at the bottom.
struct Point {
  double at_s = 0;
  std::array<double, ES_TIERS> offered{}, handled{};
  double keep_standard = 0, keep_best_effort = 0;  // percent
  double tick_ratio = 0;
  int rung = 0;
};

class Series {
 public:
  Series(const Scenario& scenario, Policy policy, std::span<const Sample> samples)
      : scenario_(scenario), policy_(policy), samples_(samples) {}

  Point at(std::size_t index) const {
    const double loop = 1 - scenario_.game.base_share;
    Point point;
    point.at_s = samples_[index].at_s;
    double offered = 0;
    double handled = 0;
    const auto window = around(index, kSmoothS);
    for (std::size_t tier = 0; tier < ES_TIERS; ++tier) {
      const auto mean = [&](const auto& values) { return sum(window, values, tier) / loop; };
      offered += mean(&Sample::offered) / static_cast<double>(window.size());
      handled += mean(&Sample::handled) / static_cast<double>(window.size());
      point.offered[tier] = offered;
      point.handled[tier] = handled;
    }
    for (const Sample& sample : window)
      point.tick_ratio = std::max(point.tick_ratio, sample.tick_ratio);
    point.keep_standard = 100 * kept(index, ES_TIER_standard);
    point.keep_best_effort = 100 * kept(index, ES_TIER_best_effort);
    point.rung = samples_[index].rung;
    return point;
  }

 private:
  using Tiers = std::array<double, ES_TIERS> Sample::*;

  std::span<const Sample> around(std::size_t index, double seconds) const {
    const auto width = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::lround(seconds * scenario_.control_hz)));
    const std::size_t from = index - std::min(index, width / 2);
    return samples_.subspan(from, std::min(width, samples_.size() - from));
  }

  static double sum(std::span<const Sample> window, Tiers values, std::size_t tier) {
    double all = 0;
    for (const Sample& sample : window) all += (sample.*values)[tier];
    return all;
  }

  /// What EdgeShed decided to keep; of the others, who decide nothing of the kind, what came
  /// through.
  double kept(std::size_t index, std::size_t tier) const {
    const Sample& sample = samples_[index];
    if (policy_ == Policy::edgeshed)
      return tier == ES_TIER_standard ? sample.keep_standard : sample.keep_best_effort;
    const auto window = around(index, kShareSmoothS);
    const double offered = sum(window, &Sample::offered, tier);
    if (offered <= 0) return 1;
    return std::min(1.0, sum(window, &Sample::handled, tier) / offered);
  }

  const Scenario& scenario_;
  Policy policy_;
  std::span<const Sample> samples_;
};

/// A string of gnuplot in which nothing is special.
std::string gnuplot_string(std::string_view text) {
  std::string quote = "'";
  for (const char letter : text)
    quote += letter == '\'' ? std::string("''") : std::string(1, letter);
  return quote + "'";
}

std::string data(const Scenario& scenario, Policy policy, std::span<const Sample> samples) {
  const Series series(scenario, policy, samples);
  std::string text = "$run << END\n";
  double tick_ratio = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Point point = series.at(i);
    // Until a long tick has ended there is nothing newer.
    if (point.tick_ratio <= 0) point.tick_ratio = tick_ratio;
    tick_ratio = point.tick_ratio;
    text += fmt::format("{:.4f}", point.at_s);
    for (const double value : point.offered) text += fmt::format(" {:.4f}", value);
    for (const double value : point.handled) text += fmt::format(" {:.4f}", value);
    text += fmt::format(" {:.2f} {:.2f} {:.3f} {}\n", point.keep_standard, point.keep_best_effort,
                        point.tick_ratio, point.rung);
  }
  return text + "END\n";
}

std::string who(Policy policy) {
  switch (policy) {
    case Policy::edgeshed:
      return "shed by EdgeShed";
    case Policy::none:
      return "nobody sheds";
    case Policy::codel:
      return "shed by CoDel at the server's queue";
    case Policy::dagor:
      return "shed by DAGOR at the server's door";
  }
  return "";
}

std::string head(const Scenario& scenario, Policy policy, bool png, const std::string& image) {
  std::string about = scenario.about;
  if (!about.empty()) about[0] = static_cast<char>(std::toupper(about[0]));
  std::string text = fmt::format(
      "set terminal {} size 1000,1100 font '{},13' background '#FFFFFF'\n",
      png ? "pngcairo noenhanced" : "svg noenhanced", png ? "DejaVu Sans" : "sans-serif");
  text += fmt::format("set output {}\n", gnuplot_string(image));
  text += fmt::format("set label 1 {} at screen 0.095,0.972 left font ',{}'\n",
                      gnuplot_string(about), about.size() <= kLongTitle ? 19 : 15);
  text += fmt::format("set label 2 {} at screen 0.095,0.944 left textcolor '#505050'\n",
                      gnuplot_string(fmt::format("Scenario {}, {}; shaded while it happens",
                                                 scenario.name, who(policy))));
  text +=
      "set multiplot\n"
      "set lmargin at screen 0.095\nset rmargin at screen 0.925\n"
      "set border 3 linecolor '#606060'\nset tics nomirror out scale 0.6\n"
      "set grid y linecolor '#E0E0E0' linetype 1 linewidth 0.7\n"
      "set key left Left reverse horizontal maxrows 1 samplen 1.8 width -6.5 font ',12'\n"
      "set style fill solid 1.0 noborder\n";
  text += fmt::format("set xrange [0:{}]\n", scenario.seconds);
  const double to_s = std::min(scenario.event.to_s, scenario.seconds);
  if (scenario.event.from_s < to_s) {
    text += fmt::format(
        "set object 1 rectangle from {0},graph 0 to {1},graph 1 behind fillcolor '#F1EBDD' "
        "fillstyle solid noborder\n",
        scenario.event.from_s, to_s);
  }
  return text;
}

/// The tops of the first panel and the last.
Point highest(const Scenario& scenario, Policy policy, std::span<const Sample> samples) {
  const Series series(scenario, policy, samples);
  Point top;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Point point = series.at(i);
    double& offered = top.offered[ES_TIERS - 1];
    offered = std::max(offered, point.offered[ES_TIERS - 1]);
    top.tick_ratio = std::max(top.tick_ratio, point.tick_ratio);
  }
  return top;
}

/// About five marks on the axis, at round numbers, of which 1 is one if it can be.
double tic_step(double top) {
  for (const double step : {0.5, 1.0, 2.0, 5.0, 10.0}) {
    if (top / step <= 6) return step;
  }
  return std::ceil(top / 50) * 10;
}

/// Where a panel is, what it is called, and what its line at 1 is ("": none).
std::string panel(const Panel& place, std::string_view title, const char* y_label,
                  std::string_view line) {
  std::string text = fmt::format(
      "set tmargin at screen {}\nset bmargin at screen {}\n"
      "set label 3 {} at graph 0,screen {} left font ',15'\n"
      "set ylabel {} offset 0.5,0 font ',11'\nset key at graph 0,screen {} bottom\n",
      place.top, place.bottom, gnuplot_string(title), place.top + 0.040, gnuplot_string(y_label),
      place.top + 0.003);
  if (line.empty()) return text + "unset label 4\nunset arrow 1\n";
  return text + fmt::format(
                    "set label 4 {} at graph 1,screen {} right font ',12' textcolor '#505050'\n"
                    "set arrow 1 from graph 0,first 1 to graph 1,first 1 nohead front "
                    "linecolor 'black' linewidth 1.5 dashtype 2\n",
                    gnuplot_string(line), place.top + 0.040);
}

/// The three tiers from column `first`, the whole stack first so that the others lie on it.
std::string stack(int first) {
  std::string text = "plot ";
  for (int tier = ES_TIERS - 1; tier >= 0; --tier) {
    text +=
        fmt::format("$run using 1:{} with filledcurves y1=0 linecolor '{}' title '{}'{}",
                    first + tier, kTierColour[tier], kTierText[tier], tier > 0 ? ", \\\n" : "\n");
  }
  return text;
}

}  // namespace

void check_plot(const std::string& path) {
  if (!path.ends_with(".svg") && !path.ends_with(".png")) {
    throw Error(fmt::format("--plot {}: the file must end in .svg or .png", path), kExitUsage);
  }
  const char* folders = std::getenv("PATH");
  std::string_view rest = folders == nullptr ? "" : folders;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (access((std::string(rest.substr(0, end)) + "/gnuplot").c_str(), X_OK) == 0) return;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  throw Error("--plot: gnuplot is not installed; apt-get install gnuplot-nox", kExitUsage);
}

std::string plot_script(const Scenario& scenario, Policy policy, std::span<const Sample> series,
                        const std::string& path, const std::string& image) {
  std::string text = data(scenario, policy, series);
  text += head(scenario, policy, path.ends_with(".png"), image);

  const Point top = highest(scenario, policy, series);
  text += "set format x ''\nset yrange [0:1.2<*]\n";
  text += fmt::format("set ytics {}\n", tic_step(top.offered[ES_TIERS - 1]));
  text += panel(kPanels[0], "What players send, repeated attempts included", "times what it can do",
                kLimit);
  text += stack(2);
  text += "unset label 1\nunset label 2\n";
  text += "set ytics 0.5\n";
  text += panel(kPanels[1], "What the server handles in time", "times what it can do", kLimit);
  text += stack(5);

  text += "set yrange [0:105]\nset ytics 25\nset key width 1\n";
  text += panel(
      kPanels[2],
      policy == Policy::edgeshed ? "Share that is let through" : "Share that is handled in time",
      "percent", "");
  text += fmt::format(
      "plot $run using 1:8 with steps linewidth 2.5 linecolor '{}' title 'standard', \\\n"
      "$run using 1:9 with steps linewidth 2.5 linecolor '{}' title 'best-effort'\n",
      kTierColour[ES_TIER_standard], kTierColour[ES_TIER_best_effort]);

  text += "set yrange [0:1.5<*]\nset format x '%g'\nset xlabel 'seconds'\n";
  if (policy == Policy::edgeshed) {
    text += fmt::format(
        "set border 11\nset y2range [0:{}]\nset y2tics 1\nset y2label 'rung' font ',11'\n",
        core::kRungMax + 0.5);
  }
  text += fmt::format("set ytics {}\n", tic_step(top.tick_ratio));
  text += panel(kPanels[3], "How long the server's loop takes", "times its budget",
                "dashed: its budget");
  text += "plot ";
  if (policy == Policy::edgeshed) {
    text += fmt::format(
        "$run using 1:11 axes x1y2 with steps linewidth 2 linecolor '{}' "
        "title 'rung: how much may be shed (right)', \\\n",
        kRungColour);
  }
  text +=
      fmt::format("$run using 1:10 with lines linewidth 1.5 linecolor '{}' title 'longest tick'\n",
                  kTickColour);
  return text + "unset multiplot\nset output\n";
}

void plot(const Scenario& scenario, Policy policy, std::span<const Sample> series,
          const std::string& path, OutputFile& file) {
  const std::string script = plot_script(scenario, policy, series, path, file.begin());
  // A gnuplot that dies is told by its exit status.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  FILE* pipe = popen("gnuplot --default-settings", "w");
  bool whole = pipe != nullptr;
  whole = whole && std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
  whole = pipe != nullptr && pclose(pipe) == 0 && whole;
  std::signal(SIGPIPE, before);
  if (!whole)
    throw Error(fmt::format("{}: not written: gnuplot failed; its message is above", path));
  file.commit();
}

}  // namespace edgeshed::sim
