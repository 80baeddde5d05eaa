#include "ir/role_verifier.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/op_placement.h"

namespace laneshift::ir {
namespace {

using base::Cat;

// The type of operand `i` of a row; the last one repeats before a '*'.
ValueType OperandType(std::string_view signature, size_t i) {
  if (signature.ends_with('*')) signature.remove_suffix(1);
  return TypeOfLetter(signature[std::min(i, signature.size() - 1)]);
}

std::string OpName(const Op& op) {
  const std::string_view mnemonic = InfoOf(op.kind).mnemonic;
  if (op.result != kNoValue) return Cat(mnemonic, " %", op.result);
  return op.operands.empty() ? std::string(mnemonic) : Cat(mnemonic, " of %", op.operands[0]);
}

}  // namespace

RoleVerifier::RoleVerifier(const Program& program, const target::Target& target)
    : program_(program),
      target_(target),
      values_(program.values.size()),
      producers_(program.channels.size()),
      consumers_(program.channels.size()),
      arrivals_(program.channels.size()) {
  for (const Channel& channel : program.channels) tiles_loaded_.emplace_back(channel.tiles.size());
}

Status RoleVerifier::Verify() {
  if (values_.size() > kValueLimit) return Broken(7, Cat("more than ", kValueLimit, " values"));
  for (const Role& role : program_.roles) {
    Status status = VerifyRole(role);
    if (!status) return status.error().Within(Cat("role ", role.name));
  }
  for (size_t id = 0; id < values_.size(); ++id) {
    if (!values_[id].defined) return Broken(7, Cat("%", id, " is defined nowhere"));
  }
  LS_TRY(VerifyChannelsAreServed());
  LS_TRY(CheckTurns());
  return program_.stage == Stage::kLowered ? VerifyArrivals() : Ok();
}

Status RoleVerifier::VerifyArrivals() const {
  for (size_t i = 0; i < program_.channels.size(); ++i) {
    const Channel& channel = program_.channels[i];
    const std::array<int, 2> declared = {channel.full_arrivals, channel.empty_arrivals};
    for (size_t side = 0; side < 2; ++side) {
      if (declared[side] == arrivals_[i][side]) continue;
      return Broken(10, Cat("the ", NameOf(static_cast<Side>(side)), " barriers of channel ", channel.name, " await ",
                            declared[side], " arrivals, the roles make ", arrivals_[i][side]));
    }
  }
  return Ok();
}

// Counts the arrivals that one pass of the role through a slot makes; every place that signals makes as many.
Status RoleVerifier::Arrive(ValueId slot, Side side, int count) {
  Use& use = uses_[static_cast<size_t>(slots_.Of(slot))];
  if (side == Side::kFull) use.produces = true;
  int& arrivals = use.arrivals[static_cast<size_t>(side)];
  if (arrivals != 0 && arrivals != count)
    return Broken(10, Cat("it arrives ", count, " times, elsewhere ", arrivals, " times"));
  arrivals = count;
  return Ok();
}

Status RoleVerifier::VerifyChannelsAreServed() const {
  for (size_t i = 0; i < program_.channels.size(); ++i) {
    const Channel& channel = program_.channels[i];
    if (producers_[i] == 0) return Broken(10, Cat("no role produces channel ", channel.name));
    if (channel.own != 0) {
      if (producers_[i] != 1) return Broken(10, Cat("more than one role reserves channel ", channel.name));
      continue;
    }
    if (consumers_[i] == 0) return Broken(10, Cat("no role consumes channel ", channel.name));
    for (size_t tile = 0; tile < channel.tiles.size(); ++tile) {
      if (!tiles_loaded_[i][tile])
        return Broken(10, Cat("nothing loads tile ", channel.name, ".", channel.tiles[tile].name));
    }
  }
  return Ok();
}

Status RoleVerifier::VerifyRole(const Role& role) {
  role_ = &role;
  uses_.assign(program_.channels.size(), Use{});
  tiles_ = {};
  in_tiles_ = false;
  sums_.reset();
  arriving_ = 0;
  LS_TRY(VerifyRegion(role.body));
  return CloseRole();
}

Status RoleVerifier::CloseRole() {
  for (size_t i = 0; i < uses_.size(); ++i) {
    const Use& use = uses_[i];
    const std::string& name = program_.channels[i].name;
    const bool grants = program_.channels[i].space == Space::kGrants;
    if (use.produces && use.consumes && !grants) return Broken(10, Cat("it produces and consumes channel ", name));
    if (use.release_lag != use.drain_lag) {
      return Broken(
          11, Cat("it releases channel ", name, " with lag ", use.release_lag, " and drains lag ", use.drain_lag));
    }
    if (use.in_turn && !use.passes && program_.channels[i].space != Space::kTurns)
      return Broken(14, Cat("it takes turns and does not pass the other slots of channel ", name));
    for (size_t side = 0; side < 2; ++side) {
      // Of roles that take turns at a channel, one arrives.
      if (use.passes && tiles_.turn > 0) continue;
      arrivals_[i][side] += use.arrivals[side];
    }
    producers_[i] += use.produces ? 1 : 0;
    consumers_[i] += use.consumes ? 1 : 0;
  }
  return Ok();
}

Status RoleVerifier::VerifyRegion(const std::vector<Op>& body) {
  const size_t outer = region_;
  region_ = ++region_count_;
  std::vector<ValueId> defined;
  for (const Op& op : body) {
    Status status = VerifyOp(op, defined);
    // Only the innermost op names itself: its message already says where.
    if (!status) return InfoOf(op.kind).body >= 0 ? status : Status(status.error().Within(OpName(op)));
  }
  LS_TRY(CloseRegion(defined));
  region_ = outer;
  return Ok();
}

Status RoleVerifier::CloseRegion(const std::vector<ValueId>& defined) {
  for (const ValueId id : defined) {
    Value& value = values_[id];
    value.in_scope = false;
    if (program_.values[id] != ValueType::kSlot) continue;
    if (value.slot == SlotState::kPut) return Broken(11, Cat("slot %", id, " is put, but not sent in its region"));
    if (value.slot == SlotState::kTaken)
      return Broken(11, Cat("slot %", id, " is taken, but not released in its region"));
    if (program_.stage == Stage::kLowered && value.tma_bytes != value.expected_bytes) {
      return Broken(
          11, Cat("slot %", id, " expects ", value.expected_bytes, " bytes, but bulk copies bring ", value.tma_bytes));
    }
  }
  return Ok();
}

Status RoleVerifier::VerifyOp(const Op& op, std::vector<ValueId>& defined) {
  if (static_cast<int>(op.kind) >= kOpCount) return Broken(6, "unknown kind of op");
  LS_TRY(VerifyShape(op));
  LS_TRY(CheckPlacement(program_, target_, *role_, op));
  LS_TRY(VerifyUses(op));
  LS_TRY(VerifyChannelRange(op));
  std::vector<ValueId> arguments;
  const bool has_body = InfoOf(op.kind).body >= 0;
  LS_TRY(Define(op, has_body ? arguments : defined));
  LS_TRY(Check(op));
  if (!has_body) return Ok();
  const bool around = in_tiles_;
  in_tiles_ = around || op.kind == OpKind::kTiles || op.kind == OpKind::kShares;
  LS_TRY(VerifyRegion(op.body));
  in_tiles_ = around;
  for (const ValueId id : arguments) values_[id].in_scope = false;
  return Ok();
}

// Rules 7 and 8, as far as an op alone shows them.
Status RoleVerifier::VerifyShape(const Op& op) const {
  const OpInfo& row = InfoOf(op.kind);
  if (!row.TakesOperands(op.operands.size())) {
    return Broken(7, Cat("it has ", op.operands.size(), " operands, its row '", row.operands, "'"));
  }
  if (op.attrs.index() != row.attrs) return Broken(8, "its attributes are not those of its row");
  if (row.body < 0 && !op.body.empty()) return Broken(7, "it has a body, its row has none");
  const bool names_a_value = row.result != ValueType::kNone || row.body > 0;
  if (names_a_value != (op.result != kNoValue)) {
    return Broken(7, names_a_value ? "it defines a value without an id" : "it has an id, but defines no value");
  }
  return Ok();
}

Status RoleVerifier::VerifyUses(const Op& op) const {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ValueId id = op.operands[i];
    if (id >= values_.size()) return Broken(7, Cat("%", id, " is not in the program's list of values"));
    if (!values_[id].defined) return Broken(7, Cat("%", id, " is used before its definition"));
    if (!values_[id].in_scope) return Broken(7, Cat("%", id, " is used outside its region"));
    const ValueType type = OperandType(InfoOf(op.kind).operands, i);
    if (program_.values[id] != type) {
      return Broken(7, Cat("operand %", id, " is of type ", NameOf(program_.values[id]), ", not ", NameOf(type)));
    }
    if (type == ValueType::kSlot && values_[id].slot == SlotState::kClosed) {
      return Broken(11, Cat("slot %", id, " is used after it was sent, released or passed"));
    }
  }
  return Ok();
}

Status RoleVerifier::VerifyChannelRange(const Op& op) const {
  const bool names_channel = std::visit(
      [](const auto& attrs) {
        return requires { attrs.channel; };
      },
      op.attrs);
  if (!names_channel || InRange(ChannelOf(op), 0, static_cast<int64_t>(program_.channels.size()))) return Ok();
  return Broken(8, Cat("there is no channel ", ChannelOf(op)));
}

Status RoleVerifier::Define(const Op& op, std::vector<ValueId>& defined) {
  const OpInfo& row = InfoOf(op.kind);
  const int count = row.body >= 0 ? row.body : row.result == ValueType::kNone ? 0 : 1;
  const ValueType type = row.body >= 0 ? ValueType::kIndex : row.result;
  for (int i = 0; i < count; ++i) {
    const uint64_t id = uint64_t{op.result} + static_cast<uint64_t>(i);
    if (id >= values_.size()) return Broken(7, Cat("%", id, " is not in the program's list of values"));
    Value& value = values_[id];
    if (value.defined) return Broken(7, Cat("%", id, " is defined twice"));
    if (program_.values[id] != type) {
      return Broken(7, Cat("%", id, " is listed as ", NameOf(program_.values[id]), ", but defined as ", NameOf(type)));
    }
    value = Value{.defined = true, .in_scope = true, .region = region_};
    defined.push_back(static_cast<ValueId>(id));
  }
  slots_.Add(op);
  if (row.result == ValueType::kFragment) values_[op.result].fragment = FragmentOf(op);
  return Ok();
}

// What an op that defines a fragment reads, or else passes on from its first operand.
FragmentLayout RoleVerifier::FragmentOf(const Op& op) const {
  if (const auto* read = std::get_if<AccReadAttrs>(&op.attrs))
    return {.kind = read->fragment, .columns = read->columns};
  if (const auto* registers = std::get_if<AccRegistersAttrs>(&op.attrs))
    return {.kind = FragmentKind::kMma16x8, .columns = registers->columns};
  if (const auto* sums = std::get_if<ReadSumsAttrs>(&op.attrs))
    return {.kind = sums->fragment, .columns = sums->columns};
  if (JoinsPairs(op)) {
    const FragmentLayout& pairs = values_[op.operands[0]].fragment;
    return program_.row_axis == Axis::kM ? pairs.JoinedColumns() : pairs.JoinedRows();
  }
  return values_[op.operands[0]].fragment;
}

bool RoleVerifier::IsOperand(DataType type) const {
  return type == program_.operand_type || (IsEightBit(type) && IsEightBit(program_.operand_type));
}

const Channel& RoleVerifier::ChannelOfSlot(ValueId slot) const {
  return program_.channels[static_cast<size_t>(slots_.Of(slot))];
}

Status RoleVerifier::Needs(std::initializer_list<Binding> bindings) const {
  for (const Binding binding : bindings) {
    if (program_.FindParam(binding) == nullptr)
      return Broken(9, Cat("param ", InfoOf(binding).name, " is not declared"));
  }
  return Ok();
}

Status RoleVerifier::NeedsBounds(Operand operand) const {
  switch (operand) {
    case Operand::kA:
      return Needs({Binding::kM, Binding::kK});
    case Operand::kB:
      return Needs({Binding::kN, Binding::kK});
    case Operand::kC:
    case Operand::kD:
      return Needs({Binding::kM, Binding::kN});
  }
  return Ok();
}

Status RoleVerifier::CheckScalar(Binding binding, ParamKind kind) const {
  if (InfoOf(binding).kind == kind) return Needs({binding});
  return Broken(8,
                Cat("param ", InfoOf(binding).name, " is no ", kind == ParamKind::kFloat ? "float" : "32-bit integer"));
}

// The one number of an op that has no more.
Status RoleVerifier::CheckNumber(const Op& op) const {
  if (const auto* attrs = std::get_if<ConstAttrs>(&op.attrs); attrs != nullptr && attrs->value < 0) {
    return Broken(8, "a constant is never negative");
  }
  if (const auto* attrs = std::get_if<TilesAttrs>(&op.attrs); attrs != nullptr && attrs->raster < 1) {
    return Broken(8, "raster is not positive");
  }
  if (const auto* attrs = std::get_if<SharesAttrs>(&op.attrs)) {
    if (attrs->raster < 1) return Broken(8, "raster is not positive");
    if (attrs->sections < 1) return Broken(8, "sections is not positive");
  }
  if (const auto* attrs = std::get_if<ForAttrs>(&op.attrs); attrs != nullptr && attrs->step < 1) {
    return Broken(8, "step is not positive");
  }
  const auto* pending = std::get_if<PendingAttrs>(&op.attrs);
  const auto* pending_stores = std::get_if<BulkWaitAttrs>(&op.attrs);
  if ((pending != nullptr && pending->pending < 0) || (pending_stores != nullptr && pending_stores->pending < 0)) {
    return Broken(8, "pending is negative");
  }
  const auto* rows = std::get_if<WarpRowAttrs>(&op.attrs);
  if (rows == nullptr) return Ok();
  if (program_.kept_rows != 0) {
    if (rows->rows * role_->warps == program_.kept_rows) return Ok();
    return Broken(8, Cat("a warp keeps ", program_.kept_rows / role_->warps, " rows, not ", rows->rows));
  }
  if (rows->rows == 16 || rows->rows == 32) return Ok();
  return Broken(8, Cat("a warp holds 16 or 32 rows, not ", rows->rows));
}

Status RoleVerifier::CheckTurns() const {
  for (size_t turn = 0; turn < turns_.size(); ++turn) {
    if (turns_[turn].size() != 1)
      return Broken(14, Cat(turns_[turn].size(), " roles take turn ", turn, " of ", turns_.size()));
    if (turns_[turn][0]->kind != turns_[0][0]->kind || turns_[turn][0]->warps != turns_[0][0]->warps)
      return Broken(14, Cat("roles ", turns_[0][0]->name, " and ", turns_[turn][0]->name, " take turns and differ"));
  }
  return Ok();
}

bool RoleVerifier::HoldsTurn() const {
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (program_.channels[i].space == Space::kTurns && uses_[i].open > 0) return true;
  }
  return false;
}

Status RoleVerifier::CheckTiles(const Op& op) {
  tiles_ = op.As<TilesAttrs>();
  if (tiles_.turns < 1 || !InRange(tiles_.turn, 0, tiles_.turns))
    return Broken(8, Cat("turn ", tiles_.turn, " of ", tiles_.turns));
  if (tiles_.turns > 1) {
    if (tiles_.granted != 0) return Broken(14, "roles take turns at tiles of a fixed order");
    turns_.resize(std::max(turns_.size(), static_cast<size_t>(tiles_.turns)));
    turns_[static_cast<size_t>(tiles_.turn)].push_back(role_);
  }
  const auto ends =
      std::count_if(op.body.begin(), op.body.end(), [](const Op& inner) { return inner.kind == OpKind::kTilesNext; });
  const int granted = op.As<TilesAttrs>().granted;
  if (granted != (program_.TakesOver() ? 1 : 0))
    return Broken(10, "tiles are granted where there is a channel of grants, and only there");
  return ends == granted ? Ok() : Broken(10, Cat("a turn of it has ", ends, " tiles.next, not ", granted));
}

Status RoleVerifier::CheckGrant(const Op& op) {
  const ValueId slot = op.operands[0];
  if (ChannelOfSlot(slot).space != Space::kGrants) return Broken(8, "its slot holds no grant");
  const bool asks = op.kind == OpKind::kRequest;
  if (values_[slot].slot == (asks ? SlotState::kTaken : SlotState::kPut))
    return Broken(11, Cat("slot %", slot, asks ? " was taken" : " was put"));
  if (asks) values_[slot].tma_bytes += kGrantBytes;
  return Ok();
}

Status RoleVerifier::CheckExpect(const Op& op) {
  const int bytes = op.As<ExpectAttrs>().bytes;
  if (bytes < 1) return Broken(8, "bytes is not positive");
  int& expected = values_[op.operands[0]].expected_bytes;
  if (expected != 0) return Broken(11, Cat("slot %", op.operands[0], " expects bytes twice"));
  expected = bytes;
  const int leader = op.As<ExpectAttrs>().leader;
  const bool by_pair = program_.ctas > 1 && ChannelOfSlot(op.operands[0]).space == Space::kShared;
  if (leader != (by_pair ? 1 : 0)) return Broken(8, "of a pair the leader expects bytes, and without pairs every CTA");
  return Arrive(op.operands[0], Side::kFull, role_->elected != 0 ? 1 : 32 * role_->warps);
}

Status RoleVerifier::Check(const Op& op) {
  switch (op.kind) {
    case OpKind::kClusterIndex:
      if (op.As<ClusterIndexAttrs>().axis != Axis::kK) return Ok();
      return Broken(8, "a cluster has no extent along k");
    case OpKind::kTilesColumn:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kDiv:
    case OpKind::kCeilDiv:
    case OpKind::kRem:
    case OpKind::kLess:
    case OpKind::kIf:
    case OpKind::kFenceProxy:
    case OpKind::kFenceTensor:
      return Ok();
    case OpKind::kParam:
      return CheckScalar(op.As<ParamAttrs>().binding, ParamKind::kInt32);
    case OpKind::kPut:
      return Open(op, SlotState::kPut);
    case OpKind::kTake:
      return Open(op, SlotState::kTaken);
    case OpKind::kAwait:
    case OpKind::kKept:
      return CheckStaying(op);
    case OpKind::kSend:
    case OpKind::kRetire:
      return Close(op, SlotState::kPut);
    case OpKind::kReserve:
      if (program_.channels[static_cast<size_t>(ChannelOf(op))].own == 0)
        return Broken(10, "it reserves a slot of a channel that is not its own");
      return Open(op, SlotState::kPut);
    case OpKind::kRelease:
    case OpKind::kReleaseLate:
      return Close(op, SlotState::kTaken);
    case OpKind::kDrain:
      return CheckDrain(op);
    case OpKind::kCursor:
      return CheckCursor(op);
    case OpKind::kPass:
      uses_[static_cast<size_t>(ChannelOf(op))].passes = true;
      return tiles_.turns > 1 ? Ok() : Broken(14, "it passes slots and takes no turns");
    case OpKind::kAdvanceBy:
      uses_[static_cast<size_t>(slots_.Of(op.operands[0]))].passes = true;
      values_[op.operands[0]].slot = SlotState::kClosed;
      return Ok();
    case OpKind::kAdvance:
      values_[op.operands[0]].slot = SlotState::kClosed;
      return Ok();
    case OpKind::kBarrierExpect:
      return CheckExpect(op);
    case OpKind::kBarrierWait:
    case OpKind::kBarrierArrive:
    case OpKind::kMmaCommit:
      return CheckBarrier(op);
    case OpKind::kTmaLoad:
    case OpKind::kCopyLoad:
      return CheckLoad(op, op.As<LoadAttrs>());
    case OpKind::kLoadPixels:
      return CheckLoadPixels(op);
    case OpKind::kGatherPixels:
      return CheckGather(op);
    case OpKind::kPackRows:
      return CheckPack(op.As<PackAttrs>());
    case OpKind::kAddTotals:
      return CheckAddTotals(op.As<AddTotalsAttrs>());
    case OpKind::kLanesBeside:
      return CheckLanes(op);
    case OpKind::kMma:
    case OpKind::kMmaRegisters:
      return CheckMma(op);
    case OpKind::kMmaTensor:
    case OpKind::kTensorCopy:
    case OpKind::kTensorShift:
    case OpKind::kTensorRefresh:
      return CheckTensorOperand(op);
    case OpKind::kAccRead:
    case OpKind::kAccRegisters:
      return CheckFragment(op);
    case OpKind::kScale:
      return CheckScalar(op.As<ScaleAttrs>().binding, ParamKind::kFloat);
    case OpKind::kScaleBy:
      return Ok();
    case OpKind::kLoadFactor:
      return Needs({op.As<ScaleAttrs>().binding});
    case OpKind::kLoadFactors:
      return CheckFactors(op);
    case OpKind::kClearSums:
      sums_ = op.As<ClearSumsAttrs>().fragment;
      return Ok();
    case OpKind::kAddSums:
    case OpKind::kAddScaledSums:
      return CheckSums(op.As<AddSumsAttrs>().column, values_[op.operands[0]].fragment);
    case OpKind::kReadSums:
      return CheckSums(op.As<ReadSumsAttrs>().column, FragmentOf(op));
    case OpKind::kCombineVector:
    case OpKind::kCombineMatrix:
    case OpKind::kMap:
    case OpKind::kGate:
    case OpKind::kReduce:
    case OpKind::kStoreTotals:
      return CheckStep(op);
    case OpKind::kCall:
      return CheckCall(op);
    case OpKind::kGlobalStore:
      return CheckGlobal(op, op.As<GlobalAttrs>());
    case OpKind::kTmaStore:
      LS_TRY(CheckBulkStore());
      return CheckStaging(op, op.As<BulkStoreAttrs>().buffer);
    case OpKind::kStageStore:
      return CheckStaging(op, op.As<StageAttrs>().buffer);
    case OpKind::kStoreRows:
      LS_TRY(Needs({Binding::kBaseD}));
      LS_TRY(NeedsRows(Operand::kD, op.As<StoreRowsAttrs>().rows));
      return CheckStaging(op, op.As<StoreRowsAttrs>().buffer);
    case OpKind::kStorePixels:
      LS_TRY(CheckBulkStore());
      if (op.operands.size() != 5 && op.operands.size() != 6) return Broken(7, "a walk starts at 3 or 4 indices");
      return CheckStaging(op, op.As<BulkStoreAttrs>().buffer);
    case OpKind::kBulkWait:
      LS_TRY(CheckNumber(op));
      return CheckStaging(op, op.As<BulkWaitAttrs>().buffer);
    case OpKind::kPartialArrive:
      return CheckArrival(op.As<ArriveAttrs>().sharers);
    case OpKind::kPartialStore:
    case OpKind::kPartialSum:
      return Needs({Binding::kWorkspace});
    case OpKind::kTilesNext:
    case OpKind::kRequest:
      return CheckGrant(op);
    case OpKind::kTiles:
      LS_TRY(CheckTiles(op));
      return CheckNumber(op);
    case OpKind::kConst:
    case OpKind::kShares:
    case OpKind::kFor:
    case OpKind::kMmaWait:
    case OpKind::kWarpRow:
      return CheckNumber(op);
  }
  return Ok();
}

Status RoleVerifier::CheckDrain(const Op& op) {
  const auto& attrs = op.As<DrainAttrs>();
  if (attrs.lag < 1) return Broken(8, "a drain without lag");
  uses_[static_cast<size_t>(attrs.channel)].drain_lag = attrs.lag;
  return Ok();
}

Status RoleVerifier::CheckCursor(const Op& op) {
  if (!InRange(op.As<CursorAttrs>().trail, 0, 2)) return Broken(8, "trail is not 0 or 1");
  values_[op.result].slot = SlotState::kCursor;
  return CheckFilledOnce(op);
}

Status RoleVerifier::CheckBarrier(const Op& op) {
  const auto& attrs = op.As<BarrierAttrs>();
  const bool waits = op.kind == OpKind::kBarrierWait;
  if (!InRange(attrs.inverted, 0, waits ? 2 : 1)) return Broken(8, "only a wait is inverted, by 1");
  if (waits && attrs.to != Reach::kOwn) return Broken(8, "a CTA waits for its own barriers alone");
  LS_TRY(CheckReach(attrs.to));
  if (!waits) {
    const bool one = role_->elected != 0 || op.kind == OpKind::kMmaCommit;
    const int threads = one ? 1 : attrs.by == Unit::kWarp ? role_->warps : 32 * role_->warps;
    const bool lanes = role_->elected == 0 && attrs.by == Unit::kWarp;
    if (attrs.to != Reach::kOwn && op.kind == OpKind::kBarrierArrive && !lanes && !(one && attrs.to == Reach::kAll))
      return Broken(8, "the lanes of a warp arrive at other CTAs, one each");
    const int ctas = attrs.to == Reach::kAll && role_->leader != 0 ? program_.ctas : 1;
    return Arrive(op.operands[0], attrs.side, threads * program_.Arrivals(attrs.to) / ctas);
  }
  Use& use = uses_[static_cast<size_t>(slots_.Of(op.operands[0]))];
  (attrs.side == Side::kEmpty ? use.produces : use.consumes) = true;
  return Ok();
}

Status RoleVerifier::Open(const Op& op, SlotState state) {
  const auto channel = static_cast<size_t>(ChannelOf(op));
  Use& use = uses_[channel];
  (state == SlotState::kPut ? use.produces : use.consumes) = true;
  values_[op.result].slot = state;
  if (program_.channels[channel].stays != 0 && state == SlotState::kTaken)
    return Broken(15, Cat("it takes from channel ", program_.channels[channel].name, ", which stays"));
  LS_TRY(CheckFilledOnce(op));
  const bool turn = program_.channels[channel].space == Space::kTurns;
  if (tiles_.turns > 1 && state == SlotState::kTaken && !turn) {
    use.in_turn = true;
    if (!HoldsTurn()) return Broken(14, Cat("it takes from channel ", program_.channels[channel].name, " out of turn"));
  }
  if (++use.open <= program_.channels[channel].stages) return Ok();
  return Broken(11, Cat("it holds ", use.open, " slots of channel ", program_.channels[channel].name, ", which has ",
                        program_.channels[channel].stages));
}

Status RoleVerifier::Close(const Op& op, SlotState expected) {
  const ValueId slot = op.operands[0];
  Value& value = values_[slot];
  if (value.slot != expected) {
    return Broken(11, Cat("slot %", slot, expected == SlotState::kPut ? " was taken, not put" : " was put, not taken"));
  }
  if (value.region != region_) return Broken(11, Cat("slot %", slot, " was opened in another region"));
  value.slot = SlotState::kClosed;
  Use& use = uses_[static_cast<size_t>(slots_.Of(slot))];
  --use.open;
  if (op.kind != OpKind::kReleaseLate) return Ok();
  const int lag = op.As<ReleaseAttrs>().lag;
  use.release_lag = lag;
  if (InRange(lag, 1, ChannelOfSlot(slot).stages)) return Ok();
  return Broken(11, Cat("lag ", lag, " is not 1 to below the ", ChannelOfSlot(slot).stages, " stages of the channel"));
}

// What stays is filled before the loop over tiles.
Status RoleVerifier::CheckFilledOnce(const Op& op) const {
  const Channel& channel = program_.channels[static_cast<size_t>(ChannelOf(op))];
  if (channel.stays == 0 || !in_tiles_) return Ok();
  return Broken(15, Cat("it goes through the slots of channel ", channel.name, ", which stays, for each tile"));
}

Status RoleVerifier::CheckStaying(const Op& op) {
  const auto channel = static_cast<size_t>(ChannelOf(op));
  const std::string& name = program_.channels[channel].name;
  if (program_.channels[channel].stays == 0) return Broken(15, Cat("channel ", name, " does not stay"));
  if (op.kind == OpKind::kAwait) {
    uses_[channel].consumes = true;
    return CheckFilledOnce(op);
  }
  values_[op.result].slot = SlotState::kKept;
  return uses_[channel].consumes ? Ok() : Broken(15, Cat("it has not awaited channel ", name));
}

// What every op that fills a tile keeps.
Status RoleVerifier::FillTile(const Op& op, int tile) {
  const ValueId slot = op.operands[0];
  const Channel& channel = ChannelOfSlot(slot);
  if (!InRange(tile, 0, static_cast<int64_t>(channel.tiles.size()))) {
    return Broken(8, Cat("channel ", channel.name, " has no tile ", tile));
  }
  if (values_[slot].slot == SlotState::kTaken || values_[slot].slot == SlotState::kKept)
    return Broken(11, Cat("it fills slot %", slot, ", which was taken"));
  tiles_loaded_[static_cast<size_t>(slots_.Of(slot))][static_cast<size_t>(tile)] = true;
  return Ok();
}

Status RoleVerifier::CheckReach(Reach to) const {
  if (to == Reach::kOwn || program_.Arrivals(to) > 1) return Ok();
  return Broken(8, Cat("the cluster has one CTA to=", NameOf(to)));
}

// Bulk copies of one box for each column of the tile.
Status RoleVerifier::FillByBoxes(const Op& op, int tile, Binding map, Reach to, bool part) {
  LS_TRY(Needs({map}));
  if (to != Reach::kOwn && to != Reach::kM && to != Reach::kN)
    return Broken(8, "a copy goes to the CTAs along one axis of the cluster");
  LS_TRY(CheckReach(to));
  const int parts = program_.Parts(to);
  const TileSlot& slot = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(tile)];
  const SharedLayout& box = program_.FindParam(map)->box;
  values_[op.operands[0]].tma_bytes += BoxBytes(slot.layout, box) * parts * program_.ctas;
  if (HasBox(slot.layout, box, parts, part)) return Ok();
  return Broken(9, Cat("the box of ", InfoOf(map).name, " is not a column of tile ", slot.name));
}

Status RoleVerifier::CheckLoad(const Op& op, const LoadAttrs& attrs) {
  if (attrs.operand != Operand::kA && attrs.operand != Operand::kB)
    return Broken(8, "only A and B are loaded into tiles");
  if (attrs.taps != 0 && (op.kind == OpKind::kTmaLoad || attrs.operand != Operand::kB))
    return Broken(8, "only threads find taps, and only those of B");
  if (attrs.transposed != 0 && (op.kind == OpKind::kTmaLoad || attrs.taps != 0))
    return Broken(8, "only threads transpose, and no taps");
  LS_TRY(FillTile(op, attrs.tile));
  if (attrs.halves != 0) {
    const SharedLayout& tile = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout;
    if (attrs.operand != Operand::kB || (op.kind == OpKind::kTmaLoad && tile.outer_axis != Axis::kN))
      return Broken(8, "halves are those of B's columns, which boxes bring as rows along k");
    if (op.kind == OpKind::kCopyLoad) LS_TRY(Needs({Binding::kColumns}));
  }
  if (op.kind == OpKind::kTmaLoad) return FillByBoxes(op, attrs.tile, MapOf(attrs.operand), attrs.to, false);
  if (attrs.to != Reach::kOwn || program_.ctas != 1)
    return Broken(8, "bulk copies alone go to other CTAs or serve pairs");
  LS_TRY(Needs({BaseOf(attrs.operand), PitchOf(attrs.operand), StrideOf(attrs.operand)}));
  if (attrs.taps != 0) LS_TRY(Needs({Binding::kRowB, Binding::kChannels, Binding::kTapsS, Binding::kTapsR}));
  return NeedsBounds(attrs.operand);
}

Status RoleVerifier::CheckLoadPixels(const Op& op) {
  const auto& attrs = op.As<PixelLoadAttrs>();
  if (op.operands.size() != 7 && op.operands.size() != 9)
    return Broken(7, "a walk has a channel, 3 or 4 starts and 2 or 3 offsets");
  if (InfoOf(attrs.map).kind != ParamKind::kTensorMap) return Broken(8, "map is no tensor map");
  LS_TRY(FillTile(op, attrs.tile));
  LS_TRY(FillByBoxes(op, attrs.tile, attrs.map, attrs.to, true));
  const int rows = ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout.outer;
  if (InRange(attrs.row, 0, rows - program_.FindParam(attrs.map)->box.outer * program_.Parts(attrs.to) + 1))
    return Ok();
  return Broken(8, Cat("a box from row ", attrs.row, " on leaves the tile of ", rows, " rows"));
}

Status RoleVerifier::CheckGather(const Op& op) {
  const auto& attrs = op.As<GatherAttrs>();
  LS_TRY(FillTile(op, attrs.tile));
  if (program_.ctas != 1) return Broken(8, "bulk copies alone serve pairs");
  const int whole = 16 / ChannelOfSlot(op.operands[0]).tiles[static_cast<size_t>(attrs.tile)].layout.ElementBytes();
  if (attrs.vector != 1 && attrs.vector != whole)
    return Broken(8, Cat("vector=", attrs.vector, " is not 1 or ", whole));
  const int extents[] = {attrs.channels, attrs.columns, attrs.rows, attrs.planes};
  const bool known = attrs.channels != 0;
  for (const int extent : extents) {
    if (known ? extent < 1 : extent != 0) return Broken(8, "a filter is known in all extents, or in none");
  }
  if (attrs.first < 0 || (known ? attrs.vector != 1 : attrs.first != 0))
    return Broken(8, "only blocks of a known filter have a first element, and their accesses are of single ones");
  LS_TRY(Needs({Binding::kBaseA, Binding::kPitchA, Binding::kRowA, Binding::kStrideA, Binding::kM, Binding::kK}));
  return Needs({Binding::kChannels, Binding::kWalkQ, Binding::kOutP, Binding::kInW, Binding::kInH, Binding::kTapsS,
                Binding::kTapsR, Binding::kStepW, Binding::kStepH, Binding::kPadW, Binding::kPadH, Binding::kSpreadW,
                Binding::kSpreadH});
}

// Lanes are positions of a tile: those of a full one, and as many to the left or right as a word has.
Status RoleVerifier::CheckLanes(const Op& op) const {
  const int columns = op.As<LanesBesideAttrs>().columns;
  if (columns == 0 || std::abs(columns) >= kPartitionLanes)
    return Broken(8, Cat("columns=", columns, " is no distance of 1 to ", kPartitionLanes - 1));
  if (program_.tile_m != kTensorLanes || program_.kept_rows != 0)
    return Broken(12, Cat("lanes are positions only in tiles of ", kTensorLanes, " that keep all"));
  return Needs({Binding::kWalkQ});
}

Status RoleVerifier::CheckPack(const PackAttrs& attrs) const {
  constexpr int kLanes = 32, kPieceBytes = 16;
  if (program_.tile_n * DataTypeBytes(program_.operand_type) != kLanes * kPieceBytes ||
      program_.tile_m % role_->warps != 0) {
    return Broken(8, Cat("a tile of ", program_.tile_m, "x", program_.tile_n, " ", DataTypeName(program_.operand_type),
                         " is not ", kLanes, " pieces of ", kPieceBytes, " bytes by as many rows for each of ",
                         role_->warps, " warps"));
  }
  const Axis side = attrs.operand == Operand::kA ? Axis::kM : Axis::kN;
  const bool of_product = attrs.operand == Operand::kA || attrs.operand == Operand::kB;
  const bool along_k = attrs.outer == side && attrs.inner == Axis::kK;
  if (!of_product || !(along_k || (attrs.outer == Axis::kK && attrs.inner == side)))
    return Broken(8, Cat("the rows of ", OperandName(attrs.operand), " do not run so"));
  LS_TRY(Needs({BaseOf(attrs.operand), PitchOf(attrs.operand), StrideOf(attrs.operand), Binding::kWorkspace}));
  return NeedsBounds(attrs.operand);
}

}  // namespace laneshift::ir
