// Every matrix instruction of README's table is in a kernel of a sweep that run_sweep_test runs on the emulator, under
// each order of completion, and assembler_sweep_test assembles.
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "compiler/contraction/contraction.h"
#include "ir/mma_support.h"
#include "ir/problem_keys.h"
#include "tests/sweep_program.h"

namespace laneshift {
namespace {

using base::Cat;

// One cell: an operand of a matrix instruction, with all that the table says of it.
struct Cell {
  ir::MmaKind kind{};
  bool sparse = false, long_rows = false;
  ir::Space a_space = ir::Space::kShared;
  ir::Operand operand = ir::Operand::kA;  // kA if both have one type
  DataType type{};
  int ctas = 1;
  Scaling scale = Scaling::kNone;

  auto operator<=>(const Cell&) const = default;
  // "kind::f8f6f4, B of e2m1, 2 CTAs, scale=tensor, sm_103a".
  std::string Name(const target::Target& target) const {
    const ir::MmaKindInfo& info = ir::InfoOf(kind);
    const std::string_view of = info.pairing != ir::MmaKindInfo::kAnyTypes ? ""
                                : operand == ir::Operand::kA               ? "A of "
                                                                           : "B of ";
    return Cat(target.mma.AccumulatesInTensorMemory() ? Cat("kind::", info.text) : "wgmma", sparse ? ".sp" : "",
               long_rows ? ", K=96" : "", ", ", of, DataTypeName(type),
               a_space == ir::Space::kTensor ? ", A from Tensor Memory" : "", ", ", ctas, ctas == 1 ? " CTA" : " CTAs",
               ", scale=", ir::NameOf(scale), ", ", target.name);
  }
};

// Both operands of a kind that mixes types; otherwise A.
std::vector<ir::Operand> OperandsOf(ir::MmaKind kind) {
  if (ir::InfoOf(kind).pairing != ir::MmaKindInfo::kAnyTypes) return {ir::Operand::kA};
  return {ir::Operand::kA, ir::Operand::kB};
}

std::set<Cell> CellsOfTable(const target::Target& target) {
  std::set<Cell> cells;
  for (const ir::MmaSupport& row : ir::MmaSupportOf(target)) {
    for (const ir::Operand operand : OperandsOf(row.kind)) {
      for (const DataType type : row.types) {
        for (const int ctas : row.ctas) {
          for (const Scaling scale : row.scales)
            cells.insert({row.kind, row.sparse, row.long_rows, row.a_space, operand, type, ctas, scale});
        }
      }
    }
  }
  return cells;
}

// The cells of a kernel.
class CellReader {
 public:
  CellReader(const ir::Program& program, Scaling scale) : program_(program), scale_(scale) {
    for (const ir::Role& role : program.roles) Read(role.body);
  }
  const std::set<Cell>& cells() const { return cells_; }

 private:
  void Read(const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (const auto* channel = std::get_if<ir::ChannelAttrs>(&op.attrs)) slots_[op.result] = channel->channel;
      if (const auto* cursor = std::get_if<ir::CursorAttrs>(&op.attrs)) slots_[op.result] = cursor->channel;
      if (ir::InfoOf(op.kind).category == ir::OpCategory::kMma) ReadProduct(op);
      Read(op.body);
    }
  }

  void ReadProduct(const ir::Op& op) {
    if (op.kind == ir::OpKind::kMmaRegisters || op.kind == ir::OpKind::kMma) {
      const size_t first = op.kind == ir::OpKind::kMma ? 1 : 0;
      const auto& attrs = op.As<ir::MmaAttrs>();
      return Add({.sparse = program_.sparse_a}, TypeOf(op, first, attrs.a_tile), TypeOf(op, first + 1, attrs.b_tile),
                 0);
    }
    if (op.kind == ir::OpKind::kMmaScaled) {
      const auto& attrs = op.As<ir::MmaScaledAttrs>();
      const int run = attrs.run / program_.Compression(ir::Operand::kA);
      const bool long_rows = !program_.sparse_a && ir::HasLongRows(program_.OperandBits(), program_.tile_k);
      return Add({.sparse = program_.sparse_a, .long_rows = long_rows}, TypeOf(op, 2, attrs.a_tile),
                 TypeOf(op, 3, attrs.b_tile), run);
    }
    if (op.kind == ir::OpKind::kMmaSparse) {
      const auto& attrs = op.As<ir::MmaSparseAttrs>();
      return Add({.sparse = true}, TypeOf(op, 2, attrs.a_tile), TypeOf(op, 3, attrs.b_tile), 0);
    }
    ASSERT_EQ(op.kind, ir::OpKind::kMmaTensor) << "another kind of product";
    const auto& attrs = op.As<ir::MmaTensorAttrs>();
    if (!attrs.idle) Add({.a_space = ir::Space::kTensor}, program_.operand_type, TypeOf(op, 2, attrs.b_tile), 0);
  }

  void Add(Cell cell, DataType a, DataType b, int scale_run) {
    cell.kind = ir::InstructionOf({.type = a}, {.type = b}, 0, 0, scale_run).kind;
    cell.ctas = program_.ctas;
    cell.scale = scale_;
    for (const ir::Operand operand : OperandsOf(cell.kind)) {
      cell.operand = operand;
      cell.type = operand == ir::Operand::kA ? a : b;
      cells_.insert(cell);
    }
  }

  DataType TypeOf(const ir::Op& op, size_t operand, int tile) const {
    const ir::Channel& channel = program_.channels[static_cast<size_t>(slots_.at(op.operands[operand]))];
    return channel.tiles[static_cast<size_t>(tile)].layout.type;
  }

  const ir::Program& program_;
  const Scaling scale_;
  std::map<ir::ValueId, int> slots_;  // the channel of a slot
  std::set<Cell> cells_;
};

// The cells of a case's kernel, all of which the table has to have.
std::set<Cell> CellsIn(const std::set<Cell>& table, const sweep::Case& c, const ir::Program& program) {
  const CellReader reader(program, compiler::ContractionOf(c.problem).scale);
  for (const Cell& cell : reader.cells())
    EXPECT_TRUE(table.contains(cell)) << c.Name() << ": README's table lacks " << cell.Name(*c.target);
  return reader.cells();
}

class InstructionCoverage : public testing::TestWithParam<std::string_view> {};

// Whether a kernel of the problem may have one of the cells.
bool MayHave(const Problem& problem, const std::set<Cell>& cells) {
  const compiler::Contraction contraction = compiler::ContractionOf(problem);
  return std::any_of(cells.begin(), cells.end(), [&](const Cell& cell) {
    return cell.kind == contraction.Kind() && cell.sparse == contraction.IsSparse() && cell.scale == contraction.scale;
  });
}

TEST_P(InstructionCoverage, EveryCellOfTheTableHasALineOfASweep) {
  const target::Target& target = target::NamedTarget(GetParam());
  const std::set<Cell> table = CellsOfTable(target);
  std::set<Cell> missing = table;
  for (const sweep::File& file : sweep::kFiles) {
    for (const sweep::Case& c : sweep::Cases(file.name)) {
      if (c.target->name != target.name) continue;
      EXPECT_GT(file.Least(target.name), 0) << c.Name() << ": no test runs this file for the target";
      if (!MayHave(c.problem, missing)) continue;
      const auto program = sweep::ProgramOf(c);
      ASSERT_TRUE(program.has_value()) << c.Name() << ": " << program.error().message;
      for (const Cell& cell : CellsIn(table, c, *program)) missing.erase(cell);
    }
  }
  for (const Cell& cell : missing) ADD_FAILURE() << cell.Name(target) << ": no line of tests/sweep runs it";
}

// The lines of instructions.txt, by one CTA and by two.
TEST_P(InstructionCoverage, WhatTheTableLacksIsRefused) {
  const target::Target& target = target::NamedTarget(GetParam());
  const std::set<Cell> table = CellsOfTable(target);
  int refused = 0;
  std::set<int> lines;
  for (sweep::Case c : sweep::Cases("instructions.txt")) {
    if (!lines.insert(c.number).second) continue;  // it is a case of each of its targets
    c.target = &target;
    for (const char* ctas : {"ctas=1 cluster=1x1", "ctas=2 cluster=2x1"}) {
      const ScheduleConstraint pair = *ParseSchedule(ctas);
      c.constraint = {.value = pair.Apply(c.constraint.value), .fixed = c.constraint.fixed | pair.fixed};
      const auto program = sweep::ProgramOf(c);
      if (program) {
        CellsIn(table, c, *program);
        continue;
      }
      ++refused;
      EXPECT_EQ(program.error().code, ErrorCode::kUnsupported) << c.Name() << ": " << program.error().message;
    }
  }
  EXPECT_GT(refused, 0);
}

std::vector<std::string_view> TargetNames() {
  std::vector<std::string_view> names;
  for (const target::Target& target : target::Targets()) names.push_back(target.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, InstructionCoverage, testing::ValuesIn(TargetNames()),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace laneshift
