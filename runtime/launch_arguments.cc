#include "runtime/launch_arguments.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "compiler/tma_reach.h"
#include "device/tensor_map.h"

namespace laneshift::runtime {
namespace {

using base::Cat;
using ir::Binding;

device::CuTensorMapDataType MapType(DataType type) {
  switch (type) {
    case DataType::kF16:
      return device::kCuTensorMapFloat16;
    case DataType::kBf16:
      return device::kCuTensorMapBfloat16;
    case DataType::kF32:
      return device::kCuTensorMapFloat32;
  }
  LS_CHECK(false, "unknown data type ", static_cast<int>(type));
}

device::CuTensorMapSwizzle MapSwizzle(ir::Swizzle swizzle) {
  switch (swizzle) {
    case ir::Swizzle::k32:
      return device::kCuSwizzle32;
    case ir::Swizzle::k64:
      return device::kCuSwizzle64;
    case ir::Swizzle::k128:
      return device::kCuSwizzle128;
  }
  LS_CHECK(false, "unknown swizzle ", static_cast<int>(swizzle));
}

// The operand whose tensor map the binding is.
ir::Operand OperandOf(Binding map) {
  for (const ir::Operand operand : {ir::Operand::kA, ir::Operand::kB, ir::Operand::kD}) {
    if (ir::MapOf(operand) == map) return operand;
  }
  LS_CHECK(false, "no matrix has the tensor map ", ir::InfoOf(map).name);
}

const void* AddressOf(ir::Operand operand, const GemmArguments& arguments) {
  const void* const addresses[] = {arguments.a, arguments.b, arguments.c, arguments.d};
  return addresses[static_cast<int>(operand)];
}

// Dimensions inner, outer, batch. A box is one swizzle span wide and the tile's outer extent high: the copy engine
// fills a tile column by column (ir/layout.h).
Result<device::CuTensorMap> EncodeMap(const device::DriverApi& api, const ir::Param& param, const GemmProblem& problem,
                                      const GemmArguments& arguments) {
  const ir::Operand operand = OperandOf(param.binding);
  const compiler::StoredOperand matrix = compiler::Stored(problem, operand);
  const auto bytes = static_cast<uint64_t>(DataTypeBytes(matrix.type));
  const auto whole_pieces = [](uint64_t stride) { return (stride + 15) & ~uint64_t{15}; };
  // The stride of a dimension of extent 1 is never used, but the encoder checks it.
  const auto pitch = static_cast<uint64_t>(matrix.pitch) * bytes;
  const auto stride = static_cast<uint64_t>(matrix.batch_stride) * bytes;
  device::TensorMapTiled map;
  map.tensor.type = MapType(matrix.type);
  map.tensor.address = reinterpret_cast<uintptr_t>(AddressOf(operand, arguments));
  map.tensor.dims = {static_cast<uint64_t>(matrix.inner), static_cast<uint64_t>(matrix.outer),
                     static_cast<uint64_t>(problem.batch)};
  map.tensor.strides = {matrix.outer == 1 ? whole_pieces(pitch) : pitch,
                        problem.batch == 1 ? whole_pieces(stride) : stride};
  map.tensor.swizzle = MapSwizzle(param.box.swizzle);
  map.tensor.promotion = device::kCuL2Of256;
  map.box = {static_cast<uint32_t>(param.box.ColumnElements()), static_cast<uint32_t>(param.box.outer), 1};
  auto encoded = device::EncodeTensorMap(api, map);
  if (!encoded) return encoded.error().Within(ir::InfoOf(param.binding).name);
  return encoded;
}

const void* PointerOf(Binding binding, const GemmArguments& arguments) {
  switch (binding) {
    case Binding::kBaseA:
      return arguments.a;
    case Binding::kBaseB:
      return arguments.b;
    case Binding::kBaseC:
      return arguments.c;
    case Binding::kBaseD:
      return arguments.d;
    case Binding::kBaseBias:
      return arguments.bias;
    // clang-format off
    case Binding::kMapA: case Binding::kMapB: case Binding::kMapD:
    case Binding::kPitchA: case Binding::kPitchB: case Binding::kPitchC: case Binding::kPitchD:
    case Binding::kStrideA: case Binding::kStrideB: case Binding::kStrideC: case Binding::kStrideD:
    case Binding::kM: case Binding::kN: case Binding::kK: case Binding::kBatch:
    case Binding::kAlpha: case Binding::kBeta:
      break;
      // clang-format on
  }
  LS_CHECK(false, "binding ", ir::InfoOf(binding).name, " is no pointer");
}

double NumberOf(Binding binding, const GemmProblem& p) {
  // clang-format off
  switch (binding) {
    case Binding::kPitchA: return static_cast<double>(p.lda);
    case Binding::kPitchB: return static_cast<double>(p.ldb);
    case Binding::kPitchC: return static_cast<double>(p.ldc);
    case Binding::kPitchD: return static_cast<double>(p.ldd);
    case Binding::kStrideA: return static_cast<double>(p.stride_a);
    case Binding::kStrideB: return static_cast<double>(p.stride_b);
    case Binding::kStrideC: return static_cast<double>(p.stride_c);
    case Binding::kStrideD: return static_cast<double>(p.stride_d);
    case Binding::kM: return static_cast<double>(p.m);
    case Binding::kN: return static_cast<double>(p.n);
    case Binding::kK: return static_cast<double>(p.k);
    case Binding::kBatch: return static_cast<double>(p.batch);
    case Binding::kAlpha: return p.alpha;
    case Binding::kBeta: return p.beta;
    case Binding::kMapA: case Binding::kMapB: case Binding::kMapD:
    case Binding::kBaseA: case Binding::kBaseB: case Binding::kBaseC: case Binding::kBaseD: case Binding::kBaseBias:
      break;
  }
  // clang-format on
  LS_CHECK(false, "binding ", ir::InfoOf(binding).name, " is no number");
}

struct PointerRule {
  std::string_view name;
  const void* pointer;
  bool needed;
  int64_t align;
};

std::array<PointerRule, 5> RulesOf(const GemmProblem& problem, const GemmArguments& given) {
  return {{{"a", given.a, true, problem.align_a},
           {"b", given.b, true, problem.align_b},
           {"c", given.c, problem.beta != 0, problem.align_c},
           {"d", given.d, true, problem.align_d},
           {"bias", given.bias, problem.bias != BiasAxis::kNone, DataTypeBytes(problem.d)}}};
}

std::array<PointerRule, 5> RulesOf(const ConvProblem& problem, const ConvArguments& given) {
  return {{{"x", given.x, true, problem.align_x},
           {"w", given.w, true, problem.align_w},
           {"z", given.z, problem.beta != 0, problem.align_z},
           {"y", given.y, true, problem.align_y},
           {"bias", given.bias, problem.bias != ConvBias::kNone, DataTypeBytes(problem.y)}}};
}

Status CheckPointer(const PointerRule& rule) {
  if (!rule.needed) return Ok();
  if (rule.pointer == nullptr) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        Cat("pointer ", rule.name, " is null, but the problem reads or writes ", rule.name, "; pass device memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(rule.pointer);
  if (address % static_cast<uintptr_t>(rule.align) == 0) return Ok();
  const uintptr_t own = uintptr_t{1} << std::countr_zero(address);
  const std::string remedy =
      rule.name == "bias" ? "pass whole elements" : Cat("align it, or make the plan with align_", rule.name, "=", own);
  return MakeError(ErrorCode::kInvalidArgument, Cat("pointer ", rule.name, " (", rule.pointer, ") is aligned to ", own,
                                                    " bytes, the plan needs ", rule.align, "; ", remedy));
}

}  // namespace

Status CheckPointers(const Problem& problem, const Arguments& arguments) {
  const std::array<PointerRule, 5> rules =
      std::holds_alternative<GemmProblem>(problem)
          ? RulesOf(std::get<GemmProblem>(problem), std::get<GemmArguments>(arguments))
          : RulesOf(std::get<ConvProblem>(problem), std::get<ConvArguments>(arguments));
  for (const PointerRule& rule : rules) LS_TRY(CheckPointer(rule));
  return Ok();
}

Status LaunchArguments::Bind(const device::DriverApi& api, const ir::Program& program, const Problem& problem,
                             const GemmArguments& roles) {
  // No program of another kind comes out of compiler::BuildProgram.
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  LS_CHECK(gemm != nullptr, "a program for a problem of kind ", ProblemKind(problem));
  LS_CHECK(program.params.size() <= kCapacity, "a program with ", program.params.size(), " parameters");
  count_ = 0;
  for (const ir::Param& param : program.params) {
    Value& value = values_[count_];
    pointers_[count_++] = &value;
    switch (ir::InfoOf(param.binding).kind) {
      case ir::ParamKind::kTensorMap: {
        LS_ASSIGN(value.map, EncodeMap(api, param, *gemm, roles));
        break;
      }
      case ir::ParamKind::kPointer:
        value.pointer = PointerOf(param.binding, roles);
        break;
      // Sizes and pitches are below 2^40: exact as doubles.
      case ir::ParamKind::kInt64:
        value.wide = static_cast<int64_t>(NumberOf(param.binding, *gemm));
        break;
      case ir::ParamKind::kInt32:
        value.narrow = static_cast<int32_t>(NumberOf(param.binding, *gemm));
        break;
      case ir::ParamKind::kFloat:
        value.real = static_cast<float>(NumberOf(param.binding, *gemm));
        break;
    }
  }
  return Ok();
}

}  // namespace laneshift::runtime
