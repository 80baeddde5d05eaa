// Where scale factors of scale=block lie in memory: those of a tile, and of a block of K.
//
// Thread-safety: values and pure functions.
#pragma once

#include "compiler/build/tile_loop.h"
#include "ir/builder.h"

namespace laneshift::compiler {

// Where the scale factors of the rows of A of a tile begin: those of rows of masked groups are a matrix for each group,
// those of rows of other groups one matrix.
struct ScaleCorner {
  ir::ValueId row, matrix;
};
ScaleCorner ScalesOfRows(ir::Builder& b, const Corner& corner, ir::WorkSource source);

// The line of scale factors of A that a block of K has: a word of a `packed` one has those of four blocks.
ir::ValueId LineOfScales(ir::Builder& b, ir::ValueId block, bool packed);

// All scale factors of an operand as one vector of words: where those of a tile begin, and how many words a line has.
// Lines of A have the rows of a block of K, or of four; those of B have the blocks of K of a run of columns.
struct ScaleVector {
  ir::ValueId first = ir::kNoValue, line = ir::kNoValue;
  bool of_b = false, packed = false;

  // Of the tile's first row, or first run of columns.
  ir::ValueId WordOf(ir::Builder& b, ir::ValueId block) const;
};
ScaleVector VectorOfScales(ir::Builder& b, const ScaleCorner& rows_of_a, ir::WorkSource source, bool packed);
ScaleVector VectorOfScales(ir::Builder& b, const Corner& columns_of_b);

// Where those of a block of rows of the accumulator begin: those of A at a row, those of B at a column. Of several
// tiles in which those of A are, also the number of the one.
struct ScaleStart {
  ir::ValueId row, column;
  int part = 0;
};

}  // namespace laneshift::compiler
