#include "tidemark/device/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "tidemark/base/edit_distance.h"
#include "tidemark/base/error.h"
#include "tidemark/base/utf8.h"
#include "tidemark/device/embedded.h"
#include "tidemark/device/read_device.h"

namespace tidemark::device {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// Whether each part of `name` between dashes stands somewhere in `known`: "a100-sxm" in "a100-80-sxm".
bool has_words(const std::string& known, std::string_view name) {
  while (true) {
    const std::size_t dash = name.find('-');
    if (known.find(name.substr(0, dash)) == std::string::npos) return false;
    if (dash == std::string_view::npos) return true;
    name.remove_prefix(dash + 1);
  }
}

std::vector<std::string> nearest_names(const std::string& name) {
  constexpr std::size_t kShown = 3;
  std::vector<std::tuple<std::size_t, bool, std::string>> ranked;  // distance, whether an alias, name
  const auto rank = [&](const std::string& known, bool is_alias) {
    const bool contains = name.size() >= 2 && has_words(lower(known), name);
    ranked.emplace_back(contains ? 0 : edit_distance(name, lower(known)), is_alias, known);
  };
  for (const Device& device : built_in_devices()) {
    rank(device.name, false);
    for (const std::string& alias : device.aliases) rank(alias, true);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kShown, ranked.size()); ++i) names.push_back(std::get<2>(ranked[i]));
  return names;
}

}  // namespace

const std::vector<Device>& built_in_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> list;
    for (const EmbeddedFile& file : embedded_devices()) list.push_back(parse_device(file.text, std::string(file.name)));
    std::sort(list.begin(), list.end(), [](const Device& a, const Device& b) { return a.name < b.name; });
    return list;
  }();
  return devices;
}

Device find_device(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json")) return read_device(name_or_path);
  const std::string wanted = lower(name_or_path.substr(0, 200));
  for (const Device& device : built_in_devices()) {
    const bool is_alias = std::any_of(device.aliases.begin(), device.aliases.end(),
                                      [&](const std::string& alias) { return lower(alias) == wanted; });
    if (device.name == wanted || is_alias) return device;
  }
  // A file of one's own may have any name; those of built-in devices stay theirs.
  if (std::error_code error; std::filesystem::is_regular_file(name_or_path, error)) return read_device(name_or_path);
  throw Error({.kind = ErrorKind::kInput,
               .place = "device",
               .problem = "the device is not known",
               .expected = fmt::format("one of {} names, or the path of a device file", built_in_devices().size()),
               .got = quote(name_or_path),
               .remedy = fmt::format("{}; tidemark devices lists all", fmt::join(nearest_names(wanted), ", "))});
}

}  // namespace tidemark::device
