// Filters in another order: a lane makes one row of the copy, and stores its elements as 16-byte words. Transposed
// ones it reads from several filters, adjacent lanes adjacent channels.
#include <optional>
#include <vector>

#include "compiler/emit/emit_place.h"
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
        elements_(cx.Param(Binding::kChannels)),
        rows_(cx.Param(Binding::kN)) {}

  // `element`: the first one of a tap, in a row of the copy. `matrix`: a tap of a group of the copy, taps fastest.
  void Emit(Value* element, Value* row, Value* matrix) {
    Value* group = matrix;
    row_ = b_.CreateAdd(row, cx_.lane);
    if (cx_.program.Patch() > 1) of_patch_ = ColumnOfPatch(cx_, row_);
    Value* tap = Tap(matrix, group);
    Value* to = b_.CreateMul(Wide(b_.CreateAdd(b_.CreateMul(group, rows_), row_)), RowPitch());
    to = Address(Binding::kWorkspace, b_.CreateAdd(to, b_.CreateMul(Wide(tap_), Wide(tap_pitch_))));
    Value* filters = attrs_.transposed ? elements_ : rows_;
    Value* from = b_.CreateAdd(tap, b_.CreateMul(Wide(b_.CreateMul(group, filters)), cx_.Param(Binding::kPitchB)));
    from = Address(Binding::kBaseB, from);
    const int pieces = cx_.program.tile_m / piece_ / (cx_.threads / 32);
    for (int i = 0; i < pieces; ++i) {
      Value* piece = b_.CreateAdd(b_.CreateMul(cx_.warp, e_.C32(pieces)), e_.C32(i));
      CopyPiece(from, to, b_.CreateAdd(element, b_.CreateMul(piece, e_.C32(piece_))));
    }
  }

 private:
  Value* Wide(Value* number) { return b_.CreateZExt(number, e_.I64()); }
  Value* Bytes(Value* elements) { return b_.CreateMul(elements, e_.C64(bytes_)); }
  Value* Address(Binding base, Value* elements) { return b_.CreateAdd(cx_.Param(base), Bytes(elements)); }

  // Where in a filter the matrix's tap lies, with tap_ its number in the copy; `group` becomes the matrix's.
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
      if (of_patch_) own = TapOfPixel(b_.CreateAdd(own, of_patch_->pixel[d]), of);
      offset = b_.CreateAdd(offset, b_.CreateMul(Wide(own), cx_.Param(kDistances[d])));
      rest = b_.CreateUDiv(rest, taps);
      taps_ = b_.CreateMul(taps_, taps);
    }
    group = rest;
    tap_ = b_.CreateURem(matrix, taps_);
    tap_pitch_ = elements_;
    if (!attrs_.dense) {
      Value* pieces = b_.CreateUDiv(b_.CreateAdd(elements_, e_.C32(piece_ - 1)), e_.C32(piece_));
      tap_pitch_ = b_.CreateMul(pieces, e_.C32(piece_));
    }
    return offset;
  }

  // The one that the pixel of the lane's row meets, or none: negative numbers are large ones, too.
  Value* TapOfPixel(Value* distance, const ir::SpatialBindings& of) {
    Value* dilation = cx_.Param(of.tap_dilation);
    Value* tap = b_.CreateUDiv(distance, dilation);
    Value* whole = b_.CreateICmpEQ(b_.CreateMul(tap, dilation), distance);
    Value* meets = b_.CreateAnd(whole, b_.CreateICmpULT(tap, cx_.Param(of.stored_taps)));
    meets_ = meets_ == nullptr ? meets : b_.CreateAnd(meets_, meets);
    return b_.CreateSelect(meets, tap, e_.C32(0));
  }

  // Of the copy, in elements.
  Value* RowPitch() {
    const uint64_t line = ir::kPackedLine / static_cast<uint64_t>(bytes_);
    Value* row = b_.CreateMul(Wide(taps_), Wide(tap_pitch_));
    return b_.CreateAnd(b_.CreateAdd(row, e_.C64(line - 1)), e_.C64(~(line - 1)));
  }

  // Where an element of the lane's row lies, from the first filter of the group on, and whether the row has it: of
  // merged groups only those of one group's rows and elements meet.
  struct Origin {
    Value* offset;
    Value* exists;
  };
  Origin OriginOf(Value* element) {
    Value* exists = IsInside(element);
    Value* channel = of_patch_ ? of_patch_->channel : attrs_.transposed ? row_ : element;
    if (meets_ != nullptr) exists = b_.CreateAnd(exists, meets_);
    if (attrs_.merged > 1) {
      Value* of_row = b_.CreateUDiv(rows_, e_.C32(attrs_.merged));
      Value* of_element = b_.CreateUDiv(elements_, e_.C32(attrs_.merged));
      Value* same = b_.CreateICmpEQ(b_.CreateUDiv(row_, of_row), b_.CreateUDiv(element, of_element));
      exists = b_.CreateAnd(exists, same);
      channel = b_.CreateURem(channel, attrs_.transposed ? of_row : of_element);
    }
    Value* filter = attrs_.transposed ? element : row_;
    return {b_.CreateAdd(b_.CreateMul(Wide(filter), cx_.Param(Binding::kPitchB)), Wide(channel)), exists};
  }
  Value* IsInside(Value* element) {
    return b_.CreateAnd(b_.CreateICmpULT(row_, rows_), b_.CreateICmpULT(element, elements_));
  }

  void CopyPiece(Value* from, Value* to, Value* first) {
    std::vector<Value*> elements, inside;
    for (int i = 0; i < piece_; ++i) {
      Value* element = b_.CreateAdd(first, e_.C32(i));
      const Origin origin = OriginOf(element);
      inside.push_back(IsInside(element));
      elements.push_back(e_.LoadGlobalElement(bytes_, b_.CreateAdd(from, Bytes(origin.offset)), origin.exists));
    }
    Value* start = b_.CreateAdd(to, Bytes(Wide(first)));
    if (!attrs_.dense) return e_.StoreGlobal(start, e_.JoinElements(bytes_, elements), inside[0]);
    for (int i = 0; i < piece_; ++i)
      StoreElement(b_.CreateAdd(start, e_.C64(i * bytes_)), elements[static_cast<size_t>(i)],
                   inside[static_cast<size_t>(i)]);
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
  Value *const elements_, *const rows_;                            // of a tap, and of a group, in the copy
  Value* row_ = nullptr;                                           // of the lane, in its group
  std::optional<PatchColumn> of_patch_{};                          // what the row is of, where pixels have own taps
  Value* meets_ = nullptr;                                         // whether its pixel meets the tap, there
  Value *tap_ = nullptr, *taps_ = nullptr, *tap_pitch_ = nullptr;  // in the copy
};

}  // namespace

void EmitPackFilter(const RoleContext& cx, const ir::PackFilterAttrs& attrs, Value* element, Value* row,
                    Value* matrix) {
  FilterPackEmitter(cx, attrs).Emit(element, row, matrix);
}

}  // namespace laneshift::compiler
