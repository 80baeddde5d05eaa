// Scale factors of scale=block that come with the operands: of A one for each row of the tile, of B one for each run of
// columns that the tile has a part of, all of one block of K. In shared memory both are lines of 16 bytes. Where rows of
// a tile begin anywhere, A's lines begin with that of the first row.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/operand_loader.h"

namespace laneshift::compiler {

ir::SharedLayout RunScaleTile(ir::Operand operand, int lines);

class RunScaleLoader final : public OperandLoader {
 public:
  RunScaleLoader(const LoadTarget& target, ir::Operand operand, const ir::SharedLayout& tile, ir::WorkSource source)
      : OperandLoader(target), operand_(operand), tile_(tile), source_(source) {}

  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const ir::Operand operand_;
  const ir::SharedLayout tile_;
  const ir::WorkSource source_;
};

}  // namespace laneshift::compiler
