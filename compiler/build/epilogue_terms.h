// EpilogueTerms: what happens to a sum on its way to memory, as far as the problem says it.
//
// Thread-safety: a value.
#pragma once

#include "compiler/contraction/contraction.h"
#include "ir/epilogue_steps.h"
#include "ir/op.h"
#include "target/target.h"

namespace laneshift::compiler {

// Tiles of a ring with the scale factors of a block of K, that of the operands where the role that takes it promotes;
// -1: they do not come in slots.
struct SlotScales {
  int of_a = -1, of_b = -1;
  int rows_of_tile = 0;  // of those of A: adjacent tiles have the rows of a tile of D
  int ring = 0;          // channel
  bool aligned = true;   // the rows of a tile of D begin with a line
  // All of A's (B's) are one vector of words to the TMA, which cannot step from row to row: what a block of K needs may
  // begin anywhere in a line. Each run of columns of B then has a tile.
  bool a_vector = false, b_vector = false;
  bool packed = false;  // ue8m0 (ScaleFactorType), also where they do not come in slots

  bool InSlots() const { return of_a >= 0; }
};

struct EpilogueTerms {
  DataType type = DataType::kBf16;  // of D
  DataType c_type = DataType::kBf16;
  DataType accumulator = DataType::kF32;  // or s32
  bool adds_c = false;
  BiasAxis bias = BiasAxis::kNone;
  Scaling scale = Scaling::kNone;
  SlotScales scale_tiles{};  // of scale=block
  OutputScaling d_scale = OutputScaling::kNone;
  bool promotes = false;  // blocks of K are summed one by one, and their sums in f32 registers
  ir::RowMap rows = ir::RowMap::kMatrix;
  bool patches = false;  // rows of D are patches of pixels, and columns have a place in them
  Epilogue steps{};
  bool orders_reductions = false;  // reductions of the steps are added in a fixed order

  // Whether a step needs to know where the rows of D are.
  bool HasMatrices() const;
  // Whether D is the accumulator as it is.
  bool StoresAccumulator() const { return type == DataType::kS32; }
  // Whether an f32 of the caller scales D.
  bool HasScaleOfD() const;
  // Whether anything is stored with the precision of f32.
  bool KeepsF32() const;
};

EpilogueTerms TermsOf(const Contraction& contraction, ir::RowMap rows, const target::Target& target);

}  // namespace laneshift::compiler
