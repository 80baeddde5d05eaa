#include "ir/operand_rings.h"

#include <utility>
#include <vector>

namespace laneshift::ir {
namespace {

class RingFinder {
 public:
  explicit RingFinder(const Program& program) : program_(program) {
    for (const Role& role : program.roles) {
      if (role.kind == RoleKind::kLoad || role.kind == RoleKind::kCopy) Visit(role.body);
    }
  }
  OperandRings rings() const { return rings_; }

 private:
  void Visit(const std::vector<Op>& body) {
    for (const Op& op : body) {
      if (op.kind == OpKind::kPut) slots_.emplace_back(op.result, op.As<ChannelAttrs>().channel);
      if (op.kind == OpKind::kCursor) slots_.emplace_back(op.result, op.As<CursorAttrs>().channel);
      const OpCategory category = InfoOf(op.kind).category;
      if (category == OpCategory::kBulkLoad || category == OpCategory::kThreadLoad) Note(op);
      Visit(op.body);
    }
  }

  void Note(const Op& load) {
    const auto* tile = std::get_if<LoadAttrs>(&load.attrs);
    const auto* pixels = std::get_if<PixelLoadAttrs>(&load.attrs);
    const bool of_b =
        (tile != nullptr && tile->operand == Operand::kB) || (pixels != nullptr && pixels->map == Binding::kMapB);
    for (const auto& [slot, channel] : slots_) {
      const Channel& ring = program_.channels[static_cast<size_t>(channel)];
      if (slot != load.operands[0] || ring.resident || ring.own) continue;
      (of_b ? rings_.b : rings_.a) = channel;
    }
  }

  const Program& program_;
  std::vector<std::pair<ValueId, int>> slots_;
  OperandRings rings_;
};

}  // namespace

OperandRings RingsOf(const Program& program) { return RingFinder(program).rings(); }

}  // namespace laneshift::ir
