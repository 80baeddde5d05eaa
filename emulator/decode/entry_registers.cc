#include "emulator/decode/entry_registers.h"

#include <algorithm>
#include <string_view>

#include "emulator/decode/control_flow.h"
#include "emulator/ptx/ptx_instructions.h"

namespace laneshift::emulator {
namespace {

constexpr uint32_t kUnit = 4 * kLanes;              // registers begin at multiples of it
constexpr uint64_t kMostWords = uint64_t{1} << 20;  // of sets; kernels beyond are cleared as a whole

// Instructions in which a lane reads its own registers only, and writes the whole of each destination.
constexpr std::string_view kByLane[] = {
    "abs",  "add", "and", "bfe", "bfi",  "cvt", "cvta", "ex2",  "fma", "ld",  "lg2",  "lop3",     "mad",
    "max",  "min", "mov", "mul", "neg",  "not", "or",   "prmt", "rcp", "rem", "selp", "mov_pack", "mov_unpack",
    "setp", "shf", "shl", "shr", "sqrt", "st",  "sub",  "tanh", "xor", "div", "bra",  "exit",     "rsqrt"};

class UnitSet {
 public:
  explicit UnitSet(size_t units) : words_((units + 63) / 64) {}
  bool Has(size_t unit) const { return words_[unit / 64] >> (unit % 64) & 1; }
  void Add(size_t unit) { words_[unit / 64] |= uint64_t{1} << (unit % 64); }
  // Adds what `more` has and `but` has not. True if that was anything new.
  bool AddBut(const UnitSet& more, const UnitSet& but) {
    uint64_t fresh = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      const uint64_t add = more.words_[w] & ~but.words_[w] & ~words_[w];
      words_[w] |= add;
      fresh |= add;
    }
    return fresh != 0;
  }

 private:
  std::vector<uint64_t> words_;
};

// Calls visit(operand, is_destination) for every register operand.
template <typename Visit>
void ForEachOperand(const Instruction& instruction, Visit visit) {
  for (uint32_t i = 0; i < instruction.operand_count; ++i) {
    const DecodedOperand& operand = instruction.operands[i];
    if (operand.count == 0 && operand.slot != kNoSlot) visit(operand, operand.is_destination);
    for (uint32_t e = 0; e < operand.count; ++e) {
      if (operand.elements[e].slot != kNoSlot) visit(operand.elements[e], operand.is_destination);
    }
  }
}

template <typename Visit>
void ForEachUnit(uint32_t slot, uint32_t bytes, Visit visit) {
  for (uint32_t unit = slot / kUnit; unit * kUnit < slot + std::max(bytes, 1u) * kLanes; ++unit) visit(unit);
}

struct BlockSets {
  UnitSet reads, writes;  // reads: before the block writes them
};

// A predicate is a part of a unit, and a wide register may be written in parts: these count as read first.
void Note(const Instruction& instruction, bool by_lane, BlockSets& block, UnitSet& always) {
  const auto read = [&](uint32_t unit) {
    if (!block.writes.Has(unit)) block.reads.Add(unit);
  };
  const auto clear = [&](uint32_t unit) { always.Add(unit); };
  if (instruction.guard != kNoSlot) ForEachUnit(instruction.guard, 0, clear);
  ForEachOperand(instruction, [&](const DecodedOperand& operand, bool is_destination) {
    if (!by_lane || operand.bytes == 0 || operand.bytes > 8) return ForEachUnit(operand.slot, operand.bytes, clear);
    if (!is_destination) ForEachUnit(operand.slot, operand.bytes, read);
  });
  if (!by_lane || instruction.guard != kNoSlot) return;
  ForEachOperand(instruction, [&](const DecodedOperand& operand, bool is_destination) {
    if (is_destination) ForEachUnit(operand.slot, operand.bytes, [&](uint32_t unit) { block.writes.Add(unit); });
  });
}

// Adds what is read before it is written, from the entry on.
void AddLiveAtEntry(const ControlGraph& graph, const std::vector<BlockSets>& blocks, size_t units, UnitSet& live) {
  std::vector<UnitSet> entering;
  for (const BlockSets& block : blocks) entering.push_back(block.reads);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;) {
      for (const int next : graph.successors[b]) {
        if (next != graph.exit) changed |= entering[b].AddBut(entering[static_cast<size_t>(next)], blocks[b].writes);
      }
    }
  }
  if (!entering.empty()) live.AddBut(entering[0], UnitSet(units));
}

}  // namespace

void FindClearedRegisters(DecodedKernel& kernel) {
  kernel.cleared = {{0, kernel.register_bytes}};
  const size_t units = (kernel.register_bytes + kUnit - 1) / kUnit;
  const ControlGraph graph = BuildControlGraph(kernel);
  const size_t count = graph.first.size();
  if (!kernel.callees.empty() || 3 * count * (units / 64 + 1) > kMostWords) return;
  std::vector<bool> by_lane;
  for (const uint32_t row : kernel.opcode_rows) {
    const auto root = InstructionTable()[row].root;
    by_lane.push_back(std::find(std::begin(kByLane), std::end(kByLane), root) != std::end(kByLane));
  }
  UnitSet cleared(units);
  std::vector<BlockSets> blocks(count, {UnitSet(units), UnitSet(units)});
  for (size_t b = 0; b < count; ++b) {
    const size_t end = b + 1 < count ? graph.first[b + 1] : kernel.code.size();
    for (size_t i = graph.first[b]; i < end; ++i)
      Note(kernel.code[i], by_lane[kernel.code[i].opcode], blocks[b], cleared);
  }
  AddLiveAtEntry(graph, blocks, units, cleared);
  ForEachUnit(kernel.scratch_slot, 16, [&](uint32_t unit) { cleared.Add(unit); });
  // Constants are filled whole when the warp starts, except for the upper halves of wide ones.
  for (const SlotInitial& initial : kernel.initial) {
    if (initial.bytes == 16) ForEachUnit(initial.slot, 16, [&](uint32_t unit) { cleared.Add(unit); });
  }
  kernel.cleared.clear();
  for (uint32_t unit = 0; unit < units; ++unit) {
    if (!cleared.Has(unit)) continue;
    const uint32_t begin = unit * kUnit, end = std::min(begin + kUnit, kernel.register_bytes);
    if (!kernel.cleared.empty() && kernel.cleared.back().end == begin) {
      kernel.cleared.back().end = end;
    } else {
      kernel.cleared.push_back({begin, end});
    }
  }
}

}  // namespace laneshift::emulator
