// cuDNN's backend interface: a library opened at run time, its descriptors as owning objects, and the few numbers of
// its headers that a convolution needs.
//
// Thread-safety: none; one handle, one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/shared_library.h"
#include "device/driver_api.h"
#include "laneshift/result.h"

namespace laneshift::measure::cudnn {

using base::SharedLibrary;

// Values of cudnn_graph.h.
enum DescriptorType : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForwardOperation = 10,
  kWgradOperation = 11,
  kDgradOperation = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};
enum ValueType : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kPointwiseMode = 14,
  kDescriptor = 15,
};
enum Attribute : int {
  kPointwiseModeOf = 0,
  kPointwiseType = 1,
  kReluLowerClip = 3,
  kReluUpperClip = 4,
  kReluLowerSlope = 5,
  kConvolutionType = 100,
  kConvolutionModeOf = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDimensions = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kPlanHandle = 400,
  kPlanEngineConfig = 401,
  kPlanWorkspaceBytes = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDgradAlpha = 706,
  kDgradBeta = 707,
  kDgradConvolution = 708,
  kDgradW = 709,
  kDgradX = 710,
  kDgradY = 711,
  kWgradAlpha = 712,
  kWgradBeta = 713,
  kWgradConvolution = 714,
  kWgradW = 715,
  kWgradX = 716,
  kWgradY = 717,
  kPointwiseOf = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseAlpha2 = 755,
  kPointwiseDx = 756,
  kPointwiseDy = 757,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
};
enum Heuristic : int { kHeuristicB = 1, kHeuristicFallback = 2, kHeuristicA = 3 };
constexpr int kCrossCorrelation = 1;
enum Pointwise : int {
  kAdd = 0,
  kMultiply = 1,
  kReluForward = 100,
  kTanhForward = 101,
  kSigmoidForward = 102,
  kGeluForward = 104,
  kSwishForward = 106,
  kGeluTanhForward = 107,
  kReluBackward = 200,
  kTanhBackward = 201,
  kSigmoidBackward = 202,
  kGeluBackward = 204,
  kSwishBackward = 206,
  kGeluTanhBackward = 207,
};
constexpr int kTypeFloat = 0, kTypeHalf = 2, kTypeBfloat16 = 9;

// The entries of libcudnn that are used.
struct Functions {
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, device::CuStream stream) = nullptr;
  size_t (*version)() = nullptr;
  void (*last_error)(char* message, size_t bytes) = nullptr;
  int (*create_descriptor)(int type, void** descriptor) = nullptr;
  int (*destroy_descriptor)(void* descriptor) = nullptr;
  int (*finalize)(void* descriptor) = nullptr;
  int (*set_attribute)(void* descriptor, int name, int type, int64_t count, const void* values) = nullptr;
  int (*get_attribute)(void* descriptor, int name, int type, int64_t capacity, int64_t* count, void* values) = nullptr;
  int (*execute)(void* handle, void* plan, void* pack) = nullptr;

  // Ok, or kDriver with cuDNN's message.
  Status Check(int status, std::string_view call) const;
};

struct CudnnLibrary {
  SharedLibrary library;
  Functions functions;

  // kUnsupported says what is missing. Libraries that cuDNN opens by name are opened before it, from the same places.
  static Result<CudnnLibrary> Open(const std::vector<std::string>& directories);
  std::string Name() const;  // "cuDNN 9.19.0 (libcudnn.so.9)"
};

// One backend descriptor. Valid as long as the functions.
class CudnnDescriptor {
 public:
  static Result<CudnnDescriptor> Create(const Functions& functions, DescriptorType type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;
  ~CudnnDescriptor();

  void* handle() const { return handle_; }
  // `count` values of `type`.
  Status Set(Attribute name, ValueType type, int64_t count, const void* values) const;
  Status SetInts(Attribute name, const std::vector<int64_t>& values) const;
  Status SetEnum(Attribute name, ValueType type, int value) const;
  Status SetFloat(Attribute name, float value) const;
  // One descriptor, or one handle.
  Status SetHandle(Attribute name, ValueType type, void* value) const;
  Status SetDescriptor(Attribute name, const CudnnDescriptor& value) const;
  Status Finalize() const;
  Result<int64_t> GetInt(Attribute name) const;
  // The engine configurations that heuristics found.
  Result<std::vector<CudnnDescriptor>> GetEngineConfigs() const;

 private:
  CudnnDescriptor(const Functions* functions, void* handle) : functions_(functions), handle_(handle) {}
  const Functions* functions_;
  void* handle_;  // null: moved from
};

}  // namespace laneshift::measure::cudnn
