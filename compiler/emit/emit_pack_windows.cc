// Pixels in lines of joined rows. Adjacent threads have adjacent pieces of 16 bytes of a line, and load their elements
// one by one; where the rows of the line are is found once.
#include <vector>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

constexpr int kWindowPieceBytes = 16;

class WindowPackEmitter {
 public:
  WindowPackEmitter(const RoleContext& cx, const ir::PackWindowsAttrs& attrs)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        attrs_(attrs),
        bytes_(static_cast<int>(DataTypeBytes(cx.program.operand_type))),
        piece_(kWindowPieceBytes / bytes_),
        pixel_(attrs.rows * attrs.channels),
        pieces_(cx.Param(Binding::kPackedPieces)) {}

  // The pieces of all lines of the tile in turn: those of a line are adjacent.
  void Emit(Value* first) {
    Value* rest = b_.CreateSub(cx_.Param(Binding::kPackedLines), first);
    Value* tile = e_.C32(static_cast<uint32_t>(cx_.program.tile_m));
    Value* lines = b_.CreateSelect(b_.CreateICmpULT(rest, tile), rest, tile);
    e_.For(e_.C32(0), lines, 1, [&](Value* i) {
      const Line line = LineOf(b_.CreateAdd(first, i));
      e_.For(cx_.thread, pieces_, cx_.threads, [&](Value* piece) { CopyPiece(line, piece); });
    });
  }

 private:
  struct Line {
    Value* to;                   // address of the copy
    std::vector<Value*> from;    // where each of its rows begins in memory
    std::vector<Value*> inside;  // whether the row is one of the image
  };

  Value* Wide(Value* number) { return b_.CreateSExt(number, e_.I64()); }
  Value* Bytes(Value* elements) { return b_.CreateMul(elements, e_.C64(static_cast<uint64_t>(bytes_))); }

  Line LineOf(Value* number) {
    Value* taps = b_.CreateAdd(cx_.Param(Binding::kTapsR), e_.C32(static_cast<uint32_t>(attrs_.rows - 1)));
    Value* of_filter = b_.CreateUDiv(taps, e_.C32(static_cast<uint32_t>(attrs_.rows)));
    Value* of_image = b_.CreateSub(b_.CreateAdd(cx_.Param(Binding::kOutP), of_filter), e_.C32(1));
    Value* image = b_.CreateUDiv(number, of_image);
    Value* within = b_.CreateSub(number, b_.CreateMul(image, of_image));
    Value* start = e_.C64(0);
    if (attrs_.planes) {
      Value* planes = cx_.Param(Binding::kInD);
      start = b_.CreateMul(Wide(b_.CreateURem(image, planes)), cx_.Param(Binding::kPlaneB));
      image = b_.CreateUDiv(image, planes);
    }
    start = b_.CreateAdd(start, b_.CreateMul(Wide(image), cx_.Param(Binding::kStrideB)));
    Value* row = b_.CreateSub(b_.CreateMul(within, cx_.Param(Binding::kConvStrideH)), cx_.Param(Binding::kPadH));
    Line line{.to = b_.CreateMul(Wide(number), b_.CreateMul(Wide(pieces_), e_.C64(kWindowPieceBytes))),
              .from = {},
              .inside = {}};
    line.to = b_.CreateAdd(cx_.Param(Binding::kWorkspace), line.to);
    for (int i = 0; i < attrs_.rows; ++i) {
      Value* own = b_.CreateAdd(row, e_.C32(static_cast<uint32_t>(i)));
      Value* offset = b_.CreateAdd(start, b_.CreateMul(Wide(own), cx_.Param(Binding::kRowB)));
      line.from.push_back(b_.CreateAdd(cx_.Param(Binding::kBaseB), Bytes(offset)));
      line.inside.push_back(b_.CreateICmpULT(own, cx_.Param(Binding::kInH)));
    }
    return line;
  }

  void CopyPiece(const Line& line, Value* piece) {
    Value* first = b_.CreateMul(piece, e_.C32(static_cast<uint32_t>(piece_)));
    const std::vector<Value*> elements = piece_ % pixel_ == 0 ? WholePixels(line, first) : AnyElements(line, first);
    Value* to = b_.CreateAdd(line.to, b_.CreateMul(Wide(piece), e_.C64(kWindowPieceBytes)));
    e_.StoreGlobal(to, e_.JoinElements(bytes_, elements), e_.True());
  }

  // Of a piece that begins with a pixel: which rows and channels the elements are is known.
  std::vector<Value*> WholePixels(const Line& line, Value* first) {
    std::vector<Value*> elements;
    Value* pixel = b_.CreateUDiv(first, e_.C32(static_cast<uint32_t>(pixel_)));
    for (int i = 0; i < piece_; i += pixel_) {
      const Place place = PlaceOf(b_.CreateAdd(pixel, e_.C32(static_cast<uint32_t>(i / pixel_))));
      for (size_t row = 0; row < line.from.size(); ++row) {
        for (int channel = 0; channel < attrs_.channels; ++channel)
          elements.push_back(Load(line.from[row], line.inside[row], place, e_.C32(static_cast<uint32_t>(channel))));
      }
    }
    return elements;
  }

  std::vector<Value*> AnyElements(const Line& line, Value* first) {
    std::vector<Value*> elements;
    for (int i = 0; i < piece_; ++i) {
      const auto [pixel, in_pixel] = Divide(b_.CreateAdd(first, e_.C32(static_cast<uint32_t>(i))), pixel_);
      const auto [row, channel] = Divide(in_pixel, attrs_.channels);
      Value* from = line.from[0];
      Value* inside = line.inside[0];
      for (size_t other = 1; other < line.from.size(); ++other) {
        Value* own = b_.CreateICmpEQ(row, e_.C32(static_cast<uint32_t>(other)));
        from = b_.CreateSelect(own, line.from[other], from);
        inside = b_.CreateSelect(own, line.inside[other], inside);
      }
      elements.push_back(Load(from, inside, PlaceOf(pixel), channel));
    }
    return elements;
  }

  struct Quotient {
    Value *quotient, *rest;
  };
  Quotient Divide(Value* number, int divisor) {
    Value* by = e_.C32(static_cast<uint32_t>(divisor));
    Value* quotient = b_.CreateUDiv(number, by);
    return {quotient, b_.CreateSub(number, b_.CreateMul(quotient, by))};
  }

  // A pixel of a row of the image.
  struct Place {
    Value *inside, *offset;  // bytes from the start of the row
  };
  Place PlaceOf(Value* pixel) {
    Value* at = b_.CreateSub(pixel, cx_.Param(Binding::kPadW));
    return {b_.CreateICmpULT(at, cx_.Param(Binding::kInW)), Bytes(b_.CreateMul(Wide(at), cx_.Param(Binding::kPitchB)))};
  }

  Value* Load(Value* row, Value* row_inside, const Place& pixel, Value* channel) {
    Value* inside = b_.CreateAnd(pixel.inside, row_inside);
    inside = b_.CreateAnd(inside, b_.CreateICmpULT(channel, cx_.Param(Binding::kChannels)));
    Value* from = b_.CreateAdd(b_.CreateAdd(row, pixel.offset), Bytes(Wide(channel)));
    return e_.LoadGlobalElement(bytes_, from, inside);
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::PackWindowsAttrs attrs_;
  const int bytes_, piece_, pixel_;  // of an element; elements of a piece, and of a packed pixel
  Value* const pieces_;              // of a line
};

}  // namespace

void EmitPackWindows(const RoleContext& cx, const ir::PackWindowsAttrs& attrs, Value* line) {
  WindowPackEmitter(cx, attrs).Emit(line);
}

}  // namespace laneshift::compiler
