// Filters, transposed and in another order of taps: a lane reads one channel of several filters, adjacent lanes
// adjacent channels, and stores the filters' elements of that channel as 16-byte words.
#include <vector>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

constexpr int kStoredBytes = 16;

using ir::Binding;

class FilterPackEmitter {
 public:
  FilterPackEmitter(const RoleContext& cx, const ir::PackFilterAttrs& attrs)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        attrs_(attrs),
        dimensions_(attrs.planes ? 3 : 2),
        bytes_(static_cast<int>(DataTypeBytes(cx.program.operand_type))),
        piece_(kStoredBytes / bytes_),
        filters_(cx.Param(Binding::kChannels)),
        channels_(cx.Param(Binding::kN)) {}

  // `matrix`: of the transposed matrices, one for each tap of each group, taps fastest.
  void Emit(Value* filter, Value* channel, Value* matrix) {
    Value* group = matrix;
    Value* taken = Tap(matrix, group);
    Value* channel_of_lane = b_.CreateAdd(channel, cx_.lane);
    Value* of_x = b_.CreateAdd(b_.CreateMul(group, channels_), channel_of_lane);
    Value* from = b_.CreateAdd(taken, b_.CreateMul(Wide(b_.CreateMul(group, filters_)), cx_.Param(Binding::kPitchB)));
    from = Address(Binding::kBaseB, b_.CreateAdd(from, Wide(channel_of_lane)));
    Value* to = b_.CreateAdd(b_.CreateMul(Wide(of_x), RowPitch()), b_.CreateMul(Wide(tap_), Wide(tap_pitch_)));
    to = Address(Binding::kWorkspace, to);
    Value* inside = b_.CreateICmpULT(channel_of_lane, channels_);
    const int pieces = cx_.program.tile_m / piece_ / (cx_.threads / 32);
    for (int i = 0; i < pieces; ++i) {
      Value* piece = b_.CreateAdd(b_.CreateMul(cx_.warp, e_.C32(pieces)), e_.C32(i));
      CopyPiece(from, to, b_.CreateAdd(filter, b_.CreateMul(piece, e_.C32(piece_))), inside);
    }
  }

 private:
  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }
  Value* Bytes(Value* elements) { return b_.CreateMul(elements, e_.C64(bytes_)); }
  Value* Address(Binding base, Value* elements) { return b_.CreateAdd(cx_.Param(base), Bytes(elements)); }

  // Where in a filter the matrix's tap lies, with tap_ its number in the copy; `matrix` becomes its group.
  Value* Tap(Value* matrix, Value*& group) {
    constexpr Binding kDistances[] = {Binding::kStrideB, Binding::kRowB, Binding::kPlaneB};
    Value* rest = matrix;
    Value* offset = e_.C64(0);
    taps_ = e_.C32(1);
    for (size_t d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      Value* taps = cx_.Param(of.taps);
      Value* step = b_.CreateMul(b_.CreateURem(rest, taps), cx_.Param(of.tap_step));
      Value* own = b_.CreateSub(cx_.Param(of.last_tap), step);
      offset = b_.CreateAdd(offset, b_.CreateMul(Wide(own), cx_.Param(kDistances[d])));
      rest = b_.CreateUDiv(rest, taps);
      taps_ = b_.CreateMul(taps_, taps);
    }
    group = rest;
    tap_ = b_.CreateURem(matrix, taps_);
    tap_pitch_ = filters_;
    if (!attrs_.dense) {
      Value* pieces = b_.CreateUDiv(b_.CreateAdd(filters_, e_.C32(piece_ - 1)), e_.C32(piece_));
      tap_pitch_ = b_.CreateMul(pieces, e_.C32(piece_));
    }
    return offset;
  }

  // Of the copy, in elements.
  Value* RowPitch() {
    const uint64_t line = ir::kPackedLine / static_cast<uint64_t>(bytes_);
    Value* row = b_.CreateMul(Wide(taps_), Wide(tap_pitch_));
    return b_.CreateAnd(b_.CreateAdd(row, e_.C64(line - 1)), e_.C64(~(line - 1)));
  }

  void CopyPiece(Value* from, Value* to, Value* filter, Value* inside) {
    Value* pitch = cx_.Param(Binding::kPitchB);
    const auto is_filter = [&](int i) {
      return b_.CreateAnd(inside, b_.CreateICmpULT(b_.CreateAdd(filter, e_.C32(i)), filters_));
    };
    std::vector<Value*> elements;
    for (int i = 0; i < piece_; ++i) {
      Value* offset = b_.CreateMul(Wide(b_.CreateAdd(filter, e_.C32(i))), pitch);
      elements.push_back(e_.LoadGlobalElement(bytes_, b_.CreateAdd(from, Bytes(offset)), is_filter(i)));
    }
    Value* first = b_.CreateAdd(to, Bytes(Wide(filter)));
    if (!attrs_.dense) return e_.StoreGlobal(first, e_.JoinElements(bytes_, elements), is_filter(0));
    for (int i = 0; i < piece_; ++i)
      StoreElement(b_.CreateAdd(first, e_.C64(i * bytes_)), elements[static_cast<size_t>(i)], is_filter(i));
  }
  void StoreElement(Value* to, Value* element, Value* inside) {
    if (bytes_ == 4) return e_.StoreGlobal(to, {element}, inside);
    e_.StoreGlobalElement(bytes_, to, element, inside);
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::PackFilterAttrs& attrs_;
  const size_t dimensions_;
  const int bytes_, piece_;                                        // of an element, and elements of a piece
  Value *const filters_, *const channels_;                         // of a group
  Value *tap_ = nullptr, *taps_ = nullptr, *tap_pitch_ = nullptr;  // in the copy
};

}  // namespace

void EmitPackFilter(const RoleContext& cx, const ir::PackFilterAttrs& attrs, Value* filter, Value* channel,
                    Value* matrix) {
  FilterPackEmitter(cx, attrs).Emit(filter, channel, matrix);
}

}  // namespace laneshift::compiler
