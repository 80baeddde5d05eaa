// tcgen05.ld and tcgen05.st: which thread's register is which cell.
#include <bit>

#include "base/check.h"
#include "base/text.h"
#include "emulator/units/tensor_memory.h"

namespace laneshift::emulator {
namespace {

struct LaneShapeRule {
  std::string_view name;
  int rows, columns, registers, greatest_repeat;  // columns and registers per .x1
};
const LaneShapeRule& RuleOf(LaneShape shape) {
  static constexpr LaneShapeRule kRules[] = {
      {"32x32b", 32, 1, 1, 128}, {"16x64b", 16, 2, 1, 128},   {"16x128b", 16, 4, 2, 64},
      {"16x256b", 16, 8, 4, 32}, {"16x32bx2", 16, 1, 1, 128},
  };
  return kRules[static_cast<size_t>(shape)];
}

// Calls visit(register, thread, lane, column) for every register of every thread. A packed register is the two columns
// `column` and `column + 1`.
template <typename Visit>
void ForEachCell(const PlannedLaneAccess& plan, Visit visit) {
  const LaneAccess& a = plan.access;
  const int registers = RegistersOf(a.shape, a.repeat);
  const int width = a.half_words == HalfWords::kPacked ? 2 : 1;
  for (int reg = 0; reg < registers; ++reg) {
    for (int thread = 0; thread < 32; ++thread) {
      // The half split counts physical columns: it is added after packing has doubled the others.
      const TensorAddress cell = CellOf(a.shape, thread, reg, 0);
      const int split = a.shape == LaneShape::k16x32bx2 && thread >= 16 ? a.half_split : 0;
      visit(reg, thread, plan.first_lane + cell.lane, a.address.column + cell.column * width + split);
    }
  }
}

// An MMA of 64 rows does not write every other group of 16 lanes, and .32x32b cannot avoid reading those too: a column
// counts as written if one half of the warp's lanes is written and the other half untouched.
std::optional<TensorAddress> UnwrittenCell(LaneShape shape, const TensorMemory& memory, const TensorRange& range) {
  const auto first = memory.FirstUnwritten(range);
  if (!first || shape != LaneShape::k32x32b) return first;
  for (int column = range.column; column < range.column + range.columns; ++column) {
    uint32_t written = 0;
    for (int lane = 0; lane < 32; ++lane) written |= uint32_t{memory.Written(range.lane + lane, column)} << lane;
    if (written == 0xffffffff || written == 0x0000ffff || written == 0xffff0000) continue;
    return TensorAddress{static_cast<uint16_t>(range.lane + std::countr_one(written)), static_cast<uint16_t>(column)};
  }
  return std::nullopt;
}

}  // namespace

int RegistersOf(LaneShape shape, int repeat) { return RuleOf(shape).registers * repeat; }

TensorAddress CellOf(LaneShape shape, int thread, int reg, int half_split) {
  const int q = thread / 4, p = thread % 4;
  const auto cell = [](int lane, int column) {
    return TensorAddress{static_cast<uint16_t>(lane), static_cast<uint16_t>(column)};
  };
  switch (shape) {
    case LaneShape::k32x32b:
      return cell(thread, reg);
    case LaneShape::k16x64b:
      return cell(q + 8 * (p & 1), (p >> 1) + 2 * reg);
    case LaneShape::k16x128b:
      return cell(q + 8 * (reg & 1), p + 4 * (reg >> 1));
    case LaneShape::k16x256b:
      return cell(q + 8 * (reg >> 1 & 1), 2 * p + (reg & 1) + 8 * (reg >> 2));
    case LaneShape::k16x32bx2:
      return cell(thread % 16, reg + (thread < 16 ? 0 : half_split));
  }
  return {};
}

Result<PlannedLaneAccess> PlanLaneAccess(const LaneAccess& access, int warp, const Policies& policies) {
  const LaneShapeRule& rule = RuleOf(access.shape);
  const auto bad = [&](auto... why) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("tcgen05.ld/st.", rule.name, ".x", access.repeat, ": ", why...));
  };
  if (!std::has_single_bit(static_cast<unsigned>(access.repeat)) || access.repeat > rule.greatest_repeat) {
    return bad("the repeat must be a power of two up to ", rule.greatest_repeat);
  }
  const int lane = access.address.lane % 32;
  if (lane != 0 && (rule.rows == 32 || lane != 16)) {
    return bad("lane ", access.address.lane, " must be ", rule.rows == 32 ? "a multiple of 32" : "0 or 16 modulo 32");
  }
  PlannedLaneAccess plan;
  plan.access = access;
  plan.policies = policies;
  plan.first_lane = warp % 4 * 32 + lane;
  plan.foreign_lanes = access.address.lane / 32 != warp % 4;
  if (plan.foreign_lanes) {
    if (policies.foreign_lanes == ForeignLanes::kRefused) {
      return bad("lane ", access.address.lane, " belongs to another warp than rank ", warp % 4);
    }
    plan.used.Add(Policy::kForeignLanes);
  }
  const int columns = rule.columns * access.repeat * (access.half_words == HalfWords::kPacked ? 2 : 1);
  const auto add = [&](int column) -> Status {
    if (column < 0 || column + columns > TensorMemory::kColumns) {
      return bad("columns ", column, " to ", column + columns - 1, " are not within the 512");
    }
    plan.ranges.push_back({static_cast<uint16_t>(plan.first_lane), static_cast<uint16_t>(rule.rows),
                           static_cast<uint16_t>(column), static_cast<uint16_t>(columns)});
    return Ok();
  };
  LS_TRY(add(access.address.column));
  if (access.shape == LaneShape::k16x32bx2) LS_TRY(add(access.address.column + access.half_split));
  return plan;
}

std::optional<TensorAddress> LoadLanes(const PlannedLaneAccess& plan, const TensorMemory& memory,
                                       std::span<uint32_t* const> registers) {
  LS_CHECK(static_cast<int>(registers.size()) == RegistersOf(plan.access.shape, plan.access.repeat), "registers ",
           registers.size());
  if (plan.access.half_words == HalfWords::kPacked) {
    ForEachCell(plan, [&](int reg, int thread, int lane, int column) {
      registers[static_cast<size_t>(reg)][thread] = (memory.Read(lane, column) & 0xffff) | memory.Read(lane, column + 1)
                                                                                               << 16;
    });
  } else {
    ForEachCell(plan, [&](int reg, int thread, int lane, int column) {
      registers[static_cast<size_t>(reg)][thread] = memory.Read(lane, column);
    });
  }
  for (const TensorRange& range : plan.ranges) {
    if (const auto cell = UnwrittenCell(plan.access.shape, memory, range)) return cell;
  }
  return std::nullopt;
}

void StoreLanes(const PlannedLaneAccess& plan, TensorMemory& memory, std::span<const uint32_t* const> registers) {
  LS_CHECK(static_cast<int>(registers.size()) == RegistersOf(plan.access.shape, plan.access.repeat), "registers ",
           registers.size());
  if (plan.access.half_words == HalfWords::kPacked) {
    ForEachCell(plan, [&](int reg, int thread, int lane, int column) {
      const uint32_t value = registers[static_cast<size_t>(reg)][thread];
      const bool keep = plan.policies.unpack_upper_half == UnpackUpperHalf::kKept;
      const auto upper = [&](int c) { return keep ? memory.Read(lane, c) & 0xffff0000 : 0; };
      memory.Write(lane, column, upper(column) | (value & 0xffff));
      memory.Write(lane, column + 1, upper(column + 1) | value >> 16);
    });
  } else {
    ForEachCell(plan, [&](int reg, int thread, int lane, int column) {
      memory.Row(lane)[column] = registers[static_cast<size_t>(reg)][thread];
    });
    for (const TensorRange& range : plan.ranges) memory.MarkWritten(range);
  }
}

}  // namespace laneshift::emulator
