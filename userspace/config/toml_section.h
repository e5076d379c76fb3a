// One table of a TOML file, read key by key, with errors that say where and what is allowed.
// Knows TOML and ranges; must not know what a key means.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace edgeshed::config {

/// Throws edgeshed::Error (kExitUsage): "path:line:column: message".
[[noreturn]] void fail_at(const std::string& path, const toml::source_region& where,
                          const std::string& message);

/// "a, b, c"; "none" when empty.
std::string list_text(std::span<const std::string> names);

/// A view of a table. The table, the path and the label must outlive it.
class Section {
 public:
  /// Fails on a key that is not in `allowed`. `label` is how the user wrote it: "[[room]]".
  /// An empty `allowed` admits any key.
  Section(const std::string& path, const toml::table& table, std::string label,
          std::initializer_list<const char*> allowed);

  bool has(std::string_view key) const { return table_.contains(key); }
  const toml::table& table() const { return table_; }
  const std::string& path() const { return path_; }
  const std::string& label() const { return label_; }

  /// Values in a closed range, or the fallback when the key is missing.
  int64_t integer(std::string_view key, int64_t fallback, int64_t low, int64_t high) const;
  double number(std::string_view key, double fallback, double low, double high) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// Index into `names`, or the fallback when the key is missing.
  uint8_t choice(std::string_view key, uint8_t fallback, std::span<const std::string> names) const;

  /// The same for a required key and lists longer than a byte.
  size_t choice_of_many(std::string_view key, std::span<const std::string> names) const;

  /// Sub-table under a key, or nullptr. Anything else than a table fails.
  const toml::table* child(std::string_view key) const;
  /// Array of tables under a key, empty when it is missing. Anything else fails.
  std::vector<const toml::table*> children(std::string_view key) const;

  /// Fails when the key is missing; the message says what it is for.
  void require(std::string_view key, std::string_view purpose) const;

  /// Fails at the value of a key, or at the table when there is none: "label: key: message".
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  /// Fails at the table.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  template <typename T>
  T value(std::string_view key, const char* kind) const;

  const std::string& path_;
  const toml::table& table_;
  std::string label_;
};

}  // namespace edgeshed::config
