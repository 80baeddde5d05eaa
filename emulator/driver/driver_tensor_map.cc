// Tensor-map functions of the emulated driver.

#include <cstring>

#include "emulator/driver/driver_bodies.h"
#include "emulator/driver/driver_state.h"
#include "emulator/units/tensor_map_words.h"

namespace laneshift::emulator::driver::body {

using namespace device;  // NOLINT: the driver's own types and codes

namespace {

thread_local std::string why_refused;

CuResult Encode(void* out, const TensorMap& map) {
  DriverCall call;
  if (out == nullptr) return kCuErrorInvalidValue;  // any address: cuda-python's maps are not aligned to 64 bytes
  const auto dialect =
      ProfileOf(call.state.options).tensor_memory ? TensorMapDialect::kBlackwell : TensorMapDialect::kHopper;
  const Status valid = ValidateTensorMap(map, dialect);
  why_refused = valid.has_value() ? std::string() : valid.error().message;
  if (!valid.has_value()) {
    call.state.Notice("tensor map refused: " + why_refused);
    return kCuErrorInvalidValue;
  }
  const TensorMapBytes bytes = EncodeTensorMap(map);
  std::memcpy(out, bytes.data(), bytes.size());
  return kCuSuccess;
}

TensorMap Common(CuTensorMapDataType type, uint32_t rank, void* base, const uint64_t* dims, const uint64_t* strides,
                 const uint32_t* element_strides, CuTensorMapInterleave interleave, CuTensorMapSwizzle swizzle,
                 CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  TensorMap map;
  map.element = static_cast<TensorElement>(type);
  map.interleave = static_cast<TensorInterleave>(interleave);
  map.swizzle = static_cast<TensorSwizzle>(swizzle);
  map.fill = static_cast<TensorFill>(fill);
  map.l2_promotion = static_cast<uint8_t>(promotion);
  map.rank = static_cast<int>(rank);
  map.address = reinterpret_cast<uint64_t>(base);
  for (uint32_t d = 0; d < rank && d < 5; ++d) {
    map.dims[d] = dims[d];
    map.element_strides[d] = element_strides[d];
    if (d > 0) map.strides[d] = strides[d - 1];
  }
  return map;
}

}  // namespace

CuResult TensorMapEncodeTiled(CuTensorMap* out, CuTensorMapDataType type, uint32_t rank, void* base,
                              const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                              const uint32_t* element_strides, CuTensorMapInterleave interleave,
                              CuTensorMapSwizzle swizzle, CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  if (DriverCall call; !call.state.ContextIsCurrent()) return kCuErrorInvalidContext;  // as on an H200
  if (rank < 1 || rank > 5 || dims == nullptr || box == nullptr || element_strides == nullptr ||
      (rank > 1 && strides == nullptr))
    return kCuErrorInvalidValue;
  TensorMap map = Common(type, rank, base, dims, strides, element_strides, interleave, swizzle, promotion, fill);
  for (uint32_t d = 0; d < rank; ++d) map.box[d] = box[d];
  return Encode(out, map);
}

CuResult TensorMapEncodeIm2col(CuTensorMap* out, CuTensorMapDataType type, uint32_t rank, void* base,
                               const uint64_t* dims, const uint64_t* strides, const int* lower_corner,
                               const int* upper_corner, uint32_t channels_per_pixel, uint32_t pixels_per_column,
                               const uint32_t* element_strides, CuTensorMapInterleave interleave,
                               CuTensorMapSwizzle swizzle, CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  if (DriverCall call; !call.state.ContextIsCurrent()) return kCuErrorInvalidContext;
  if (rank < 3 || rank > 5 || dims == nullptr || strides == nullptr || element_strides == nullptr ||
      lower_corner == nullptr || upper_corner == nullptr) {
    return kCuErrorInvalidValue;
  }
  TensorMap map = Common(type, rank, base, dims, strides, element_strides, interleave, swizzle, promotion, fill);
  map.mode = TensorMapMode::kIm2col;
  map.channels = channels_per_pixel;
  map.pixels = pixels_per_column;
  for (uint32_t s = 0; s + 2 < rank; ++s) {
    map.lower_corner[s] = lower_corner[s];
    map.upper_corner[s] = upper_corner[s];
  }
  return Encode(out, map);
}

CuResult TensorMapEncodeIm2colWide(CuTensorMap* out, CuTensorMapDataType type, uint32_t rank, void* base,
                                   const uint64_t* dims, const uint64_t* strides, int lower_corner, int upper_corner,
                                   uint32_t channels_per_pixel, uint32_t pixels_per_column,
                                   const uint32_t* element_strides, CuTensorMapInterleave interleave,
                                   CuTensorMapWideMode mode, CuTensorMapSwizzle swizzle,
                                   CuTensorMapL2Promotion promotion, CuTensorMapOobFill fill) {
  if (DriverCall call; !call.state.ContextIsCurrent()) return kCuErrorInvalidContext;
  if (rank < 3 || rank > 5 || dims == nullptr || strides == nullptr || element_strides == nullptr ||
      (mode != kCuWideW && mode != kCuWideW128)) {
    return kCuErrorInvalidValue;
  }
  TensorMap map = Common(type, rank, base, dims, strides, element_strides, interleave, swizzle, promotion, fill);
  map.mode = mode == kCuWideW ? TensorMapMode::kIm2colWide : TensorMapMode::kIm2colWide128;
  map.channels = channels_per_pixel;
  map.pixels = pixels_per_column;
  map.lower_corner[0] = lower_corner;
  map.upper_corner[0] = upper_corner;
  return Encode(out, map);
}

CuResult TensorMapReplaceAddress(CuTensorMap* out, void* base) {
  if (out == nullptr) return kCuErrorInvalidValue;
  auto map = DecodeTensorMap(std::span<const uint8_t, 128>(reinterpret_cast<const uint8_t*>(out), 128));
  if (!map.has_value()) return kCuErrorInvalidValue;
  map->address = reinterpret_cast<uint64_t>(base);
  return Encode(out, *map);
}

}  // namespace laneshift::emulator::driver::body

namespace laneshift::emulator {

std::string driver::WhyTensorMapFailed() { return driver::body::why_refused; }

}  // namespace laneshift::emulator
