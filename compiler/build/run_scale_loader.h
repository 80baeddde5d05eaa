// Scale factors of scale=block that come with the operands: of A one for each row of the tile, of B one for each run of
// columns that the tile has a part of, all of one block of K. In shared memory both are lines of 16 bytes. Where rows
// of a tile begin anywhere, A's lines begin with that of the first row, and there may be two tiles of them, since a box
// has 256 scale factors at most.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/epilogue_terms.h"
#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"

namespace laneshift::compiler {

ir::SharedLayout RunScaleTile(ir::Operand operand, int lines);

// Adjacent tiles of a slot, each `rows` of A after the one before.
struct RunScaleTiles {
  ir::SharedLayout layout{};
  int count = 1, rows = 0;
};

class RunScaleLoader final : public OperandLoader {
 public:
  RunScaleLoader(const LoadTarget& target, ir::Operand operand, const RunScaleTiles& tiles, const OperandParts& cluster,
                 ir::WorkSource source, const SlotScales& scales)
      : OperandLoader(target), operand_(operand), tiles_(tiles), cluster_(cluster), source_(source), scales_(scales) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const ir::Operand operand_;
  const RunScaleTiles tiles_;
  const OperandParts cluster_;
  const ir::WorkSource source_;
  const SlotScales scales_;
};

}  // namespace laneshift::compiler
