// OutputTensor: how D, and what lies as D does, is addressed in memory: what differs between the kinds of problems.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/tile_loop.h"

namespace laneshift::compiler {

class OutputTensor {
 public:
  OutputTensor() = default;
  OutputTensor(const OutputTensor&) = delete;
  OutputTensor& operator=(const OutputTensor&) = delete;
  virtual ~OutputTensor() = default;

  // Parameters of C or D besides its address: the distances of rows, planes and matrices.
  virtual void AddPitches(ir::Operand operand, std::vector<ir::Param>& params) const = 0;
  // Parameters that are sizes of the problem.
  virtual void AddSizes(std::vector<ir::Param>& params) const = 0;
  // Elements of one access to C or D where a lane holds runs of `run` columns.
  virtual int AccessWidthOf(ir::Operand operand, int run) const = 0;
  // Coordinates, after the column, of the bulk store of rows of D from `row` on.
  virtual std::vector<ir::ValueId> StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) const = 0;
  // Stores the staging buffer's `copy` at `column` and `start`.
  virtual void BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner& corner,
                         const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const = 0;
};

}  // namespace laneshift::compiler
