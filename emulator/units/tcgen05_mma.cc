#include "emulator/units/tcgen05_mma.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "emulator/units/sparse_metadata.h"

namespace laneshift::emulator {
namespace {

Error Bad(const MmaRequest& r, const std::string& why, ErrorCode code = ErrorCode::kInvalidArgument) {
  return MakeError(code, base::Cat("tcgen05.mma kind::", NameOf(r.qualifiers.kind), ": ", why));
}

bool AnyDisabled(const MmaRequest& r) {
  return std::any_of(r.disabled_lanes.begin(), r.disabled_lanes.end(), [](uint32_t word) { return word != 0; });
}

// Combinations that the opcode table has no form for (PTX ISA, tcgen05.mma syntax).
Status CheckForm(const MmaRequest& r, const Tcgen05Descriptor& shape, const Policies& policies) {
  const MmaQualifiers& q = r.qualifiers;
  const bool ws = q.weight_mode == WeightMode::kWeightStationary, scaled = IsBlockScaled(q.kind);
  if (q.cta_group != 1 && q.cta_group != 2) return Bad(r, base::Cat("cta_group ", q.cta_group));
  if (ws && q.cta_group != 1) return Bad(r, ".ws needs cta_group::1");
  if (ws && (scaled || AnyDisabled(r) || r.shift_a)) return Bad(r, ".ws takes no scale factors, lane mask or .ashift");
  if (r.zero_columns && !ws) return Bad(r, "a zero-column mask needs .ws");
  if (scaled && (AnyDisabled(r) || r.shift_a)) return Bad(r, "block-scaled kinds take no lane mask and no .ashift");
  const bool ignored = q.kind == Tcgen05Kind::kI8 && policies.integer_scale_d == IntegerScaleD::kIgnored;
  if (r.scale_d != 0 && q.kind != Tcgen05Kind::kF16 && q.kind != Tcgen05Kind::kTf32 && !ignored) {
    return Bad(r, "scale-input-d exists for kind::f16 and kind::tf32 only");
  }
  if (r.scale_d < 0 || r.scale_d > 15) return Bad(r, base::Cat("scale-input-d ", r.scale_d, " must be 0 to 15"));
  const bool tensor_a = std::holds_alternative<TensorAddress>(r.a);
  if (tensor_a && shape.LongRows())
    return Bad(r, "K=96 with A in Tensor Memory: where A lies is not known here", ErrorCode::kUnsupported);
  if (r.shift_a && !tensor_a) return Bad(r, ".ashift needs A in Tensor Memory");
  if (r.shift_a && shape.m != 128 && shape.m != 256)
    return Bad(r, base::Cat(".ashift needs M 128 or 256, not ", shape.m));
  if (tensor_a && shape.transpose_a) return Bad(r, "A in Tensor Memory cannot be transposed");
  if (r.metadata.has_value() != (q.sparsity == SparseForm::kSparse)) {
    return Bad(r, "sparsity metadata belongs to .sp, and only to it");
  }
  if (r.metadata && r.shift_a && policies.ashift_metadata == AshiftMetadata::kRefused) {
    return Bad(r, "policy ashift_metadata refuses .sp.ashift", ErrorCode::kUnsupported);
  }
  if (r.metadata && scaled && policies.sparse_scales == SparseScales::kRefused) {
    return Bad(r, "policy sparse_scales refuses scale factors with sparse A", ErrorCode::kUnsupported);
  }
  if (shape.sparsity_selector >= 2 && policies.high_selector == HighSelector::kRefused) {
    return Bad(r, base::Cat("policy high_selector refuses the sparsity selector ", shape.sparsity_selector),
               ErrorCode::kUnsupported);
  }
  return Ok();
}

// An operand's tile in shared memory: `rows` rows of one K step.
OperandTile TileOf(const Tcgen05Descriptor& shape, bool is_a, int rows, int k_bytes) {
  OperandTile tile;
  const ElementType type = is_a ? shape.a : shape.b;
  tile.major = (is_a ? shape.transpose_a : shape.transpose_b) ? OperandMajor::kMn : OperandMajor::kK;
  tile.mn = rows;
  tile.k_bytes = k_bytes;
  tile.element_bytes = std::max(1, BitsOf(type) / 8);
  return tile;
}

Status CheckSwizzle(const MmaRequest& r, const MatrixDescriptor& d, const OperandTile& tile, const char* name) {
  const bool atoms = d.swizzle == MatrixSwizzle::k128BAtom32B;
  if (tile.major == OperandMajor::kMn && atoms != (tile.element_bytes == 4)) {
    return Bad(r, base::Cat(name, " is transposed with swizzle ", NameOf(d.swizzle), "; ",
                            tile.element_bytes == 4 ? "tf32 needs" : "only tf32 takes", " 128B with 32B atoms"));
  }
  if (tile.k_bytes == 64 && d.swizzle == MatrixSwizzle::k32B) {
    return Bad(r, base::Cat(name, " of a sparse instruction needs 64 bytes of K per row; 32B swizzle has 32"),
               ErrorCode::kUnsupported);
  }
  return Ok();
}

// The request's mask as lanes of each CTA.
void PlaceMask(PlannedMma& plan) {
  const bool rows = plan.policies.mask_index == MaskIndex::kRow && UsesHalfLanes(plan.layout);
  for (size_t cta = 0; cta < 2; ++cta) {
    const size_t words = plan.policies.mask_order == MaskOrder::kOddFirst && plan.ctas == 2 ? 1 - cta : cta;
    const uint32_t* mask = plan.request.disabled_lanes.data() + 4 * words;
    for (int bit = 0; bit < (rows ? plan.shape.m / plan.ctas : 128); ++bit) {
      if ((mask[bit / 32] >> (bit % 32) & 1) == 0) continue;
      const int lane = rows ? LaneOf(plan.layout, bit, 0, plan.request.d.lane) : bit;
      plan.disabled[cta][static_cast<size_t>(lane / 32)] |= 1u << (lane % 32);
    }
  }
}

// Which policies the result depends on.
void NotePolicies(PlannedMma& plan) {
  const MmaRequest& r = plan.request;
  plan.used = PoliciesOf(r.qualifiers, plan.shape);
  const bool tensor_a = std::holds_alternative<TensorAddress>(r.a);
  if (r.shift_a) {
    plan.used.Add(Policy::kAshiftTime);
    plan.used.Add(Policy::kShiftScope);
    if (r.metadata) plan.used.Add(Policy::kAshiftMetadata);
  }
  if (AnyDisabled(r) && UsesHalfLanes(plan.layout)) plan.used.Add(Policy::kMaskIndex);
  if (AnyDisabled(r) && plan.ctas == 2) plan.used.Add(Policy::kMaskOrder);
  if (plan.layout == DataPathLayout::kG && (tensor_a || r.metadata)) plan.used.Add(Policy::kRowCopies);
  if (tensor_a && BitsOf(plan.shape.a) == 6) plan.used.Add(Policy::kSixBitContainer);
  if (r.zero_columns && *r.zero_columns != 0) {
    plan.used.Add(Policy::kZeroSpans);
    plan.used.Add(Policy::kZeroPolarity);
  }
  if (plan.a.base_offset != 0 || plan.b.base_offset != 0) plan.used.Add(Policy::kBaseOffset);
  if (plan.shape.d == AccumulatorType::kS32 && r.scale_d != 0) plan.used.Add(Policy::kIntegerScaleD);
}

// The tensor memory that a CTA's part reads and writes besides its shared operands.
Status PlanTensorRanges(const MmaRequest& r, const PlannedMma& plan, int cta, Touched& touched) {
  const Tcgen05Descriptor& shape = plan.shape;
  const int rows = shape.m / plan.ctas, groups = GroupsOf(plan.layout);
  const auto add = [](std::vector<TensorRange>& to, const TensorRange& range, const char* what) -> Status {
    LS_TRY(CheckRange(range, what));
    to.push_back(range);
    return Ok();
  };
  for (const TensorRange& range : RowRanges(plan.layout, rows, r.d.lane, r.d.column, shape.n / groups)) {
    if (r.accumulate) LS_TRY(add(touched.tensor_reads, range, "D"));
    // Lanes whose output is disabled keep their contents: whole words of the mask are worth telling apart.
    for (int lane = range.lane; lane < range.lane + range.lanes;) {
      const int end = std::min(range.lane + range.lanes, lane / 32 * 32 + 32);
      const bool all = plan.disabled[static_cast<size_t>(cta)][static_cast<size_t>(lane / 32)] == 0xffffffffu;
      if (!all) {
        LS_TRY(add(touched.tensor_writes,
                   {static_cast<uint16_t>(lane), static_cast<uint16_t>(end - lane), range.column, range.columns}, "D"));
      }
      lane = end;
    }
  }
  if (const auto* a = std::get_if<TensorAddress>(&r.a)) {
    for (const TensorRange& range : RowRanges(plan.layout, rows, r.d.lane, a->column, 8)) {
      LS_TRY(add(touched.tensor_reads, range, "A"));
    }
    if (plan.shift) {
      const Touched& moved = plan.shift->touched;
      touched.tensor_writes.insert(touched.tensor_writes.end(), moved.tensor_writes.begin(), moved.tensor_writes.end());
    }
  }
  if (r.metadata) {
    LS_TRY(add(touched.tensor_reads, MetadataColumns(r.qualifiers.kind, shape.sparsity_selector, *r.metadata),
               "metadata"));
  }
  if (IsBlockScaled(r.qualifiers.kind)) {
    const auto columns = [&](int count, int id) {
      const int cells = (id + shape.scale_factors + 3) / 4;
      return static_cast<uint16_t>((cells - 1) * ScaleCellStep(count) + (count + 31) / 32);
    };
    LS_TRY(
        add(touched.tensor_reads, {0, 128, r.scales_a.column, columns(rows, shape.scale_a_id)}, "scale factors of A"));
    // The 2x2 data path keeps the two halves of N next to each other in the lanes, the others one after another in
    // columns.
    LS_TRY(add(touched.tensor_reads, {0, 128, r.scales_b.column, columns(shape.n / groups, shape.scale_b_id)},
               "scale factors of B"));
  }
  return Ok();
}

// The granules of operands in shared memory whose elements are narrower than the bytes they are padded to.
Result<std::shared_ptr<const std::vector<PaddedGranules>>> PaddedOf(const PlannedMma& plan, bool shared_a,
                                                                    const SharedWindow& window) {
  std::vector<PaddedGranules> padded;
  const auto add = [&](ElementType type, const MatrixDescriptor& descriptor, const OperandTile& tile) -> Status {
    if (PackingOf(plan, type, false) != Packing::kPadded) return Ok();
    GranuleSet granules;
    LS_TRY(AddGranules(descriptor, tile, window, granules));
    padded.push_back({granules.Words(), static_cast<uint32_t>(2 * BitsOf(type))});
    return Ok();
  };
  LS_TRY(add(plan.shape.b, plan.b, plan.tile_b));
  if (shared_a) LS_TRY(add(plan.shape.a, plan.a, plan.tile_a));
  if (padded.empty()) return std::shared_ptr<const std::vector<PaddedGranules>>();
  return std::make_shared<const std::vector<PaddedGranules>>(std::move(padded));
}

Status CheckLanes(const MmaRequest& r, DataPathLayout layout) {
  const bool half = UsesHalfLanes(layout);
  if (r.d.lane != 0 && !(half && r.d.lane == 16)) {
    return Bad(r, base::Cat("D at lane ", r.d.lane, ": this shape needs lane 0", half ? " or 16" : ""));
  }
  if (const auto* a = std::get_if<TensorAddress>(&r.a); a != nullptr && a->lane != r.d.lane) {
    return Bad(r, base::Cat("A at lane ", a->lane, " with D at lane ", r.d.lane, ": both must start at the same lane"));
  }
  return Ok();
}

}  // namespace

Packing PackingOf(const PlannedMma& plan, ElementType type, bool in_tensor_memory) {
  const Tcgen05Kind kind = plan.request.qualifiers.kind;
  if (kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4) return Packing::kNibbles;
  if (BitsOf(type) >= 8) return Packing::kPlain;
  if (!in_tensor_memory) return Packing::kPadded;
  return plan.policies.six_bit_container == SixBitContainer::kLow ? Packing::kContainers : Packing::kMiddleContainers;
}

Result<PlannedMma> PlanMma(const MmaRequest& request, std::span<const SharedWindow> windows, const Policies& policies) {
  PlannedMma plan;
  plan.request = request;
  plan.policies = policies;
  LS_ASSIGN(plan.shape, DecodeInstructionDescriptor(request.qualifiers, request.instruction, policies));
  LS_TRY(CheckForm(request, plan.shape, policies));
  const Tcgen05Descriptor& shape = plan.shape;
  plan.ctas = request.qualifiers.cta_group;
  LS_CHECK(static_cast<int>(windows.size()) == plan.ctas, "windows ", windows.size(), " for cta_group ", plan.ctas);
  plan.layout = LayoutOf(request.qualifiers, shape.m, policies);
  plan.multiplies = int64_t{1} * shape.m * shape.n * shape.k;
  LS_TRY(CheckLanes(request, plan.layout));
  PlaceMask(plan);
  plan.zero_columns.zero.assign(static_cast<size_t>(shape.n), false);
  if (request.zero_columns) {
    LS_ASSIGN(plan.zero_columns, DecodeZeroColumns(*request.zero_columns, shape, policies));
  }

  const int a_bytes = shape.LongRows() ? 48 : 32;
  const int b_bytes = request.qualifiers.sparsity == SparseForm::kSparse ? 64 : a_bytes;
  plan.tile_a = TileOf(shape, true, shape.m / plan.ctas, a_bytes);
  plan.tile_b = TileOf(shape, false, shape.n / plan.ctas + plan.zero_columns.shift, b_bytes);
  LS_ASSIGN(plan.b, DecodeTcgen05Descriptor(request.b, policies, request.qualifiers.long_rows));
  LS_TRY(CheckSwizzle(request, plan.b, plan.tile_b, "B"));
  const auto* a = std::get_if<uint64_t>(&request.a);
  if (a != nullptr) {
    LS_ASSIGN(plan.a, DecodeTcgen05Descriptor(*a, policies, request.qualifiers.long_rows));
    LS_TRY(CheckSwizzle(request, plan.a, plan.tile_a, "A"));
  }
  if (request.shift_a) {
    // The groups of the address's lane: A of these shapes starts at lane 0.
    Policies any_column = policies;
    any_column.shift_column = ShiftColumn::kAny;
    LS_ASSIGN(plan.shift, PlanShift(std::get<TensorAddress>(request.a), any_column));
  }
  NotePolicies(plan);
  for (int cta = 0; cta < plan.ctas; ++cta) {
    Touched& touched = plan.touched[static_cast<size_t>(cta)];
    const SharedWindow& window = windows[static_cast<size_t>(cta)];
    GranuleSet granules;
    LS_TRY(AddGranules(plan.b, plan.tile_b, window, granules));
    if (a != nullptr) LS_TRY(AddGranules(plan.a, plan.tile_a, window, granules));
    touched.shared_reads = granules.Ranges();
    touched.granules = granules.Words();
    LS_ASSIGN(touched.padded, PaddedOf(plan, a != nullptr, window));
    LS_TRY(PlanTensorRanges(request, plan, cta, touched));
    plan.shared_bytes += BytesOf(*touched.granules);
  }
  plan.pieces_b = PieceOffsets(plan.b, plan.tile_b);
  if (a != nullptr) plan.pieces_a = PieceOffsets(plan.a, plan.tile_a);
  return plan;
}

}  // namespace laneshift::emulator
