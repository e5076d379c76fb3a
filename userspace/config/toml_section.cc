// Typed access to a TOML table. Every failure leaves through fail_at.
#include "userspace/config/toml_section.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "userspace/core/error_type.h"

namespace edgeshed::config {
namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string kind_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

}  // namespace

void fail_at(const std::string& path, const toml::source_region& where,
             const std::string& message) {
  std::string line = message;
  // Messages quote the file, and a string of it may hold line breaks and escapes.
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  throw Error(path + ":" + std::to_string(where.begin.line) + ":" +
                  std::to_string(where.begin.column) + ": " + line,
              kExitUsage);
}

std::string list_text(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

Section::Section(const std::string& path, const toml::table& table, std::string label,
                 std::initializer_list<const char*> allowed)
    : path_(path), table_(table), label_(std::move(label)) {
  if (allowed.size() == 0) return;
  // A table iterates in the order of its keys; the first one in the file is reported.
  const toml::key* unknown = nullptr;
  for (const auto& [key, node] : table) {
    const auto is_key = [&](const char* name) { return key.str() == name; };
    if (std::any_of(allowed.begin(), allowed.end(), is_key)) continue;
    if (unknown == nullptr || key.source().begin < unknown->source().begin) unknown = &key;
  }
  if (unknown == nullptr) return;
  fail_at(path, unknown->source(),
          label_ + ": unknown key \"" + std::string(unknown->str()) + "\"; allowed: " +
              list_text(std::vector<std::string>(allowed.begin(), allowed.end())) +
              "; correct its name or remove it");
}

void Section::fail(std::string_view key, const std::string& message) const {
  const toml::node* node = table_.get(key);
  fail_at(path_, node != nullptr ? node->source() : table_.source(),
          label_ + ": " + std::string(key) + ": " + message);
}

void Section::fail(const std::string& message) const {
  fail_at(path_, table_.source(), label_ + ": " + message);
}

void Section::require(std::string_view key, std::string_view purpose) const {
  if (has(key)) return;
  fail("\"" + std::string(key) + "\" is missing; add it: " + std::string(purpose));
}

template <typename T>
T Section::value(std::string_view key, const char* kind) const {
  const toml::node& node = *table_.get(key);
  // Only an integer may stand for a number; nothing else is converted.
  const bool right_type = node.is<T>() || (std::is_same_v<T, double> && node.is_integer());
  if (!right_type) fail(key, "is " + kind_text(node) + "; allowed: " + kind);
  return *node.value<T>();
}

int64_t Section::integer(std::string_view key, int64_t fallback, int64_t low, int64_t high) const {
  if (!has(key)) return fallback;
  const auto result = value<int64_t>(key, "an integer");
  if (result >= low && result <= high) return result;
  fail(key, std::to_string(result) + " is out of range; allowed: " + std::to_string(low) + " to " +
                std::to_string(high));
}

double Section::number(std::string_view key, double fallback, double low, double high) const {
  if (!has(key)) return fallback;
  const auto result = value<double>(key, "a number");
  if (std::isfinite(result) && result >= low && result <= high) return result;
  fail(key, number_text(result) + " is out of range; allowed: " + number_text(low) + " to " +
                number_text(high));
}

bool Section::boolean(std::string_view key, bool fallback) const {
  return has(key) ? value<bool>(key, "true or false") : fallback;
}

std::string Section::text(std::string_view key, std::string_view fallback) const {
  return has(key) ? value<std::string>(key, "a string") : std::string(fallback);
}

std::vector<std::string> Section::texts(std::string_view key) const {
  std::vector<std::string> result;
  if (!has(key)) return result;
  const toml::array* array = table_.get(key)->as_array();
  if (array == nullptr) {
    fail(key, "is " + kind_text(*table_.get(key)) + "; allowed: an array of strings");
  }
  for (const toml::node& node : *array) {
    const auto item = node.value_exact<std::string>();
    if (!item) {
      fail_at(path_, node.source(),
              label_ + ": " + std::string(key) + ": holds " + kind_text(node) +
                  "; allowed: an array of strings");
    }
    result.push_back(*item);
  }
  return result;
}

size_t Section::choice_of_many(std::string_view key, std::span<const std::string> names) const {
  const std::string name = text(key, "");
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    fail(key, "\"" + name + "\" is unknown; allowed: " + list_text(names));
  }
  return static_cast<size_t>(found - names.begin());
}

uint8_t Section::choice(std::string_view key, uint8_t fallback,
                        std::span<const std::string> names) const {
  return has(key) ? static_cast<uint8_t>(choice_of_many(key, names)) : fallback;
}

const toml::table* Section::child(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) fail(key, "is " + kind_text(*node) + "; allowed: a table { ... }");
  return node->as_table();
}

std::vector<const toml::table*> Section::children(std::string_view key) const {
  std::vector<const toml::table*> result;
  const toml::node* node = table_.get(key);
  if (node == nullptr) return result;
  if (!node->is_array()) fail(key, "is " + kind_text(*node) + "; allowed: an array of tables");
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_table()) {
      fail_at(path_, item.source(),
              label_ + ": " + std::string(key) + ": holds " + kind_text(item) +
                  "; allowed: an array of tables");
    }
    result.push_back(item.as_table());
  }
  return result;
}

}  // namespace edgeshed::config
