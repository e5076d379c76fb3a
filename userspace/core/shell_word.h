// Words of commands that people paste into a shell. Header-only.
#pragma once

#include <string>
#include <string_view>

namespace edgeshed::core {

/// The text as one word of a shell: in quotes if it needs them. Names come from others too: a
/// container names its end of a veth pair as it likes.
inline std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char one : text) {
    if (one == '\'') {
      word += "'\\''";
    } else {
      word += one;
    }
  }
  return word + "'";
}

}  // namespace edgeshed::core
