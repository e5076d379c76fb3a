#include "userspace/daemon/allow_list.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "userspace/core/time_units.h"

namespace edgeshed::daemon {
namespace json = boost::json;

AllowList::AllowList(std::string path) : path_(std::move(path)) { load(); }

bool AllowList::set(const core::Address& address, std::uint64_t until_ns, std::uint64_t now_ns) {
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Allowed& one) { return one.address == address; });
  const bool was_there = known != entries_.end();
  if (until_ns <= now_ns) {
    if (was_there) entries_.erase(known);
  } else if (was_there) {
    known->until_ns = until_ns;
  } else {
    entries_.push_back({address, until_ns});
  }
  save();
  return was_there;
}

bool AllowList::expire(std::uint64_t now_ns) {
  const auto gone =
      std::erase_if(entries_, [&](const auto& one) { return one.until_ns <= now_ns; });
  if (gone != 0) save();
  return gone != 0;
}

bool AllowList::allows(const es_key& key) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Allowed& one) {
    return one.address.hi == key.addr_hi && one.address.lo == key.addr_lo;
  });
}

json::array AllowList::to_json(std::uint64_t now_ns) const {
  json::array list;
  for (const Allowed& one : entries_) {
    const std::uint64_t left_ns = one.until_ns - std::min(one.until_ns, now_ns);
    list.push_back(json::object{{"address", core::address_text(one.address)},
                                {"seconds_left", left_ns / core::kNsPerS}});
  }
  return list;
}

void AllowList::load() {
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  std::ifstream file(path_);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  try {
    const json::value list = json::parse(text);
    for (const json::value& value : list.as_array()) {
      const json::object& one = value.as_object();
      Allowed entry;
      entry.until_ns = one.at("until_monotonic_ns").to_number<std::uint64_t>();
      if (core::parse_address(std::string(one.at("address").as_string()), entry.address)) {
        entries_.push_back(entry);
      }
    }
  } catch (const std::exception& error) {
    entries_.clear();
    spdlog::warn("{}: not understood ({}); nobody is allowed by it", path_, error.what());
  }
}

void AllowList::save() const {
  if (path_.empty()) return;
  json::array list;
  for (const Allowed& one : entries_) {
    list.push_back(json::object{{"address", core::address_text(one.address)},
                                {"until_monotonic_ns", one.until_ns}});
  }
  // Whole or not at all: a reader never sees half a list.
  const std::string fresh = path_ + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  file << json::serialize(list) << '\n';
  file.close();
  if (!file || std::rename(fresh.c_str(), path_.c_str()) != 0) {
    spdlog::warn("{}: could not be written; a restart will forget who is allowed", path_);
  }
}

}  // namespace edgeshed::daemon
