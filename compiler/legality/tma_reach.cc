#include "compiler/legality/tma_reach.h"

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Axis;
using ir::Operand;

Error Unreachable(Operand operand, std::string_view what, int64_t bytes) {
  const std::string_view name = ir::OperandName(operand);
  return MakeError(ErrorCode::kUnsupported, Cat("the TMA cannot reach ", name, ": its ", what, " of ", bytes,
                                                " bytes is no multiple of 16; use ", name,
                                                operand == Operand::kD ? "_store=rows" : "_load=pack", ", or pad it"));
}

}  // namespace

StoredOperand Stored(const GemmProblem& p, Operand operand) {
  const bool a_k = p.a_major == Major::kK;
  const bool b_k = p.b_major == Major::kK;
  switch (operand) {
    case Operand::kA:
      return {p.a,
              a_k ? Axis::kM : Axis::kK,
              a_k ? Axis::kK : Axis::kM,
              a_k ? p.m : p.k,
              a_k ? p.k : p.m,
              p.lda,
              p.stride_a,
              p.align_a};
    case Operand::kB:
      return {p.b,
              b_k ? Axis::kN : Axis::kK,
              b_k ? Axis::kK : Axis::kN,
              b_k ? p.n : p.k,
              b_k ? p.k : p.n,
              p.ldb,
              p.stride_b,
              p.align_b};
    case Operand::kC:
      return {p.c, Axis::kM, Axis::kN, p.m, p.n, p.ldc, p.stride_c, p.align_c};
    case Operand::kD:
      return {p.d, Axis::kM, Axis::kN, p.m, ir::OutputColumns(p), p.ldd, p.stride_d, p.align_d};
  }
  __builtin_unreachable();
}

Status TmaReaches(const GemmProblem& problem, Operand operand) {
  const StoredOperand s = Stored(problem, operand);
  const int64_t bytes = DataTypeBytes(s.type);
  if (operand == Operand::kB && s.inner_axis == Axis::kN && ir::JoinsHalves(problem.epilogue)) {
    return MakeError(
        ErrorCode::kUnsupported,
        "the TMA cannot reach b: the columns that are joined lie in two halves of a row, of which it would "
        "bring single elements; use b_load=copy, or b_major=k");
  }
  if (s.align % kTmaUnit != 0) return Unreachable(operand, "base alignment", s.align);
  if (s.pitch * bytes % kTmaUnit != 0) return Unreachable(operand, "pitch", s.pitch * bytes);
  if (problem.batch > 1 && s.batch_stride * bytes % kTmaUnit != 0) {
    return Unreachable(operand, "batch stride", s.batch_stride * bytes);
  }
  if (operand == Operand::kD && s.inner * bytes % kTmaUnit != 0) {
    return Unreachable(operand, "row (TMA stores clip only at 16 bytes)", s.inner * bytes);
  }
  return Ok();
}

bool Transposes(const GemmProblem& problem, Operand operand, const target::Target& target) {
  const StoredOperand stored = Stored(problem, operand);
  // wgmma transposes 16-bit operands only.
  return stored.inner_axis != Axis::kK && ir::IsEightBit(stored.type) && !target.mma.transposes_8_bit;
}

int AccessWidth(const GemmProblem& problem, Operand operand, int limit) {
  const StoredOperand s = Stored(problem, operand);
  const int64_t bytes = DataTypeBytes(s.type);
  int width = static_cast<int>(kTmaUnit / bytes);
  const auto fits = [&](int64_t w) {
    return w <= limit && s.align % (w * bytes) == 0 && s.pitch % w == 0 && s.inner % w == 0 &&
           (problem.batch == 1 || s.batch_stride % w == 0);
  };
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

}  // namespace laneshift::compiler
