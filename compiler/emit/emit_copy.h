// Where the elements of a tile are in memory, for all ways in which threads copy one.
//
// Thread-safety: none; as the emitter that they write with.
#pragma once

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {

// The size along an axis that bounds the rows or columns of an operand.
ir::Binding SizeOf(const ir::Program& program, ir::Axis axis);

// The index along an axis, `step` after the tile's first one. Columns of two halves are interleaved.
Value* IndexAlong(const RoleContext& cx, const ir::LoadAttrs& attrs, ir::Axis axis, Value* first, Value* step);

}  // namespace laneshift::compiler
