#include <functional>
#include <map>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "compiler/passes.h"
#include "ir/builder.h"
#include "ir/late_sends.h"

namespace laneshift::compiler {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Role;
using ir::RoleKind;
using ir::Side;
using ir::Unit;
using ir::ValueId;

// How a role signals that a slot is full or empty.
enum class Signal {
  kBytes,   // by the bytes of its bulk copies
  kCommit,  // by tcgen05.commit, when its MMAs have completed
  kWarps,   // by one arrival of each warp, or of the elected thread
};

struct Signalling {
  Signal full, empty;
};

Signalling SignallingOf(RoleKind kind) {
  switch (kind) {
    case RoleKind::kLoad:
    case RoleKind::kSchedule:
      return {Signal::kBytes, Signal::kBytes};
    case RoleKind::kMma:
      return {Signal::kCommit, Signal::kCommit};
    case RoleKind::kCopy:
    case RoleKind::kEpilogue:
    case RoleKind::kMath:
      return {Signal::kWarps, Signal::kWarps};
  }
  __builtin_unreachable();
}

// The role that takes a CLC response has read it, whatever else it issues.
Signal EmptySignal(const ir::Program& program, const Role& role, int channel) {
  return program.channels[channel].space == ir::Space::kClcResponses ? Signal::kWarps : SignallingOf(role.kind).empty;
}

int Arrivals(Signal signal, const Role& role) { return signal == Signal::kWarps ? role.warps : 1; }

void ForEachOp(const std::vector<Op>& body, const std::function<void(const Op&)>& visit) {
  for (const Op& op : body) {
    visit(op);
    ForEachOp(op.body, visit);
  }
}

// The producers that a consumer of a channel must signal an empty slot to.
struct Producers {
  ir::MulticastScope to = ir::MulticastScope::kOwn;
  bool in_order = false;  // the first of them may fill the slot without the others
};

// All whose copies go to that slot; of an accumulator, and of a role's own ring, the leader of the pair; of a CLC
// response every CTA of the cluster. Of partial sums those are also the consumers of a full slot.
Producers ProducersOf(const ir::Program& program, int channel) {
  const ir::Channel& of = program.channels[channel];
  if (of.stored) return {};
  if (of.space == ir::Space::kTensor)
    return {program.ctas > 1 ? ir::MulticastScope::kLeader : ir::MulticastScope::kOwn};
  if (of.space == ir::Space::kSums) return {ir::MulticastScope::kAll};
  if (of.space == ir::Space::kClcResponses)
    return {program.ClusterSize() > 1 ? ir::MulticastScope::kAll : ir::MulticastScope::kOwn};
  bool along_m = false, along_n = false, whole = false;
  for (const Role& role : program.roles) {
    std::map<ValueId, int> channel_of;
    ForEachOp(role.body, [&](const Op& op) {
      if (op.kind == OpKind::kPut) channel_of[op.result] = op.As<ir::ChannelAttrs>().channel;
      if (InfoOf(op.kind).category != ir::OpCategory::kBulkLoad || channel_of.at(op.operands[0]) != channel) return;
      const ir::MulticastScope to = op.kind == OpKind::kTmaLoad    ? op.As<ir::LoadAttrs>().to
                                    : op.kind == OpKind::kLoadRows ? op.As<ir::RowLoadAttrs>().to
                                                                   : op.As<ir::PixelLoadAttrs>().to;
      along_m |= to == ir::MulticastScope::kM;
      along_n |= to == ir::MulticastScope::kN;
      whole |= op.kind == OpKind::kTmaLoad && op.As<ir::LoadAttrs>().whole;
    });
  }
  if (along_m && along_n) return {ir::MulticastScope::kCross};
  return {along_m ? ir::MulticastScope::kM : along_n ? ir::MulticastScope::kN : ir::MulticastScope::kOwn, whole};
}

// CTAs of the cluster whose role arrives at one CTA's barrier; of commits, pairs.
int ArrivingCtas(const ir::Program& program, const Role& role, ir::MulticastScope scope) {
  const bool leaders = role.leader && (scope == ir::MulticastScope::kAll || scope == ir::MulticastScope::kLeader);
  return program.Arrivals(scope) / (leaders ? program.ctas : 1);
}

// Channels that the role fills and empties. A channel of ping-pong roles is emptied by one of them for each tile.
void CountArrivals(ir::Program& program, const std::vector<Producers>& producers) {
  for (const Role& role : program.roles) {
    std::map<int, bool> puts, takes;
    std::set<int> passed;
    bool later_role = false;
    ForEachOp(role.body, [&](const Op& op) {
      if (op.kind == OpKind::kPut) puts[op.As<ir::ChannelAttrs>().channel] = true;
      if (op.kind == OpKind::kPass) passed.insert(op.As<ir::ChannelAttrs>().channel);
      if (op.kind == OpKind::kWork) later_role = op.As<ir::WorkAttrs>().pingpong_index > 0;
      if (op.kind == OpKind::kTake || op.kind == OpKind::kReserve) takes[op.As<ir::ChannelAttrs>().channel] = true;
    });
    const Signalling signals = SignallingOf(role.kind);
    for (const auto& [channel, used] : puts) {
      ir::Channel& of = program.channels[channel];
      const int ctas = of.space == ir::Space::kSums ? program.ClusterSize() : of.stored ? program.ctas : 1;
      of.full_arrivals += Arrivals(signals.full, role) * ctas;
    }
    for (const auto& [channel, used] : takes) {
      if (later_role && passed.contains(channel)) continue;
      program.channels[channel].empty_arrivals +=
          Arrivals(EmptySignal(program, role, channel), role) *
          ArrivingCtas(program, role, producers[static_cast<size_t>(channel)].to);
    }
  }
}

class RoleLowering {
 public:
  RoleLowering(ir::Program& program, const Role& role, const std::vector<Producers>& producers,
               const std::vector<int>& on_their_way)
      : program_(program),
        role_(role),
        producers_(producers),
        on_their_way_(on_their_way),
        signals_(SignallingOf(role.kind)) {
    ForEachOp(role.body, [this](const Op& op) {
      multiplies_ |= op.kind == OpKind::kMmaRegisters;
      reads_metadata_ |= op.kind == OpKind::kReadMetadata;
    });
  }

  std::vector<Op> LowerRole() {
    std::vector<Op> lowered = Lower(role_.body);
    ir::Builder b(program_, lowered);
    for (const int channel : put_) AwaitPeers(b, channel);
    return lowered;
  }

 private:
  std::vector<Op> Lower(const std::vector<Op>& body) {
    std::vector<Op> lowered;
    ir::Builder b(program_, lowered);
    for (const Op& op : body) LowerOp(b, op, body);
    return lowered;
  }

  void LowerOp(ir::Builder& b, const Op& op, const std::vector<Op>& siblings) {
    if (InfoOf(op.kind).stages != ir::StageSet::kScheduled) {
      Op& copy = b.AppendCopy(op);
      copy.body = Lower(op.body);
      return;
    }
    if (op.kind == OpKind::kPut || op.kind == OpKind::kReserve) return Acquire(b, op, Side::kEmpty, siblings);
    if (op.kind == OpKind::kTake || op.kind == OpKind::kPreview) return Acquire(b, op, Side::kFull, siblings);
    if (op.kind == OpKind::kPeek) {
      b.BarrierPeek({b.Cursor({}, {.channel = op.As<ir::ChannelAttrs>().channel})});
      return;
    }
    if (op.kind == OpKind::kAwait) return AwaitResident(b, op);
    if (op.kind == OpKind::kRelease || op.kind == OpKind::kRetire) {
      // MMAs into registers may still read the slot; a ping-pong phase ends when they are issued.
      const ir::Space space = program_.channels[channel_of_.at(op.operands[0])].space;
      const bool of_operands = space != ir::Space::kOrder && space != ir::Space::kSums;
      if (of_operands) FenceReads(b);
      if (multiplies_ && of_operands) b.MmaWait({}, {.pending = 0});
      Notify(b, op.operands[0], Side::kEmpty, EmptySignal(program_, role_, channel_of_.at(op.operands[0])));
      b.Advance({op.operands[0]});
      return;
    }
    if (op.kind == OpKind::kReleaseLate) return ReleaseLate(b, op);
    if (op.kind == OpKind::kPass) return Pass(b, op);
    if (op.kind == OpKind::kSend) {
      Notify(b, op.operands[0], Side::kFull, signals_.full);
      b.Advance({op.operands[0]});
      return;
    }
    if (op.kind == OpKind::kSendLate) return SendLate(b, op);
    if (op.kind == OpKind::kDrainSends) return DrainSends(b, op.As<ir::ChannelAttrs>().channel);
    LS_CHECK(op.kind == OpKind::kDrain, "no lowering of ", InfoOf(op.kind).mnemonic);
    b.MmaWait({}, {.pending = 0});
    ReleaseTrailing(b, op.As<ir::DrainAttrs>().channel);
  }

  // put waits for the consumers of the lap before, which a fresh barrier passes; take waits for the producers.
  void Acquire(ir::Builder& b, const Op& op, Side side, const std::vector<Op>& siblings) {
    const int channel = op.As<ir::ChannelAttrs>().channel;
    // The role that requests CLC responses also takes them, after it requests; so do those that add partial sums.
    const ir::Space space = program_.channels[channel].space;
    const bool trailing = op.kind == OpKind::kTake && (role_.kind == RoleKind::kSchedule || space == ir::Space::kSums);
    b.AppendCopy({.kind = OpKind::kCursor,
                  .result = op.result,
                  .attrs = ir::CursorAttrs{.channel = channel, .trail = trailing}});
    const bool once = program_.channels[channel].resident;  // resident: it was never full before
    if (!once) b.BarrierWait({op.result}, {.side = side, .inverted = side == Side::kEmpty});
    const bool multiplies = role_.kind == RoleKind::kMma && space != ir::Space::kClcResponses;
    if (multiplies || space == ir::Space::kTensor) b.FenceTensor({}, {.edge = ir::Edge::kAfter});
    if (side == Side::kEmpty && signals_.full == Signal::kBytes) {
      const int ctas = program_.FillingCtas(program_.channels[channel]);
      std::vector<ValueId> operands = {op.result};
      if (const Op* load = PartialLoad(siblings, op.result)) operands.push_back(load->operands.back());
      b.BarrierExpect(std::move(operands),
                      {.bytes = ctas * BulkBytes(siblings, op.result, channel), .leader = ctas > 1});
    }
    const bool others_wait =
        signals_.full != Signal::kWarps || space == ir::Space::kSums || program_.channels[channel].stored;
    if (op.kind == OpKind::kPut && others_wait && !once) put_.insert(channel);
    channel_of_[op.result] = channel;
  }

  // Each slot once; later reads of them need no waiting.
  void AwaitResident(ir::Builder& b, const Op& op) {
    b.For({b.Constant(0), op.operands[0]}, {.step = 1});
    b.InBody([&] {
      const ValueId slot = b.Cursor({}, {.channel = op.As<ir::ChannelAttrs>().channel});
      b.BarrierWait({slot}, {.side = Side::kFull});
      b.Advance({slot});
    });
    if (role_.kind == RoleKind::kMma) b.FenceTensor({}, {.edge = ir::Edge::kAfter});
  }

  // That which leaves out rows of A; null: none does.
  static const Op* PartialLoad(const std::vector<Op>& siblings, ValueId slot) {
    const Op* found = nullptr;
    ForEachOp(siblings, [&](const Op& op) {
      if (op.LeavesOutRows() && op.operands[0] == slot) found = &op;
    });
    return found;
  }

  int BulkBytes(const std::vector<Op>& siblings, ValueId slot, int channel) const {
    int bytes = 0;
    ForEachOp(siblings, [&](const Op& op) {
      if (op.kind == OpKind::kWorkRequest && op.operands[0] == slot) bytes += ir::kClcResponseBytes;
      if (op.kind == OpKind::kTmaLoad && op.operands[0] == slot) {
        bytes += program_.channels[channel].tiles[op.As<ir::LoadAttrs>().tile].layout.CopiedBytes();  // of any CTA
      }
      if (op.kind == OpKind::kLoadRows && op.operands[0] == slot)
        bytes += program_.channels[channel].tiles[op.As<ir::RowLoadAttrs>().tile].layout.CopiedBytes();
      if (op.kind == OpKind::kLoadPixels && op.operands[0] == slot) {
        const auto& attrs = op.As<ir::PixelLoadAttrs>();
        bytes += attrs.Bytes(program_.channels[channel].tiles[attrs.tile].layout, program_.FindParam(attrs.map)->box) *
                 program_.Parts(attrs.to);
      }
    });
    LS_CHECK(bytes > 0, "role ", role_.name, " puts a slot without bulk copies");
    return bytes;
  }

  void Notify(ir::Builder& b, ValueId slot, Side side, Signal signal) {
    switch (signal) {
      case Signal::kBytes:
        return;  // the copies complete the transaction that `put` announced
      case Signal::kCommit:
        b.MmaCommit({slot}, {.side = side, .to = PeersOf(channel_of_.at(slot), side)});
        return;
      case Signal::kWarps: {
        const ir::Channel& channel = program_.channels[channel_of_.at(slot)];
        const ir::Space space = channel.space;
        if (channel.stored) b.BlockStoreWait();
        if (space == ir::Space::kTensor) b.FenceTensor({}, {.edge = ir::Edge::kBefore});
        // The async proxy will read what threads have written; it will overwrite what they have read.
        const bool written = space == ir::Space::kShared && side == Side::kFull;
        if (written || channel.own || space == ir::Space::kClcResponses) b.FenceProxy();
        Arrive(b, slot, channel_of_.at(slot), side);
        return;
      }
    }
  }

  void Arrive(ir::Builder& b, ValueId slot, int channel, Side side) const {
    b.BarrierArrive({slot}, {.side = side,
                             .by = role_.elected ? Unit::kThread : Unit::kWarp,
                             .to = PeersOf(channel, side),
                             .in_order = side == Side::kEmpty && ProducersFor(channel).in_order});
  }

  // Bulk copies will overwrite the metadata that threads have loaded from slots. The fence is executed while the MMAs
  // run that these are for.
  void FenceReads(ir::Builder& b) const {
    if (reads_metadata_) b.FenceProxy();
  }

  // The MMAs of the newest `lag` slots may still run; the slot before them is free.
  void ReleaseLate(ir::Builder& b, const Op& op) {
    const ValueId slot = op.operands[0];
    FenceReads(b);
    b.MmaWait({}, {.pending = op.As<ir::ReleaseAttrs>().lag});
    b.If({op.operands[1]});
    b.InBody([&] { ReleaseTrailing(b, channel_of_.at(slot)); });
    b.Advance({slot});
  }

  void ReleaseTrailing(ir::Builder& b, int channel) {
    const ValueId slot = b.Cursor({}, {.channel = channel, .trail = true});
    Arrive(b, slot, channel, Side::kEmpty);
    b.Advance({slot});
  }

  // The second cursor is at the oldest slot that was not sent. Which one that is depends on all tiles before, so that
  // it is not known how many there are, but by how many stages the cursors are apart.
  ValueId StagesBehind(ir::Builder& b, ValueId slot, ValueId trailing, int channel) const {
    const ValueId stages = b.Constant(program_.channels[channel].stages);
    return b.Rem({b.Sub({b.Add({b.SlotStage({slot}), stages}), b.SlotStage({trailing})}), stages});
  }

  void SendTrailing(ir::Builder& b, ValueId trailing, int channel) {
    channel_of_[trailing] = channel;
    Notify(b, trailing, Side::kFull, signals_.full);
    b.Advance({trailing});
  }

  void SendLate(ir::Builder& b, const Op& op) {
    const ValueId slot = op.operands[0];
    const int channel = channel_of_.at(slot);
    const int on_their_way = on_their_way_[static_cast<size_t>(channel)];
    b.CopyWait({}, {.pending = on_their_way});
    const ValueId trailing = b.Cursor({}, {.channel = channel, .trail = true});
    b.If({b.Less({b.Constant(on_their_way), b.Add({StagesBehind(b, slot, trailing, channel), b.Constant(1)})})});
    b.InBody([&] { SendTrailing(b, trailing, channel); });
    b.Advance({slot});
  }

  void DrainSends(ir::Builder& b, int channel) {
    b.CopyWait({}, {.pending = 0});
    b.For({b.Constant(0), b.Constant(on_their_way_[static_cast<size_t>(channel)])});
    b.InBody([&] {
      const ValueId next = b.Cursor({}, {.channel = channel});
      const ValueId trailing = b.Cursor({}, {.channel = channel, .trail = true});
      b.If({b.Less({b.Constant(0), StagesBehind(b, next, trailing, channel)})});
      b.InBody([&] { SendTrailing(b, trailing, channel); });
    });
  }

  // Advances all of the role's cursors of the channel; those of late releases have caught up at the end of a tile.
  void Pass(ir::Builder& b, const Op& op) {
    const int channel = op.As<ir::ChannelAttrs>().channel;
    bool lags = false;
    ForEachOp(role_.body, [&](const Op& other) {
      lags |= other.kind == OpKind::kDrain && other.As<ir::DrainAttrs>().channel == channel;
    });
    for (const bool trail : {false, true}) {
      if (trail && !lags) continue;
      const ValueId slot = b.Cursor({}, {.channel = channel, .trail = trail});
      b.AdvanceBy({slot, op.operands[0]});
    }
  }

  const Producers& ProducersFor(int channel) const { return producers_[static_cast<size_t>(channel)]; }

  ir::MulticastScope PeersOf(int channel, Side side) const {
    const ir::Channel& of = program_.channels[channel];
    if (side == Side::kFull && of.stored && program_.ctas > 1) return ir::MulticastScope::kLeader;
    const bool sums = of.space == ir::Space::kSums;
    return side == Side::kEmpty || sums ? ProducersFor(channel).to : ir::MulticastScope::kOwn;
  }

  // A CTA must not end while others still arrive at its barriers: the producer waits until every slot could be put
  // again. Its consumers have waited for what others copy into its tiles; the release of the accumulators of a pair's
  // leader comes before the pair meets to free Tensor Memory.
  void AwaitPeers(ir::Builder& b, int channel) {
    const ir::Channel& of = program_.channels[channel];
    const bool single = ProducersFor(channel).to == ir::MulticastScope::kOwn && program_.ctas == 1;
    if (single || of.own || (of.space == ir::Space::kTensor && !of.stored)) return;
    b.For({b.Constant(0), b.Constant(of.stages)});
    b.InBody([&] {
      const ValueId slot = b.Cursor({}, {.channel = channel});
      b.BarrierWait({slot}, {.side = Side::kEmpty, .inverted = true});
      b.Advance({slot});
    });
  }

  ir::Program& program_;
  const Role& role_;
  const std::vector<Producers>& producers_;  // per channel
  const std::vector<int>& on_their_way_;     // per channel: slots that are sent late
  const Signalling signals_;
  bool multiplies_ = false;  // into registers
  bool reads_metadata_ = false;
  std::map<ValueId, int> channel_of_;
  std::set<int> put_;  // channels that the role fills by operations that others may wait for
};

}  // namespace

Status LowerChannels(ir::Program& program, const target::Target&) {
  std::vector<Producers> producers;
  for (size_t i = 0; i < program.channels.size(); ++i) producers.push_back(ProducersOf(program, static_cast<int>(i)));
  CountArrivals(program, producers);
  std::vector<int> on_their_way;
  for (size_t i = 0; i < program.channels.size(); ++i)
    on_their_way.push_back(ir::SlotsOnTheirWay(program, static_cast<int>(i)));
  for (ir::Role& role : program.roles) role.body = RoleLowering(program, role, producers, on_their_way).LowerRole();
  program.stage = ir::Stage::kLowered;
  return Ok();
}

}  // namespace laneshift::compiler
