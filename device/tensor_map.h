// Tensor maps: how the copy engine sees a tensor in device memory. Every rule of the encoder is checked here first,
// because the driver answers any violation only with "invalid value".
//
// Dimensions are fastest first. Byte strides are those of dimensions 1 and up; dimension 0 is dense.
// Thread-safety: pure functions of their arguments.
#pragma once

#include <cstdint>

#include "base/short_array.h"
#include "device/driver_api.h"

namespace laneshift::device {

// One value a dimension. There are at most 5; a wrong rank of up to 8 can still be refused. Maps are encoded with every
// launch: nothing is allocated for them.
template <typename T>
using PerDimension = base::ShortArray<T, 8>;

// What tiled and im2col maps have in common.
struct TensorMapTensor {
  CuTensorMapDataType type = kCuTensorMapBfloat16;
  CuDevicePtr address = 0;
  PerDimension<uint64_t> dims;             // elements; 1 to 5
  PerDimension<uint64_t> strides;          // bytes; one less than dims
  PerDimension<uint32_t> element_strides;  // 1 to 8; empty: all 1
  CuTensorMapInterleave interleave = kCuInterleaveNone;
  CuTensorMapSwizzle swizzle = kCuSwizzleNone;
  CuTensorMapL2Promotion promotion = kCuL2Of128;
  CuTensorMapOobFill fill = kCuOobZero;
};

struct TensorMapTiled {
  TensorMapTensor tensor;
  PerDimension<uint32_t> box;  // elements; one per dimension
};

// Tensors of channels, width[, height[, depth]], images. Corners are in the order width, height, depth.
struct TensorMapIm2col {
  TensorMapTensor tensor;
  PerDimension<int> lower_corner;
  PerDimension<int> upper_corner;
  uint32_t channels_per_pixel = 0;
  uint32_t pixels_per_column = 0;
};

// kInvalidArgument names the parameter, its value and the rule.
Status Validate(const TensorMapTiled& map);
Status Validate(const TensorMapIm2col& map);

// Validate() and the provider's encoder.
Result<CuTensorMap> EncodeTensorMap(const DriverApi& api, const TensorMapTiled& map);
Result<CuTensorMap> EncodeTensorMap(const DriverApi& api, const TensorMapIm2col& map);

}  // namespace laneshift::device
