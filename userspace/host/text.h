// Pieces of the kernel's texts. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace edgeshed::host {

/// `text` up to `end`, which is taken off with it; all that is left if there is none.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

/// A whole word as a number; nothing for anything else, too large ones included.
inline std::optional<std::uint64_t> number_of(std::string_view word, int base = 10) {
  std::uint64_t value = 0;
  const char* const begin = word.empty() ? nullptr : &word.front();
  const char* const end = begin + word.size();
  const auto [stopped, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace edgeshed::host
