#include "compiler/legality/tma_addressable.h"

#include <cstdint>
#include <limits>
#include <string>

#include "base/text.h"
#include "compiler/contraction/im2col_box.h"
#include "compiler/legality/schedule_facts.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Axis;
using ir::Operand;

constexpr int64_t kTmaUnit = 16;  // bytes, of the rows that are stored
// Elements in a box of a tensor map that pads them. The innermost extent of the tensor is a multiple of it (CUDA driver
// API, cuTensorMapEncodeTiled: 16U4_ALIGN16B and 16U6_ALIGN16B), and so is the first element of each copy (PTX ISA,
// cp.async.bulk.tensor with sub-byte types).
constexpr int64_t kPaddedBox = 128;
constexpr int64_t kLargestElementStride = 8;

Error Unreachable(const OperandSource& source, const std::string& what) {
  const std::string_view other_path = ir::BitsOf(source.type()) < 8        ? "pad and align it"
                                      : source.kind != SourceKind::kMatrix ? "leave the path to the chooser"
                                      : source.name == "d"                 ? "use d_store=rows, or pad it"
                                                                           : "";
  return MakeError(ErrorCode::kUnsupported,
                   Cat("the TMA cannot reach ", source.name, ": ", what, "; ",
                       other_path.empty() ? Cat("use ", source.name, "_load=pack, or pad it") : other_path));
}

// `padded`: its elements are padded in shared memory.
Status CheckTmaAddresses(const OperandSource& source, int64_t unit, bool padded) {
  const auto check = [&](std::string_view what, int64_t bytes) -> Status {
    if (bytes % unit == 0) return Ok();
    return Unreachable(source, Cat("its ", what, " of ", bytes, " bytes is not a multiple of ", unit));
  };
  if (padded && source.run % kPaddedBox != 0) {
    return Unreachable(source, Cat("its rows of ", source.run, " ", DataTypeName(source.type()),
                                   " are not multiples of ", kPaddedBox, " elements"));
  }
  LS_TRY(check("base alignment", source.align));
  for (const SourceDistance& distance : DistancesOf(source)) {
    if (distance.used) LS_TRY(check(distance.name, source.BytesOf(distance.elements)));
  }
  return Ok();
}

// The limits of im2col tensor maps and of the offsets of their copies.
Status CheckTmaIm2col(const OperandSource& source, const ConvGeometry& geometry) {
  const Im2colBox box = BoxOfX(geometry);
  const int corner = geometry.planes ? 16 : 128;  // lowest is -corner, highest corner - 1
  const int64_t offset_limit = geometry.planes ? 32 : 256;
  for (const int d : {kDepth, kHeight, kWidth}) {
    if (d == kDepth && !geometry.planes) continue;
    const size_t i = static_cast<size_t>(kWidth - d);
    for (const int64_t value : {box.lower[i], box.upper[i]}) {
      if (value < -corner || value >= corner) {
        return Unreachable(source, Cat("its box would begin or end ", value,
                                       " pixels outside the image; the limits are ", -corner, " to ", corner - 1));
      }
    }
    const int64_t offset = (geometry.filter[d] - 1) * geometry.dilation[d];
    if (offset >= offset_limit)
      return Unreachable(
          source, Cat("a filter reach of ", offset, " pixels exceeds the ", offset_limit - 1, " of an im2col offset"));
    if (geometry.stride[d] > kLargestElementStride)
      return Unreachable(source, Cat("stride ", geometry.stride[d], " exceeds the limit of 8 of a tensor map"));
  }
  return Ok();
}

// A copy loads channels of only one group if a block of them ends where the group does.
Status CheckTmaGroups(const Contraction& contraction, const OperandSource& source, int block, std::string_view what) {
  if (contraction.batch == 1 || source.kind != SourceKind::kPixels || source.run % block == 0) return Ok();
  return Unreachable(source, Cat(what, " of ", block, " channels would mix groups of ", source.run));
}

Status CheckTmaLoads(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  const OperandSource& source = contraction.Of(operand);
  switch (source.kind) {
    case SourceKind::kMatrix:
      return Ok();
    case SourceKind::kPixels:
      if (contraction.RowsArePixels()) LS_TRY(CheckTmaGroups(contraction, source, schedule.tile_k, "a block"));
      return contraction.ReadsTaps(operand) ? CheckTmaIm2col(source, contraction.geometry) : Ok();
    case SourceKind::kFilter:
      if (schedule.a_load != LoadPath::kCopy || TapsAreEven(source, true)) return Ok();
      return Unreachable(source, "its taps do not follow each other without gaps, as gathered activations do");
  }
  __builtin_unreachable();
}

Status CheckTmaStores(const Contraction& contraction, const Schedule& schedule, const OperandSource& source) {
  if (const int64_t bytes = source.BytesOf(source.memory.Inner()); bytes % kTmaUnit != 0)
    return Unreachable(source, Cat("its rows are of ", bytes, " bytes, and stores clip only at multiples of 16"));
  // All CTAs of a cluster store a tile, though it may be outside of D.
  const int rows = schedule.tile_m * schedule.cluster_m, columns = schedule.tile_n * schedule.cluster_n;
  if (source.kind == SourceKind::kFilter && source.memory.extents[ir::StoredTensor::kImage] != contraction.m &&
      contraction.m % rows != 0) {
    return Unreachable(source,
                       Cat("tiles of ", rows, " filters would overwrite those of the next group of ", contraction.m));
  }
  if (source.kind != SourceKind::kPixels) return Ok();
  // An im2col tensor map whose corners are not 0 is illegal for stores (measured on an H200).
  if (contraction.geometry.padded_q != contraction.geometry.output[kWidth])
    return Unreachable(source, "its rows are shorter than those of the loads, and bulk stores cannot skip gaps");
  return CheckTmaGroups(contraction, source, columns, "tiles");
}

}  // namespace

Status CheckTmaAddressable(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  const OperandSource& source = contraction.Of(operand);
  if (operand == Operand::kB && source.inner_axis == Axis::kN && ir::HasSplitGateUp(contraction.epilogue())) {
    return MakeError(
        ErrorCode::kUnsupported,
        Cat("the TMA cannot reach ", source.name,
            ": the columns of a gated pair are in two halves of a row, of which it would load single elements; use ",
            source.name, "_load=copy, or ", source.name, "_major=k"));
  }
  const bool multiplied = operand == Operand::kA || operand == Operand::kB;
  const bool padded = multiplied && contraction.IsPadded(source);
  LS_TRY(CheckTmaAddresses(source, padded ? ir::TmaAlignmentOf(source.type(), contraction.Kind()) : kTmaUnit, padded));
  return operand == Operand::kD ? CheckTmaStores(contraction, schedule, source)
                                : CheckTmaLoads(contraction, schedule, operand);
}

bool ScalesComeInSlots(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  const bool pays = !target.mma.AccumulatesInTensorMemory() || schedule.rows == RowSide::kN;
  if (contraction.scale != Scaling::kBlock || !pays || contraction.a.indexed || CopiesByThreads(schedule)) return false;
  // Coordinates have 31 bits, also in a vector of all of them.
  const auto reaches = [](const OperandSource& source) {
    return source.scales.Elements() <= std::numeric_limits<int32_t>::max();
  };
  return reaches(contraction.a) && reaches(contraction.b);
}

bool Transposes(const OperandSource& source, const target::Target& target) {
  // tcgen05 reads tf32 along M or N only from 32-byte atoms, which SharedLayout does not have; wgmma only along K.
  constexpr int kMostBits = 16;
  const int bits = ir::BitsOf(source.type());
  return source.inner_axis != Axis::kK && (bits < target.mma.least_mn_major_bits || bits > kMostBits);
}

}  // namespace laneshift::compiler
