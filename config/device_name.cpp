#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "config/device_guess.h"
#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

constexpr std::string_view kDevices = "cpu, cuda, cudaN or null";
constexpr std::string_view kAtPci = "cuda@";

/// "0000:3b:00.0" or "3b:00.0", in hexadecimal.
std::optional<std::int64_t> parse_pci(std::string_view text) {
  std::int64_t parts[4] = {};
  int count = 0;
  for (std::string_view part : split(text, ':')) {
    if (count == 3) return {};
    const std::size_t dot = part.find('.');
    const auto number = [](std::string_view digits, std::int64_t& value) {
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      return error == std::errc() && end == digits.data() + digits.size() && value >= 0 &&
             digits.size() <= 8;
    };
    if (dot != part.npos && !number(part.substr(dot + 1), parts[3])) return {};
    if (!number(part.substr(0, dot), parts[count++])) return {};
  }
  if (count == 2) {
    parts[2] = parts[1];
    parts[1] = std::exchange(parts[0], 0);
  }
  if (count < 2 || parts[1] > 255 || parts[2] > 31 || parts[3] > 7) return {};
  return parts[0] << 16 | parts[1] << 8 | parts[2] << 3 | parts[3];
}

/// A number without sign or leading zeros, of at most nine digits.
std::optional<int> parse_index(std::string_view digits) {
  if (digits.empty() || digits.size() > 9 || !std::ranges::all_of(digits, is_digit)) return {};
  if (digits.size() > 1 && digits[0] == '0') return {};
  int index = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return index;
}

/// Why `digits`, which begin at byte `at` of the text, are no index of a `kind` ("device", "rank").
Fault find_index_fault(std::string_view digits, std::size_t at, std::string_view kind) {
  std::string shown(digits);
  if (digits.starts_with('-')) return {at, shown, fmt::format("a {} index of at least 0", kind)};
  std::size_t other = digits.find_first_not_of("0123456789");
  if (other != digits.npos) {
    return {at + other, std::string(digits.substr(other)),
            fmt::format("nothing but the digits of a {} index", kind)};
  }
  if (digits.size() > 9) return {at, shown, fmt::format("a {} index of at most 9 digits", kind)};
  return {at, shown, fmt::format("a {} index without leading zeros", kind)};
}

}  // namespace

std::string to_string(const DeviceName& device) {
  std::string rank = device.rank == DeviceName::kNoRank ? "" : fmt::format("rank{}/", device.rank);
  switch (device.kind) {
    case DeviceKind::cpu:
      return fmt::format("{}cpu{}", rank, device.index);
    case DeviceKind::cuda:
      if (device.pci != DeviceName::kNoPci) return rank + "cuda@" + pci_text(device.pci);
      return fmt::format("{}cuda{}", rank, device.index);
    case DeviceKind::null:
      return rank + "null";
  }
  return {};
}

std::string pci_text(std::int64_t pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci >> 16, pci >> 8 & 255, pci >> 3 & 31,
                     pci & 7);
}

std::optional<DeviceName> find_device_name(std::string_view text) {
  text = trim(text);
  DeviceName device;
  if (std::size_t slash = text.find('/'); text.starts_with("rank") && slash != text.npos) {
    auto rank = parse_index(text.substr(4, slash - 4));
    if (!rank) return std::nullopt;
    device.rank = *rank;
    text.remove_prefix(slash + 1);
  }
  if (text == "null") {
    device.kind = DeviceKind::null;
    return device;
  }
  if (text.starts_with(kAtPci)) {
    const auto pci = parse_pci(text.substr(kAtPci.size()));
    if (!pci) return std::nullopt;
    device.kind = DeviceKind::cuda;
    device.pci = *pci;
    return device;
  }
  device.kind = text.starts_with("cuda") ? DeviceKind::cuda : DeviceKind::cpu;
  std::string_view word = device.kind == DeviceKind::cuda ? "cuda" : "cpu";
  if (!text.starts_with(word)) return std::nullopt;
  if (text == word) return device;
  auto index = parse_index(text.substr(word.size()));
  if (!index) return std::nullopt;
  device.index = *index;
  return device;
}

DeviceName parse_device_name(std::string_view text) {
  if (auto device = find_device_name(text)) return *device;
  auto meant = guess_device(text);
  throw ConfigError(fmt::format("[device] got '{}': {}{}", text,
                                describe(find_device_fault(text), text),
                                meant ? fmt::format("; write {}", to_string(*meant)) : ""));
}

std::string describe(const Fault& fault, std::string_view text) {
  int position = position_of(text, fault.at);
  if (fault.read.empty())
    return fmt::format("at position {} expected {}", position, fault.expected);
  return fmt::format("at position {} read '{}', expected {}", position, fault.read, fault.expected);
}

Fault find_device_fault(std::string_view text) {
  std::size_t at = std::min(text.find_first_not_of(kBlanks), text.size());
  std::string_view rest = trim(text);
  std::size_t slash = rest.find('/');
  if (rest.starts_with("rank") && slash != rest.npos) {
    std::string_view rank = rest.substr(4, slash - 4);
    if (rank.empty()) return {at + 4, "/", "a rank index, as in rank0/cuda0"};
    if (!parse_index(rank)) return find_index_fault(rank, at + 4, "rank");
    at += slash + 1;
    rest.remove_prefix(slash + 1);
  }
  if (rest.starts_with(kAtPci)) {
    return {at + kAtPci.size(), std::string(rest.substr(kAtPci.size())),
            "a PCI address such as 0000:3b:00.0"};
  }
  for (std::string_view word : {"cuda", "cpu"}) {
    if (!rest.starts_with(word)) continue;
    return find_index_fault(rest.substr(word.size()), at + word.size(), "device");
  }
  if (rest.starts_with("null")) return {at + 4, std::string(rest.substr(4)), "nothing after null"};
  return {at, std::string(rest), fmt::format("a device: {}", kDevices)};
}

}  // namespace croton
