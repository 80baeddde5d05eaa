#include "laneshift/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/small_float.h"
#include "base/text.h"
#include "ir/block_quantizer.h"
#include "ir/element_type.h"
#include "ir/problem_keys.h"
#include "ir/stored_tensor.h"
#include "runtime/quantized_tensor.h"

namespace laneshift {
namespace {

using base::Cat;

Error Invalid(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

Status CheckScale(const QuantizedTensor& tensor, float scale) {
  const bool own = tensor.scaling == OutputScaling::kNv;
  if (own ? scale > 0 && std::isfinite(scale) : scale == 1) return Ok();
  return Invalid(own ? Cat("a scale of ", scale, " is not a positive number")
                     : Cat("a scale of ", scale, ", which mx does not have; use 1, or nv"));
}

Status CheckPointers(std::initializer_list<const void*> pointers) {
  if (std::find(pointers.begin(), pointers.end(), nullptr) == pointers.end()) return Ok();
  return Invalid("a pointer is null; pass host memory for numbers, elements and factors");
}

float NumberAt(DataType type, const void* numbers, int64_t index) {
  if (type == DataType::kF32) return static_cast<const float*>(numbers)[index];
  const uint16_t bits = static_cast<const uint16_t*>(numbers)[index];
  return type == DataType::kF16 ? base::F16ToFloat(bits) : base::Bf16ToFloat(bits);
}

void StoreNumber(DataType type, void* numbers, int64_t index, float value) {
  if (type == DataType::kF32) {
    static_cast<float*>(numbers)[index] = value;
  } else {
    static_cast<uint16_t*>(numbers)[index] =
        type == DataType::kF16 ? base::FloatToF16(value) : base::FloatToBf16(value);
  }
}

// Elements of four bits are in pairs, the first one in the low half of a byte.
void StoreBits(DataType type, uint8_t* elements, int64_t index, uint32_t bits) {
  if (ir::BitsOf(type) == 8) {
    elements[index] = static_cast<uint8_t>(bits);
    return;
  }
  uint8_t& pair = elements[index / 2];
  pair = static_cast<uint8_t>(index % 2 == 0 ? bits : (pair & 15u) | bits << 4);
}
uint32_t BitsAt(DataType type, const uint8_t* elements, int64_t index) {
  return ir::BitsOf(type) == 8 ? elements[index] : elements[index / 2] >> (4 * (index % 2)) & 15u;
}

// Calls `visit(first, count, place)` for each block: its first element, how many it has, and the byte of its factor.
template <typename Visit>
void ForEachBlock(const QuantizedTensor& tensor, int run, const Visit& visit) {
  const int64_t blocks = (tensor.columns + run - 1) / run;
  for (int64_t row = 0; row < tensor.batch * tensor.rows; ++row) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t column = block * run;
      visit(row * tensor.columns + column, std::min<int64_t>(run, tensor.columns - column),
            ir::FactorOffset(tensor.rows, blocks, row / tensor.rows, row % tensor.rows, block));
    }
  }
}

// Of numbers whose sign does not count; NaN is above all.
float LargestMagnitude(DataType type, const void* numbers, int64_t first, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = first; i < first + count; ++i)
    most = std::max(most, std::bit_cast<uint32_t>(NumberAt(type, numbers, i)) & 0x7fffffffu);
  return std::bit_cast<float>(most);
}

}  // namespace

Result<QuantizedBytes> BytesOf(const QuantizedTensor& tensor) {
  LS_TRY(ir::CheckExtent("batch", tensor.batch));
  LS_TRY(ir::CheckExtent("rows", tensor.rows));
  LS_TRY(ir::CheckExtent("columns", tensor.columns));
  if (tensor.scaling == OutputScaling::kNone) return Invalid("a quantised tensor has a scaling; use mx or nv");
  LS_TRY(ir::CheckOutputScaling(tensor.type, tensor.scaling));
  const int64_t elements = ir::BoundedProduct(ir::BoundedProduct(tensor.batch, tensor.rows), tensor.columns);
  LS_TRY(ir::CheckFootprint("columns", ir::BoundedProduct(tensor.batch, tensor.rows), tensor.columns));
  if (ir::BitsOf(tensor.type) < 8 && tensor.columns % 2 != 0)
    return Invalid(Cat("rows of ", tensor.columns, " ", DataTypeName(tensor.type), " are not whole bytes; use an even ",
                       "number of columns"));
  const ir::StoredTensor factors =
      ir::ScaleBlocks(*ir::BlockScalingOf(tensor.scaling), tensor.batch, tensor.rows, tensor.columns);
  return QuantizedBytes{.elements = static_cast<size_t>(ir::BytesOf(tensor.type, elements)),
                        .factors = factors.Bytes()};
}

Result<QuantizedBytes> runtime::CheckedBytesOf(const QuantizedTensor& tensor, DataType numbers) {
  LS_ASSIGN(const QuantizedBytes bytes, BytesOf(tensor));
  if (numbers == DataType::kF32 || numbers == DataType::kF16 || numbers == DataType::kBf16) return bytes;
  return Invalid(Cat("numbers of ", DataTypeName(numbers), " are not quantised; use f32, f16 or bf16"));
}

Status Quantize(const QuantizedTensor& tensor, DataType from_type, const void* from, float scale, void* elements,
                void* factors) {
  LS_ASSIGN(const QuantizedBytes bytes, runtime::CheckedBytesOf(tensor, from_type));
  LS_TRY(CheckScale(tensor, scale));
  LS_TRY(CheckPointers({from, elements, factors}));
  const ir::BlockQuantizer quantizer(tensor.scaling, tensor.type);
  auto* const factor_bytes = static_cast<uint8_t*>(factors);
  std::memset(factors, 0, bytes.factors);
  ForEachBlock(tensor, quantizer.run(), [&](int64_t first, int64_t count, int64_t place) {
    const uint8_t factor = quantizer.FactorOf(LargestMagnitude(from_type, from, first, count), scale);
    const float multiplier = quantizer.MultiplierOf(factor, scale);
    factor_bytes[place] = factor;
    for (int64_t i = first; i < first + count; ++i) {
      StoreBits(tensor.type, static_cast<uint8_t*>(elements), i,
                quantizer.ElementOf(NumberAt(from_type, from, i), multiplier));
    }
  });
  return Ok();
}

Status Dequantize(const QuantizedTensor& tensor, const void* elements, const void* factors, float scale,
                  DataType to_type, void* to) {
  LS_TRY(runtime::CheckedBytesOf(tensor, to_type));
  LS_TRY(CheckScale(tensor, scale));
  LS_TRY(CheckPointers({elements, factors, to}));
  const ir::BlockQuantizer quantizer(tensor.scaling, tensor.type);
  const base::FloatFormat element_format = *ir::InfoOf(tensor.type).format;
  const base::FloatFormat factor_format = *ir::InfoOf(quantizer.factors().type).format;
  ForEachBlock(tensor, quantizer.run(), [&](int64_t first, int64_t count, int64_t place) {
    const float factor = base::ToFloat(factor_format, static_cast<const uint8_t*>(factors)[place]);
    for (int64_t i = first; i < first + count; ++i) {
      const uint32_t bits = BitsAt(tensor.type, static_cast<const uint8_t*>(elements), i);
      StoreNumber(to_type, to, i, base::ToFloat(element_format, bits) * factor / scale);
    }
  });
  return Ok();
}

}  // namespace laneshift
