// One run over time as a picture for somebody who has never seen the project; drawn by gnuplot.
#pragma once

#include <span>
#include <string>

#include "tools/sim/figures.h"
#include "tools/sim/output_file.h"
#include "tools/sim/scenario.h"

namespace edgeshed::sim {

/// Throws an Error for a path that does not end in .svg or .png, and where gnuplot is missing: to
/// be called before a simulation begins.
void check_plot(const std::string& path);

/// The program for gnuplot, with its data, that writes `image`; the picture's kind is by the ending
/// of `path`.
std::string plot_script(const Scenario& scenario, Policy policy, std::span<const Sample> series,
                        const std::string& path, const std::string& image);

/// Draws a run into `file`, which has been opened for `path`. Throws an Error if gnuplot fails;
/// then nothing is written.
void plot(const Scenario& scenario, Policy policy, std::span<const Sample> series,
          const std::string& path, OutputFile& file);

}  // namespace edgeshed::sim
