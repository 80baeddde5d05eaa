#include "ir/proof/channel_trace.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"

namespace laneshift::ir {
namespace {

using base::Cat;
using Index = std::optional<int64_t>;

constexpr int64_t kMostSteps = 1 << 20;  // a kernel whose loops run longer has no proof
constexpr int kThreadsOfWarp = 32;

bool UsesBarrier(OpKind kind) {
  return kind == OpKind::kBarrierWait || kind == OpKind::kBarrierExpect || kind == OpKind::kBarrierArrive ||
         kind == OpKind::kMmaCommit;
}
bool Copies(OpKind kind) {
  return kind == OpKind::kTmaLoad || kind == OpKind::kLoadRows || kind == OpKind::kLoadPixels ||
         kind == OpKind::kWorkRequest;
}
bool IsOnItsWay(const Op& op) { return op.kind == OpKind::kCopyLoad && op.As<LoadAttrs>().piece != 0; }
bool MovesCursor(OpKind kind) {
  return kind == OpKind::kCursor || kind == OpKind::kResidentSlot || kind == OpKind::kAdvance ||
         kind == OpKind::kAdvanceBy;
}

// Processes a body from its end, so that what is needed is known where it is defined.
std::vector<Op> Prune(const std::vector<Op>& body, std::vector<bool>& needed) {
  std::vector<Op> kept;
  for (auto op = body.rbegin(); op != body.rend(); ++op) {
    std::vector<Op> inner = Prune(op->body, needed);
    const bool on_its_way = IsOnItsWay(*op);
    const bool event = UsesBarrier(op->kind) || Copies(op->kind) || MovesCursor(op->kind) || on_its_way ||
                       op->kind == OpKind::kCopyWait;
    const bool index = op->body.empty() && op->result != kNoValue && needed[op->result];
    if (!event && !index && inner.empty()) continue;
    // Of the operands of a copy or a barrier operation, only the slot counts; of work, the blocks of K.
    const bool slot_only = UsesBarrier(op->kind) || Copies(op->kind) || on_its_way;
    const size_t first = op->kind == OpKind::kWork ? kWorkTileOperands : 0;
    for (size_t i = first; !slot_only && i < op->operands.size(); ++i) needed[op->operands[i]] = true;
    kept.push_back({op->kind, op->operands, op->result, op->attrs, std::move(inner)});
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

class RoleTracer {
 public:
  RoleTracer(const Program& program, const Role& role, const Trips& trips)
      : program_(program),
        role_(role),
        trips_(trips),
        values_(program.values.size()),
        slots_(program.values.size()),
        cursors_(2 * program.channels.size(), 0),
        awaited_(program.channels.size(), 0) {
    trace_.taken.assign(program.channels.size(), -1);
  }

  Result<RoleTrace> Trace() {
    LS_TRY(Walk(role_.body));
    return std::move(trace_);
  }

 private:
  struct Slot {
    int channel = 0, trail = 0;
    int64_t position = 0;
  };

  Index At(const Op& op, size_t i) const { return values_.at(op.operands.at(i)); }

  Result<int64_t> Known(const Op& op, size_t i) const {
    if (const Index index = At(op, i)) return *index;
    return MakeError(ErrorCode::kInternal, Cat("role ", role_.name, ": ", InfoOf(op.kind).mnemonic,
                                               " does not depend only on trip counts, so its barrier "
                                               "operations cannot be followed"));
  }

  Status Walk(const std::vector<Op>& body) {
    for (const Op& op : body) LS_TRY(Visit(op));
    return Ok();
  }

  Status Visit(const Op& op) {
    if (++steps_ > kMostSteps) return MakeError(ErrorCode::kInternal, Cat("role ", role_.name, " does not end"));
    if (op.kind == OpKind::kWork) return op.As<WorkAttrs>().slices > 1 ? WalkSlices(op) : WalkTiles(op);
    if (op.kind == OpKind::kFor) return WalkFor(op);
    if (op.kind == OpKind::kIf) return WalkIf(op);
    if (op.kind == OpKind::kCursor) return ReadCursor(op);
    if (op.kind == OpKind::kResidentSlot) return ReadResidentSlot(op);
    if (op.kind == OpKind::kAdvance || op.kind == OpKind::kAdvanceBy) return MoveCursor(op);
    if (UsesBarrier(op.kind)) {
      LS_TRY(CheckArrived(op));
      AddBarrierEvent(op);
    } else if (op.kind == OpKind::kCopyLoad) {
      const Slot& slot = slots_.at(op.operands[0]);
      open_.insert({slot.channel, slot.position});
    } else if (op.kind == OpKind::kCopyWait) {
      AwaitCopies(op.As<PendingAttrs>().pending);
    } else if (Copies(op.kind)) {
      AddCopy(op);
    } else {
      Evaluate(op);
    }
    return Ok();
  }

  Status WalkTiles(const Op& op) {
    const auto& attrs = op.As<WorkAttrs>();
    // Each CTA of a cluster that shares a tile has its own ring of operands: any number of blocks stands for a part.
    if (program_.cluster_k > 1) {
      LS_ASSIGN(const int64_t blocks, Known(op, kWorkTileOperands));
      values_[op.result + 3] = 0;
      values_[op.result + 4] = blocks;
    }
    for (int tile = attrs.pingpong_index; tile < trips_.tiles; tile += attrs.pingpong_roles) {
      if (attrs.source == WorkSource::kPartsOfK) {
        values_[op.result + kWorkTileArguments + 2] = BlocksOfPart(tile);
        int64_t passed = 0;
        for (int other = std::max(0, tile - attrs.pingpong_roles + 1); other < tile; ++other)
          passed += BlocksOfPart(other);
        values_[op.result + kWorkTileArguments + 3] = passed;
      }
      LS_TRY(Walk(op.body));
    }
    return Ok();
  }

  // Parts of K differ in length: every third has one block, so that long ones follow long ones and short ones.
  int64_t BlocksOfPart(int tile) const { return tile % 3 == 2 ? 1 : trips_.blocks; }

  // First slices, in the order of all indices, then whole tiles.
  Status WalkSlices(const Op& op) {
    LS_ASSIGN(const int64_t blocks, Known(op, kWorkTileOperands));
    const int64_t slices = std::min<int64_t>(blocks, op.As<WorkAttrs>().slices);
    const int cut = (trips_.tiles + 1) / 2;
    for (int tile = 0; tile < trips_.tiles; ++tile) {
      const int64_t slice = tile % slices;
      values_[op.result + 3] = tile < cut ? slice * blocks / slices : 0;
      values_[op.result + 4] = tile < cut ? (slice + 1) * blocks / slices : blocks;
      LS_TRY(Walk(op.body));
    }
    return Ok();
  }

  Status WalkFor(const Op& op) {
    LS_ASSIGN(const int64_t first, Known(op, 0));
    LS_ASSIGN(const int64_t end, Known(op, 1));
    for (int64_t index = first; index < end; index += op.As<ForAttrs>().step) {
      values_[op.result] = index;
      LS_TRY(Walk(op.body));
    }
    return Ok();
  }

  Status WalkIf(const Op& op) {
    LS_ASSIGN(const int64_t holds, Known(op, 0));
    return holds != 0 ? Walk(op.body) : Ok();
  }

  Status ReadCursor(const Op& op) {
    const auto& attrs = op.As<CursorAttrs>();
    slots_[op.result] = {attrs.channel, attrs.trail, CursorOf(attrs.channel, attrs.trail)};
    return Ok();
  }

  Status ReadResidentSlot(const Op& op) {
    const int channel = op.As<ChannelAttrs>().channel;
    LS_ASSIGN(const int64_t number, Known(op, 0));
    trace_.reads_unawaited |= number < 0 || number >= awaited_[static_cast<size_t>(channel)];
    trace_.events.push_back({.op = op.kind, .channel = channel, .slot = number});
    return Ok();
  }

  Status MoveCursor(const Op& op) {
    const Slot& slot = slots_.at(op.operands[0]);
    int64_t by = 1;
    if (op.kind == OpKind::kAdvanceBy) {
      LS_ASSIGN(by, Known(op, 1));
    }
    // From the position of the slot, as the emitter does, not from the current one of the cursor.
    CursorOf(slot.channel, slot.trail) = slot.position + by;
    return Ok();
  }

  int64_t& CursorOf(int channel, int trail) { return cursors_[static_cast<size_t>(2 * channel + trail)]; }
  const Channel& ChannelOf(const Slot& slot) const { return program_.channels[static_cast<size_t>(slot.channel)]; }

  void AddBarrierEvent(const Op& op) {
    const Slot& slot = slots_.at(op.operands[0]);
    ChannelEvent event{.op = op.kind, .channel = slot.channel, .slot = slot.position};
    if (op.kind == OpKind::kBarrierExpect) {
      event.amount = op.As<ExpectAttrs>().bytes;
      event.leader_only = op.As<ExpectAttrs>().leader;
    } else {
      const auto& attrs = op.As<BarrierAttrs>();
      event.side = attrs.side;
      event.to = attrs.to;
      event.inverted = attrs.inverted;
      event.in_order = attrs.in_order;
      const int threads = role_.elected != 0 ? 1 : kThreadsOfWarp * role_.warps;
      event.amount = op.kind == OpKind::kMmaCommit ? 1 : attrs.by == Unit::kWarp ? role_.warps : threads;
    }
    const bool resident = ChannelOf(slot).resident != 0;
    if (op.kind == OpKind::kBarrierWait && event.side == Side::kFull) {
      if (resident) ++awaited_[static_cast<size_t>(slot.channel)];
      int64_t& taken = trace_.taken[static_cast<size_t>(slot.channel)];
      taken = std::max(taken, slot.position + 1);
    }
    trace_.overfills |= resident && slot.position >= ChannelOf(slot).stages;
    trace_.events.push_back(event);
  }

  // Closes the group of asynchronous copies; those of later ones than the last `pending` have come.
  void AwaitCopies(int pending) {
    groups_.push_back(std::exchange(open_, {}));
    while (groups_.size() > static_cast<size_t>(pending)) groups_.pop_front();
  }

  // A slot is full when what threads copied into it has come.
  Status CheckArrived(const Op& op) const {
    if (op.kind != OpKind::kBarrierArrive || op.As<BarrierAttrs>().side != Side::kFull) return Ok();
    const Slot& slot = slots_.at(op.operands[0]);
    const std::pair<int, int64_t> copied = {slot.channel, slot.position};
    const bool on_their_way = open_.contains(copied) || std::any_of(groups_.begin(), groups_.end(),
                                                                    [&](const auto& g) { return g.contains(copied); });
    if (!on_their_way) return Ok();
    const Channel& channel = ChannelOf(slot);
    return MakeError(ErrorCode::kInternal,
                     Cat("role ", role_.name, ": barrier.arrive on slot ", slot.position % channel.stages, " of ",
                         channel.name, " side=full in lap ", slot.position / channel.stages,
                         " comes while asynchronous copies into the slot are on their way"));
  }

  // The bytes that one CTA's copy brings to each CTA that it reaches.
  void AddCopy(const Op& op) {
    const Slot& slot = slots_.at(op.operands[0]);
    ChannelEvent event{.op = op.kind, .channel = slot.channel, .slot = slot.position};
    const auto tile = [&](int number) -> const SharedLayout& {
      return ChannelOf(slot).tiles[static_cast<size_t>(number)].layout;
    };
    if (op.kind == OpKind::kWorkRequest) {
      event.to = MulticastScope::kAll;
      event.amount = kClcResponseBytes;
    } else if (op.kind == OpKind::kTmaLoad) {
      const auto& attrs = op.As<LoadAttrs>();
      event.to = attrs.to;
      event.whole = attrs.whole;
      event.amount = BoxBytes(tile(attrs.tile), program_.FindParam(attrs.Map())->box) * program_.CopiesOf(op);
    } else if (op.kind == OpKind::kLoadRows) {
      const auto& attrs = op.As<RowLoadAttrs>();
      event.to = attrs.to;
      event.amount = tile(attrs.tile).CopiedBytes(attrs.rows);
    } else {
      const auto& attrs = op.As<PixelLoadAttrs>();
      event.to = attrs.to;
      event.amount = attrs.Bytes(tile(attrs.tile), program_.FindParam(attrs.map)->box);
    }
    trace_.events.push_back(event);
  }

  void Evaluate(const Op& op) {
    if (op.result == kNoValue || !op.body.empty()) return;
    const ValueType type = InfoOf(op.kind).result;
    if (type != ValueType::kIndex && type != ValueType::kPredicate) return;
    values_.at(op.result) = ValueOf(op);
  }

  Index ValueOf(const Op& op) const {
    if (op.kind == OpKind::kConst) return op.As<ConstAttrs>().value;
    if (op.kind == OpKind::kParam) return ParamValue(op.As<ParamAttrs>().binding);
    if (op.kind == OpKind::kSlotStage) {
      const Slot& slot = slots_.at(op.operands[0]);
      return slot.position % ChannelOf(slot).stages;
    }
    if (op.operands.size() != 2 || !At(op, 0) || !At(op, 1)) return {};
    const int64_t a = *At(op, 0), b = *At(op, 1);
    if (op.kind == OpKind::kAdd) return a + b;
    if (op.kind == OpKind::kSub) return a - b;
    if (op.kind == OpKind::kMul) return a * b;
    if (op.kind == OpKind::kLess) return a < b ? 1 : 0;
    if (b <= 0) return {};
    if (op.kind == OpKind::kCeilDiv) return (a + b - 1) / b;
    if (op.kind == OpKind::kDiv) return a / b;
    if (op.kind == OpKind::kRem) return a % b;
    return {};
  }

  Index ParamValue(Binding binding) const {
    if (binding == Binding::kK) return int64_t{trips_.blocks} * program_.tile_k;
    if (binding == Binding::kTapsR) return trips_.rows;
    if (binding == Binding::kTapsS) return trips_.columns;
    if (binding == Binding::kTapsT) return 1;
    return {};
  }

  const Program& program_;
  const Role& role_;
  const Trips& trips_;
  std::vector<Index> values_;     // by ValueId
  std::vector<Slot> slots_;       // by ValueId
  std::vector<int64_t> cursors_;  // per channel and trail
  std::vector<int64_t> awaited_;  // per channel: full slots of a resident one
  // Slots, by channel and position, into which asynchronous copies were issued: since the last group of them was
  // closed, and in the groups that no wait has seen complete, oldest first.
  using CopiedSlots = std::set<std::pair<int, int64_t>>;
  CopiedSlots open_;
  std::deque<CopiedSlots> groups_;
  int64_t steps_ = 0;
  RoleTrace trace_;
};

}  // namespace

std::string Trips::Text() const {
  std::string text =
      Cat(tiles, tiles == 1 ? " tile of " : " tiles of ", blocks, blocks == 1 ? " block" : " blocks", " of K");
  if (rows > 1 || columns > 1) text += Cat(" and a filter of ", rows, "x", columns);
  return text;
}

Role ChannelsOnly(const Program& program, const Role& role) {
  std::vector<bool> needed(program.values.size(), false);
  return {.name = role.name,
          .kind = role.kind,
          .first_warp = role.first_warp,
          .warps = role.warps,
          .elected = role.elected,
          .leader = role.leader,
          .registers = role.registers,
          .body = Prune(role.body, needed)};
}

Result<RoleTrace> TraceRole(const Program& program, const Role& role, const Trips& trips) {
  return RoleTracer(program, role, trips).Trace();
}

}  // namespace laneshift::ir
