#include "compiler/build/cta_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/integer_math.h"
#include "compiler/compile.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/passes.h"
#include "ir/element_type.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

// For two math warpgroups and the loading one: together at most what the CTA is launched with, 3 x 168. Gathers next to
// accumulators of at most kNarrow columns need no split.
constexpr RegisterSplit kTmaOnly = {40, 232};
constexpr RegisterSplit kWithCopies = {88, 208};
constexpr RegisterSplit kWithManyAddresses = {104, 200};
constexpr RegisterSplit kThreeWarpgroups = {32, 160};  // of 4 x 128
// Registers that kTmaOnly leaves to the thread that issues bulk copies for where they begin.
constexpr int kFewStarts = 16;
constexpr int kNarrow = 128;
constexpr int kWidestSubtile = 64;  // columns
constexpr int kWidestPanel = 256;   // columns
constexpr int kMostElements = 32;   // of a lane at once, that threads store
// Registers of a thread besides those of sums and operands. Besides these, in an epilogue: what leads to its operands;
// for rows of D that threads store an address and bounds each, from the fragment or from staging; and for elements of a
// byte, which are packed in parts. Found by ptxas -v over random kernels.
constexpr int kAddresses = 24, kOperands = 8, kDirectStores = 12, kStagedStores = 22, kByteElements = 12;
constexpr int kWindowColumn = 8;  // for each column that is an element of a window
constexpr int kPlaceInPatch = 2;  // of a run of columns, or of a row the pixels that are left of D

int AccumulatorColumns(const CtaPlan& plan) { return plan.columns * plan.blocks; }

// Load 0: as launched.
RegisterSplit RegistersOf(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, bool promotes) {
  if (plan.in_tensor_memory || schedule.math_warpgroups < 2) return {0, 0};
  if (schedule.math_warpgroups == kMostWarpgroups) return kThreeWarpgroups;
  if (!needs.copies) return needs.start_registers <= kFewStarts ? kTmaOnly : kWithCopies;
  if (AccumulatorColumns(plan) <= kNarrow && !promotes) return {0, 0};
  return needs.many_addresses ? kWithManyAddresses : kWithCopies;
}

// Of a thread of the consumers, as launched or as they are split.
int MostRegisters(const CtaPlan& plan, const Schedule& schedule) {
  constexpr int kMost = 255, kOfSm = 64 << 10, kUnit = 8;
  if (plan.registers.math > 0) return plan.registers.math;
  const int warpgroups = 1 + schedule.math_warpgroups + (schedule.scale_warps == ScaleWarps::kNone ? 0 : 1);
  return std::min(kMost, kOfSm / (32 * ir::kWarpgroupWarps * warpgroups) / kUnit * kUnit);
}

// Whether the epilogue has operands.
bool HasOperands(const EpilogueTerms& terms) {
  return terms.adds_c || terms.bias != BiasAxis::kNone || terms.scale == Scaling::kRow || !terms.steps.empty();
}

int EpilogueAddresses(const EpilogueTerms& terms, StorePath store) {
  const bool staged = store == StorePath::kRows || (store == StorePath::kTma && terms.rows == ir::RowMap::kGroups);
  const int stores = store == StorePath::kDirect ? kDirectStores : staged ? kStagedStores : 0;
  return kAddresses + (HasOperands(terms) ? kOperands : 0) + stores + (ir::BitsOf(terms.type) <= 8 ? kByteElements : 0);
}

// Rows of the accumulator that a lane has elements of.
int RowsAcross(const ir::FragmentLayout& layout) { return layout.kind == ir::FragmentKind::kRowPerLane ? 1 : 2; }

// Registers that a lane needs for its elements of a matrix: one for each, or half of one where elements have 16 bits or
// fewer, or two where each is loaded if it lies inside, and addresses where each is of another row. A derivative at
// elements of the matrix depends on nothing else: ptxas computes it as soon as they are there, as f32.
int MatrixRegisters(const CtaPlan& plan, const CtaNeeds& needs, const EpilogueTerms& terms, DataType type,
                    bool derivative, int columns) {
  const ir::FragmentLayout layout{plan.fragment, columns};
  const int elements = layout.Registers();
  const bool words = type == DataType::kF32 || derivative;
  const int values = needs.single_accesses ? 2 * elements : words ? elements : elements / 2;
  // Elements of other rows are an address each, of pixels also what it follows from.
  const int address = terms.rows != ir::RowMap::kPixels ? 2 : terms.patches ? 3 + kPlaceInPatch : 3;
  return values + (plan.rows_along_n ? address * elements / RowsAcross(layout) : 0);
}

// The same of a step whose operand is a matrix.
int MatrixRegisters(const CtaPlan& plan, const CtaNeeds& needs, const EpilogueTerms& terms, const EpilogueStep& step,
                    int columns) {
  const bool derivative = ir::InfoOf(step.kind).action == ir::StepAction::kDerivative;
  return MatrixRegisters(plan, needs, terms, ir::OperandTypeOf(step, terms.type), derivative, columns);
}

// Of the matrices that a panel is combined with.
int LoadedRegisters(const CtaPlan& plan, const CtaNeeds& needs, const EpilogueTerms& terms, int columns) {
  int registers = terms.adds_c ? MatrixRegisters(plan, needs, terms, terms.c_type, false, columns) : 0;
  for (const EpilogueStep& step : terms.steps) {
    if (ir::InfoOf(step.kind).operand != ir::StepOperand::kMatrix) continue;
    registers += MatrixRegisters(plan, needs, terms, step, columns);
  }
  return registers;
}

// Registers that a lane needs for a panel: of its elements and of matrices, of a vector one for each row or column that
// the lane has.
int PanelRegisters(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
                   int columns) {
  const ir::FragmentLayout layout{plan.fragment, columns};
  const int elements = layout.Registers();
  const int across = RowsAcross(layout);
  const int along = elements / across;
  const int row_vector = plan.rows_along_n ? along : across, column_vector = plan.rows_along_n ? across : along;
  int registers = elements + LoadedRegisters(plan, needs, terms, columns);
  // Partial sums of other CTAs. Unless a bulk store keeps the panels apart, ptxas loads the operands of the next one
  // early.
  if (DividesK(schedule)) registers += 2 * elements;
  if (schedule.d_store == StorePath::kDirect) {
    if (needs.single_accesses) registers += elements;  // whether each lies inside D
    // Which tap and channel each column is.
    if (needs.program.HasWindows()) registers += kWindowColumn * along;
    // Columns that are rows of D are an address each, of a pixel also what its coordinates follow from.
    if (plan.rows_along_n) registers += (terms.rows == ir::RowMap::kPixels ? 4 : 2) * along;
    if (terms.patches) registers += kPlaceInPatch * (row_vector + column_vector) / (needs.single_accesses ? 1 : 2);
  }
  if (terms.d_scale != OutputScaling::kNone) registers += elements;  // magnitudes, then what is quantised
  if (terms.bias != BiasAxis::kNone) registers += terms.bias == BiasAxis::kM ? row_vector : column_vector;
  if (terms.scale == Scaling::kRow) registers += row_vector + column_vector;
  for (const EpilogueStep& step : terms.steps) {
    switch (ir::InfoOf(step.kind).operand) {
      case ir::StepOperand::kOutput:
        registers += MatrixRegisters(plan, needs, terms, step, columns);
        break;
      case ir::StepOperand::kRowVector:
        registers += row_vector;
        break;
      case ir::StepOperand::kRowReduction:
      case ir::StepOperand::kColumnReduction:
      case ir::StepOperand::kReduction:
        registers += elements;  // those inside D
        break;
      case ir::StepOperand::kColumnVector:
        registers += column_vector;
        break;
      case ir::StepOperand::kNone:
      case ir::StepOperand::kMatrix:
      case ir::StepOperand::kBlocks:
      case ir::StepOperand::kTable:
        break;
    }
  }
  return registers;
}

// Registers that the epilogue cannot use for a panel: those of an accumulator that is in registers itself, and
// addresses. Where sums are promoted, the accumulator of wgmma holds nothing any more, and where CTAs of a cluster
// share the tile neither does.
int HeldRegisters(const CtaPlan& plan, const Schedule& schedule, const EpilogueTerms& terms) {
  const int sums = plan.in_tensor_memory || schedule.cluster_k > 1 ? 0 : AccumulatorColumns(plan) / 2;
  return sums + EpilogueAddresses(terms, schedule.d_store);
}

// Whether a lane has registers for so many columns and for all that the steps need of them, which ptxas may load and
// compute before the first step.
bool Fits(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
          int columns) {
  return HeldRegisters(plan, schedule, terms) + PanelRegisters(plan, needs, schedule, terms, columns) <=
         MostRegisters(plan, schedule);
}

// Whether several matrices are accessed by addresses and bounds that steps could share.
bool AccessesMatrices(const EpilogueTerms& terms) {
  const auto matrices = std::count_if(terms.steps.begin(), terms.steps.end(), [](const EpilogueStep& step) {
    return ir::IsMatrix(ir::InfoOf(step.kind).operand);
  });
  return matrices + (terms.adds_c ? 1 : 0) > 1;
}

// Columns of the accumulator that the epilogue treats at once: fewer where the registers of the operands of its steps
// would not fit.
int WidestSubtile(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms) {
  constexpr int kLeastSpan = 32;
  const auto blocks = ir::BlockScalingOf(terms.d_scale);
  const int least = std::max({16, plan.columns_per_output * kLeastSpan * 8 / ir::BitsOf(terms.type),
                              blocks ? plan.columns_per_output * blocks->run : 0});
  int subtile = kWidestSubtile;
  // Threads that store elements hold addresses and bounds for each run of them.
  if (!plan.bulk_stores) subtile = std::min(subtile, kMostElements * 32 / ir::FragmentLayout{plan.fragment, 0}.Rows());
  // Blocks of D that share a scale factor are quantised at once.
  if (blocks) subtile = std::max(subtile, least);
  const auto fits = [&](int columns) {
    const bool of_each = schedule.cluster_k == 1 || columns * schedule.cluster_k <= plan.columns;
    return of_each && Fits(plan, needs, schedule, terms, columns);
  };
  while (subtile > least && !fits(subtile)) subtile /= 2;
  return subtile;
}

// Columns that leave by one bulk store. Subtiles wait for nothing within a panel, and ptxas loads the
// operands of all of them early.
int WidestPanel(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
                int subtile) {
  // Each CTA of a cluster that shares the tile has panels to write.
  if (schedule.cluster_k > 1) return subtile;
  if (plan.in_tensor_memory) return plan.columns;
  const int held = HeldRegisters(plan, schedule, terms) + ir::FragmentLayout{plan.fragment, subtile}.Registers();
  int panel = kWidestPanel;
  while (panel > subtile && held + LoadedRegisters(plan, needs, terms, panel) > MostRegisters(plan, schedule))
    panel /= 2;
  return panel;
}

std::vector<ir::Buffer> BuffersOf(const CtaPlan& plan, const Staging& staging, StorePath store) {
  std::vector<ir::Buffer> buffers;
  for (int consumer = 0; consumer < plan.consumers && store != StorePath::kDirect; ++consumer) {
    buffers.push_back({.name = plan.consumers > 1 ? "out" + std::to_string(consumer) : "out",
                       .layout = staging.layout,
                       .copies = staging.copies,
                       .warps = plan.warps,
                       .sharers = staging.sharers});
  }
  return buffers;
}

// Stages of the one ring of operands for which staging leaves shared memory.
class RingDepth {
 public:
  RingDepth(const CtaNeeds& needs, const target::Target& target)
      : smem_bytes_(target.smem_bytes), ring_(static_cast<size_t>(needs.rings[0])) {
    trial_.channels = needs.program.channels;
    trial_.channels[ring_].stages = 1;
  }
  int With(std::vector<ir::Buffer> buffers) {
    trial_.buffers = std::move(buffers);
    const int spare = smem_bytes_ - PlaceShared(trial_);
    return 1 + std::max(0, spare) / (trial_.channels[ring_].StageBytes() + 2 * ir::kBarrierBytes);
  }

 private:
  const int smem_bytes_;
  const size_t ring_;
  ir::Program trial_;
};

// Stages of a ring that are of use. Where sums are promoted and a CTA has several tiles, a fifth block of K in flight
// gains less than a second copy of D: 4096 x 24576 x 1536 in tiles of 128x192 takes 241.6 us with five stages, and
// 238.6 with four and two copies (H200, 2026-11-27).
int UsefulStages(const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms, bool in_tensor_memory) {
  constexpr int kPromotedDepth = 4 * 128;  // elements of K
  const bool of_several_tiles = needs.may_begin && terms.promotes && !in_tensor_memory;
  return of_several_tiles ? std::min(kUsefulStages, base::CeilDiv(kPromotedDepth, schedule.tile_k)) : kUsefulStages;
}

// The fastest way that costs the ring of operands no stage that is of use, whatever its depth is now; of several rings
// none is cut.
Staging StagingOf(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
                  const target::Target& target) {
  const int subtile = WidestSubtile(plan, needs, schedule, terms);
  std::vector<Staging> stagings =
      StagingsOf({.type = terms.type,
                  .fragment = plan.fragment,
                  .transposed = plan.rows_along_n,
                  .columns = plan.columns,
                  .blocks = plan.blocks,
                  .gated = plan.columns_per_output,
                  .rows_per_output = ir::ColumnsPerOutput(terms.steps) / plan.columns_per_output,
                  .widest = subtile,
                  .widest_panel = WidestPanel(plan, needs, schedule, terms, subtile),
                  .warps = plan.warps,
                  .in_tensor_memory = plan.in_tensor_memory,
                  .next_is_multiplied = plan.in_tensor_memory || terms.promotes,
                  .bulk = plan.bulk_stores});
  if (needs.overlap > 0 || schedule.cluster_k > 1)
    std::erase_if(stagings, [&](const Staging& s) { return plan.columns % s.panel != 0; });
  if (needs.rings.size() != 1 || stagings.size() == 1) return stagings.back();
  RingDepth depth(needs, target);
  const auto depth_with = [&](const Staging& staging) {
    return depth.With(BuffersOf(plan, staging, schedule.d_store));
  };
  const int useful = UsefulStages(needs, schedule, terms, plan.in_tensor_memory);
  const int enough = std::min(depth_with(stagings.back()), std::max(useful, schedule.stages));
  return *std::find_if(stagings.begin(), stagings.end(),
                       [&](const Staging& staging) { return depth_with(staging) >= enough; });
}

// Whether a lane has registers for the panels of the overlap, while it treats the first subtile of them.
bool HoldsOverlap(const CtaPlan& plan, const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms) {
  if (needs.overlap == 0) return false;
  const int subtile = plan.staging.subtile;
  const int columns = base::RoundUp(needs.overlap, plan.staging.panel);
  const int waiting = ir::FragmentLayout{plan.fragment, columns - subtile}.Registers();
  return HeldRegisters(plan, schedule, terms) + PanelRegisters(plan, needs, schedule, terms, subtile) + waiting <=
         MostRegisters(plan, schedule);
}

// Two warpgroups that share a tile multiply during each other's sums anyway, and gain only where these wait for scale
// factors (measured on an H200).
Promotion PromotionOf(const CtaPlan& plan, const Schedule& schedule, const EpilogueTerms& terms) {
  if (!terms.promotes || plan.in_tensor_memory) return Promotion::kTile;
  int sums = 3 * AccumulatorColumns(plan) / 2;  // of two accumulators and the tile
  // With scale factors for each column that a lane holds.
  if (terms.scale == Scaling::kBlock && plan.rows_along_n) sums += AccumulatorColumns(plan) / 2;
  const bool pays = plan.warps == ir::kWarpgroupWarps || terms.scale == Scaling::kBlock;
  if (pays && sums + kAddresses <= MostRegisters(plan, schedule)) return Promotion::kAlternating;
  return plan.blocks > 1 ? Promotion::kByBlock : Promotion::kTile;
}

// Only where sums are promoted the accumulator is free during the epilogue, and only without operands of steps there
// are registers for both. Two accumulators that alternate are another loop.
bool BeginsEarly(const CtaPlan& plan, const CtaNeeds& needs, const EpilogueTerms& terms) {
  return needs.may_begin && terms.promotes && !plan.in_tensor_memory && plan.promotion != Promotion::kAlternating &&
         plan.consumers == 1 && !HasOperands(terms) && terms.d_scale == OutputScaling::kNone;
}

}  // namespace

std::vector<ColumnRun> CtaPlan::Runs() const {
  constexpr int kNarrowRun = 16;  // whose columns have factors of their rows of D next to two accumulators
  std::vector<ColumnRun> runs;
  int column = 0;
  for (const int subtile : SubtilesOf(columns)) {
    const int widest = rows_along_n && !in_tensor_memory ? kNarrowRun : subtile;
    for (const int end = column + subtile; column < end; column += runs.back().columns)
      runs.push_back({column, std::min(widest, end - column)});
  }
  return runs;
}

CtaPlan PlanCta(const CtaNeeds& needs, const Schedule& schedule, const EpilogueTerms& terms,
                const target::Target& target) {
  const int consumers = schedule.consumers == Consumers::kPingpong ? 2 : 1;
  CtaPlan plan{.in_tensor_memory = target.mma.AccumulatesInTensorMemory(),
               .rows_along_n = schedule.rows == RowSide::kN,
               .bulk_stores = schedule.d_store == StorePath::kTma,
               .consumers = consumers,
               .warps = 4 * schedule.math_warpgroups / consumers,
               .columns = needs.program.Columns(),
               .columns_per_output = schedule.rows == RowSide::kN ? 1 : ir::ColumnsPerOutput(terms.steps),
               .buffers = {}};
  const int rows = needs.program.Rows();
  if (!plan.in_tensor_memory) plan.blocks = rows / (kWarpRows * plan.warps);
  plan.registers = RegistersOf(plan, needs, schedule, terms.promotes);
  plan.fragment = ir::AccumulatorFragment(rows / plan.blocks / (plan.warps / 4));
  plan.staging = StagingOf(plan, needs, schedule, terms, target);
  plan.buffers = BuffersOf(plan, plan.staging, schedule.d_store);
  plan.promotion = PromotionOf(plan, schedule, terms);
  plan.begins_early = BeginsEarly(plan, needs, terms);
  plan.reads_overlap_first = HoldsOverlap(plan, needs, schedule, terms);
  plan.steps_share = !AccessesMatrices(terms) || Fits(plan, needs, schedule, terms, plan.staging.subtile);
  return plan;
}

}  // namespace laneshift::compiler
