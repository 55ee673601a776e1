#include "config/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "config/text.h"
#include "croton/error.h"

namespace croton {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::optional<DeviceKind> kind_of(std::string_view text) {
  const std::string word = upper(text);
  if (word == "GPU") return DeviceKind::cuda;
  if (word == "CPU") return DeviceKind::cpu;
  return {};
}

/// Reads the fields of one text.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  DeviceSpec read() {
    for (const std::string_view field : split(text_, '/')) {
      if (!trim(field).empty()) read_field(trim(field));
    }
    const bool here =
        (!job_ || *job_ == "localhost") && replica_.value_or(0) == 0 && task_.value_or(0) == 0;
    if (!here) {
      fail(
          "it names a task of another process, and this one was not started by a launcher of "
          "several",
          "name a device of this process, such as /gpu:0");
    }
    return spec_;
  }

 private:
  void read_field(std::string_view field) {
    const std::vector<std::string_view> words = split(field, ':');
    const std::string_view name = words[0];
    const std::size_t count = words.size();
    if (count == 2 && name == "job") {
      once(job_.has_value(), name);
      job_ = words[1];
    } else if (count == 2 && name == "replica") {
      once(replica_.has_value(), name);
      replica_ = number(words[1], name);
    } else if (count == 2 && name == "task") {
      once(task_.has_value(), name);
      task_ = number(words[1], name);
    } else if (count == 3 && name == "device") {
      read_device(words[1], words[2]);
    } else if (count <= 2 && kind_of(name)) {
      read_device(name, count == 2 ? words[1] : "*");
    } else {
      fail(fmt::format("unknown field '{}'", field),
           "fields are gpu:N, cpu:N, device:GPU:N, job:NAME, replica:N and task:N");
    }
  }

  void read_device(std::string_view kind, std::string_view index) {
    once(device_, "device");
    device_ = true;
    if (kind != "*") {
      spec_.kind = kind_of(kind);
      if (!spec_.kind)
        fail(fmt::format("unknown kind of device '{}'", kind), "there are CPU and GPU");
    }
    if (index == "*") return;
    spec_.index = number(index, "device");
    if (!spec_.kind) fail("an index without a kind of device", "write /gpu:N or /cpu:N");
  }

  int number(std::string_view digits, std::string_view field) const {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!whole || digits[0] == '-') {
      fail(fmt::format("the index of '{}' is '{}'", field, digits), "it must be a number");
    }
    return value;
  }

  void once(bool known, std::string_view field) const {
    if (known) fail(fmt::format("two fields say the {}", field), "give one");
  }

  [[noreturn]] void fail(const std::string& what, const std::string& fix) const {
    throw ConfigError(fmt::format("[contexts] got '{}': {}; {}", text_, what, fix));
  }

  const std::string_view text_;
  DeviceSpec spec_;
  bool device_ = false;
  std::optional<std::string_view> job_;
  std::optional<int> replica_, task_;
};

}  // namespace

bool is_device_spec(std::string_view text) { return trim(text).starts_with('/'); }

DeviceSpec parse_device_spec(std::string_view text) { return SpecReader(trim(text)).read(); }

DeviceSpec spec_of(const DeviceName& device) {
  DeviceSpec spec;
  if (device.kind == DeviceKind::null) return spec;
  spec.kind = device.kind;
  if (device.pci == DeviceName::kNoPci) spec.index = device.index;
  return spec;
}

DeviceSpec merge_specs(const DeviceSpec& outer, const DeviceSpec& inner) {
  DeviceSpec merged = outer;
  if (inner.kind && inner.kind != outer.kind) merged = {inner.kind, {}};
  if (inner.index) merged.index = inner.index;
  return merged;
}

std::string context_of_spec(const DeviceSpec& spec, const ContextMap& map) {
  const DeviceKind kind = spec.kind.value_or(DeviceKind::cpu);
  const int index = spec.index.value_or(0);
  if (kind == DeviceKind::cpu && index == 0) return "cpu";
  const auto fits = [&](const ContextBinding& binding) {
    const DeviceName& device = binding.device;
    return device.kind == kind && device.rank == DeviceName::kNoRank &&
           (!spec.index || (device.pci == DeviceName::kNoPci && device.index == index));
  };
  const auto bound = std::ranges::find_if(map, fits);
  return bound != map.end() ? bound->name : to_string(DeviceName{.kind = kind, .index = index});
}

}  // namespace croton
