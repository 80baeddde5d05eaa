#include "compiler/legality/check_async.h"

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/legality/tma_addressable.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/problem_keys.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Operand;

constexpr int kLeastPiece = 4;  // bytes

}  // namespace

Status CheckAsync(const Contraction& contraction, Operand operand, const target::Target& target) {
  const OperandSource& source = contraction.Of(operand);
  const std::string_view name = ir::OperandName(operand);
  if (source.kind != SourceKind::kMatrix)
    return Refused(Cat(name, "_load=async copies rows of a matrix, and ", source.name,
                       " of a convolution is none; use ", name, "_load=tma or copy"));
  if (Transposes(source, target))
    return Refused(Cat("asynchronous copies do not transpose, and the tensor core of ", target.name, " reads ",
                       DataTypeName(source.type()), " along k; use ", name, "_load=copy, or ", name, "_major=k"));
  if (operand == Operand::kB && source.inner_axis == ir::Axis::kN && ir::HasSplitGateUp(contraction.epilogue()))
    return Refused(Cat("the columns of a gated pair are in two halves of a row of ", source.name,
                       ", of which asynchronous copies would bring single elements; use ", name, "_load=copy, or ",
                       name, "_major=k"));
  const auto check = [&](std::string_view what, int64_t bytes) -> Status {
    if (bytes % kLeastPiece == 0) return Ok();
    return Refused(Cat("asynchronous copies begin at multiples of ", kLeastPiece, " bytes, and the ", what, " of ",
                       source.name, " is ", bytes, " bytes; use ", name, "_load=pack or copy, or pad it"));
  };
  LS_TRY(check("base alignment", source.align));
  for (const SourceDistance& distance : DistancesOf(source)) {
    if (distance.used) LS_TRY(check(distance.name, source.BytesOf(distance.elements)));
  }
  return Ok();
}

int PieceOf(const OperandSource& source, int row_bytes) {
  constexpr int kLeastPieces = 4;  // of a row: a warp copies at most the eight rows after which a swizzle begins again
  int piece = RowAlignment(source);
  while (row_bytes / piece % kLeastPieces != 0) piece /= 2;
  return piece;
}

}  // namespace laneshift::compiler
