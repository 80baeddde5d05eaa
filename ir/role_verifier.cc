#include "ir/role_verifier.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <span>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/mma.h"
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
  LS_TRY(CheckPingpong());
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

// Counts the arrivals that the role makes for each slot; every place that signals must make the same number.
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
    if (channel.is_private) {
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
  work_ = {};
  in_work_ = false;
  promoted_.reset();
  scale_sets_.clear();
  arriving_ = 0;
  stamping_ = false;
  LS_TRY(VerifyRegion(role.body));
  return CloseRole();
}

Status RoleVerifier::CloseRole() {
  for (size_t i = 0; i < uses_.size(); ++i) {
    const Use& use = uses_[i];
    const std::string& name = program_.channels[i].name;
    const Space space = program_.channels[i].space;
    const bool both = space == Space::kClcResponses || space == Space::kSums;
    if (use.produces && use.consumes && !both) return Broken(10, Cat("it produces and consumes channel ", name));
    if (use.peeks && !use.consumes) return Broken(10, Cat("it peeks at channel ", name, " and takes no slot of it"));
    if (use.release_lag != use.drain_lag) {
      return Broken(
          11, Cat("it releases channel ", name, " with lag ", use.release_lag, " and drains lag ", use.drain_lag));
    }
    if (use.sends_late != use.drains_sends || (use.sends_late && use.sends)) {
      return Broken(11, Cat("the slots of channel ", name, " that it sends late are ",
                            use.drains_sends == use.sends_late ? "not all of them"
                            : use.sends_late                   ? "not drained"
                                                               : "none, and it drains them"));
    }
    if (use.in_pingpong && !use.passes && program_.channels[i].space != Space::kOrder)
      return Broken(14, Cat("it is a ping-pong role and does not pass the other roles' slots of channel ", name));
    for (size_t side = 0; side < 2; ++side) {
      // Only one of the ping-pong roles of a channel arrives.
      if (use.passes && work_.pingpong_index > 0) continue;
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
    // Only the innermost op names itself: its message already gives the place.
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
    if (program_.stage == Stage::kLowered && value.rows_loaded != value.rows_expected)
      return Broken(11, Cat("slot %", id, " expects other rows of A than bulk copies bring"));
  }
  return Ok();
}

Status RoleVerifier::VerifyOp(const Op& op, std::vector<ValueId>& defined) {
  if (static_cast<int>(op.kind) >= kOpCount) return Broken(6, "unknown kind of op");
  LS_TRY(VerifyShape(op));
  LS_TRY(CheckPlacement(program_, target_, *role_, op));
  LS_TRY(VerifyUses(op));
  LS_TRY(CheckElements(op));
  LS_TRY(VerifyChannelRange(op));
  std::vector<ValueId> arguments;
  const bool has_body = InfoOf(op.kind).body >= 0;
  LS_TRY(Define(op, has_body ? arguments : defined));
  LS_TRY(Check(op));
  if (!has_body) return Ok();
  const bool around = in_work_;
  in_work_ = around || op.kind == OpKind::kWork;
  LS_TRY(VerifyRegion(op.body));
  in_work_ = around;
  for (const ValueId id : arguments) values_[id].in_scope = false;
  return Ok();
}

// Rules 7 and 8, as far as a single op can violate them.
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
  const int count = row.body >= 0 ? op.BodyArguments() : row.result == ValueType::kNone ? 0 : 1;
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
  if (row.result == ValueType::kFragment) {
    values_[op.result].fragment = FragmentOf(op);
    values_[op.result].integers = HoldsIntegers(op);
  }
  return Ok();
}

// A fragment of an accumulator of integers, or of partial sums of one.
bool RoleVerifier::HoldsIntegers(const Op& op) const {
  if (op.kind == OpKind::kPartialSum) return values_[op.operands[0]].integers;
  const bool reads = op.kind == OpKind::kAccRead || op.kind == OpKind::kAccRegisters ||
                     op.kind == OpKind::kPartialTotal || op.kind == OpKind::kAddClusterSums;
  return reads && MmaKindOf(program_.operand_type) && IsInteger(AccumulatorType(program_.operand_type));
}

// Arithmetic is on f32; integers are added to partial sums, converted, or stored as they are.
Status RoleVerifier::CheckElements(const Op& op) const {
  if (op.operands.empty() || OperandType(InfoOf(op.kind).operands, 0) != ValueType::kFragment) return Ok();
  const bool integers = values_[op.operands[0]].integers;
  std::optional<bool> wanted = false;
  if (InfoOf(op.kind).category == OpCategory::kSplitK) wanted.reset();
  if (op.kind == OpKind::kToF32) wanted = true;
  if (op.kind == OpKind::kGlobalStore) wanted = IsInteger(op.As<GlobalAttrs>().type);
  if (op.kind == OpKind::kStageStore) {
    const auto buffer = static_cast<size_t>(op.As<StageAttrs>().buffer);
    wanted = buffer < program_.buffers.size() && IsInteger(program_.buffers[buffer].layout.type);
  }
  if (!wanted || integers == *wanted) return Ok();
  return Broken(12, Cat("its fragment is of ", integers ? "s32" : "f32", ", not of ", *wanted ? "s32" : "f32"));
}

// What an op that defines a fragment reads; other ops pass on their first operand.
FragmentLayout RoleVerifier::FragmentOf(const Op& op) const {
  if (const auto* read = std::get_if<AccReadAttrs>(&op.attrs))
    return {.kind = read->fragment, .columns = read->columns};
  if (const auto* registers = std::get_if<AccRegistersAttrs>(&op.attrs))
    return {.kind = FragmentKind::kMma16x8, .columns = registers->columns};
  if (const auto* depthwise = std::get_if<DepthwiseAttrs>(&op.attrs))
    return {.kind = depthwise->fragment, .columns = program_.tile_n};
  if (std::holds_alternative<LoadSumsAttrs>(op.attrs))
    return {.kind = FragmentKind::kMma16x8, .columns = program_.Columns()};
  if (const auto* promoted = std::get_if<ReadPromotedAttrs>(&op.attrs))
    return {.kind = promoted->fragment, .columns = promoted->columns};
  if (IsGatedOp(op)) {
    const FragmentLayout& pairs = values_[op.operands[0]].fragment;
    return program_.row_axis == Axis::kM ? pairs.GatedColumns() : pairs.GatedRows();
  }
  return values_[op.operands[0]].fragment;
}

bool RoleVerifier::IsOperand(const SharedLayout& tile, int scale_run) const {
  const int bits = program_.OperandBits();
  return !tile.linear && tile.ElementBits() == bits && MmaKindOf(program_.operand_type, tile.type, scale_run, bits);
}

const Channel& RoleVerifier::ChannelOfSlot(ValueId slot) const {
  return program_.channels[static_cast<size_t>(slots_.Of(slot))];
}

Status RoleVerifier::Needs(std::initializer_list<Binding> bindings) const {
  for (const Binding binding : bindings) {
    if (program_.FindParam(binding) == nullptr)
      return Broken(9, Cat("param ", PrintBinding(binding), " is not declared"));
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
  if (KindOf(binding) == kind) return Needs({binding});
  return Broken(
      8, Cat("param ", PrintBinding(binding), " is no ", kind == ParamKind::kFloat ? "float" : "32-bit integer"));
}

// The number of an op that has only one.
Status RoleVerifier::CheckNumber(const Op& op) const {
  if (const auto* attrs = std::get_if<ConstAttrs>(&op.attrs); attrs != nullptr && attrs->value < 0) {
    return Broken(8, "a constant cannot be negative");
  }
  const auto* pending = std::get_if<PendingAttrs>(&op.attrs);
  const auto* pending_stores = std::get_if<BulkWaitAttrs>(&op.attrs);
  if ((pending != nullptr && pending->pending < 0) || (pending_stores != nullptr && pending_stores->pending < 0)) {
    return Broken(8, "pending is negative");
  }
  const auto* rows = std::get_if<WarpRowAttrs>(&op.attrs);
  if (rows == nullptr) return Ok();
  if (program_.live_rows != 0) {
    if (rows->rows * role_->warps == program_.live_rows) return Ok();
    return Broken(8, Cat("a warp has ", program_.live_rows / role_->warps, " rows, not ", rows->rows));
  }
  if (rows->rows == 16 || rows->rows == 32) return Ok();
  return Broken(8, Cat("a warp holds 16 or 32 rows, not ", rows->rows));
}

Status RoleVerifier::CheckFor(const Op& op) const {
  if (op.As<ForAttrs>().step < 1) return Broken(8, "step is not positive");
  if (!op.CountsRows()) return Ok();
  if (op.operands.size() > 3) return Broken(8, "a loop has a first index, an end, and rows of the tile that count");
  if (role_->kind == RoleKind::kMath && work_.row_step > 0) return Ok();
  return Broken(8, "only where tiles divide the rows of groups may some of a tile not be multiplied");
}

Status RoleVerifier::Check(const Op& op) {
  switch (op.kind) {
#define OP(Name, mnemonic, operands, result, stages, body, category, executor, roles, needs, check, ...) \
  case OpKind::k##Name:                                                                                  \
    return Check##check(op);
#include "ir/ops.def"
  }
  return Ok();
}

Status RoleVerifier::CheckNothing(const Op&) const { return Ok(); }

Status RoleVerifier::CheckClusterIndex(const Op& op) const {
  if (op.As<ClusterIndexAttrs>().axis != Axis::kK || program_.cluster_k > 1) return Ok();
  return Broken(8, "the cluster has no extent along k");
}

Status RoleVerifier::CheckParam(const Op& op) const {
  return CheckScalar(op.As<ParamAttrs>().binding, ParamKind::kInt32);
}
Status RoleVerifier::CheckScale(const Op& op) const {
  return CheckScalar(op.As<ScaleAttrs>().binding, ParamKind::kFloat);
}
Status RoleVerifier::CheckLoadScaleFactor(const Op& op) const { return Needs({op.As<ScaleAttrs>().binding}); }
Status RoleVerifier::CheckPartial(const Op&) const { return Needs({Binding::kWorkspace}); }
Status RoleVerifier::CheckPartialTotal(const Op& op) const {
  const auto& attrs = op.As<AccReadAttrs>();
  if (attrs.columns < 8 || attrs.columns % 8 != 0 || attrs.columns > program_.Columns() ||
      !HoldsAccumulator(attrs.fragment))
    return Broken(8, Cat(attrs.columns, " columns are not some of the accumulator's ", program_.Columns()));
  return Needs({Binding::kWorkspace});
}

Status RoleVerifier::CheckClusterSums(const Op& op) const {
  const Channel& channel = ChannelOfSlot(op.operands[0]);
  if (channel.space != Space::kSums) return Broken(8, Cat("channel ", channel.name, " holds no partial sums"));
  const bool stores = op.kind == OpKind::kStoreClusterSums;
  const int columns = stores ? values_[op.operands[1]].fragment.columns : op.As<AccReadAttrs>().columns;
  const bool whole = columns >= 8 && columns % 8 == 0 && columns <= channel.columns;
  if (!whole || (!stores && !HoldsAccumulator(op.As<AccReadAttrs>().fragment)))
    return Broken(8, Cat(columns, " columns are not some of the accumulator's ", channel.columns));
  return Ok();
}

Status RoleVerifier::CheckClearPromoted(const Op& op) {
  promoted_ = op.As<ClearPromotedAttrs>().fragment;
  return Ok();
}
Status RoleVerifier::CheckAddPromoted(const Op& op) const {
  return CheckPromoted(op.As<AddPromotedAttrs>().column, values_[op.operands[0]].fragment);
}
Status RoleVerifier::CheckReadPromoted(const Op& op) const {
  return CheckPromoted(op.As<ReadPromotedAttrs>().column, FragmentOf(op));
}

Status RoleVerifier::CheckStageStore(const Op& op) const { return CheckStaging(op, op.As<StageAttrs>().buffer); }

Status RoleVerifier::CheckStoreRows(const Op& op) const {
  LS_TRY(Needs({Binding::kBaseD}));
  LS_TRY(NeedsRows(Operand::kD, op.As<StoreRowsAttrs>().rows));
  return CheckStaging(op, op.As<StoreRowsAttrs>().buffer);
}

Status RoleVerifier::CheckStamp(const Op& op) {
  const auto& attrs = op.As<StampAttrs>();
  if (attrs.id < 0 || !stamps_.insert(attrs.id).second)
    return Broken(8, Cat("the id ", attrs.id, " of a stamp is negative, or that of another one"));
  stamping_ |= attrs.event == StampEvent::kBegin;
  if (!stamping_) return Broken(8, "a stamp before the role's stamp event=begin");
  return Needs({Binding::kStamps});
}

Status RoleVerifier::CheckBulkWait(const Op& op) const {
  LS_TRY(CheckNumber(op));
  return CheckStaging(op, op.As<BulkWaitAttrs>().buffer);
}

}  // namespace laneshift::ir
