// Stream: an order of work on a device; made here, or the caller's own.
//
// Thread-safety: as the driver's streams: calls from several threads are allowed, their order is then undefined.
#pragma once

#include "device/context.h"

namespace laneshift::device {

class Stream {
 public:
  // Does not synchronise with the legacy default stream.
  static Result<Stream> Create(Context context);
  // The caller's stream (null: the default stream). It is not destroyed here and must outlive the Stream.
  static Stream Borrow(Context context, CuStream stream) { return Stream(context, stream, Ownership::kBorrowed); }

  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  CuStream handle() const { return handle_; }
  Context context() const { return context_; }
  // Waits for all work on the stream; returns the first failure of that work.
  Status Synchronize() const;
  // True between the begin and the end of a graph capture, during which nothing runs and waiting is an error.
  Result<bool> IsCapturing() const;

 private:
  enum class Ownership { kOwned, kBorrowed };
  Stream(Context context, CuStream handle, Ownership ownership)
      : context_(context), handle_(handle), ownership_(ownership) {}

  Context context_;
  CuStream handle_;
  Ownership ownership_;
};

}  // namespace laneshift::device
