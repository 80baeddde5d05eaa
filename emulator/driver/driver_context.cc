// Contexts of the emulated driver: the primary one and those that a program makes.

#include <algorithm>
#include <array>
#include <type_traits>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"

namespace laneshift::emulator {

using device::CuContext;

namespace {

// A thread's stack of contexts, with the lives that they had when they were pushed; {nullptr, 0} is "none".
struct Current {
  CuContext context = nullptr;
  uint64_t life = 0;
};
// A thread's stack of contexts. It has no destructor: static objects of a program free their memory when those of the
// main thread's thread-local ones are gone.
class ContextStack {
 public:
  bool empty() const { return depth_ == 0; }
  const Current& back() const { return items_[depth_ - 1]; }
  Current& back() { return items_[depth_ - 1]; }
  bool full() const { return depth_ == items_.size(); }
  void push_back(Current context) { items_[depth_++] = context; }
  void pop_back() { --depth_; }

 private:
  std::array<Current, 256> items_{};
  size_t depth_ = 0;
};
static_assert(std::is_trivially_destructible_v<ContextStack>);
constinit thread_local ContextStack current;

constexpr size_t kDefaultStack = 1024;  // bytes, of a thread

}  // namespace

void DriverState::OpenContext(CuContext context, unsigned flags) { contexts[context] = {++lives, flags}; }

void DriverState::CloseContext(CuContext context) {
  contexts.erase(context);
  // With the last one goes what they own, and a sticky error: the emulated device keeps one memory for all.
  if (contexts.empty()) Reset();
}

CuContext DriverState::CurrentContext() const {
  if (current.empty()) return nullptr;
  const auto known = contexts.find(current.back().context);
  return known != contexts.end() && known->second.life == current.back().life ? current.back().context : nullptr;
}

namespace driver::body {

using namespace device;  // NOLINT: the driver's own types and codes
namespace {

CuResult Create(CuContext* context, unsigned flags, CuDevice device) {
  DriverCall call;
  if (!call.state.initialised) return kCuErrorNotInitialized;
  if (device != 0) return kCuErrorInvalidDevice;
  if (context == nullptr || current.full()) return kCuErrorInvalidValue;
  // A handle is a number that no other context had.
  *context = reinterpret_cast<CuContext>((uintptr_t{1} << 40) + 16 * (call.state.lives + 1));
  call.state.OpenContext(*context, flags);
  current.push_back({*context, call.state.lives});
  return kCuSuccess;
}

}  // namespace

CuResult DevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  DriverCall call;
  if (!call.state.initialised) return kCuErrorNotInitialized;
  if (device != 0) return kCuErrorInvalidDevice;
  if (call.state.primary_references++ == 0)
    call.state.OpenContext(call.state.PrimaryContext(), call.state.primary_flags);
  return *context = call.state.PrimaryContext(), kCuSuccess;
}
CuResult DevicePrimaryCtxRelease(CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  if (call.state.primary_references == 0) return kCuErrorInvalidContext;
  if (--call.state.primary_references == 0) call.state.CloseContext(call.state.PrimaryContext());
  return kCuSuccess;
}
CuResult DevicePrimaryCtxReleaseV1(CuDevice device) { return DevicePrimaryCtxRelease(device); }
CuResult DevicePrimaryCtxReset(CuDevice device) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  // References stay, as with the real driver; their context is a new one.
  if (const int references = call.state.primary_references; references != 0) {
    call.state.CloseContext(call.state.PrimaryContext());
    call.state.primary_references = references;
    call.state.OpenContext(call.state.PrimaryContext(), call.state.primary_flags);
  }
  return kCuSuccess;
}
CuResult DevicePrimaryCtxSetFlags(CuDevice device, unsigned flags) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  return call.state.primary_flags = flags, kCuSuccess;
}
CuResult DevicePrimaryCtxGetState(CuDevice device, unsigned* flags, int* active) {
  DriverCall call;
  if (device != 0) return kCuErrorInvalidDevice;
  *flags = call.state.primary_flags;
  return *active = call.state.primary_references != 0, kCuSuccess;
}
CuResult CtxCreate(CuContext* context, unsigned flags, CuDevice device) { return Create(context, flags, device); }
CuResult CtxCreateV3(CuContext* context, void*, int affinities, unsigned flags, CuDevice device) {
  return affinities != 0 ? kCuErrorNotSupported : Create(context, flags, device);
}
CuResult CtxCreateV4(CuContext* context, void* params, unsigned flags, CuDevice device) {
  return params != nullptr ? kCuErrorNotSupported : Create(context, flags, device);
}
CuResult CtxDestroy(CuContext context) {
  DriverCall call;
  if (context == call.state.PrimaryContext() || !call.state.contexts.contains(context)) return kCuErrorInvalidContext;
  if (!current.empty() && current.back().context == context) current.pop_back();
  return call.state.CloseContext(context), kCuSuccess;
}
CuResult CtxPushCurrent(CuContext context) {
  DriverCall call;
  const auto known = call.state.contexts.find(context);
  if (known == call.state.contexts.end()) return kCuErrorInvalidContext;
  if (current.full()) return kCuErrorInvalidValue;
  return current.push_back({context, known->second.life}), kCuSuccess;
}
CuResult CtxPopCurrent(CuContext* context) {
  DriverCall call;
  const CuContext top = call.state.CurrentContext();
  if (top == nullptr) return kCuErrorInvalidContext;
  if (context != nullptr) *context = top;
  return current.pop_back(), kCuSuccess;
}
CuResult CtxSetCurrent(CuContext context) {
  DriverCall call;
  if (context == nullptr) {
    if (!current.empty()) current.pop_back();
    return kCuSuccess;
  }
  const auto known = call.state.contexts.find(context);
  if (known == call.state.contexts.end()) return kCuErrorInvalidContext;
  if (current.empty()) current.push_back({});
  return current.back() = {context, known->second.life}, kCuSuccess;
}
CuResult CtxGetCurrent(CuContext* context) {
  DriverCall call;
  return *context = call.state.CurrentContext(), kCuSuccess;
}
CuResult CtxGetDevice(CuDevice* device) {
  DriverCall call;
  if (!call.state.ContextIsCurrent()) return kCuErrorInvalidContext;
  return *device = 0, kCuSuccess;
}
CuResult CtxGetDeviceV2(CuDevice* device, CuContext context) {
  DriverCall call;
  if (context == nullptr ? !call.state.ContextIsCurrent() : !call.state.contexts.contains(context))
    return kCuErrorInvalidContext;
  return *device = 0, kCuSuccess;
}
// Work is done when its call returns, so that there is nothing to wait for but a fault.
CuResult CtxSynchronize() {
  LS_READY();
  return state.Settle();
}
CuResult CtxSynchronizeV2(CuContext context) {
  DriverCall call;
  if (context == nullptr) return CtxSynchronize();
  if (const CuResult bad = call.state.Settle(); bad != kCuSuccess) return bad;
  return call.state.contexts.contains(context) ? call.state.sticky : kCuErrorInvalidContext;
}
CuResult CtxGetFlags(unsigned* flags) {
  LS_READY();
  return *flags = state.contexts[state.CurrentContext()].flags, kCuSuccess;
}
CuResult CtxSetFlags(unsigned flags) {
  LS_READY();
  return state.contexts[state.CurrentContext()].flags = flags, kCuSuccess;
}
CuResult CtxGetId(CuContext context, unsigned long long* id) {
  DriverCall call;
  const auto known = call.state.contexts.find(context == nullptr ? call.state.CurrentContext() : context);
  if (known == call.state.contexts.end()) return kCuErrorInvalidContext;
  return *id = known->second.life, kCuSuccess;
}
CuResult CtxGetApiVersion(CuContext, unsigned* version) { return *version = 3020, kCuSuccess; }
// Limits are the stack of a thread and heaps of the device's own runtime, of which the emulator needs none.
CuResult CtxGetLimit(size_t* value, int limit) {
  LS_READY();
  if (limit < 0 || limit > 9) return kCuErrorInvalidValue;
  return *value = limit == 0 ? kDefaultStack : 0, kCuSuccess;
}
CuResult CtxSetLimit(int limit, size_t) {
  LS_READY();
  return limit < 0 || limit > 9 ? kCuErrorInvalidValue : kCuSuccess;
}
CuResult CtxGetCacheConfig(int* config) { return *config = 0, kCuSuccess; }
CuResult CtxSetCacheConfig(int) { return kCuSuccess; }
CuResult CtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kCuSuccess;
}
CuResult CtxResetPersistingL2Cache() { return kCuSuccess; }

}  // namespace driver::body
}  // namespace laneshift::emulator
