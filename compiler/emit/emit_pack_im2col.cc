// Pixels under the taps of a filter, as rows of a matrix. A lane has the same 16 bytes of several rows: it finds once
// which taps and channels they are, and loads their elements one by one. Adjacent lanes have adjacent bytes.
#include <array>
#include <limits>
#include <vector>

#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

constexpr int kIm2colPieceBytes = 16;

class Im2colPackEmitter {
 public:
  Im2colPackEmitter(const RoleContext& cx, const ir::PackIm2colAttrs& attrs)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        dimensions_(attrs.planes ? 3 : 2),
        bytes_(static_cast<int>(DataTypeBytes(cx.program.operand_type))),
        piece_(kIm2colPieceBytes / bytes_),
        pieces_(CeilDiv(cx.e, cx.Param(Binding::kN), piece_)) {}

  void Emit(Value* first) {
    Value* threads = e_.C32(cx_.threads);
    Value* across = b_.CreateSelect(b_.CreateICmpULT(pieces_, threads), pieces_, threads);
    Value* at_once = b_.CreateUDiv(threads, across);  // rows; the threads that are left over have none
    Value* own = b_.CreateUDiv(cx_.thread, across);
    Value* rest = b_.CreateSub(cx_.Param(Binding::kK), first);
    Value* tile = e_.C32(cx_.program.tile_m);
    Value* rows = b_.CreateSelect(b_.CreateICmpULT(rest, tile), rest, tile);
    Value* begin = b_.CreateSelect(b_.CreateICmpULT(own, at_once), own, rows);
    e_.For(b_.CreateURem(cx_.thread, across), pieces_, across, [&](Value* piece) {
      const std::vector<Column> columns = ColumnsOf(piece);
      e_.For(begin, rows, at_once, [&](Value* row) { CopyPiece(b_.CreateAdd(first, row), piece, columns); });
    });
  }

 private:
  // Which element of the pixels under a filter a column is, seen from the filter's first pixel.
  struct Column {
    Value* offset;                // bytes
    std::array<Value*, 3> pixel;  // along each dimension; outside of every image where there is no such tap
  };

  Value* Wide(Value* number) { return b_.CreateSExt(number, e_.I64()); }
  Value* Bytes(Value* elements) { return b_.CreateMul(elements, e_.C64(static_cast<uint64_t>(bytes_))); }
  // Elements from a place to the one `pixels` further along a dimension.
  Value* Along(size_t dimension, Value* pixels) {
    constexpr Binding kPitches[] = {Binding::kPitchB, Binding::kRowB, Binding::kPlaneB};
    return b_.CreateMul(Wide(pixels), cx_.Param(kPitches[dimension]));
  }

  std::vector<Column> ColumnsOf(Value* piece) {
    const size_t last = dimensions_ - 1;
    Value* const channels = cx_.Param(Binding::kChannels);
    Value* column = b_.CreateMul(piece, e_.C32(piece_));
    Value* channel = b_.CreateURem(column, channels);
    std::array<Value*, 3> taps{}, tap{};
    Value* rest = b_.CreateUDiv(column, channels);
    for (size_t d = 0; d < dimensions_; ++d) {
      taps[d] = cx_.Param(ir::kSpatialBindings[d].taps);
      tap[d] = d == last ? rest : b_.CreateURem(rest, taps[d]);
      rest = b_.CreateUDiv(rest, taps[d]);
    }
    std::vector<Column> columns;
    for (int i = 0; i < piece_; ++i) {
      Column& of = columns.emplace_back();
      Value* offset = Wide(channel);
      for (size_t d = 0; d < dimensions_; ++d) {
        of.pixel[d] = b_.CreateMul(tap[d], cx_.Param(ir::kSpatialBindings[d].dilation));
        offset = b_.CreateAdd(offset, Along(d, of.pixel[d]));
      }
      of.offset = Bytes(offset);
      Value* outside = e_.C32(std::numeric_limits<int32_t>::min());
      of.pixel[last] = b_.CreateSelect(b_.CreateICmpULT(tap[last], taps[last]), of.pixel[last], outside);

      channel = b_.CreateAdd(channel, e_.C32(1));
      Value* ends = b_.CreateICmpEQ(channel, channels);
      channel = b_.CreateSelect(ends, e_.C32(0), channel);
      for (size_t d = 0; d < dimensions_; ++d) {
        tap[d] = b_.CreateAdd(tap[d], b_.CreateZExt(ends, e_.I32()));
        if (d == last) break;
        ends = b_.CreateICmpEQ(tap[d], taps[d]);
        tap[d] = b_.CreateSelect(ends, e_.C32(0), tap[d]);
      }
    }
    return columns;
  }

  void CopyPiece(Value* position, Value* piece, const std::vector<Column>& columns) {
    std::array<Value*, 3> corner{};  // of the filter: its first pixel
    Value* rest = position;
    Value* start = e_.C64(0);
    for (size_t d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      Value* outputs = cx_.Param(of.outputs);
      corner[d] = b_.CreateSub(b_.CreateMul(b_.CreateURem(rest, outputs), cx_.Param(of.stride)), cx_.Param(of.pad));
      start = b_.CreateAdd(start, Along(d, corner[d]));
      rest = b_.CreateUDiv(rest, outputs);
    }
    start = b_.CreateAdd(start, b_.CreateMul(Wide(rest), cx_.Param(Binding::kStrideB)));
    start = b_.CreateAdd(cx_.Param(Binding::kBaseB), Bytes(start));
    std::vector<Value*> elements;
    for (const Column& column : columns) {
      Value* inside = e_.True();
      for (size_t d = 0; d < dimensions_; ++d) {
        Value* at = b_.CreateAdd(corner[d], column.pixel[d]);
        inside = b_.CreateAnd(inside, b_.CreateICmpULT(at, cx_.Param(ir::kSpatialBindings[d].extent)));
      }
      elements.push_back(e_.LoadGlobalElement(bytes_, b_.CreateAdd(start, column.offset), inside));
    }
    Value* to = b_.CreateAdd(b_.CreateMul(Wide(position), Wide(pieces_)), Wide(piece));
    e_.StoreGlobal(b_.CreateAdd(cx_.Param(Binding::kWorkspace), b_.CreateMul(to, e_.C64(kIm2colPieceBytes))),
                   e_.JoinElements(bytes_, elements), e_.True());
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const size_t dimensions_;
  const int bytes_, piece_;  // of an element, and elements of a piece
  Value* const pieces_;      // of a row
};

}  // namespace

void EmitPackIm2col(const RoleContext& cx, const ir::PackIm2colAttrs& attrs, Value* position) {
  Im2colPackEmitter(cx, attrs).Emit(position);
}

}  // namespace laneshift::compiler
