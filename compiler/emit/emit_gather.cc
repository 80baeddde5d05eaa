// Activation tiles by predicated loads of threads: for channels, pitches and strides that the TMA cannot address.
//
// The K index runs over channels, then filter columns, rows and planes without gaps, so that three channels cost three
// columns of the tile and not a padded sixteen.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

constexpr int kChunkBytes = 16;

class PixelGather {
 public:
  PixelGather(const RoleContext& cx, const ir::SharedLayout& layout, const ir::GatherAttrs& attrs)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        layout_(layout),
        attrs_(attrs),
        bytes_(layout.ElementBytes()),
        chunk_elements_(kChunkBytes / bytes_) {
    dimensions_ = cx.program.FindParam(Binding::kOutO) != nullptr ? 3 : 2;
  }

  // Each thread fills whole rows, so that a position is decoded once a row.
  void Emit(Value* tile_base, Value* inner, Value* position, Value* group) {
    group_channel_ = b_.CreateMul(group, cx_.Param(Binding::kChannels));
    e_.For(cx_.thread, e_.C32(layout_.outer), cx_.threads, [&](Value* row) {
      DecodePosition(b_.CreateAdd(position, row));
      if (attrs_.channels != 0) return FillRowOfKnownFilter(tile_base, row);
      e_.For(e_.C32(0), e_.C32(layout_.inner / chunk_elements_), 1, [&](Value* chunk) {
        Value* column = b_.CreateMul(chunk, e_.C32(chunk_elements_));
        const std::vector<Value*> words = LoadChunk(b_.CreateAdd(inner, column));
        e_.StoreShared(e_.Offset(tile_base, Swizzled(row, column)), words);
      });
    });
  }

 private:
  // From a pixel of x to its neighbour along a dimension.
  static Binding DistanceOf(int d) {
    const ir::PixelPitches pitches = ir::PixelPitchesOf(ir::Operand::kA);
    return d == 0 ? ir::PitchOf(ir::Operand::kA) : d == 1 ? pitches.row : pitches.plane;
  }

  // Where tap 0 of the row's position reads: start_ of each dimension (possibly outside), and the image's address.
  void DecodePosition(Value* position) {
    row_inside_ = b_.CreateICmpULT(position, cx_.Param(Binding::kM));
    Value* rest = position;
    for (int d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& dimension = ir::kSpatialBindings[d];
      Value* out = b_.CreateURem(rest, cx_.Param(dimension.outputs));
      rest = b_.CreateUDiv(rest, cx_.Param(dimension.outputs));
      start_[d] = b_.CreateSub(b_.CreateMul(out, cx_.Param(dimension.stride)), cx_.Param(dimension.pad));
    }
    Value* image = b_.CreateMul(b_.CreateZExt(rest, e_.I64()), cx_.Param(Binding::kStrideA));
    image_ = b_.CreateAdd(image, b_.CreateZExt(group_channel_, e_.I64()));
  }

  // The address of (tap, channel) `k` of the row, and whether it is inside in every dimension.
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
      const ir::SpatialBindings& dimension = ir::kSpatialBindings[d];
      const bool last = d + 1 == dimensions_;
      Value* own = last ? tap : b_.CreateURem(tap, cx_.Param(dimension.taps));
      if (!last) tap = b_.CreateUDiv(tap, cx_.Param(dimension.taps));
      Value* at = b_.CreateAdd(start_[d], b_.CreateMul(own, cx_.Param(dimension.dilation)));
      // Negative positions are large as unsigned ones.
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(at, cx_.Param(dimension.extent)));
      offset = b_.CreateAdd(offset, b_.CreateMul(b_.CreateSExt(at, e_.I64()), cx_.Param(DistanceOf(d))));
    }
    return {b_.CreateAdd(cx_.Param(Binding::kBaseA), b_.CreateMul(offset, e_.C64(bytes_))), inside};
  }

  // Of one position: the taps met so far, and the parts that depend only on their columns and rows.
  struct KnownTaps {
    std::map<int, Place> taps, columns, rows;
  };

  // The filter is known: the tap and channel of an element are decided at compile time, and a tap costs one address and
  // one predicate for any number of channels. Loads are issued ahead of the stores, to hide their latency.
  void FillRowOfKnownFilter(Value* tile_base, Value* row) {
    constexpr int kElementsAhead = 64;  // whose loads are in flight, each in a register
    const int ahead = kElementsAhead / chunk_elements_;
    KnownTaps taps;
    std::vector<std::vector<Value*>> chunks;
    const auto store = [&](int chunk) {
      e_.StoreShared(e_.Offset(tile_base, Swizzled(row, e_.C32(chunk * chunk_elements_))),
                     e_.JoinElements(bytes_, chunks[static_cast<size_t>(chunk)]));
    };
    const int count = layout_.inner / chunk_elements_;
    for (int chunk = 0; chunk < count; ++chunk) {
      std::vector<Value*> elements;
      for (int i = 0; i < chunk_elements_; ++i) {
        elements.push_back(KnownElement(attrs_.first + chunk * chunk_elements_ + i, taps));
      }
      chunks.push_back(std::move(elements));
      if (chunk >= ahead) store(chunk - ahead);
    }
    for (int chunk = std::max(0, count - ahead); chunk < count; ++chunk) store(chunk);
  }

  Value* KnownElement(int k, KnownTaps& taps) {
    const int tap = k / attrs_.channels;
    if (tap >= attrs_.columns * attrs_.rows * attrs_.planes) return bytes_ == 4 ? b_.getInt32(0) : b_.getInt16(0);
    auto known = taps.taps.find(tap);
    if (known == taps.taps.end()) {
      const Place place = PlaceOfTap(tap % attrs_.columns, tap / attrs_.columns, taps.columns, taps.rows);
      known = taps.taps.emplace(tap, place).first;
    }
    return e_.LoadGlobalElement(bytes_, known->second.address, known->second.inside, k % attrs_.channels * bytes_);
  }

  // The address of channel 0 of a tap: that of its row and plane plus the column's offset, each computed once.
  Place PlaceOfTap(int column, int row, std::map<int, Place>& columns, std::map<int, Place>& rows) {
    auto own_row = rows.find(row);
    if (own_row == rows.end()) own_row = rows.emplace(row, PlaceOfRow(row % attrs_.rows, row / attrs_.rows)).first;
    auto own_column = columns.find(column);
    if (own_column == columns.end()) own_column = columns.emplace(column, PlaceAlong(0, column)).first;
    return {b_.CreateAdd(own_row->second.address, own_column->second.address),
            b_.CreateAnd(own_row->second.inside, own_column->second.inside)};
  }

  Place PlaceOfRow(int row, int plane) {
    Value* image = b_.CreateMul(image_, e_.C64(bytes_));
    Place place{b_.CreateAdd(cx_.Param(Binding::kBaseA), image), row_inside_};
    const int taps[] = {0, row, plane};
    for (int d = 1; d < dimensions_; ++d) {
      const Place along = PlaceAlong(d, taps[d]);
      place = {b_.CreateAdd(place.address, along.address), b_.CreateAnd(place.inside, along.inside)};
    }
    return place;
  }

  // The bytes from the image's edge to where tap `tap` of a dimension reads, and whether that is inside.
  Place PlaceAlong(int d, int tap) {
    const ir::SpatialBindings& dimension = ir::kSpatialBindings[d];
    Value* at = b_.CreateAdd(start_[d], b_.CreateMul(e_.C32(tap), cx_.Param(dimension.dilation)));
    Value* distance = b_.CreateMul(b_.CreateSExt(at, e_.I64()), cx_.Param(DistanceOf(d)));
    return {b_.CreateMul(distance, e_.C64(bytes_)), b_.CreateICmpULT(at, cx_.Param(dimension.extent))};
  }

  // The 16 bytes of the (tap, channel) pairs from `k` on.
  std::vector<Value*> LoadChunk(Value* k) {
    if (attrs_.vector == chunk_elements_) {
      const Place place = PlaceOf(k);
      return e_.LoadGlobal(place.address, kChunkBytes / 4, place.inside);
    }
    std::vector<Value*> elements;
    for (int i = 0; i < chunk_elements_; ++i) {
      const Place place = PlaceOf(b_.CreateAdd(k, e_.C32(i)));
      elements.push_back(e_.LoadGlobalElement(bytes_, place.address, place.inside));
    }
    return e_.JoinElements(bytes_, elements);
  }

  Value* Swizzled(Value* row, Value* column) {
    return e_.TileOffset(layout_, row, b_.CreateMul(column, e_.C32(bytes_)));
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const ir::GatherAttrs& attrs_;
  const int bytes_;           // of an element
  const int chunk_elements_;  // of 16 bytes
  int dimensions_ = 2;
  Value* group_channel_ = nullptr;
  Value* row_inside_ = nullptr;
  Value* start_[3] = {};
  Value* image_ = nullptr;
};

}  // namespace

void EmitGatherPixels(const RoleContext& cx, const ir::SharedLayout& layout, const ir::GatherAttrs& attrs,
                      Value* tile_base, Value* inner, Value* position, Value* group) {
  LS_CHECK(layout.KMajor(), "gathered tiles are K-major");
  PixelGather(cx, layout, attrs).Emit(tile_base, inner, position, group);
}

}  // namespace laneshift::compiler
