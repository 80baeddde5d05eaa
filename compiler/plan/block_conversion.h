// Kernels that quantise tensors of the caller in blocks with scale factors, and dequantise them: laneshift/quantize.h
// on a device. A kernel depends on the types and the scaling; sizes are its parameters.
//
// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "ir/program.h"
#include "laneshift/quantize.h"
#include "target/target.h"

namespace laneshift::compiler {

enum class ConversionDirection : uint8_t { kQuantize, kDequantize };

// From numbers of type `numbers` to elements and factors, or back.
struct BlockConversion {
  ConversionDirection direction{};
  DataType numbers{};
  DataType type{};  // of the elements
  OutputScaling scaling{};

  auto operator<=>(const BlockConversion&) const = default;
};

// Lowered, with its storage. Its parameters: A is what is read and D what is written; the factors are
// base_block_scale_d, and with kNv the f32 factor of the tensor is that of D. REQUIRES: the types are those that
// Quantize takes.
Result<ir::Program> BuildConversion(const BlockConversion& conversion, const target::Target& target);
// REQUIRES: BytesOf(tensor) is ok, and the program is that of its type and scaling.
std::vector<BoundParam> BindConversion(const QuantizedTensor& tensor, const ir::Program& program);
LaunchGeometry ConversionLaunch(const QuantizedTensor& tensor, const ir::Program& program, int sm_count);

}  // namespace laneshift::compiler
