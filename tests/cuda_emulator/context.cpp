// The driver API: contexts and peers.
#include <algorithm>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

Device* find_device(CUdevice device) {
  auto& all = driver().devices;
  const bool known = device >= 0 && static_cast<std::size_t>(device) < all.size();
  return known ? &all[static_cast<std::size_t>(device)] : nullptr;
}

// After a change of peers: who may use the memory of a device.
void update_access(int owner) {
  memory().set_devices(owner, false, nullptr, devices_with_access(owner));
}

}  // namespace

EMULATOR_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  Device* d = find_device(device);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (const int code = injected_failure("context")) return static_cast<CUresult>(code);
  if (!d->primary) {
    d->primary = make_context(device, 0);
    d->primary->primary = true;
  }
  ++d->primary->references;
  *context = d->primary;
  return CUDA_SUCCESS;
}

// The context stays as it is at zero references: a lost one is not made good by giving it back.
EMULATOR_API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  Device* d = find_device(device);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (!d->primary || d->primary->references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--d->primary->references == 0) finish_context(d->primary);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuCtxPushCurrent(CUcontext context) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuCtxPopCurrent(CUcontext* context) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = context_stack().back();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuCtxSetCurrent(CUcontext context) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (context && !driver().alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
  auto& stack = context_stack();
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuCtxSynchronize() {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (const CUresult refused = refuse_while_capturing()) return refused;
  CUcontext context = current_context();
  finish_context(context);
  return context->error;
}

EMULATOR_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  if (!find_device(device) || !find_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer && settings().peers;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  CUcontext context = current_context();
  if (!driver().alive(peer) || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!settings().peers || peer->device == context->device) {
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  }
  if (!context->peers.insert(peer).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  update_access(peer->device);
  return CUDA_SUCCESS;
}
