#include "ir/op_placement.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "ir/program_text.h"
#include "ir/role_verifier.h"

namespace laneshift::ir {
namespace {

using base::Cat;
using target::Feature;

// Who executes an op, beyond what its stage says. Ops without a row stand anywhere.
enum class Crew : uint8_t { kAny, kOneThread, kWarps };
struct Placement {
  OpKind kind;
  Crew crew;
  uint32_t features;  // all of them
  uint32_t roles;     // bits of RoleKind
};
constexpr uint32_t Bit(RoleKind kind) { return 1u << static_cast<int>(kind); }
constexpr uint32_t kAnyRole = 0x3f;
constexpr uint32_t kReaders = Bit(RoleKind::kEpilogue) | Bit(RoleKind::kMath);
constexpr uint32_t kMultipliers = Bit(RoleKind::kMma) | Bit(RoleKind::kMath);
constexpr uint32_t kTma = static_cast<uint32_t>(Feature::kTma);
constexpr uint32_t kWgmma = static_cast<uint32_t>(Feature::kWgmma);
constexpr uint32_t kTensorMemory = static_cast<uint32_t>(Feature::kTensorMemory);
constexpr uint32_t kLaunchControl = static_cast<uint32_t>(Feature::kLaunchControl);

// clang-format off
constexpr Placement kPlacements[] = {
    {OpKind::kTmaLoad,      Crew::kOneThread, kTma,          Bit(RoleKind::kLoad)},
    {OpKind::kCopyLoad,     Crew::kWarps,     0,             Bit(RoleKind::kCopy)},
    {OpKind::kLoadPixels,   Crew::kOneThread, kTma,          Bit(RoleKind::kLoad)},
    {OpKind::kGatherPixels, Crew::kWarps,     0,             Bit(RoleKind::kCopy)},
    {OpKind::kPackRows,     Crew::kWarps,     0,             Bit(RoleKind::kCopy)},
    {OpKind::kAddTotals,    Crew::kWarps,     0,             Bit(RoleKind::kCopy)},
    {OpKind::kAwait,        Crew::kAny,       0,             kMultipliers},
    {OpKind::kKept,         Crew::kAny,       0,             kMultipliers},
    {OpKind::kRequest,      Crew::kOneThread, kLaunchControl, Bit(RoleKind::kSchedule)},
    {OpKind::kMma,          Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kMmaTensor,    Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kLanesBeside,  Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kTensorCopy,   Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kTensorShift,  Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kTensorRefresh, Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kMmaCommit,    Crew::kOneThread, kTensorMemory, Bit(RoleKind::kMma)},
    {OpKind::kMmaRegisters, Crew::kWarps,     kWgmma,        Bit(RoleKind::kMath)},
    {OpKind::kMmaWait,      Crew::kWarps,     kWgmma,        Bit(RoleKind::kMath)},
    {OpKind::kAccRegisters, Crew::kWarps,     kWgmma,        Bit(RoleKind::kMath)},
    {OpKind::kAccRead,      Crew::kWarps,     kTensorMemory, Bit(RoleKind::kEpilogue)},
    {OpKind::kFenceTensor,  Crew::kAny,       kTensorMemory, kAnyRole},
    {OpKind::kScale,        Crew::kWarps,     0,             kReaders},
    {OpKind::kScaleBy,      Crew::kWarps,     0,             kReaders},
    {OpKind::kLoadFactor,   Crew::kWarps,     0,             kReaders},
    {OpKind::kLoadFactors,  Crew::kWarps,     0,             kReaders},
    {OpKind::kClearSums,    Crew::kWarps,     0,             kReaders},
    {OpKind::kAddSums,      Crew::kWarps,     0,             kReaders},
    {OpKind::kAddScaledSums, Crew::kWarps,    0,             kReaders},
    {OpKind::kReadSums,     Crew::kWarps,     0,             kReaders},
    {OpKind::kCombineVector, Crew::kWarps,    0,             kReaders},
    {OpKind::kCombineMatrix, Crew::kWarps,    0,             kReaders},
    {OpKind::kMap,          Crew::kWarps,     0,             kReaders},
    {OpKind::kCall,         Crew::kWarps,     0,             kReaders},
    {OpKind::kGate,         Crew::kWarps,     0,             kReaders},
    {OpKind::kReduce,       Crew::kWarps,     0,             kReaders},
    {OpKind::kStoreTotals,  Crew::kWarps,     0,             kReaders},
    {OpKind::kStageStore,   Crew::kWarps,     0,             kReaders},
    {OpKind::kTmaStore,     Crew::kWarps,     kTma,          kReaders},
    {OpKind::kStorePixels,  Crew::kWarps,     kTma,          kReaders},
    {OpKind::kStoreRows,    Crew::kWarps,     0,             kReaders},
    {OpKind::kBulkWait,     Crew::kWarps,     kTma,          kReaders},
    {OpKind::kGlobalStore,  Crew::kWarps,     0,             kReaders},
    {OpKind::kPartialStore, Crew::kWarps,     0,             kReaders},
    {OpKind::kPartialArrive, Crew::kWarps,    0,             kReaders},
    {OpKind::kPartialSum,   Crew::kWarps,     0,             kReaders},
    {OpKind::kWarpRow,      Crew::kWarps,     0,             kReaders},
};
// clang-format on

}  // namespace

Status CheckPlacement(const Program& program, const target::Target& target, const Role& role, const Op& op) {
  const OpInfo& row = InfoOf(op.kind);
  const bool lowered = program.stage == Stage::kLowered;
  if (row.stages == (lowered ? StageSet::kScheduled : StageSet::kLowered)) {
    return BrokenRule(6, Cat("it does not stand in a ", NameOf(program.stage), " program"));
  }
  const auto* placement = std::find_if(std::begin(kPlacements), std::end(kPlacements),
                                       [&](const Placement& candidate) { return candidate.kind == op.kind; });
  if (placement == std::end(kPlacements)) return Ok();
  if ((target.features & placement->features) != placement->features) {
    return BrokenRule(6, Cat(target.name, " has no such instruction"));
  }
  if ((placement->roles & Bit(role.kind)) == 0)
    return BrokenRule(6, Cat("it does not stand in a role of kind ", NameOf(role.kind)));
  if (op.kind == OpKind::kMma && role.leader != program.ctas - 1)
    return BrokenRule(5, "of a pair the leader alone multiplies");
  if (placement->crew == Crew::kOneThread && role.elected == 0)
    return BrokenRule(6, "it is for one thread; the role is not elected");
  if (placement->crew == Crew::kWarps && role.elected != 0)
    return BrokenRule(6, "it is for whole warps; the role is elected");
  const bool holds_rows =
      op.kind == OpKind::kAccRead || op.kind == OpKind::kMmaRegisters || op.kind == OpKind::kAccRegisters;
  if (holds_rows && (role.first_warp % 4 != 0 || role.warps % 4 != 0)) {
    return BrokenRule(6, Cat("warps ", role.first_warp, "+", role.warps, " are no whole, aligned warpgroups"));
  }
  return Ok();
}

}  // namespace laneshift::ir
