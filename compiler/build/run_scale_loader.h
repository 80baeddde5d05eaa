// Scale factors of scale=block that come with the operands: of A one for each row of the tile, of B one for each run of
// columns that the tile has a part of, all of one block of K. In shared memory both are lines of 16 bytes. Where rows
// of a tile begin anywhere, A's lines begin with that of the first row, and there may be two tiles of them, since a box
// has 256 scale factors at most.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"

namespace laneshift::compiler {

ir::SharedLayout RunScaleTile(ir::Operand operand, int lines);

// Adjacent tiles of a slot, each `rows` of A, or a run of columns of B, after the one before. `vector`: parts of one
// vector of all scale factors (ScaleVector).
struct RunScaleTiles {
  ir::SharedLayout layout{};
  int count = 1, rows = 0;
  bool vector = false;
};

class RunScaleLoader final : public OperandLoader {
 public:
  // `packed`: a word has the factors of four blocks of K.
  RunScaleLoader(const LoadTarget& target, ir::Operand operand, const RunScaleTiles& tiles, const OperandParts& cluster,
                 ir::WorkSource source, bool packed)
      : OperandLoader(target), operand_(operand), tiles_(tiles), cluster_(cluster), source_(source), packed_(packed) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  LoadBlock StartVector(ir::Builder& b, const Corner& corner, const ir::LoadAttrs& attrs) const;

  const ir::Operand operand_;
  const RunScaleTiles tiles_;
  const OperandParts cluster_;
  const ir::WorkSource source_;
  const bool packed_;
};

}  // namespace laneshift::compiler
