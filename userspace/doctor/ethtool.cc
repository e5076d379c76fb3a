#include "userspace/doctor/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "userspace/kernel/fd.h"

namespace edgeshed::doctor {
namespace {

class Driver {
 public:
  explicit Driver(const std::string& dev) : socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    std::strncpy(request_.ifr_name, dev.c_str(), IFNAMSIZ - 1);
  }

  /// data: one of the structs of linux/ethtool.h, whose first word is the command.
  bool ask(void* data) {
    request_.ifr_data = static_cast<char*>(data);
    return socket_ && ioctl(socket_.get(), SIOCETHTOOL, &request_) == 0;
  }

  std::optional<std::uint32_t> value(std::uint32_t command) {
    ethtool_value answer{};
    answer.cmd = command;
    if (!ask(&answer)) return std::nullopt;
    return answer.data;
  }

 private:
  kernel::Fd socket_;
  ifreq request_{};
};

/// Different queues in the table that RSS looks up; 0: there is none.
std::uint32_t spread_over(Driver& driver) {
  ethtool_rxfh_indir size{};
  size.cmd = ETHTOOL_GRXFHINDIR;
  if (!driver.ask(&size) || size.size == 0 || size.size > 65536) return 0;
  std::vector<std::uint32_t> words(sizeof(size) / sizeof(std::uint32_t) + size.size);
  words[0] = ETHTOOL_GRXFHINDIR;
  words[1] = size.size;
  if (!driver.ask(words.data())) return 0;
  const std::set<std::uint32_t> queues(words.begin() + 2, words.end());
  return static_cast<std::uint32_t>(queues.size());
}

/// Names of all features that the kernel knows, in the order of their bits.
std::vector<std::string> feature_names(Driver& driver) {
  // The sizes of the sets that were asked for follow the struct: here one.
  alignas(ethtool_sset_info) std::array<char, sizeof(ethtool_sset_info) + sizeof(std::uint64_t)>
      answer{};
  ethtool_sset_info sets{};
  sets.cmd = ETHTOOL_GSSET_INFO;
  sets.sset_mask = std::uint64_t{1} << ETH_SS_FEATURES;
  std::memcpy(answer.data(), &sets, sizeof(sets));
  std::uint32_t count = 0;
  if (!driver.ask(answer.data())) return {};
  std::memcpy(&count, &answer[offsetof(ethtool_sset_info, data)], sizeof(count));
  if (count > 4096) return {};
  ethtool_gstrings request{};
  request.cmd = ETHTOOL_GSTRINGS;
  request.string_set = ETH_SS_FEATURES;
  request.len = count;
  std::vector<char> buffer(sizeof(request) + std::size_t{count} * ETH_GSTRING_LEN);
  std::memcpy(buffer.data(), &request, sizeof(request));
  if (!driver.ask(buffer.data())) return {};
  std::vector<std::string> names;
  for (std::size_t at = sizeof(request); at < buffer.size(); at += ETH_GSTRING_LEN) {
    names.emplace_back(&buffer[at], strnlen(&buffer[at], ETH_GSTRING_LEN));
  }
  return names;
}

/// The features of these names; one that the kernel does not know stays empty.
void read_features(
    Driver& driver,
    std::initializer_list<std::pair<std::string_view, std::optional<FeatureFacts>*>> wanted) {
  const std::vector<std::string> names = feature_names(driver);
  if (names.empty()) return;
  const std::size_t blocks = (names.size() + 31) / 32;
  std::vector<std::uint32_t> words(2 + blocks * sizeof(ethtool_get_features_block) /
                                           sizeof(std::uint32_t));
  words[0] = ETHTOOL_GFEATURES;
  words[1] = static_cast<std::uint32_t>(blocks);
  if (!driver.ask(words.data())) return;
  for (const auto& [name, feature] : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) continue;
    const auto bit = static_cast<std::size_t>(found - names.begin());
    ethtool_get_features_block block{};
    std::memcpy(&block, &words[2 + bit / 32 * sizeof(block) / sizeof(words[0])], sizeof(block));
    const std::uint32_t mask = 1u << bit % 32;
    *feature = {(block.active & mask) != 0,
                (block.available & mask) == 0 || (block.never_changed & mask) != 0};
  }
}

std::uint32_t queues_in_sys(const std::string& dev, std::string_view prefix) {
  std::uint32_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/sys/class/net/" + dev + "/queues", error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) ++count;
  }
  return count;
}

}  // namespace

DriverView ask_driver(const std::string& dev) {
  Driver driver(dev);
  DriverView view;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (driver.ask(&info)) view.driver = info.driver;
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (driver.ask(&channels)) {
    view.channels.rx = channels.rx_count + channels.combined_count;
    view.channels.tx = channels.tx_count + channels.combined_count;
    view.channels.rx_max = channels.max_rx;
    view.channels.combined_max = channels.max_combined;
  }
  if (view.channels.rx == 0) view.channels.rx = queues_in_sys(dev, "rx-");
  if (view.channels.tx == 0) view.channels.tx = queues_in_sys(dev, "tx-");
  view.channels.spread_over = spread_over(driver);
  read_features(driver, {{"rx-lro", &view.lro}, {"rx-gro-hw", &view.gro_hw}});
  if (const auto gro = driver.value(ETHTOOL_GGRO)) view.gro = *gro != 0;
  return view;
}

}  // namespace edgeshed::doctor
