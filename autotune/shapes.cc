#include "autotune/shapes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "autotune/box_sizes.h"
#include "autotune/machine.h"
#include "autotune/tile_columns.h"
#include "autotune/timing_model.h"
#include "autotune/variants.h"
#include "base/integer_math.h"
#include "compiler/contraction/contraction.h"
#include "compiler/legality/check_direct.h"
#include "compiler/legality/check_early.h"
#include "compiler/legality/check_gemv.h"
#include "compiler/legality/promotion.h"
#include "compiler/legality/resident_operand.h"
#include "compiler/legality/schedule_facts.h"
#include "compiler/plan/work_plan.h"

namespace laneshift::autotune {
namespace {

using compiler::Contraction;
using compiler::SourceKind;
using target::Feature;
using target::Target;

constexpr int kMergedChannels[] = {32, 64};  // of merged groups: wider ones multiply more zeros
constexpr int kMostMergedChannels = 256;     // where only all groups together are whole blocks of K
constexpr int kLeastReuseStages = 3;         // activations in use, being released, and on their way
constexpr int kLeastBlock = 16;              // elements of a block of K
// Extents of an output tile along the rows of the matrix instruction.
constexpr int kRows[] = {128, 64};
constexpr int kTallRows = 256, kTallColumns = 192;    // of two warpgroups with two blocks each
constexpr int kThreeRows = 192, kThreeColumns = 128;  // of three warpgroups that promote
constexpr int kThreeBand = 16;         // rows of tiles of a group, for these: 1 to 2 % faster than 8 (H200)
constexpr int64_t kThreeDepth = 1024;  // of K, below which their epilogues take too long: 4096 x 32768 x 512 with
                                       // scale=block takes 139 us instead of 130 (H200, 2026-11-30)
// Of tiles for ping-pong warpgroups.
constexpr int kPingpongRows[] = {256, 192, 128, 64};
constexpr int kDeepBlock = 256, kDeepBlockColumns = 64;  // of tiles so narrow that a block is short
constexpr int kSlices[] = {2, 3, 4, 6, 8};
constexpr int kSlicesOfPixels[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48};  // where K is all pixels of a batch of images
constexpr double kLeastOccupied = 0.6;                                  // part of the SMs that they occupy
constexpr int kLeastSharedBlocks = 2;                                   // of K, of one of these
constexpr int64_t kLongK = 16384;                                       // of matrices: it may be pixels
constexpr int kMostSlices = 256;                                        // that a schedule can say
// CTAs of a cluster that share a tile, and the part of the SMs on which GPCs have room for such clusters (H200).
constexpr std::pair<int, double> kSharingCtas[] = {{2, 1.0}, {4, 0.91}, {8, 0.85}};
constexpr int kClusterExtents[][2] = {{2, 1}, {1, 2}};
constexpr int kPairRows = 128, kPairColumns = 32;  // of a CTA of a pair; its columns are a multiple
constexpr int64_t kMostResident = 128 << 10;       // bytes of resident B: the rest is enough for a ring
constexpr int64_t kMostResidentBlocks = 64;
constexpr int64_t kMostDirectTaps = 1024;  // that a schedule can say
constexpr int kGemvMath[] = {4, 2, 1}, kGemvStages[] = {2, 4, 8};
constexpr int kLeastResidentRows = 64;             // of a tile: the handoffs of lower ones cost more than resident B
                                                   // saves
constexpr int kLeastResidentColumns = 128;         // of a tile among several along n
constexpr double kMostIdle = 0.05;                 // of the SMs, if their number is not a multiple of the columns
constexpr int kRasters[] = {1, 2, 4, 16, 32, 64};  // in addition to the default
constexpr double kRasterGain = 0.05;               // of the bytes of a wave: less is not worth a schedule
constexpr int kClusterArea = 128 * 128;            // smaller tiles do not read enough from L2 for sharing to pay
constexpr double kSharedPart = 0.5;                // of a tile's rows: so many pay at any size
constexpr int kRowStoreRounds = 3;                 // of tiles, in which the end of the last one matters
constexpr int kLineBits = 8 * 128;                 // of memory
constexpr int64_t kMostEarlyRows = 128;            // of a product that memory binds

// The space with the constraint put in, legal or not, each once; rings are as short as they may be.
class ShapeList {
 public:
  ShapeList(const Problem& problem, const ScheduleConstraint& constraint, const Target& target)
      : problem_(problem),
        reuse_(UsualReuse(problem, constraint)),
        contraction_(compiler::ContractionOf(problem, Schedule{.reuse = reuse_})),
        constraint_(constraint),
        target_(target) {
    const double cached = PublishedMachine(target).l2_bytes * 1e6 * kUseOfL2;
    const auto bytes = [](const compiler::OperandSource& source) {
      return static_cast<double>(source.BytesOf(source.memory.Elements()));
    };
    // What is stored displaces what was loaded.
    bands_matter_ = bytes(contraction_.a) + bytes(contraction_.b) + bytes(contraction_.d) > cached;
    a_stays_ = bytes(contraction_.a) < cached / 4;
  }

  std::vector<Schedule> List() {
    const bool asks = constraint_.Apply({.reuse = Reuse::kIm2col}).reuse == Reuse::kDirect;
    const bool admits = constraint_.Apply({.reuse = Reuse::kDirect}).reuse == Reuse::kDirect;
    if (asks || (admits && IsForCudaCores())) AddDirect();
    if (asks) return std::move(shapes_);
    std::vector<Variant> variants;
    for (const int merge : Merges()) {
      const Schedule merged{.reuse = reuse_, .merge_groups = merge};
      const Contraction contraction = contraction_.Under(problem_, merged);
      for (Variant& variant : VariantsOf(contraction, constraint_, target_)) {
        variant.merge = merge;
        variants.push_back(std::move(variant));
      }
    }
    for (const Variant& variant : variants) {
      // Lanes are shifted and masked in tiles of all 128 lanes: a lower tile is not a schedule, and its refusal would
      // hide a better reason.
      const Schedule asked = constraint_.Apply({.reuse = variant.reuse, .border = variant.border});
      const bool needs_lanes = asked.reuse == Reuse::kLaneShift || asked.border == Border::kMask;
      if (!target_.mma.AccumulatesInTensorMemory()) {
        AddTall(variant);
        AddThree(variant);
      }
      // Promotion to registers after each block would stall inside the ping-pong order.
      if (!target_.mma.AccumulatesInTensorMemory() && !compiler::Promotes(contraction_, target_)) {
        for (const int rows : kPingpongRows) AddPingpong(variant, rows);
      }
      for (const int rows : kRows) {
        if (needs_lanes && rows != 128) continue;
        for (const int columns : columns_.Of(RowSide::kM, rows)) AddDepths(variant, RowSide::kM, rows, columns);
        if (variant.reuse > Reuse::kIm2col) continue;
        for (const int columns : columns_.Of(RowSide::kN, rows)) AddDepths(variant, RowSide::kN, rows, columns);
      }
    }
    return std::move(shapes_);
  }

 private:
  // Of a convolution im2col, unless it is a product of matrices.
  static Reuse UsualReuse(const Problem& problem, const ScheduleConstraint& constraint) {
    const Schedule none = constraint.Apply({.reuse = Reuse::kNone});
    const bool matrices = compiler::ContractionOf(problem, none).a.kind == SourceKind::kMatrix;
    return none.reuse == Reuse::kNone && matrices ? Reuse::kNone : Reuse::kIm2col;
  }
  // Groups of few channels to be multiplied as one: whole blocks of K, or all of them.
  std::vector<int> Merges() const {
    std::vector<int> merges = {1};
    if (contraction_.a.kind != SourceKind::kPixels || contraction_.ChannelGroups() == 1) return merges;
    // CUDA cores were faster for each of 17 depthwise convolutions (H200, 2026-11-26).
    constexpr int64_t kBytesOfDirect = 2;  // of an element
    if (compiler::IsDepthwise(problem_) && contraction_.a.ElementBytes() == kBytesOfDirect) return merges;
    const int64_t all = contraction_.ChannelGroups(), channels = contraction_.geometry.channels;
    const int64_t widest = std::max(channels, contraction_.geometry.filters);
    const auto is_whole = [&](int64_t merge) {
      return all % merge == 0 && (merge == all || channels * merge % kLeastBlock == 0);
    };
    for (const int most : kMergedChannels) {
      int64_t merge = std::min(all, most / widest);
      while (merge > merges.back() && !is_whole(merge)) --merge;
      if (merge > merges.back()) merges.push_back(static_cast<int>(merge));
    }
    if (!is_whole(merges.back()) && all * widest <= kMostMergedChannels) merges.push_back(static_cast<int>(all));
    return merges;
  }

  // Of all of D, without positions that are no output; of groups of rows, of one with the average size.
  int64_t Rows() const {
    return contraction_.grouped ? base::CeilDiv(contraction_.m, contraction_.batch) : contraction_.m;
  }
  int64_t Columns() const { return contraction_.n * (contraction_.grouped ? 1 : contraction_.batch); }

  TileColumns ColumnsOfTiles() const {
    return {.m = Rows(),
            .n = contraction_.n,
            .batch = contraction_.batch,
            .counted = !contraction_.HasDeviceSizes(),
            .sms = target_.default_sm_count};
  }

  void AddDepths(const Variant& variant, RowSide side, int rows, int columns) {
    std::vector<int> depths = variant.depths;
    if (columns <= kDeepBlockColumns && depths.back() == kDeepBlock / 2) depths.push_back(kDeepBlock);
    for (const int depth : depths) {
      Schedule shape = ShapeOf(variant, side, rows, columns);
      shape.tile_k = depth;
      AddClusters(shape);
      AddResident(shape);
      AddSlices(shape);
      AddSharedTiles(shape);
      // Two of the widest may leave no room for scale factors.
      const bool widest = 2 * columns == target_.tmem_columns;
      if (target_.mma.AccumulatesInTensorMemory() && (side == RowSide::kM || widest)) {
        shape.acc_stages = 1;
        Add(shape);
      }
    }
  }

  // What memory bounds, and CUDA cores multiply as fast as it comes.
  bool IsForCudaCores() const {
    if (contraction_.a.kind != SourceKind::kMatrix) return compiler::IsDepthwise(problem_);
    return contraction_.numerics != Numerics::kBatchInvariant &&
           compiler::CheckGemvOperands(contraction_, target_).has_value();
  }
  void AddDirect() {
    const Schedule direct{.acc_stages = 1,
                          .raster = 1,
                          .a_load = LoadPath::kCopy,
                          .b_load = LoadPath::kCopy,
                          .d_store = StorePath::kDirect,
                          .reuse = Reuse::kDirect};
    if (contraction_.a.kind == SourceKind::kMatrix) return AddGemv(direct);
    // Of the whole filter: the first phase of a gradient of x may have fewer.
    const int64_t taps = contraction_.Under(problem_, direct).geometry.taps;
    const int64_t tile_taps = base::RoundUp(std::min(taps, kMostDirectTaps), int64_t{compiler::kDirectTapGroup});
    contraction_.SumsPixels() ? AddDirectGradient(direct, tile_taps) : AddDepthwise(direct, tile_taps);
  }
  std::set<int> BoxesOf(const Schedule& shape, int64_t runs) const {
    return BoxSizes(contraction_.Under(problem_, shape).geometry, runs);
  }
  void AddDepthwise(Schedule shape, int64_t tile_taps) {
    shape.tile_n = compiler::kDirectChannels;
    shape.tile_k = static_cast<int>(tile_taps);
    shape.stages = 2;
    shape.a_load = LoadPath::kTma;
    shape.b_keep = 1;
    for (const int positions : BoxesOf(shape, compiler::kDirectRunsOfWarp)) {
      shape.tile_m = positions;
      int& math = shape.math_warpgroups;
      for (math = compiler::kDirectMostWarpgroups; math > 0; --math) AddPoint(shape);
    }
  }
  // A matrix times a few vectors: lines of a tile, warps, and how many of these divide a block of K.
  void AddGemv(Schedule shape) {
    const bool along_n = contraction_.m <= contraction_.n;
    const auto fits = [&](int vectors) { return vectors >= std::min(contraction_.m, contraction_.n); };
    const auto* vectors = std::find_if(std::begin(compiler::kGemvVectors), std::end(compiler::kGemvVectors), fits);
    shape.rows = along_n ? RowSide::kN : RowSide::kM;
    (along_n ? shape.tile_m : shape.tile_n) = vectors != std::end(compiler::kGemvVectors) ? *vectors : 1;
    for (const int lines : compiler::kGemvLines) {
      (along_n ? shape.tile_n : shape.tile_m) = lines;
      for (const int math : kGemvMath) {
        shape.math_warpgroups = math;
        for (const int stages : kGemvStages) {
          shape.stages = stages;
          for (int copies = 1; copies <= ir::kWarpgroupWarps * math; copies *= 2) AddGemvDepth(shape, copies);
        }
      }
    }
  }
  void AddGemvDepth(Schedule shape, int copies) {
    const int lines = std::max(shape.tile_m, shape.tile_n) * copies / (ir::kWarpgroupWarps * shape.math_warpgroups);
    const int sums = lines * std::min(shape.tile_m, shape.tile_n);
    if (lines < 1 || lines > compiler::kGemvMostLines || sums > compiler::kGemvMostSums) return;
    shape.tile_k = copies * compiler::GemvBlock(contraction_);
    if (copies > 1 && shape.tile_k >= 2 * contraction_.run) return;
    AddPoint(shape);
    AddSlices(shape);
  }

  // The gradients of their filters.
  void AddDirectGradient(Schedule shape, int64_t tile_taps) {
    shape.tile_m = compiler::kDirectGradientChannels;
    shape.tile_n = static_cast<int>(tile_taps);
    shape.stages = 2;
    shape.a_load = shape.b_load = LoadPath::kTma;
    for (const int positions : BoxesOf(shape, 1)) {
      shape.tile_k = positions;
      int& math = shape.math_warpgroups;
      for (math = compiler::kDirectGradientMostWarpgroups; math > 0; --math) AddPoint(shape), AddSlices(shape);
    }
  }

  void AddTall(const Variant& variant) {
    for (const int columns : columns_.Of(RowSide::kM, kTallRows)) {
      if (columns <= kTallColumns) AddDepths(variant, RowSide::kM, kTallRows, columns);
    }
    if (contraction_.scale != Scaling::kBlock) return;
    for (const int columns : columns_.Of(RowSide::kN, kTallRows)) {
      if (columns <= kTallColumns) AddDepths(variant, RowSide::kN, kTallRows, columns);
    }
  }

  // Of three warpgroups one promotes while two multiply: the tensor core is busy for 97 % of the time, where two leave
  // it idle for 5 to 15 % (ADR 0081).
  void AddThree(const Variant& variant) {
    const bool copies = compiler::IsByThreads(variant.a_load) || compiler::IsByThreads(variant.b_load);
    if (!compiler::Promotes(contraction_, target_) || contraction_.RowsArePixels() || copies) return;
    if (contraction_.Depth() < kThreeDepth) return;
    for (const RowSide side : {RowSide::kM, RowSide::kN}) {
      for (const int columns : columns_.Of(side, kThreeRows)) {
        if (columns <= kThreeColumns) AddDepths(variant, side, kThreeRows, columns);
      }
    }
  }

  // Ping-pong needs several tiles per CTA: the epilogue of one overlaps the MMAs of the next.
  void AddPingpong(const Variant& variant, int rows) {
    for (const RowSide side : {RowSide::kM, RowSide::kN}) {
      if (side == RowSide::kN && variant.reuse > Reuse::kIm2col) continue;
      for (const int columns : columns_.OfPingpong(side, rows)) {
        Schedule shape = ShapeOf(variant, side, rows, columns);
        shape.math_warpgroups = 2;
        shape.consumers = Consumers::kPingpong;
        if (TilesOf(shape) <= target_.default_sm_count) continue;
        for (const int depth : variant.depths) {
          shape.tile_k = depth;
          AddClusters(shape);
          AddResident(shape);
        }
      }
    }
  }

  Schedule ShapeOf(const Variant& variant, RowSide side, int rows, int columns) const {
    return {.tile_m = side == RowSide::kM ? rows : columns,
            .tile_n = side == RowSide::kM ? columns : rows,
            .stages = variant.reuse > Reuse::kIm2col ? kLeastReuseStages : 2,
            .acc_stages = Accumulators(columns),
            .math_warpgroups = WarpgroupsFor(rows),
            .a_load = variant.a_load,
            .b_load = variant.b_load,
            .reuse = variant.reuse,
            .shift = variant.shift,
            .border = variant.border,
            .rows = side,
            .merge_groups = variant.merge};
  }

  int WarpgroupsFor(int rows) const {
    if (target_.mma.AccumulatesInTensorMemory()) return 1;
    return rows == kThreeRows ? compiler::kMostWarpgroups : std::min(rows / 64, 2);
  }
  // Two, so that the epilogue of one overlaps the MMAs of the next.
  int Accumulators(int columns) const { return 2 * columns <= target_.tmem_columns ? 2 : 1; }

  // A gathered x is the only operand that prevents CTAs from sharing the other.
  static bool SharesNothing(const Schedule& shape) {
    return shape.reuse != Reuse::kNone && shape.a_load == LoadPath::kCopy;
  }
  void AddClusters(Schedule shape) {
    AddTileOrders(shape);
    if (SharesNothing(shape)) return;
    for (const auto& extents : kClusterExtents) {
      const int shared = extents[0] > 1 ? shape.tile_n : shape.tile_m;
      const bool pays = shared >= kSharedPart * (shape.tile_m + shape.tile_n);
      if (!pays && shape.tile_m * shape.tile_n < kClusterArea) continue;
      shape.cluster_m = extents[0];
      shape.cluster_n = extents[1];
      // Both CTAs have a tile inside.
      if (extents[0] > 1 ? shape.tile_m < Rows() : shape.tile_n < Columns()) AddTileOrders(shape);
    }
    if (shape.tile_m * shape.tile_n >= kClusterArea || AsksForPairs()) AddPairs(shape);
  }

  bool AsksForPairs() const { return constraint_.Apply(Schedule{}).ctas == 2; }
  // CTA pairs; both CTAs have a tile inside, unless pairs are requested.
  void AddPairs(Schedule shape) {
    const bool fits = shape.rows == RowSide::kM && shape.tile_m == kPairRows && shape.tile_n % kPairColumns == 0;
    if (target_.mma.most_ctas < 2 || !fits || shape.reuse == Reuse::kLaneShift) return;
    if (shape.tile_m >= Rows() && !AsksForPairs()) return;
    shape.cluster_m = shape.ctas = 2;
    shape.cluster_n = 1;
    AddTileOrders(shape);
    // Single CTAs read so much of their operands from shared memory that warps which read scale factors gain nothing.
    if (!contraction_.BlockScaling()) return;
    for (const ScaleWarps warps : {ScaleWarps::kRows, ScaleWarps::kAll}) {
      shape.scale_warps = warps;
      AddTileOrders(shape);
    }
  }

  // Resident B if it is small and each CTA has several tiles; in the narrowest tiles that hold it.
  void AddResident(Schedule shape) {
    if (contraction_.HasDeviceSizes()) return;
    shape = constraint_.Apply(shape);
    const bool asks = shape.b_keep > 0;
    if (shape.tile_m < kLeastResidentRows || TilesOf(shape) <= target_.default_sm_count) return;
    const Contraction contraction = contraction_.Under(problem_, shape);
    const compiler::ResidentOperand b = compiler::ResidentOf(contraction, shape);
    const int64_t bytes = contraction.b.BytesOf(b.blocks * shape.tile_k * shape.tile_n);
    if (b.matrices > 1 || b.blocks > kMostResidentBlocks || bytes > kMostResident) return;
    if (contraction.geometry.known_filter) return;  // resident anyway
    const int64_t columns = base::CeilDiv(b.columns, shape.tile_n);
    if (columns * shape.tile_n - b.columns >= (shape.rows == RowSide::kM ? 16 : 64)) return;
    if (columns > 1) {
      const auto idle = static_cast<double>(target_.default_sm_count % columns);
      const bool pays = shape.tile_n >= kLeastResidentColumns && idle <= kMostIdle * target_.default_sm_count;
      if (!pays && !asks) return;
      shape.raster = 1;
      if (constraint_.Apply(shape).raster != 1) return;
    }
    shape.b_keep = static_cast<int>(b.blocks);
    AddPoint(shape);
  }

  // Tiles are scheduled statically; if there are tiles for several rounds, also by work stealing.
  void AddTileOrders(Schedule shape) {
    Add(shape);
    if (contraction_.HasDeviceSizes() || !target_.Has(Feature::kLaunchControl) ||
        TilesOf(shape) <= target_.default_sm_count)
      return;
    shape.scheduler = Scheduler::kClc;
    Add(shape);
  }

  // Split-K if tiles leave half of the SMs of a round idle. Where K is pixels, tiles are few, and those of a cluster
  // share what they read.
  void AddSlices(Schedule shape) {
    if (contraction_.HasDeviceSizes()) return;
    AddSlicesOf(shape);
    const bool few = contraction_.SumsPixels() || contraction_.run >= kLongK;
    if (!few || shape.reuse == Reuse::kDirect) return;
    for (const auto& extents : kClusterExtents) {
      shape.cluster_m = extents[0];
      shape.cluster_n = extents[1];
      if (extents[0] > 1 ? shape.tile_m < Rows() : shape.tile_n < contraction_.n) AddSlicesOf(shape);
    }
  }
  void AddSlicesOf(Schedule shape) {
    const compiler::WorkPlan work = WorkOf(shape);
    const int64_t rest = work.Rest(target_.default_sm_count);
    if (rest == 0 || work.Tiles() > 4 * target_.default_sm_count) return;
    for (const int slices : SlicesOf(rest)) {
      shape.split_k = slices;
      Add(shape);
    }
  }
  // Whoever says cluster= and not cluster_k= says which CTAs there are in a cluster.
  bool AsksForClusters() const {
    constexpr int kNone = 0;
    const Schedule open = constraint_.Apply({.cluster_m = kNone, .cluster_n = kNone, .cluster_k = kNone});
    return open.cluster_k == kNone && (open.cluster_m != kNone || open.cluster_n != kNone);
  }
  // Clusters whose CTAs share a tile, where all of these run at one time and occupy most SMs.
  void AddSharedTiles(Schedule shape) {
    if (contraction_.HasDeviceSizes() || shape.b_keep > 0 || AsksForClusters()) return;
    const int64_t tiles = TilesOf(shape), blocks = contraction_.Under(problem_, shape).Iterations(shape);
    for (const auto& [ctas, part] : kSharingCtas) {
      const double room = part * target_.default_sm_count;
      if (static_cast<double>(ctas * tiles) > room || kLeastSharedBlocks * ctas > blocks) return;
      if (static_cast<double>(ctas * tiles) < kLeastOccupied * target_.default_sm_count) continue;
      shape.cluster_k = ctas;
      AddPoint(shape);
    }
  }
  // Of at most two rounds: what fills one and what fills two, and between them.
  std::set<int> SlicesOf(int64_t tiles) const {
    const std::span<const int> choices = contraction_.SumsPixels() || contraction_.run >= kLongK
                                             ? std::span<const int>(kSlicesOfPixels)
                                             : std::span<const int>(kSlices);
    std::set<int> slices(choices.begin(), choices.end());
    for (const int rounds : {1, 2})
      slices.insert(static_cast<int>(std::min<int64_t>(rounds * target_.default_sm_count / tiles, kMostSlices)));
    std::erase_if(slices, [&](int64_t count) { return count < 2 || count * tiles > 2 * target_.default_sm_count; });
    return slices;
  }
  compiler::WorkPlan WorkOf(const Schedule& shape) const {
    return compiler::PlanWork(contraction_.Under(problem_, shape), shape);
  }
  int64_t TilesOf(const Schedule& shape) const { return WorkOf(shape).Tiles(); }

  // In bands of the default height; if the cache cannot hold the operands, also in those for which a wave of tiles
  // reads least, and where it holds A in one band of all rows, in which B is read once.
  void Add(Schedule shape) {
    const bool of_three = shape.math_warpgroups == compiler::kMostWarpgroups;
    if (contraction_.grouped && of_three && WorkOf(shape).tile_rows > shape.raster) shape.raster = kThreeBand;
    AddPoint(shape);
    if (!bands_matter_ || shape.tile_m * shape.tile_n < kClusterArea || shape.split_k > 1) return;
    const compiler::WorkPlan work = WorkOf(shape);
    const double usual = WaveRows(work, shape, shape.raster) * (1 - kRasterGain);
    int best = shape.raster;
    for (const int raster : kRasters) {
      if (WaveRows(work, shape, raster) < std::min(usual, WaveRows(work, shape, best))) best = raster;
    }
    std::set<int> others = {best};
    const auto* all = std::lower_bound(std::begin(kRasters), std::end(kRasters), work.tile_rows);
    if (a_stays_ && work.tile_rows > shape.raster && all != std::end(kRasters)) others.insert(*all);
    others.erase(shape.raster);
    for (const int raster : others) {
      shape.raster = raster;
      AddPoint(shape);
    }
  }
  // Rows of A and of B that the tiles computed at once read.
  double WaveRows(const compiler::WorkPlan& work, const Schedule& shape, int raster) const {
    const auto rows = static_cast<double>(work.tile_rows), columns = static_cast<double>(work.tile_columns);
    const TileWindow window = WindowOf(rows, columns, raster, target_.default_sm_count);
    return window.rows * shape.tile_m + window.columns * shape.tile_n;
  }

  // Shapes decide nothing of matrices, but whether taps are packed.
  bool DependsOnShape(const Schedule& shape) const {
    const bool packs = contraction_.SumsPixels() && shape.b_load == LoadPath::kPack;
    return contraction_.RowsArePixels() || shape.merge_groups > 1 || packs;
  }
  void AddPoint(const Schedule& point) {
    const Schedule asked = constraint_.Apply(point);
    Schedule shape =
        constraint_.Apply(DependsOnShape(asked) ? WithPaths(contraction_.Under(problem_, asked), target_, asked)
                                                : WithPaths(contraction_, target_, asked));
    shape.early = EarlyOf(shape);
    AddShape(constraint_.Apply(shape));
    if (!StoresOfThreadsMayPay(shape)) return;
    shape.d_store = StorePath::kRows;
    AddShape(constraint_.Apply(shape));
  }
  // Where memory binds, a warp that loads B early keeps it busy between two kernels. Where MMAs do, tiles that begin
  // during the epilogue before them gain more, which no tile does with such a warp (measured on an H200).
  EarlyLoads EarlyOf(Schedule shape) const {
    if (contraction_.constant == ConstantOperand::kNone || contraction_.m > kMostEarlyRows) return EarlyLoads::kNone;
    shape.early = EarlyLoads::kB;
    return compiler::CheckEarly(contraction_, shape).has_value() ? EarlyLoads::kB : EarlyLoads::kNone;
  }
  // Stores of threads are done sooner than a bulk store, which matters at the end of a kernel. They pay if each row is
  // whole lines (measured on an H200, of matrices).
  bool StoresOfThreadsMayPay(const Schedule& shape) const {
    if (target_.mma.AccumulatesInTensorMemory() || contraction_.HasDeviceSizes()) return false;
    if (shape.d_store != StorePath::kTma || shape.rows != RowSide::kM) return false;
    if (contraction_.a.kind != SourceKind::kMatrix || contraction_.d.kind != SourceKind::kMatrix) return false;
    const int columns = shape.tile_n / ir::ColumnsPerOutput(contraction_.epilogue());
    const bool lines = columns * ir::BitsOf(contraction_.d.type()) % kLineBits == 0;
    return lines && TilesOf(shape) <= int64_t{kRowStoreRounds} * target_.default_sm_count;
  }
  void AddShape(const Schedule& shape) {
    std::vector<size_t>& alike = of_tile_[{shape.tile_m, shape.tile_n, shape.tile_k}];
    for (const size_t i : alike) {
      if (shapes_[i] == shape) return;
    }
    alike.push_back(shapes_.size());
    shapes_.push_back(shape);
  }

  const Problem& problem_;
  const Reuse reuse_;              // without reuse of activations
  const Contraction contraction_;  // as far as no shape decides it
  const ScheduleConstraint& constraint_;
  const Target& target_;
  const TileColumns columns_ = ColumnsOfTiles();
  bool bands_matter_ = false;  // the cache cannot hold what bands share
  bool a_stays_ = false;       // but all of A, next to what is read once
  std::vector<Schedule> shapes_;
  std::map<std::array<int, 3>, std::vector<size_t>> of_tile_;  // indices of shapes_
};

}  // namespace

std::vector<Schedule> ListShapes(const Problem& problem, const ScheduleConstraint& constraint, const Target& target) {
  return ShapeList(problem, constraint, target).List();
}

}  // namespace laneshift::autotune
