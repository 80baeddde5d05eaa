#include "device/tensor_map.h"

#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "device/driver_error.h"

namespace laneshift::device {
namespace {

using base::Cat;

constexpr uint64_t kMaxDim = uint64_t{1} << 32;
constexpr uint64_t kMaxStride = uint64_t{1} << 40;

enum class Packing { kNone, kAlign8, kAlign16 };

struct TypeRow {
  CuTensorMapDataType type;
  int bits;  // of one element in global memory
  bool is_float;
  Packing packing;
};

// In the order of the enum, which is the index.
constexpr TypeRow kTypes[] = {
    {kCuTensorMapUint8, 8, false, Packing::kNone},          {kCuTensorMapUint16, 16, false, Packing::kNone},
    {kCuTensorMapUint32, 32, false, Packing::kNone},        {kCuTensorMapInt32, 32, false, Packing::kNone},
    {kCuTensorMapUint64, 64, false, Packing::kNone},        {kCuTensorMapInt64, 64, false, Packing::kNone},
    {kCuTensorMapFloat16, 16, true, Packing::kNone},        {kCuTensorMapFloat32, 32, true, Packing::kNone},
    {kCuTensorMapFloat64, 64, true, Packing::kNone},        {kCuTensorMapBfloat16, 16, true, Packing::kNone},
    {kCuTensorMapFloat32Ftz, 32, true, Packing::kNone},     {kCuTensorMapTfloat32, 32, true, Packing::kNone},
    {kCuTensorMapTfloat32Ftz, 32, true, Packing::kNone},    {kCuTensorMap16U4Align8, 4, false, Packing::kAlign8},
    {kCuTensorMap16U4Align16, 4, false, Packing::kAlign16}, {kCuTensorMap16U6Align16, 6, false, Packing::kAlign16},
};

constexpr bool TypesAreIndexed() {
  for (int i = 0; i < static_cast<int>(std::size(kTypes)); ++i) {
    if (kTypes[i].type != i) return false;
  }
  return true;
}
static_assert(TypesAreIndexed());

Error Wrong(const std::string& why) { return MakeError(ErrorCode::kInvalidArgument, Cat("tensor map: ", why)); }

// Bytes of shared memory that one row may take, or nothing for no limit.
uint64_t SwizzleSpan(CuTensorMapSwizzle swizzle) {
  switch (swizzle) {
    case kCuSwizzleNone:
      return 0;
    case kCuSwizzle32:
      return 32;
    case kCuSwizzle64:
      return 64;
    case kCuSwizzle128:
    case kCuSwizzle128Atom32:
    case kCuSwizzle128Atom32Flip8:
    case kCuSwizzle128Atom64:
      return 128;
  }
  LS_CHECK(false, "swizzle out of range: ", static_cast<int>(swizzle));
}

const TypeRow& TypeOf(const TensorMapTensor& tensor) {
  LS_CHECK(tensor.type >= 0 && tensor.type < static_cast<int>(std::size(kTypes)),
           "tensor map data type out of range: ", static_cast<int>(tensor.type));
  return kTypes[tensor.type];
}

uint64_t RowAlignment(const TensorMapTensor& tensor) {
  return tensor.interleave == kCuInterleave32 || TypeOf(tensor).packing == Packing::kAlign16 ? 32 : 16;
}

Status CheckDims(const TensorMapTensor& tensor) {
  size_t rank = tensor.dims.size();
  if (rank < 1 || rank > 5) return Wrong(Cat("rank is ", rank, "; it must be 1 to 5"));
  if (tensor.interleave != kCuInterleaveNone && rank < 3) {
    return Wrong(Cat("rank is ", rank, "; an interleaved layout needs at least 3"));
  }
  for (size_t i = 0; i < rank; ++i) {
    if (tensor.dims[i] < 1 || tensor.dims[i] > kMaxDim) {
      return Wrong(Cat("dims[", i, "] is ", tensor.dims[i], "; it must be 1 to 2^32"));
    }
  }
  Packing packing = TypeOf(tensor).packing;
  uint64_t multiple = packing == Packing::kAlign16 ? 128 : packing == Packing::kAlign8 ? 2 : 1;
  if (tensor.dims[0] % multiple != 0) {
    return Wrong(Cat("dims[0] is ", tensor.dims[0], "; this packed type needs a multiple of ", multiple));
  }
  return Ok();
}

Status CheckStrides(const TensorMapTensor& tensor) {
  size_t rank = tensor.dims.size();
  uint64_t alignment = RowAlignment(tensor);
  if (tensor.address == 0) return Wrong("address is null");
  if (tensor.address % alignment != 0) {
    return Wrong(
        Cat("address is not a multiple of ", alignment, " bytes: it is ", tensor.address % alignment, " past one"));
  }
  if (tensor.strides.size() != rank - 1) {
    return Wrong(Cat("there are ", tensor.strides.size(), " strides; rank ", rank, " needs ", rank - 1,
                     ", of dimensions 1 and up"));
  }
  for (size_t i = 0; i + 1 < rank; ++i) {
    if (tensor.strides[i] % alignment != 0 || tensor.strides[i] >= kMaxStride) {
      return Wrong(Cat("strides[", i, "] (of dimension ", i + 1, ") is ", tensor.strides[i],
                       " bytes; it must be a multiple of ", alignment, " below 2^40"));
    }
  }
  if (!tensor.element_strides.empty() && tensor.element_strides.size() != rank) {
    return Wrong(Cat("there are ", tensor.element_strides.size(), " element_strides; rank ", rank, " needs ", rank));
  }
  for (size_t i = 0; i < tensor.element_strides.size(); ++i) {
    if (tensor.element_strides[i] < 1 || tensor.element_strides[i] > 8) {
      return Wrong(Cat("element_strides[", i, "] is ", tensor.element_strides[i], "; it must be 1 to 8"));
    }
  }
  return Ok();
}

Status CheckModes(const TensorMapTensor& tensor) {
  const TypeRow& type = TypeOf(tensor);
  if (tensor.interleave == kCuInterleave32 && tensor.swizzle != kCuSwizzle32) {
    return Wrong("the 32-byte interleave needs the 32-byte swizzle");
  }
  if (tensor.type == kCuTensorMap16U6Align16 && tensor.interleave != kCuInterleaveNone) {
    return Wrong("type 16U6 cannot be interleaved");
  }
  bool swizzle_fits_packing = tensor.swizzle == kCuSwizzleNone || tensor.swizzle == kCuSwizzle128 ||
                              tensor.swizzle == kCuSwizzle128Atom32 ||
                              (tensor.swizzle == kCuSwizzle128Atom64 && tensor.type == kCuTensorMap16U6Align16);
  if (type.packing == Packing::kAlign16 && !swizzle_fits_packing) {
    return Wrong("this packed type allows no swizzle but 128 bytes, with atoms of 16 or 32 bytes (16U6 also 64)");
  }
  if (tensor.fill == kCuOobNan && !type.is_float) return Wrong("fill with NaN needs a floating-point type");
  return Ok();
}

// The rules for the `elements` of dimension 0 that make a row in shared memory; `name` is the caller's parameter.
Status CheckRow(const TensorMapTensor& tensor, const char* name, uint64_t elements) {
  const TypeRow& type = TypeOf(tensor);
  if (elements < 1 || elements > 256) return Wrong(Cat(name, " is ", elements, "; it must be 1 to 256"));
  if (type.packing == Packing::kAlign16) {
    if (elements != 128) return Wrong(Cat(name, " is ", elements, "; this packed type needs 128"));
    return Ok();  // padded to 128 bytes in shared memory, the largest span
  }
  if (tensor.interleave != kCuInterleaveNone) return Ok();
  uint64_t bits = elements * type.bits;
  if (bits % 128 != 0) {
    return Wrong(
        Cat(name, " is ", elements, " elements of ", type.bits, " bits; a row must be a multiple of 16 bytes"));
  }
  uint64_t span = SwizzleSpan(tensor.swizzle);
  if (span != 0 && bits / 8 > span) {
    return Wrong(Cat(name, " is ", elements, ", a row of ", bits / 8, " bytes; the swizzle allows ", span));
  }
  return Ok();
}

Status CheckTensor(const TensorMapTensor& tensor) {
  LS_TRY(CheckDims(tensor));
  LS_TRY(CheckStrides(tensor));
  return CheckModes(tensor);
}

Status CheckCorners(const TensorMapIm2col& map) {
  size_t spatial = map.tensor.dims.size() - 2;
  if (map.lower_corner.size() != spatial || map.upper_corner.size() != spatial) {
    return Wrong(Cat("there are ", map.lower_corner.size(), " lower and ", map.upper_corner.size(),
                     " upper corners; rank ", spatial + 2, " needs ", spatial, " of each"));
  }
  // The copy instruction has 16 bits for all corners of one side together.
  int limit = spatial == 1 ? 1 << 15 : spatial == 2 ? 1 << 7 : 1 << 4;
  for (size_t i = 0; i < spatial; ++i) {
    for (auto [name, corner] :
         {std::pair{"lower_corner", map.lower_corner[i]}, std::pair{"upper_corner", map.upper_corner[i]}}) {
      if (corner < -limit || corner > limit - 1) {
        return Wrong(Cat(name, "[", i, "] is ", corner, "; rank ", spatial + 2, " allows ", -limit, " to ", limit - 1));
      }
    }
  }
  return Ok();
}

PerDimension<uint32_t> ElementStrides(const TensorMapTensor& tensor) {
  PerDimension<uint32_t> strides = tensor.element_strides;
  if (strides.empty()) strides.assign(tensor.dims.size(), 1);
  return strides;
}

}  // namespace

Status Validate(const TensorMapTiled& map) {
  const TensorMapTensor& tensor = map.tensor;
  LS_TRY(CheckTensor(tensor));
  if (map.box.size() != tensor.dims.size()) {
    return Wrong(Cat("box has ", map.box.size(), " extents; rank ", tensor.dims.size(), " needs as many"));
  }
  for (size_t i = 1; i < map.box.size(); ++i) {
    if (map.box[i] < 1 || map.box[i] > 256) return Wrong(Cat("box[", i, "] is ", map.box[i], "; it must be 1 to 256"));
  }
  return CheckRow(tensor, "box[0]", map.box[0]);
}

Status Validate(const TensorMapIm2col& map) {
  size_t rank = map.tensor.dims.size();
  if (rank < 3 || rank > 5) return Wrong(Cat("rank is ", rank, "; im2col needs 3 to 5"));
  LS_TRY(CheckTensor(map.tensor));
  LS_TRY(CheckCorners(map));
  if (map.pixels_per_column < 1 || map.pixels_per_column > 1024) {
    return Wrong(Cat("pixels_per_column is ", map.pixels_per_column, "; it must be 1 to 1024"));
  }
  return CheckRow(map.tensor, "channels_per_pixel", map.channels_per_pixel);
}

Result<CuTensorMap> EncodeTensorMap(const DriverApi& api, const TensorMapTiled& map) {
  LS_TRY(Validate(map));
  const TensorMapTensor& t = map.tensor;
  const PerDimension<uint32_t> element_strides = ElementStrides(t);
  CuTensorMap encoded;
  CuResult result = api.TensorMapEncodeTiled(
      &encoded, t.type, static_cast<uint32_t>(t.dims.size()), reinterpret_cast<void*>(t.address), t.dims.data(),
      t.strides.data(), map.box.data(), element_strides.data(), t.interleave, t.swizzle, t.promotion, t.fill);
  if (result != kCuSuccess) return DriverError(api, result, "cuTensorMapEncodeTiled");
  return encoded;
}

Result<CuTensorMap> EncodeTensorMap(const DriverApi& api, const TensorMapIm2col& map) {
  LS_TRY(Validate(map));
  const TensorMapTensor& t = map.tensor;
  const PerDimension<uint32_t> element_strides = ElementStrides(t);
  CuTensorMap encoded;
  CuResult result = api.TensorMapEncodeIm2col(
      &encoded, t.type, static_cast<uint32_t>(t.dims.size()), reinterpret_cast<void*>(t.address), t.dims.data(),
      t.strides.data(), map.lower_corner.data(), map.upper_corner.data(), map.channels_per_pixel, map.pixels_per_column,
      element_strides.data(), t.interleave, t.swizzle, t.promotion, t.fill);
  if (result != kCuSuccess) return DriverError(api, result, "cuTensorMapEncodeIm2col");
  return encoded;
}

}  // namespace laneshift::device
