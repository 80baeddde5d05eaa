#include <cstdlib>

#include "base/check.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kMaskWords = ir::kTensorLanes / ir::kPartitionLanes;

// `value` << `by`, 0 where that is 32 or more.
Value* ShiftLeft(Emitter& e, Value* value, Value* by) {
  auto& b = e.ir();
  Value* fits = b.CreateICmpULT(by, e.C32(ir::kPartitionLanes));
  return b.CreateSelect(fits, b.CreateShl(value, b.CreateSelect(fits, by, e.C32(0))), e.C32(0));
}

// A word whose bit 0 begins a row: the first `count` bits of each row of `pitch`.
Value* FirstOfEachRow(Emitter& e, int count, Value* pitch) {
  auto& b = e.ir();
  Value* word = e.C32((1u << count) - 1);
  Value* distance =
      b.CreateSelect(b.CreateICmpULT(pitch, e.C32(ir::kPartitionLanes)), pitch, e.C32(ir::kPartitionLanes));
  // Twice as many rows each time; a pitch of 1 needs all.
  for (int rows = 1; rows < ir::kPartitionLanes; rows *= 2) {
    word = b.CreateOr(word, ShiftLeft(e, word, distance));
    distance = b.CreateShl(distance, 1);
  }
  return word;
}

}  // namespace

// Tap `columns` to the left has no pixel for the first positions of a row. To the right: a position that many columns
// further on is then among the first of the next row. So in both cases the first |columns| positions of rows count, in
// the second from `columns` further on.
Value* EmitRowBorderMask(const RoleContext& cx, int columns, Value* position) {
  Emitter& e = cx.e;
  auto& b = e.ir();
  const int count = std::abs(columns);
  LS_CHECK(count > 0 && count < ir::kPartitionLanes, "a tap ", columns, " columns away from the output pixel");
  Value* pitch = cx.Param(ir::Binding::kPaddedQ);
  Value* pattern = FirstOfEachRow(e, count, pitch);
  if (columns > 0) position = b.CreateAdd(position, e.C32(columns));
  Value* at = b.CreateURem(position, pitch);  // in its row
  Value* step = b.CreateURem(e.C32(ir::kPartitionLanes), pitch);
  Value* words = llvm::PoisonValue::get(llvm::FixedVectorType::get(e.I32(), kMaskWords));
  for (int i = 0; i < kMaskWords; ++i) {
    // The rest of the row that the word begins in, and the rows that begin inside of it.
    Value* inside = b.CreateICmpULT(at, e.C32(count));
    Value* left = b.CreateSelect(inside, b.CreateSub(e.C32(count), at), e.C32(0));
    Value* begun = b.CreateSub(b.CreateShl(e.C32(1), left), e.C32(1));
    Value* further = ShiftLeft(e, pattern, b.CreateSub(pitch, at));
    words = b.CreateInsertElement(words, b.CreateOr(begun, further), i);
    Value* next = b.CreateAdd(at, step);
    at = b.CreateSelect(b.CreateICmpULT(next, pitch), next, b.CreateSub(next, pitch));
  }
  return words;
}

}  // namespace laneshift::compiler
