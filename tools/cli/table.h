// Aligned columns for people, and colour where a terminal shows it.
#ifndef EDGESHED_TOOLS_CLI_TABLE_H_
#define EDGESHED_TOOLS_CLI_TABLE_H_

#include <string>
#include <string_view>
#include <vector>

namespace edgeshed::cli {

enum class Tone { kPlain, kGood, kWarn, kBad, kDim };

/// `text` in a colour if standard output is a terminal and NO_COLOR is not set, else unchanged.
[[nodiscard]] std::string toned(std::string_view text, Tone tone);

/// Rows under a heading. Columns whose cells are all numbers are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> heading);

  /// As many cells as the heading has.
  void add(std::vector<std::string> cells, Tone tone = Tone::kPlain);

  /// Writes to standard output; nothing but `when_empty` and a line break if there are no rows.
  void print(std::string_view when_empty) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Tone tone;
  };
  std::vector<std::string> heading_;
  std::vector<Row> rows_;
};

}  // namespace edgeshed::cli

#endif
