// The parts of a GEMM's kernel: both operands are matrices.
#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/build/block_operands.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/build/matrix_loader.h"
#include "compiler/build/matrix_output.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/build/run_scale_loader.h"
#include "compiler/compile.h"
#include "compiler/legality/promotion.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/legality/tma_addressable.h"
#include "compiler/passes.h"
#include "compiler/plan/work_plan.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

ir::WorkSource SourceOfWork(const Contraction& contraction) {
  if (contraction.parts_of_k) return ir::WorkSource::kPartsOfK;
  if (!contraction.grouped) return ir::WorkSource::kStatic;
  return contraction.group_rows > 0 ? ir::WorkSource::kMaskedGroups : ir::WorkSource::kGroups;
}

// Sets of columns in Tensor Memory for what the tensor core reads of A and B besides elements, each for one of so many
// parts of a block of K.
struct BlockSets {
  int parts = 1, sets = 0;
};

// With a set for each slot of the ring the copy of a set waits for no MMA; two, of which one is filled while the other
// is used, are the least. More of them must not make the allocation larger, which is a power of two. Their number does
// not depend on that of slots, with which nothing else of a program changes either. With two the copy of a set waits
// for the MMAs of the block before: accumulators rather overlap, by as many columns as leave the epilogue at once. Sets
// of halves of blocks take fewer columns for as long. `columns`: of a block. `halves`: whether it can be halved.
BlockSets SetsOfBlocks(const Schedule& schedule, const target::Target& target, int columns, bool halves) {
  constexpr int kLeast = 2, kEnough = 3, kEnoughHalves = 5, kMost = 8, kPanel = 64;
  const int accumulator = schedule.rows == RowSide::kM ? schedule.tile_n : schedule.tile_m;
  int sums = schedule.acc_stages * accumulator;
  int parts = 1;
  if (AccumulatorsMayOverlap(schedule)) {
    int missing = sums + kEnough * columns - target.tmem_columns;
    if (missing > 0 && halves) {
      parts = 2;
      columns /= parts;
      missing = sums + kEnoughHalves * columns - target.tmem_columns;
    }
    sums -= std::clamp(base::RoundUp(missing, kPanel), 0, std::max(0, accumulator - kPanel));
  }
  const auto allocated = static_cast<int>(std::bit_ceil(static_cast<unsigned>(sums + kLeast * columns)));
  return {parts, std::clamp((allocated - sums) / columns, kLeast, kMost)};
}

// What else the tensor core reads of A and B: in the slots of the ring after them, or of a ring of what threads store,
// and in Tensor Memory.
class BlockParts {
 public:
  BlockParts(const Schedule& schedule, const target::Target& target, KernelParts& parts)
      : schedule_(schedule), target_(target), parts_(parts) {}

  void AddScales(const BlockTiles& tiles, std::string_view name, bool by_threads) {
    // What the slots held goes on to the sets of at least two blocks: together as much as useful slots of operands.
    constexpr int kStages = 4;
    if (by_threads && slots_.stored_ring < 0)
      slots_.stored_ring = AddChannel({.name = "factors", .stages = kStages, .own = true});
    slots_.scales.push_back(Add<ScaleLoader>(tiles, name, by_threads));
  }
  void AddMetadata(int operand_bits) {
    const BlockTiles tiles = MetadataTiles(operand_bits, schedule_.tile_m, schedule_.tile_k);
    slots_.metadata = Add<MetadataLoader>(tiles, "ea", false, ir::MetadataBlock::Depth(operand_bits), schedule_.tile_k);
  }
  void Join(std::string_view name, int scale_run) {
    if (schedule_.rows == RowSide::kN) std::swap(slots_.row_tile, slots_.column_tile);
    const bool stored = slots_.stored_ring >= 0;
    const int half = schedule_.tile_k / 2;
    const bool halves = scale_run > 0 && !slots_.metadata && half % (scale_run * ir::ScaleBlock::kFactors) == 0;
    const BlockSets sets = SetsOfBlocks(schedule_, target_, columns_, halves);
    for (CopiedBlocks& copied : slots_.scales) copied.first_column /= sets.parts;
    slots_.cells = AddChannel({.name = std::string(name),
                               .space = ir::Space::kTensor,
                               .stages = sets.sets,
                               .rows = ir::kTensorLanes,
                               .columns = columns_ / sets.parts,
                               .is_private = !stored,
                               .stored = stored});
    slots_.parts = sets.parts;
    slots_.scale_run = scale_run;
    parts_.mainloop = std::make_unique<BlockMainloop>(parts_.k, std::move(slots_));
    // Those of one channel are neighbours.
    std::stable_sort(parts_.loaders.begin(), parts_.loaders.end(),
                     [](const auto& a, const auto& b) { return a->target().channel < b->target().channel; });
  }

 private:
  int AddChannel(ir::Channel channel) {
    parts_.channels.push_back(std::move(channel));
    return static_cast<int>(parts_.channels.size()) - 1;
  }
  template <typename Loader, typename... Extra>
  CopiedBlocks Add(const BlockTiles& tiles, std::string_view name, bool by_threads, Extra... extra) {
    const int channel = by_threads ? slots_.stored_ring : slots_.ring;
    std::vector<ir::TileSlot>& slot = parts_.channels[static_cast<size_t>(channel)].tiles;
    const int first = static_cast<int>(slot.size());
    for (int i = 0; i < tiles.count; ++i) slot.push_back({base::Cat(name, i), tiles.layout});
    parts_.loaders.push_back(std::make_unique<Loader>(
        LoadTarget{.path = LoadPath::kTma, .channel = channel, .tile = first}, tiles, extra...));
    const int first_column = columns_;
    columns_ += tiles.columns;
    return {.tiles = tiles, .first_tile = first, .first_column = first_column, .by_threads = by_threads};
  }

  const Schedule& schedule_;
  const target::Target& target_;
  KernelParts& parts_;
  BlockMainloop::Slots slots_{.ring = 0};
  int columns_ = 0;
};

// Scale factors of the instruction's rows and of its columns, and the metadata of a sparse A.
void AddBlocks(const Contraction& contraction, const Schedule& schedule, const target::Target& target,
               KernelParts& parts) {
  BlockParts blocks(schedule, target, parts);
  const auto scaling = contraction.BlockScaling();
  const auto add = [&](Operand operand, bool by_threads) {
    const bool of_a = operand == Operand::kA;
    const int extent = of_a ? schedule.tile_m : schedule.tile_n;
    blocks.AddScales(ScaleTiles(operand, *scaling, extent, schedule.tile_k), of_a ? "sa" : "sb", by_threads);
  };
  if (scaling) {
    const bool rows_along_n = schedule.rows == RowSide::kN;
    add(rows_along_n ? Operand::kB : Operand::kA, schedule.scale_warps != ScaleWarps::kNone);
    add(rows_along_n ? Operand::kA : Operand::kB, schedule.scale_warps == ScaleWarps::kAll);
  }
  if (contraction.IsSparse()) blocks.AddMetadata(contraction.OperandBits());
  blocks.Join(scaling ? "scales" : "metadata", scaling ? scaling->run : 0);
}

// The metadata of a sparse A in the slots of A, from which the role that multiplies reads them.
void AddSlotMetadata(const Contraction& contraction, const Schedule& schedule, KernelParts& parts) {
  std::vector<ir::TileSlot>& slot = parts.channels.front().tiles;
  const int bits = contraction.OperandBits(), depth = ir::MetadataBlock::Depth(bits);
  const BlockTiles tiles = MetadataTiles(bits, schedule.tile_m, schedule.tile_k);
  parts.metadata = {.tile = static_cast<int>(slot.size()), .numbered = schedule.tile_k < depth};
  parts.loaders.push_back(std::make_unique<MetadataLoader>(
      LoadTarget{.path = LoadPath::kTma, .channel = 0, .tile = parts.metadata.tile}, tiles, depth, schedule.tile_k));
  for (int i = 0; i < tiles.count; ++i) slot.push_back({base::Cat("ea", i), tiles.layout});
}

// Those that the role that promotes applies to sums: in the slots of the ring after the operands, or, if another role
// takes these, of a separate ring.
void AddScaleTiles(const Contraction& contraction, const Schedule& schedule, const target::Target& target,
                   const OperandParts& cluster, KernelParts& parts) {
  SlotScales& scales = parts.terms.scale_tiles;
  scales.a_vector = !contraction.a.HasAlignedScaleRows();
  scales.b_vector = !contraction.b.HasAlignedScaleRows();
  // Rows of a group begin within a line, and so do those of a block of K.
  scales.aligned = parts.source != ir::WorkSource::kGroups && !scales.a_vector;
  if (target.mma.AccumulatesInTensorMemory()) {
    scales.ring = static_cast<int>(parts.channels.size());
    parts.channels.push_back({.name = "scales", .stages = kUsefulStages, .own = true});
  }
  std::vector<ir::TileSlot>& slot = parts.channels[static_cast<size_t>(scales.ring)].tiles;
  const auto add = [&](Operand operand, const RunScaleTiles& tiles) {
    const int first = static_cast<int>(slot.size());
    const std::string_view name = operand == Operand::kA ? "sa" : "sb";
    for (int i = 0; i < tiles.count; ++i)
      slot.push_back({tiles.count == 1 ? std::string(name) : base::Cat(name, i), tiles.layout});
    parts.loaders.push_back(
        std::make_unique<RunScaleLoader>(LoadTarget{.path = LoadPath::kTma, .channel = scales.ring, .tile = first},
                                         operand, tiles, cluster, parts.source, scales.packed));
    return first;
  };
  constexpr int kAlignedLines = ir::SharedLayout::kCopyAlignment / (ir::kFactorsOfLine * 4);
  const int more = scales.aligned ? 0 : 1;
  const int count = schedule.tile_m + more > kLargestBox ? 2 : 1, rows = schedule.tile_m / count;
  const int lines = base::RoundUp(rows / ir::kFactorsOfLine + more, kAlignedLines);
  scales.of_a = add(Operand::kA, {RunScaleTile(Operand::kA, lines), count, rows, scales.a_vector});
  scales.rows_of_tile = rows;
  const int runs = ir::ScaleRunsOfTile(schedule.tile_n);
  RunScaleTiles of_b{.layout = RunScaleTile(Operand::kB, runs)};
  if (scales.b_vector) of_b = {.layout = RunScaleTile(Operand::kB, kAlignedLines), .count = runs, .vector = true};
  scales.of_b = add(Operand::kB, of_b);
}

// Whether there are more tiles than SMs; of groups, of which half of the room of each is filled.
bool HasWaves(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  const int64_t rows = contraction.group_rows > 0 ? contraction.group_rows / 2 : contraction.m;
  const int64_t batch = contraction.grouped && contraction.group_rows == 0 ? 1 : contraction.batch;
  return base::CeilDiv<int64_t>(rows, schedule.tile_m) * base::CeilDiv<int64_t>(contraction.n, schedule.tile_n) *
             batch >
         target.default_sm_count;
}

}  // namespace

ir::Program BuildGemm(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  const bool scales_in_slots = ScalesComeInSlots(contraction, schedule, target);
  // A slot with scale factors is full sooner with fewer copies in it (measured on an H200). Where CTAs share tiles
  // along both axes, nothing but the parts of the others keeps one from passing a lap of a third.
  const bool along_both = schedule.cluster_m > 1 && schedule.cluster_n > 1;
  const bool whole = scales_in_slots && !target.mma.AccumulatesInTensorMemory() && !along_both;
  const OperandParts cluster(schedule, ir::HasSplitGateUp(contraction.epilogue()), whole);
  MatrixOperand a = MatrixOperandOf(contraction, schedule, Operand::kA, target);
  const MatrixOperand b = MatrixOperandOf(contraction, schedule, Operand::kB, target);
  const bool resident = schedule.b_keep > 0;
  const ir::RowMap rows = contraction.grouped ? ir::RowMap::kGroups : ir::RowMap::kMatrix;
  const WorkPlan work = PlanWork(contraction, schedule);
  KernelParts parts{.name = contraction.HasDeviceSizes() ? "grouped_gemm" : "gemm",
                    .operand_type = contraction.a.type(),
                    .operand_bits = contraction.OperandBits(),
                    .sparse_a = contraction.IsSparse(),
                    .saturates = contraction.sum == SumPrecision::kSaturate,
                    .source = SourceOfWork(contraction),
                    .indexes_a = contraction.a.indexed,
                    .terms = TermsOf(contraction, rows, target),
                    .slices_apart = contraction.AddsSlicesApart(schedule),
                    .has_waves = HasWaves(contraction, schedule, target),
                    .row_step = DivideRows(work, contraction, schedule, target).step,
                    .k = {.tile_k = schedule.tile_k}};
  const bool early = schedule.early == EarlyLoads::kB;
  const bool gathers = contraction.a.indexed && schedule.a_load == LoadPath::kTma;
  // The first products of a tile whose sums are promoted may be issued early, and are of all of its rows.
  const bool by_rows = schedule.a_load == LoadPath::kTma && a.tile.outer_axis == ir::Axis::kM;
  if (parts.row_step > 0 && by_rows && !parts.terms.promotes) a.LeaveOutRows(cluster, schedule.rows);
  LoadTarget of_a{.path = schedule.a_load, .channel = 0};
  parts.loaders.reserve(5);
  if (gathers) {
    const int at_once = target.Has(target::Feature::kTmaGather) ? 4 : 1;
    of_a.gather_warps = RowLoader::WarpsFor(a, cluster, at_once);
    parts.loaders.push_back(std::make_unique<RowLoader>(of_a, a, cluster, at_once));
  } else {
    parts.loaders.push_back(std::make_unique<MatrixLoader>(of_a, a, cluster));
  }
  if (resident) {
    parts.channels.push_back({.name = "a", .stages = schedule.stages, .tiles = {{"a", a.tile}}});
    parts.channels.push_back({.name = "b", .stages = schedule.b_keep, .tiles = {{"b", b.tile}}, .resident = true});
    const LoadTarget of_b{.path = schedule.b_load, .channel = 1, .early = early};
    parts.resident = std::make_unique<ResidentMatrixLoader>(of_b, b, parts.k, cluster);
  } else {
    parts.channels.push_back({.name = "ab", .stages = schedule.stages, .tiles = {{"a", a.tile}, {"b", b.tile}}});
    const LoadTarget of_b{.path = schedule.b_load, .channel = 0, .tile = 1, .early = early};
    parts.loaders.push_back(std::make_unique<MatrixLoader>(of_b, b, cluster));
  }
  if (target.mma.AccumulatesInTensorMemory() && (contraction.BlockScaling() || contraction.IsSparse())) {
    AddBlocks(contraction, schedule, target, parts);
  } else {
    if (contraction.IsSparse()) AddSlotMetadata(contraction, schedule, parts);
    if (scales_in_slots) AddScaleTiles(contraction, schedule, target, cluster, parts);
    parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0, .resident = resident ? 1 : -1});
  }
  parts.output = std::make_unique<MatrixOutput>(contraction);
  return JoinKernel(std::move(parts), schedule, target);
}

}  // namespace laneshift::compiler
