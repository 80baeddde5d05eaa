// Activation tiles by predicated loads of threads: for channels, pitches and strides that the TMA cannot walk.
//
// The K index runs over channels, then filter columns, rows and planes without gaps, so that three channels cost three
// columns of the tile and not a padded sixteen.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "compiler/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

constexpr int kChunkBytes = 16;
constexpr int kElementBytes = 2;
constexpr int kChunkElements = kChunkBytes / kElementBytes;

// One spatial dimension, innermost first.
struct Dimension {
  Binding extent, outputs, taps, step, pad, spread, distance;
};
constexpr Dimension kDimensions[] = {
    {Binding::kInW, Binding::kWalkQ, Binding::kTapsS, Binding::kStepW, Binding::kPadW, Binding::kSpreadW,
     Binding::kPitchA},
    {Binding::kInH, Binding::kOutP, Binding::kTapsR, Binding::kStepH, Binding::kPadH, Binding::kSpreadH,
     Binding::kRowA},
    {Binding::kInD, Binding::kOutO, Binding::kTapsT, Binding::kStepD, Binding::kPadD, Binding::kSpreadD,
     Binding::kPlaneA},
};

class PixelGather {
 public:
  PixelGather(const RoleContext& cx, const ir::SharedLayout& layout, const ir::GatherAttrs& attrs)
      : cx_(cx), e_(cx.e), b_(cx.e.ir()), layout_(layout), attrs_(attrs) {
    dimensions_ = cx.program.FindParam(Binding::kOutO) != nullptr ? 3 : 2;
  }

  // Each thread fills whole rows, so that a position is decoded once a row.
  void Emit(Value* tile_base, Value* inner, Value* position, Value* group) {
    group_channel_ = b_.CreateMul(group, cx_.Param(Binding::kChannels));
    e_.For(cx_.thread, e_.C32(layout_.outer), cx_.threads, [&](Value* row) {
      DecodePosition(b_.CreateAdd(position, row));
      if (attrs_.channels != 0) return FillRowOfKnownFilter(tile_base, row);
      e_.For(e_.C32(0), e_.C32(layout_.inner / kChunkElements), 1, [&](Value* chunk) {
        Value* column = b_.CreateMul(chunk, e_.C32(kChunkElements));
        const std::vector<Value*> words = LoadChunk(b_.CreateAdd(inner, column));
        e_.StoreShared(e_.Offset(tile_base, Swizzled(row, column)), words);
      });
    });
  }

 private:
  // Where tap 0 of the row's position reads: start_ of each dimension (possibly outside), and the image's address.
  void DecodePosition(Value* position) {
    row_inside_ = b_.CreateICmpULT(position, cx_.Param(Binding::kM));
    Value* rest = position;
    for (int d = 0; d < dimensions_; ++d) {
      const Dimension& dimension = kDimensions[d];
      Value* out = b_.CreateURem(rest, cx_.Param(dimension.outputs));
      rest = b_.CreateUDiv(rest, cx_.Param(dimension.outputs));
      start_[d] = b_.CreateSub(b_.CreateMul(out, cx_.Param(dimension.step)), cx_.Param(dimension.pad));
    }
    Value* image = b_.CreateMul(b_.CreateZExt(rest, e_.I64()), cx_.Param(Binding::kStrideA));
    image_ = b_.CreateAdd(image, b_.CreateZExt(group_channel_, e_.I64()));
  }

  // The address of (tap, channel) `k` of the row, and whether it is inside of everything.
  struct Place {
    Value* address;
    Value* inside;
  };
  Place PlaceOf(Value* k) {
    Value* inside = b_.CreateAnd(row_inside_, b_.CreateICmpULT(k, cx_.Param(Binding::kK)));
    Value* channel = b_.CreateURem(k, cx_.Param(Binding::kChannels));
    Value* tap = b_.CreateUDiv(k, cx_.Param(Binding::kChannels));
    Value* offset = b_.CreateAdd(image_, b_.CreateZExt(channel, e_.I64()));
    for (int d = 0; d < dimensions_; ++d) {
      const Dimension& dimension = kDimensions[d];
      const bool last = d + 1 == dimensions_;
      Value* own = last ? tap : b_.CreateURem(tap, cx_.Param(dimension.taps));
      if (!last) tap = b_.CreateUDiv(tap, cx_.Param(dimension.taps));
      Value* at = b_.CreateAdd(start_[d], b_.CreateMul(own, cx_.Param(dimension.spread)));
      // Negative positions are large as unsigned ones.
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(at, cx_.Param(dimension.extent)));
      offset = b_.CreateAdd(offset, b_.CreateMul(b_.CreateSExt(at, e_.I64()), cx_.Param(dimension.distance)));
    }
    return {b_.CreateAdd(cx_.Param(Binding::kBaseA), b_.CreateMul(offset, e_.C64(kElementBytes))), inside};
  }

  // Of one position: the taps met so far, and what their columns and rows alone decide.
  struct KnownTaps {
    std::map<int, Place> taps, columns, rows;
  };

  // The filter is known: which tap and channel an element is, is decided here, and a tap costs one address and one
  // predicate however many channels it has. Loads go ahead of the stores, to hide their latency.
  void FillRowOfKnownFilter(Value* tile_base, Value* row) {
    constexpr int kAhead = 8;  // chunks whose loads are on their way
    KnownTaps taps;
    std::vector<std::vector<Value*>> chunks;
    const auto store = [&](int chunk) {
      e_.StoreShared(e_.Offset(tile_base, Swizzled(row, e_.C32(chunk * kChunkElements))),
                     Pairs(chunks[static_cast<size_t>(chunk)]));
    };
    const int count = layout_.inner / kChunkElements;
    for (int chunk = 0; chunk < count; ++chunk) {
      std::vector<Value*> elements;
      for (int i = 0; i < kChunkElements; ++i) {
        elements.push_back(KnownElement(attrs_.first + chunk * kChunkElements + i, taps));
      }
      chunks.push_back(std::move(elements));
      if (chunk >= kAhead) store(chunk - kAhead);
    }
    for (int chunk = std::max(0, count - kAhead); chunk < count; ++chunk) store(chunk);
  }

  // Two 16-bit elements a word.
  std::vector<Value*> Pairs(const std::vector<Value*>& elements) {
    std::vector<Value*> words;
    for (size_t i = 0; i < elements.size(); i += 2) {
      Value* low = b_.CreateZExt(elements[i], e_.I32());
      words.push_back(b_.CreateOr(low, b_.CreateShl(b_.CreateZExt(elements[i + 1], e_.I32()), 16)));
    }
    return words;
  }

  Value* KnownElement(int k, KnownTaps& taps) {
    const int tap = k / attrs_.channels;
    if (tap >= attrs_.columns * attrs_.rows) return b_.getInt16(0);
    auto known = taps.taps.find(tap);
    if (known == taps.taps.end()) {
      const Place place = PlaceOfTap(tap % attrs_.columns, tap / attrs_.columns, taps.columns, taps.rows);
      known = taps.taps.emplace(tap, place).first;
    }
    return e_.LoadGlobal16(known->second.address, known->second.inside, k % attrs_.channels * kElementBytes);
  }

  // The address of channel 0 of a tap: the row's address plus the column's distance, each computed once.
  Place PlaceOfTap(int column, int row, std::map<int, Place>& columns, std::map<int, Place>& rows) {
    auto own_row = rows.find(row);
    if (own_row == rows.end()) {
      Place place = PlaceAlong(1, row);
      place.inside = b_.CreateAnd(place.inside, row_inside_);
      Value* image = b_.CreateMul(image_, e_.C64(kElementBytes));
      place.address = b_.CreateAdd(b_.CreateAdd(cx_.Param(Binding::kBaseA), image), place.address);
      own_row = rows.emplace(row, place).first;
    }
    auto own_column = columns.find(column);
    if (own_column == columns.end()) own_column = columns.emplace(column, PlaceAlong(0, column)).first;
    return {b_.CreateAdd(own_row->second.address, own_column->second.address),
            b_.CreateAnd(own_row->second.inside, own_column->second.inside)};
  }

  // The bytes from the image's edge to where tap `tap` of a dimension reads, and whether that is inside.
  Place PlaceAlong(int d, int tap) {
    const Dimension& dimension = kDimensions[d];
    Value* at = b_.CreateAdd(start_[d], b_.CreateMul(e_.C32(tap), cx_.Param(dimension.spread)));
    Value* distance = b_.CreateMul(b_.CreateSExt(at, e_.I64()), cx_.Param(dimension.distance));
    return {b_.CreateMul(distance, e_.C64(kElementBytes)), b_.CreateICmpULT(at, cx_.Param(dimension.extent))};
  }

  // The 16 bytes of the eight (tap, channel) pairs from `k` on.
  std::vector<Value*> LoadChunk(Value* k) {
    if (attrs_.vector == kChunkElements) {
      const Place place = PlaceOf(k);
      return e_.LoadGlobal(place.address, kChunkBytes / 4, place.inside);
    }
    std::vector<Value*> words;
    for (int i = 0; i < kChunkElements; i += 2) {
      Value* halves[2];
      for (int half = 0; half < 2; ++half) {
        const Place place = PlaceOf(b_.CreateAdd(k, e_.C32(i + half)));
        halves[half] = b_.CreateZExt(e_.LoadGlobal16(place.address, place.inside), e_.I32());
      }
      words.push_back(b_.CreateOr(halves[0], b_.CreateShl(halves[1], 16)));
    }
    return words;
  }

  // SharedLayout::Offset and its XOR, on run-time indices.
  Value* Swizzled(Value* row, Value* column) {
    Value* byte = b_.CreateMul(column, e_.C32(kElementBytes));
    Value* linear = b_.CreateAdd(
        b_.CreateAdd(b_.CreateMul(b_.CreateUDiv(byte, e_.C32(layout_.Span())), e_.C32(layout_.ColumnBytes())),
                     b_.CreateMul(row, e_.C32(layout_.Span()))),
        b_.CreateURem(byte, e_.C32(layout_.Span())));
    Value* phase = b_.CreateAnd(b_.CreateLShr(linear, 7), e_.C32(layout_.SwizzleMask()));
    return b_.CreateXor(linear, b_.CreateShl(phase, 4));
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const ir::GatherAttrs& attrs_;
  int dimensions_ = 2;
  Value* group_channel_ = nullptr;
  Value* row_inside_ = nullptr;
  Value* start_[3] = {};
  Value* image_ = nullptr;
};

}  // namespace

void EmitGatherPixels(const RoleContext& cx, const ir::SharedLayout& layout, const ir::GatherAttrs& attrs,
                      Value* tile_base, Value* inner, Value* position, Value* group) {
  LS_CHECK(layout.ElementBytes() == kElementBytes && layout.KMajor(), "gathered tiles are 16-bit and K-major");
  PixelGather(cx, layout, attrs).Emit(tile_base, inner, position, group);
}

}  // namespace laneshift::compiler
