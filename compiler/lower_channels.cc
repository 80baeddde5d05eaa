#include <functional>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "compiler/passes.h"
#include "ir/builder.h"

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
  kWarps,   // by one arrival of each warp
};

struct Signalling {
  Signal full, empty;
};

Signalling SignallingOf(RoleKind kind) {
  switch (kind) {
    case RoleKind::kLoad:
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

int Arrivals(Signal signal, const Role& role) { return signal == Signal::kWarps ? role.warps : 1; }

void ForEachOp(const std::vector<Op>& body, const std::function<void(const Op&)>& visit) {
  for (const Op& op : body) {
    visit(op);
    ForEachOp(op.body, visit);
  }
}

// Channels that the role fills and empties.
void CountArrivals(ir::Program& program) {
  for (const Role& role : program.roles) {
    std::map<int, bool> puts, takes;
    ForEachOp(role.body, [&](const Op& op) {
      if (op.kind == OpKind::kPut) puts[op.As<ir::ChannelAttrs>().channel] = true;
      if (op.kind == OpKind::kTake || op.kind == OpKind::kReserve) takes[op.As<ir::ChannelAttrs>().channel] = true;
    });
    const Signalling signals = SignallingOf(role.kind);
    for (const auto& [channel, used] : puts) program.channels[channel].full_arrivals += Arrivals(signals.full, role);
    for (const auto& [channel, used] : takes) program.channels[channel].empty_arrivals += Arrivals(signals.empty, role);
  }
}

class RoleLowering {
 public:
  RoleLowering(ir::Program& program, const Role& role)
      : program_(program), role_(role), signals_(SignallingOf(role.kind)) {}

  std::vector<Op> Lower(const std::vector<Op>& body) {
    std::vector<Op> lowered;
    ir::Builder b(program_, lowered);
    for (const Op& op : body) LowerOp(b, op, body);
    return lowered;
  }

 private:
  void LowerOp(ir::Builder& b, const Op& op, const std::vector<Op>& siblings) {
    if (InfoOf(op.kind).stages != ir::StageSet::kScheduled) {
      Op& copy = b.AppendCopy(op);
      copy.body = Lower(op.body);
      return;
    }
    if (op.kind == OpKind::kPut || op.kind == OpKind::kReserve) return Acquire(b, op, Side::kEmpty, siblings);
    if (op.kind == OpKind::kTake) return Acquire(b, op, Side::kFull, siblings);
    if (op.kind == OpKind::kRelease || op.kind == OpKind::kRetire) {
      // MMAs into registers may still read the slot.
      if (role_.kind == RoleKind::kMath) b.MmaWait({}, {.pending = 0});
      Notify(b, op.operands[0], Side::kEmpty, signals_.empty);
      b.Advance({op.operands[0]});
      return;
    }
    if (op.kind == OpKind::kReleaseLate) return ReleaseLate(b, op);
    if (op.kind == OpKind::kSend) {
      Notify(b, op.operands[0], Side::kFull, signals_.full);
      b.Advance({op.operands[0]});
      return;
    }
    LS_CHECK(op.kind == OpKind::kDrain, "no lowering of ", InfoOf(op.kind).mnemonic);
    b.MmaWait({}, {.pending = 0});
    ReleaseTrailing(b, op.As<ir::DrainAttrs>().channel);
  }

  // put waits for the consumers of the lap before, which a fresh barrier passes; take waits for the producers.
  void Acquire(ir::Builder& b, const Op& op, Side side, const std::vector<Op>& siblings) {
    const int channel = op.As<ir::ChannelAttrs>().channel;
    b.AppendCopy({.kind = OpKind::kCursor, .result = op.result, .attrs = ir::CursorAttrs{.channel = channel}});
    b.BarrierWait({op.result}, {.side = side, .inverted = side == Side::kEmpty ? 1 : 0});
    const bool tensor = role_.kind == RoleKind::kMma || program_.channels[channel].space == ir::Space::kTensor;
    if (tensor) b.FenceTensor({}, {.edge = ir::Edge::kAfter});
    if (side == Side::kEmpty && signals_.full == Signal::kBytes) {
      b.BarrierExpect({op.result}, {.bytes = BulkBytes(siblings, op.result, channel)});
    }
    channel_of_[op.result] = channel;
  }

  int BulkBytes(const std::vector<Op>& siblings, ValueId slot, int channel) const {
    int bytes = 0;
    ForEachOp(siblings, [&](const Op& op) {
      if (op.kind == OpKind::kTmaLoad && op.operands[0] == slot) {
        bytes += program_.channels[channel].tiles[op.As<ir::LoadAttrs>().tile].layout.Bytes();
      }
      if (op.kind == OpKind::kLoadPixels && op.operands[0] == slot) {
        const auto& attrs = op.As<ir::PixelLoadAttrs>();
        bytes += BoxBytes(program_.channels[channel].tiles[attrs.tile].layout, program_.FindParam(attrs.map)->box);
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
        b.MmaCommit({slot}, {.side = side});
        return;
      case Signal::kWarps: {
        const bool tensor = program_.channels[channel_of_.at(slot)].space == ir::Space::kTensor;
        if (tensor) b.FenceTensor({}, {.edge = ir::Edge::kBefore});
        if (!tensor && side == Side::kFull) b.FenceProxy();
        b.BarrierArrive({slot}, {.side = side, .by = Unit::kWarp});
        return;
      }
    }
  }

  // The MMAs of the newest `lag` slots may still run; the slot before them is free.
  void ReleaseLate(ir::Builder& b, const Op& op) {
    const ValueId slot = op.operands[0];
    b.MmaWait({}, {.pending = op.As<ir::ReleaseAttrs>().lag});
    b.If({op.operands[1]});
    b.InBody([&] { ReleaseTrailing(b, channel_of_.at(slot)); });
    b.Advance({slot});
  }

  void ReleaseTrailing(ir::Builder& b, int channel) {
    const ValueId slot = b.Cursor({}, {.channel = channel, .trail = 1});
    b.BarrierArrive({slot}, {.side = Side::kEmpty, .by = Unit::kWarp});
    b.Advance({slot});
  }

  ir::Program& program_;
  const Role& role_;
  const Signalling signals_;
  std::map<ValueId, int> channel_of_;
};

}  // namespace

Status LowerChannels(ir::Program& program, const target::Target&) {
  CountArrivals(program);
  for (ir::Role& role : program.roles) {
    role.body = RoleLowering(program, role).Lower(role.body);
  }
  program.stage = ir::Stage::kLowered;
  return Ok();
}

}  // namespace laneshift::compiler
