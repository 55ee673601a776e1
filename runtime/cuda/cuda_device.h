#pragma once

#include <memory>
#include <string>
#include <vector>

#include "croton/config.h"
#include "runtime/device.h"

namespace croton {

/// GPU `index` of those that the driver shows. DeviceError, with what was tried, when there is no
/// driver, no such GPU, no NVRTC for it, or it may not be used.
std::shared_ptr<Device> make_cuda_device(int index, const Config& config);

/// "cuda0", "cuda1" ...; empty without a driver.
std::vector<std::string> list_cuda_devices();

/// The index of the GPU at a PCI address such as "0000:3b:00.0"; DeviceError when there is none.
int cuda_device_at(const std::string& pci_id);

/// A line or more for each library of CUDA: found where, in which version, or why not.
std::string cuda_library_report();

}  // namespace croton
