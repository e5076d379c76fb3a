#include "tools/cli/table.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace edgeshed::cli {
namespace {

bool colours_wanted() {
  static const bool wanted = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return wanted;
}

const char* escape_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\033[32m";
    case Tone::kWarn:
      return "\033[33m";
    case Tone::kBad:
      return "\033[31m";
    case Tone::kDim:
      return "\033[2m";
    case Tone::kPlain:
      break;
  }
  return "";
}

bool is_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.-%x") == std::string_view::npos;
}

}  // namespace

std::string toned(std::string_view text, Tone tone) {
  if (tone == Tone::kPlain || !colours_wanted()) return std::string(text);
  return fmt::format("{}{}\033[0m", escape_of(tone), text);
}

Table::Table(std::vector<std::string> heading) : heading_(std::move(heading)) {}

void Table::add(std::vector<std::string> cells, Tone tone) {
  cells.resize(heading_.size());
  rows_.push_back({std::move(cells), tone});
}

void Table::print(std::string_view when_empty) const {
  if (rows_.empty()) {
    fmt::print("{}\n", when_empty);
    return;
  }
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t i = 0; i < heading_.size(); ++i) {
    std::size_t width = heading_[i].size();
    for (const Row& row : rows_) width = std::max(width, row.cells[i].size());
    widths.push_back(width);
    right.push_back(std::all_of(rows_.begin(), rows_.end(),
                                [i](const Row& row) { return is_number(row.cells[i]); }));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += "  ";
      text += right[i] ? fmt::format("{:>{}}", cells[i], widths[i])
                       : fmt::format("{:<{}}", cells[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  fmt::print("{}\n", toned(line(heading_), Tone::kDim));
  for (const Row& row : rows_) fmt::print("{}\n", toned(line(row.cells), row.tone));
}

}  // namespace edgeshed::cli
