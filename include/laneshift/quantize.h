// Tensors in narrow types with scale factors of blocks (MXFP8, MXFP4, NVFP4), on the host: what a GEMM reads as A or B
// with scale=mx or nv, and what it writes as D with d_scale=mx or nv, from numbers and back. For the same values the
// bits are those that the epilogue of a kernel stores (docs/quantized-outputs.md has the formulas). Engine::Quantize
// and Dequantize (laneshift/engine.h) do the same in device memory.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "laneshift/problem.h"
#include "laneshift/result.h"

namespace laneshift {

// `batch` matrices of `rows` rows of `columns` elements, all packed. Blocks are runs of columns: for A of a GEMM the
// columns are k and the rows m, for B the rows are n.
struct QuantizedTensor {
  int64_t batch = 1, rows = 0, columns = 0;
  DataType type = DataType::kE4m3;             // of the elements: e4m3, e5m2 or e2m1
  OutputScaling scaling = OutputScaling::kMx;  // of e2m1 also kNv

  bool operator==(const QuantizedTensor&) const = default;
};

// Bytes of the elements, and of the factors in the 128x4 layout (docs/block-scaling.md), all of its blocks.
struct QuantizedBytes {
  size_t elements = 0, factors = 0;
};
// kInvalidArgument names what is wrong with the tensor: an extent that is not positive, a type that the scaling does
// not have, an odd number of columns of e2m1.
Result<QuantizedBytes> BytesOf(const QuantizedTensor& tensor);

// `from`: packed numbers of type f32, f16 or bf16. `scale`: with kNv the f32 by which all numbers are multiplied, a
// positive one such as 448 * 6 / (the largest magnitude); otherwise 1. Factors of rows and blocks that the tensor does
// not have are 0. kInvalidArgument: as BytesOf, another type, a null pointer, or another scale.
Status Quantize(const QuantizedTensor& tensor, DataType from_type, const void* from, float scale, void* elements,
                void* factors);

// The inverse: element * factor / scale, rounded to nearest even to f32 and then to `to_type`.
Status Dequantize(const QuantizedTensor& tensor, const void* elements, const void* factors, float scale,
                  DataType to_type, void* to);

}  // namespace laneshift
