#include "device/stream.h"

#include <utility>

#include "device/driver_error.h"

namespace laneshift::device {

namespace {

// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: what the default stream answers while one that waits for it is captured.
constexpr auto kCaptureElsewhere = static_cast<CuResult>(906);

}  // namespace

Result<Stream> Stream::Create(Context context) {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context));
  CuStream handle = nullptr;
  LS_TRY(DriverStatus(*context.api, context.api->StreamCreate(&handle, kCuStreamNonBlocking), "cuStreamCreate"));
  return Stream(context, handle, Ownership::kOwned);
}

Stream::Stream(Stream&& other) noexcept
    : context_(other.context_),
      handle_(other.handle_),
      ownership_(std::exchange(other.ownership_, Ownership::kBorrowed)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  std::swap(ownership_, other.ownership_);
  return *this;
}

Stream::~Stream() {
  if (ownership_ == Ownership::kBorrowed) return;
  ReleaseIn(context_, "cuStreamDestroy", [&] { return context_.api->StreamDestroy(handle_); });
}

Status Stream::Synchronize() const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  return DriverStatus(*context_.api, context_.api->StreamSynchronize(handle_), "cuStreamSynchronize");
}

Result<bool> Stream::IsCapturing() const {
  LS_ASSIGN(ActiveContext active, ActiveContext::Enter(context_));
  CuStreamCaptureStatus status = kCuCaptureNone;
  const CuResult asked = context_.api->StreamIsCapturing(handle_, &status);
  if (asked == kCaptureElsewhere) return true;
  LS_TRY(DriverStatus(*context_.api, asked, "cuStreamIsCapturing"));
  return status != kCuCaptureNone;
}

}  // namespace laneshift::device
