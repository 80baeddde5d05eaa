#include "compiler/legality/check_blocks.h"

#include "base/text.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/legality/tma_addressable.h"
#include "ir/element_type.h"
#include "ir/metadata_block.h"
#include "ir/mma_support.h"
#include "ir/problem_keys.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

}  // namespace

// Scale factors are in blocks of 128 rows and four runs of K, and the tensor core has all rows of a tile.
Status CheckBlockScales(const Contraction& contraction, const Schedule& s, const target::Target& target) {
  const auto scaling = contraction.BlockScaling();
  if (!scaling) {
    if (s.scale_warps == ScaleWarps::kNone) return Ok();
    return Refused("warps store scale factors to Tensor Memory only with scale=mx or nv; use scale_warps=none");
  }
  if (!target.mma.ScalesBlocks())
    return Refused(Cat("scale=", ir::NameOf(contraction.scale), " needs matrix instructions with scale factors, which ",
                       target.name, " has not; use scale=tensor or block"));
  const bool rows_along_n = s.rows == RowSide::kN;
  const std::string_view row_axis = rows_along_n ? "n" : "m", column_axis = rows_along_n ? "m" : "n";
  const int rows = rows_along_n ? s.tile_n : s.tile_m, columns = rows_along_n ? s.tile_m : s.tile_n;
  if (rows != ir::ScaleBlock::kRows)
    return Refused(Cat("block scaling with rows=", row_axis, " needs tile ", row_axis, "=", ir::ScaleBlock::kRows,
                       ", not ", rows));
  // CUTLASS begins tiles at halves of a block. Nobody is known to begin them at quarters. One tile that covers all
  // columns begins with a block; of groups only the device knows the rows.
  constexpr int kHalf = ir::ScaleBlock::kRows / 2;
  const int64_t extent = rows_along_n ? contraction.m : contraction.n;
  const bool covers = columns >= extent && !(rows_along_n && contraction.grouped);
  if (columns % kHalf != 0 && !covers)
    return Refused(Cat("with block scaling tile ", column_axis, "=", columns, " is neither all of ", column_axis, "=",
                       extent, " nor whole halves of blocks of scale factors; use ", kHalf, ", ", 2 * kHalf, ", ",
                       3 * kHalf, " or ", 4 * kHalf));
  const int depth = scaling->run * ir::ScaleBlock::kFactors;
  if (s.tile_k % depth != 0)
    return Refused(Cat("with block scaling tile k=", s.tile_k, " is not whole blocks of scale factors; use ", depth,
                       " or ", 2 * depth));
  if (CopiesByThreads(s)) return Refused("block scaling loads operands by bulk copies; use a_load=tma b_load=tma");
  if (s.b_keep > 0) return Refused("block scaling loads B with its scale factors; use b_keep=0");
  return Ok();
}

// Metadata is in blocks of 128 rows, and instructions read twice as much of B as of A.
Status CheckSparse(const Contraction& contraction, const Schedule& s, const target::Target& target) {
  const DataType type = contraction.a.type();
  if (s.rows != RowSide::kM)
    return Refused(
        "only the first operand of a matrix instruction may be sparse, and rows=n swaps A and B; use rows=m");
  if (!ir::MultipliesSparse(target.mma, contraction.Kind()))
    return Refused(Cat("sparse=a of both ", DataTypeName(type),
                       " multiplies by kind::", ir::InfoOf(contraction.Kind()).text,
                       " of tcgen05.mma.sp, which is not for families of chips as ", target.name,
                       "; use the target of one chip, or sparse=none"));
  const bool in_registers = !target.mma.AccumulatesInTensorMemory();
  if (!in_registers && s.tile_m != ir::MetadataBlock::kRows)
    return Refused(Cat("sparse=a needs tile m=", ir::MetadataBlock::kRows, ", not ", s.tile_m));
  const int bits = contraction.OperandBits(), depth = ir::MetadataBlock::Depth(bits);
  const bool halves = in_registers && ir::MetadataRegisters::Holds(bits, depth / 2);
  if (s.tile_k % depth != 0 && !(halves && 2 * s.tile_k == depth))
    return Refused(Cat("with sparse=a tile k=", s.tile_k, " is not whole blocks of metadata",
                       halves ? Cat(" or half of one; use ", depth / 2, ", ", depth) : Cat("; use ", depth), " or ",
                       2 * depth));
  constexpr int kPaddedSpan = 128;  // elements: bulk copies that pad allow no other swizzle
  if (contraction.IsPadded(contraction.a) && s.tile_k / 2 % kPaddedSpan != 0)
    return Refused(Cat("with sparse=a tile k=", s.tile_k, " has ", s.tile_k / 2, " stored ", DataTypeName(type),
                       " of a row, which bulk copies pad in spans of ", kPaddedSpan, "; use ", 2 * kPaddedSpan));
  if (IsByThreads(s.a_load) && Transposes(contraction.a, target))
    return Refused(Cat("sparse=a loads A by bulk copies, which do not transpose, and the tensor core of ", target.name,
                       " reads ", DataTypeName(type), " along k; use ", contraction.a.name, "_major=k"));
  if (IsByThreads(s.a_load)) return Refused("sparse=a loads A by bulk copies; use a_load=tma or pack");
  if (IsByThreads(s.b_load) && !in_registers)
    return Refused("sparse=a loads operands by bulk copies; use b_load=tma or pack");
  if (s.b_load == LoadPath::kAsync)
    return Refused("sparse=a loads no operand by asynchronous copies; use b_load=tma, pack or copy");
  if (s.b_keep > 0 && !in_registers) return Refused("sparse=a loads B with the metadata of A; use b_keep=0");
  constexpr int kLeastSpan = 64;  // bytes of B that an instruction reads along K
  if (const int bytes = static_cast<int>(contraction.b.BytesOf(s.tile_n / s.ctas));
      contraction.b.inner_axis == ir::Axis::kN && !Transposes(contraction.b, target) && bytes % kLeastSpan != 0)
    return Refused(Cat("with sparse=a and ", contraction.b.name, "_major=n rows of ", bytes,
                       " bytes of B are not whole spans of ", kLeastSpan, "; use a tile n that is a multiple of ",
                       s.ctas * 8 * kLeastSpan / ir::BitsOf(type)));
  return Ok();
}

// Blocks of K of which an instruction multiplies 48 bytes of a row. Its scale factors of columns continue after those
// of whole blocks of 128 columns.
Status CheckLongRows(const Schedule& s, const Contraction& contraction, const target::Target& target) {
  if (!target.mma.long_rows)
    return Refused(Cat("tile k=", s.tile_k, " is for matrix instructions of 96 elements of K, which ", target.name,
                       " has not; use a power of two"));
  if (contraction.IsSparse())
    return Refused(Cat("matrix instructions of 96 elements of K are for a dense A; with sparse=a use tile k=",
                       ir::kLongRowTile / 3, " or ", ir::kLongRowTile / 3 * 2, " instead of ", s.tile_k));
  if (s.tile_k != ir::kLongRowTile)
    return Refused(Cat("tile k=", s.tile_k, " is not whole spans of 128 bytes of instructions of 96 elements; use ",
                       ir::kLongRowTile));
  constexpr int kHalf = ir::ScaleBlock::kRows / 2;
  const bool along_m = s.rows == RowSide::kM;
  const int columns = along_m ? s.tile_n : s.tile_m;
  if (columns % kHalf == 0) return Ok();
  return Refused(Cat("with tile k=", s.tile_k, " scale factors continue after whole blocks of ", ir::ScaleBlock::kRows,
                     " columns, and tile ", along_m ? "n=" : "m=", columns, " is not whole halves of them; use ", kHalf,
                     ", ", 2 * kHalf, ", ", 3 * kHalf, " or ", 4 * kHalf));
}

}  // namespace laneshift::compiler
