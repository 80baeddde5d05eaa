#include "autotune/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "autotune/pipeline.h"
#include "autotune/space.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "compiler/contraction/contraction.h"
#include "compiler/legality/resident_operand.h"
#include "compiler/plan/work_plan.h"

namespace laneshift::autotune {
namespace {

using compiler::Contraction;
using target::Target;

// What a change may depend on.
struct Situation {
  const Problem& problem;
  const Contraction contraction;
  const Target& target;
  const std::span<const int64_t> group_sizes;
};
using Changes = std::vector<Schedule>;

template <typename Value>
Changes With(const Schedule& s, Value Schedule::*field, std::initializer_list<Value> values) {
  Changes changes;
  for (const Value value : values) {
    changes.push_back(s);
    changes.back().*field = value;
  }
  return changes;
}

// The tiles of other sizes of which `admits` says yes.
template <typename Admits>
Changes Tiles(const Schedule& s, const Admits& admits) {
  Changes changes;
  const bool direct = s.reuse == Reuse::kDirect;  // rows are those of the problem
  for (const int m : {8, 16, 32, 64, 128, 256}) {
    for (const int n : {8, 16, 32, 64, 96, 128, 192, 256}) {
      Schedule other = s;
      other.tile_m = direct ? s.tile_m : m;
      other.tile_n = n;
      if ((other.tile_m == s.tile_m && n == s.tile_n) || !admits(other)) continue;
      if (direct) {
        changes.push_back(other);
        continue;
      }
      // Another tile may need another number of warpgroups or accumulators.
      for (const int math : {1, 2}) {
        for (const int accumulators : {1, 2}) {
          other.math_warpgroups = math;
          other.acc_stages = accumulators;
          changes.push_back(other);
        }
      }
    }
  }
  return changes;
}

double Area(const Schedule& s) { return static_cast<double>(s.tile_m) * s.tile_n; }

// The part of the tiles that lies in D.
double Covered(const Contraction& c, const Schedule& s) {
  const auto part = [](int64_t extent, int tile) {
    return static_cast<double>(extent) / static_cast<double>((extent + tile - 1) / tile * tile);
  };
  return part(c.m, s.tile_m) * part(c.n, s.tile_n);
}
constexpr double kRemainder = 0.05;  // of the tiles

Changes Clusters(const Schedule& s, const Situation&) {
  Changes changes;
  if (s.cluster_m * s.cluster_n > s.ctas) return changes;
  for (const auto& [m, n] : {std::pair{1, 2}, {2, 1}, {2, 2}, {4, 1}, {1, 4}}) {
    Schedule other = s;
    other.cluster_m = m * s.cluster_m;
    other.cluster_n = n * s.cluster_n;
    changes.push_back(other);
  }
  return changes;
}

Changes Resident(const Schedule& s, const Situation& at) {
  if (s.b_keep > 0) return {};
  Schedule other = s;
  const auto blocks = compiler::ResidentOf(at.contraction.Under(at.problem, s), s).blocks;
  if (blocks < 1 || blocks > 64) return {};
  other.b_keep = static_cast<int>(blocks);
  Changes changes = {other};
  other.raster = 1;
  changes.push_back(other);
  return changes;
}

// Where that leaves fewer rows and columns outside of D.
Changes OtherSide(const Schedule& s, const Situation& at) {
  Changes changes;
  for (const int rows : {64, 128}) {
    for (const int columns : {8, 16, 32, 64, 128}) {
      Schedule other = s;
      other.rows = s.rows == RowSide::kM ? RowSide::kN : RowSide::kM;
      other.tile_m = other.rows == RowSide::kM ? rows : columns;
      other.tile_n = other.rows == RowSide::kM ? columns : rows;
      other.math_warpgroups = 1;
      if (Covered(at.contraction, other) > Covered(at.contraction, s) + kRemainder) changes.push_back(other);
    }
  }
  return changes;
}

Changes Loads(const Schedule& s, LoadPath from, std::initializer_list<LoadPath> to) {
  Changes changes;
  for (const LoadPath path : to) {
    Schedule other = s;
    if (s.a_load == from) other.a_load = path;
    if (s.b_load == from) other.b_load = path;
    if (other != s) changes.push_back(other);
    // Only one of both may be addressable.
    for (LoadPath Schedule::*side : {&Schedule::a_load, &Schedule::b_load}) {
      if (s.*side != from) continue;
      Schedule single = s;
      single.*side = path;
      changes.push_back(single);
    }
  }
  return changes;
}

Changes Stores(const Schedule& s, const Situation&) {
  if (s.d_store == StorePath::kTma) return {};
  return With(s, &Schedule::d_store, {StorePath::kTma, StorePath::kRows});
}

Changes Modes(const Schedule& s, std::initializer_list<Reuse> modes) {
  Changes changes;
  for (const Reuse reuse : modes) {
    for (const StorePath store : {s.d_store, StorePath::kRows, StorePath::kTma}) {
      Schedule other = s;
      other.reuse = reuse;
      other.d_store = store;
      other.shift = ShiftForm::kSeparate;
      other.border = Border::kZeros;
      if (reuse == Reuse::kLaneShift) other.ctas = other.cluster_m = other.cluster_n = 1;
      changes.push_back(other);
    }
  }
  return changes;
}

// Another form of the same way of reuse, which may need another way to store.
template <typename Value>
Changes Forms(const Schedule& s, Value Schedule::*field, Value value) {
  Changes changes;
  for (const StorePath store : {s.d_store, StorePath::kRows, StorePath::kTma}) {
    changes.push_back(s);
    changes.back().*field = value;
    changes.back().d_store = store;
  }
  return changes;
}

// How deep the rings of a changed schedule are.
enum class RingDepth : uint8_t {
  kAtMostAsBefore,
  kChanged,  // the depth is the change
  kDeepest,  // as deep as they fit: the change must gain more than deeper rings do without it
};

struct WeaknessRow {
  std::string_view name, doc;
  Changes (*changes)(const Schedule& s, const Situation& at);
  RingDepth depth = RingDepth::kAtMostAsBefore;
};

// clang-format off
constexpr WeaknessRow kWeaknesses[] = {
    {"too few stages", "the ring is too short to hide the latency of loads",
     [](const Schedule& s, const Situation&) { return s.reuse == Reuse::kDirect ? With(s, &Schedule::stages, {2 * s.stages, 4 * s.stages}) : Changes{s}; }, RingDepth::kChanged},
    {"too many stages", "the ring takes shared memory that something else needs",
     [](const Schedule& s, const Situation&) { return s.stages > 2 ? With(s, &Schedule::stages, {s.stages - 1, s.stages / 2}) : Changes{}; }, RingDepth::kChanged},
    {"one accumulator", "no MMA runs while the epilogue reads the accumulator",
     [](const Schedule& s, const Situation& at) { return at.target.mma.AccumulatesInTensorMemory() && s.acc_stages == 1 ? With(s, &Schedule::acc_stages, {2}) : Changes{}; }},
    {"no multicast", "each CTA loads tiles that its neighbours load, too", Clusters, RingDepth::kDeepest},
    {"no CTA pair", "each CTA loads and reads all of B instead of half of it",
     [](const Schedule& s, const Situation& at) -> Changes {
       if (at.target.mma.most_ctas < 2 || s.ctas == 2) return {};
       Schedule pair = s;
       pair.ctas = 2;
       pair.cluster_m = std::max(2, s.cluster_m);
       return {pair};
     }, RingDepth::kDeepest},
    {"multicast that does not pay", "CTAs of a cluster wait for each other",
     [](const Schedule& s, const Situation&) -> Changes {
       if (s.cluster_m * s.cluster_n == s.ctas) return {};
       Schedule other = s;
       other.cluster_m = s.ctas;
       other.cluster_n = 1;
       return {other};
     }},
    {"a CTA pair that does not pay", "both CTAs of a pair wait for each other",
     [](const Schedule& s, const Situation&) -> Changes {
       if (s.ctas == 1) return {};
       Schedule other = s;
       other.ctas = other.cluster_m = other.cluster_n = 1;
       return {other};
     }},
    {"odd tile", "tiles do not divide D: the tensor core multiplies rows or columns that do not exist",
     [](const Schedule& s, const Situation& at) {
       return Tiles(s, [&](const Schedule& o) { return Covered(at.contraction, o) > Covered(at.contraction, s) + kRemainder; });
     }},
    {"tile too small", "each byte that is loaded is multiplied too few times",
     [](const Schedule& s, const Situation& at) {
       return Tiles(s, [&](const Schedule& o) { return Area(o) > Area(s) && Covered(at.contraction, o) <= Covered(at.contraction, s) + kRemainder; });
     }},
    {"tile too large", "too few tiles to keep all SMs busy, or too large for deep rings",
     [](const Schedule& s, const Situation& at) {
       return Tiles(s, [&](const Schedule& o) { return Area(o) < Area(s) && Covered(at.contraction, o) <= Covered(at.contraction, s) + kRemainder; });
     }},
    {"tile of an unfavourable shape", "a tile of the same size loads fewer bytes",
     [](const Schedule& s, const Situation& at) {
       return Tiles(s, [&](const Schedule& o) { return Area(o) == Area(s) && Covered(at.contraction, o) <= Covered(at.contraction, s) + kRemainder; });
     }},
    {"blocks of K too short", "barriers and copies cost more than the MMAs between them",
     [](const Schedule& s, const Situation&) { return With(s, &Schedule::tile_k, {2 * s.tile_k}); }},
    {"blocks of K too long", "few of them fit the ring",
     [](const Schedule& s, const Situation&) { return With(s, &Schedule::tile_k, {s.tile_k / 2}); }},
    {"operands copied by threads", "threads load element by element what bulk copies could load",
     [](const Schedule& s, const Situation&) { return Loads(s, LoadPath::kCopy, {LoadPath::kTma, LoadPath::kAsync, LoadPath::kPack}); }},
    {"operands copied in pieces", "threads issue a copy for every few bytes of what bulk copies could load",
     [](const Schedule& s, const Situation&) { return Loads(s, LoadPath::kAsync, {LoadPath::kTma, LoadPath::kPack}); }},
    {"operands packed first", "a separate kernel copies operands before the main one",
     [](const Schedule& s, const Situation&) { return Loads(s, LoadPath::kPack, {LoadPath::kTma, LoadPath::kAsync, LoadPath::kCopy}); }},
    {"output stored by threads", "threads store what bulk copies, or whole rows, could store", Stores},
    {"idle SMs in the last wave", "tiles do not fill the last round of CTAs",
     [](const Schedule& s, const Situation&) { return s.split_k == 1 ? With(s, &Schedule::split_k, {2, 3, 4, 6, 8}) : Changes{}; }},
    {"split-K that does not pay", "partials go through memory, and are added",
     [](const Schedule& s, const Situation&) { return s.split_k > 1 ? With(s, &Schedule::split_k, {1, 2, s.split_k / 2}) : Changes{}; }},
    {"unfavourable tile order", "tiles that are computed at once share few operands: more loads wait for memory",
     [](const Schedule& s, const Situation&) { return With(s, &Schedule::raster, {1, 2, 4, 8, 12, 16, 24, 32, 64}); }},
    {"static tile order", "SMs wait for the slowest one",
     [](const Schedule& s, const Situation& at) { return at.target.Has(target::Feature::kLaunchControl) && s.scheduler == Scheduler::kStatic ? With(s, &Schedule::scheduler, {Scheduler::kClc}) : Changes{}; }},
    {"work stealing that does not pay", "each tile has to be asked for",
     [](const Schedule& s, const Situation&) { return s.scheduler == Scheduler::kClc ? With(s, &Schedule::scheduler, {Scheduler::kStatic}) : Changes{}; }},
    {"scale factors copied by the tensor core", "it multiplies nothing while it copies them to Tensor Memory",
     [](const Schedule& s, const Situation& at) { return at.contraction.BlockScaling() && s.scale_warps == ScaleWarps::kNone ? With(s, &Schedule::scale_warps, {ScaleWarps::kRows, ScaleWarps::kAll}) : Changes{}; }},
    {"scale factors stored by warps", "the warps read shared memory that the tensor core waits for",
     [](const Schedule& s, const Situation&) { return s.scale_warps == ScaleWarps::kNone ? Changes{} : With(s, &Schedule::scale_warps, {ScaleWarps::kNone, ScaleWarps::kRows}); }},
    {"B loaded after the previous kernel", "a separate warp could load it before that kernel has ended",
     [](const Schedule& s, const Situation& at) { return at.contraction.constant == ConstantOperand::kB ? With(s, &Schedule::early, {EarlyLoads::kB}) : Changes{}; }},
    {"early loads that do not pay", "with a separate warp that loads B no tile begins during the epilogue before it",
     [](const Schedule& s, const Situation&) { return s.early == EarlyLoads::kB ? With(s, &Schedule::early, {EarlyLoads::kNone}) : Changes{}; }},
    {"one warpgroup multiplies", "it also has the epilogue, while nothing multiplies",
     [](const Schedule& s, const Situation&) { return s.math_warpgroups == 1 ? With(s, &Schedule::math_warpgroups, {2}) : Changes{}; }},
    {"too few warps", "too few loads of threads are in flight to hide the latency of memory",
     [](const Schedule& s, const Situation&) -> Changes {
       if (s.reuse != Reuse::kDirect || s.math_warpgroups > 2) return {};
       Schedule other = s;
       other.math_warpgroups *= 2;
       Changes changes = {other};
       other.tile_k *= 2;
       changes.push_back(other);
       return changes;
     }},
    {"cooperative warpgroups", "nothing multiplies during the epilogue",
     [](const Schedule& s, const Situation&) -> Changes {
       if (s.consumers == Consumers::kPingpong) return {};
       Schedule other = s;
       other.consumers = Consumers::kPingpong;
       other.math_warpgroups = 2;
       return {other};
     }},
    {"ping-pong that does not pay", "each warpgroup has too few tiles to alternate",
     [](const Schedule& s, const Situation&) { return s.consumers == Consumers::kPingpong ? With(s, &Schedule::consumers, {Consumers::kCooperative}) : Changes{}; }},
    {"the wrong side along the rows of the MMA", "rows of the matrix instruction are empty", OtherSide},
    {"B loaded again for each tile", "B would fit shared memory, and be loaded once", Resident},
    {"resident B that does not pay", "B takes the shared memory of a deeper ring",
     [](const Schedule& s, const Situation&) { return s.b_keep > 0 ? With(s, &Schedule::b_keep, {0}) : Changes{}; }},
    {"activations loaded for each filter column", "a row of the filter could share them",
     [](const Schedule& s, const Situation&) { return s.reuse == Reuse::kIm2col ? Modes(s, {Reuse::kRowOffset, Reuse::kLaneShift}) : Changes{}; }},
    {"reuse of activations that does not pay", "the halo, or the shifts, cost more than the loads that they save",
     [](const Schedule& s, const Situation&) {
       if (s.reuse == Reuse::kRowOffset) return Modes(s, {Reuse::kIm2col, Reuse::kLaneShift});
       return s.reuse == Reuse::kLaneShift ? Modes(s, {Reuse::kIm2col, Reuse::kRowOffset}) : Changes{};
     }},
    {"zeros loaded at the border", "tiles hold pixels outside the image; a mask can disable their rows instead",
     [](const Schedule& s, const Situation&) { return s.reuse > Reuse::kIm2col && s.border == Border::kZeros ? Forms(s, &Schedule::border, Border::kMask) : Changes{}; }, RingDepth::kDeepest},
    {"a border mask that does not pay", "masked MMAs are more, or narrower, than those of zeros",
     [](const Schedule& s, const Situation&) { return s.border == Border::kMask ? Forms(s, &Schedule::border, Border::kZeros) : Changes{}; }, RingDepth::kDeepest},
    {"separate lane shifts", "shifts and refreshes are separate instructions; the MMA can shift",
     [](const Schedule& s, const Situation&) { return s.reuse == Reuse::kLaneShift && s.shift == ShiftForm::kSeparate ? Forms(s, &Schedule::shift, ShiftForm::kFused) : Changes{}; }, RingDepth::kDeepest},
    {"fused lane shifts", "the last lanes of each 32 are dropped from every tile",
     [](const Schedule& s, const Situation&) { return s.shift == ShiftForm::kFused ? Forms(s, &Schedule::shift, ShiftForm::kSeparate) : Changes{}; }, RingDepth::kDeepest},
};
// clang-format on

// A way to do it, if the schedule does not have it already.
struct RemedyWay {
  std::string_view text;
  bool (*open)(const Schedule& s, const Target& target) = nullptr;  // nothing: always
};
struct RemedyRow {
  Bound bound;
  std::string_view need;
  std::array<RemedyWay, 4> ways{};
};

bool NoPair(const Schedule& s, const Target& target) { return s.ctas == 1 && target.mma.most_ctas > 1; }
bool NoMulticast(const Schedule& s, const Target&) { return s.cluster_m * s.cluster_n <= s.ctas; }
bool NoSlices(const Schedule& s, const Target&) { return s.split_k == 1; }
bool NotResident(const Schedule& s, const Target&) { return s.b_keep == 0; }
bool NotInTensorMemory(const Schedule& s, const Target& target) {
  return target.mma.AccumulatesInTensorMemory() && (s.reuse == Reuse::kIm2col || s.reuse == Reuse::kRowOffset);
}
bool OneAccumulator(const Schedule& s, const Target& target) {
  return target.mma.AccumulatesInTensorMemory() && s.acc_stages == 1;
}
bool NoPingpong(const Schedule& s, const Target& target) {
  return !target.mma.AccumulatesInTensorMemory() && s.consumers != Consumers::kPingpong;
}
bool NotBulkStored(const Schedule& s, const Target&) { return s.d_store != StorePath::kTma; }

// clang-format off
constexpr RemedyRow kRemedies[] = {
    {Bound::kTensorCore, "fewer multiplications", {{{"narrower operands"}, {"2:4 sparsity"}, {"tiles that leave less of themselves outside D"}}}},
    {Bound::kSharedMemory, "fewer bytes for each MMA from shared memory", {{{"wider tiles"}, {"a CTA pair", NoPair}, {"A in Tensor Memory", NotInTensorMemory}}}},
    {Bound::kL2, "fewer bytes from L2", {{{"larger tiles"}, {"multicast in a cluster", NoMulticast}, {"a resident operand", NotResident}}}},
    {Bound::kMemory, "fewer bytes through memory", {{{"narrower types"}, {"a tile order that finds more in L2"}, {"operations fused into the epilogue"}}}},
    {Bound::kLoadLatency, "more loads in flight", {{{"deeper rings"}, {"more K or more tiles for each CTA"}, {"split-K", NoSlices}}}},
    {Bound::kProductLatency, "more MMAs between two waits", {{{"longer blocks of K"}, {"a second accumulator", OneAccumulator}, {"ping-pong", NoPingpong}}}},
    {Bound::kIssue, "fewer and larger steps", {{{"longer blocks of K"}, {"larger tiles"}, {"fewer bulk copies for each"}}}},
    {Bound::kOutside, "fewer rows of a tile outside the tensors", {{{"a lower tile"}, {"rows=n", [](const Schedule& s, const Target&) { return s.rows == RowSide::kM; }}}}},
    {Bound::kGather, "operands that bulk copies can address", {{{"aligned to 16 bytes"}, {"packed"}}}},
    {Bound::kEpilogue, "an epilogue that overlaps the MMAs", {{{"a second accumulator", OneAccumulator}, {"ping-pong", NoPingpong}, {"several tiles for each CTA"}}}},
    {Bound::kStore, "less time for each stored element", {{{"a narrower D"}, {"bulk stores", NotBulkStored}, {"more MMAs for each element"}}}},
    {Bound::kPack, "operands that are aligned to 16 bytes, so that nothing is packed"},
    {Bound::kReductions, "reductions in any order (numerics=default), which need no kernel afterwards"},
    {Bound::kLaunch, "more work in each launch", {{{"batches"}, {"several problems in one"}}}},
};
// clang-format on
constexpr bool InOrderOfBounds() {
  for (size_t i = 0; i < std::size(kRemedies); ++i) {
    if (kRemedies[i].bound != static_cast<Bound>(i)) return false;
  }
  return std::size(kRemedies) == kBoundCount;
}
static_assert(InOrderOfBounds());

struct Predicted {
  Schedule schedule;
  Prediction prediction;
};

std::optional<Predicted> Predict(const Situation& at, const Schedule& given, Schedule change, RingDepth depth,
                                 const Machine& machine) {
  const bool deepens = depth == RingDepth::kDeepest || change == given;
  Schedule least = change;
  const bool has_ring = change.reuse != Reuse::kDirect;
  if (!has_ring && change == given) return std::nullopt;
  if (!has_ring) depth = RingDepth::kChanged;
  if (has_ring && (depth != RingDepth::kChanged || deepens)) least.stages = change.reuse > Reuse::kIm2col ? 3 : 2;
  if (change.reuse > Reuse::kIm2col && (deepens || change.reuse != given.reuse)) least.filter_stages = 2;
  const auto legal = DeepenShape(at.problem, least, {}, at.target);
  if (!legal) return std::nullopt;
  change = legal->schedule;
  if (depth == RingDepth::kAtMostAsBefore) {
    change.stages = std::min(change.stages, given.stages);
    if (change.reuse == given.reuse) change.filter_stages = std::min(change.filter_stages, given.filter_stages);
  }
  if (change == given) return std::nullopt;
  const auto prediction = PredictTime(at.problem, change, at.target, machine, at.group_sizes);
  if (!prediction) return std::nullopt;
  return Predicted{change, *prediction};
}

}  // namespace

double ProblemFloor::Us() const { return std::max(tensor_us, memory_us) + launch_us; }
Bound ProblemFloor::By() const { return tensor_us >= memory_us ? Bound::kTensorCore : Bound::kMemory; }

ProblemFloor FloorOf(const Problem& problem, const Target& target, const Machine& machine) {
  const Contraction contraction = compiler::ContractionOf(problem);
  const double products = ProblemFlops(problem) / 2 / static_cast<double>(contraction.a.compression);
  const bool long_rows =
      target.mma.long_rows && contraction.OperandBits() == ir::kLongRowElementBits && !contraction.IsSparse();
  const double step_bits = long_rows ? ir::kMmaLongRowBits : ir::kMmaRowBits;
  const double of_clock = target.mma.most_rows * machine.product_columns * step_bits / contraction.OperandBits();
  const double clocks = products / of_clock / machine.sm_count;
  return {.tensor_us = clocks / machine.busy_clock_ghz / 1e3,
          .memory_us = ProblemBytes(problem) / machine.memory_rate / 1e6,
          .launch_us = machine.launch_us};
}

LastWave LastWaveOf(const Problem& problem, const Schedule& schedule, const Machine& machine,
                    std::span<const int64_t> group_sizes) {
  const compiler::WorkPlan work = compiler::PlanWork(problem, schedule, group_sizes);
  const compiler::WorkDivision division =
      compiler::DivideWork(work, std::max(1, machine.sm_count / work.ClusterSize()));
  const int64_t units = work.sizes.empty() ? work.Units() : std::llround(work.EstimatedTiles()) / work.TilesOfUnit();
  const int64_t rest = division.cut > 0 ? 0 : units % division.resident;
  const int64_t busy = rest == 0 ? division.resident : rest;
  return {.waves = base::CeilDiv(units, division.resident),
          .idle_sms = machine.sm_count - busy * work.ClusterSize(),
          .sms = machine.sm_count};
}

Result<ScheduleAdvice> Advise(const Problem& problem, const Schedule& schedule, const Target& target,
                              const Machine& machine, std::span<const int64_t> group_sizes) {
  ScheduleAdvice advice;
  LS_ASSIGN(advice.prediction, PredictTime(problem, schedule, target, machine, group_sizes));
  advice.floor = FloorOf(problem, target, machine);
  advice.last_wave = LastWaveOf(problem, schedule, machine, group_sizes);
  const Situation at{problem, compiler::ContractionOf(problem, schedule), target, group_sizes};
  const double given_us = advice.prediction.us;
  const auto deepest = Predict(at, schedule, schedule, RingDepth::kDeepest, machine);
  const double deepest_us = deepest ? std::min(given_us, deepest->prediction.us) : given_us;
  for (const WeaknessRow& row : kWeaknesses) {
    std::optional<Predicted> best;
    for (const Schedule& change : row.changes(schedule, at)) {
      auto other = Predict(at, schedule, change, row.depth, machine);
      if (other && (!best || other->prediction.us < best->prediction.us)) best = std::move(other);
    }
    const double least_us = row.depth == RingDepth::kDeepest ? deepest_us : given_us;
    if (!best || best->prediction.us > (1 - kAdviceGain) * least_us) continue;
    advice.weaknesses.push_back({row.name, row.doc, best->schedule, best->prediction});
  }
  std::stable_sort(advice.weaknesses.begin(), advice.weaknesses.end(),
                   [](const Weakness& a, const Weakness& b) { return a.prediction.us < b.prediction.us; });
  const auto repeated = [&](const Weakness& weakness) {
    const auto first = std::find_if(advice.weaknesses.begin(), advice.weaknesses.end(),
                                    [&](const Weakness& other) { return other.better == weakness.better; });
    return &*first != &weakness;
  };
  std::vector<Weakness> distinct;
  for (const Weakness& weakness : advice.weaknesses) {
    if (!repeated(weakness)) distinct.push_back(weakness);
  }
  advice.weaknesses = std::move(distinct);
  return advice;
}

std::string RemedyOf(Bound bound, const Schedule& schedule, const Target& target) {
  const RemedyRow& row = kRemedies[static_cast<size_t>(bound)];
  std::string ways;
  for (const RemedyWay& way : row.ways) {
    if (way.text.empty() || (way.open != nullptr && !way.open(schedule, target))) continue;
    ways += base::Cat(ways.empty() ? " (" : ", ", way.text);
  }
  return base::Cat(row.need, ways, ways.empty() ? "" : ")");
}

}  // namespace laneshift::autotune
