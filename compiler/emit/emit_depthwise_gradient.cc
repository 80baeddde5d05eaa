// The gradient of the filters of a depthwise convolution on CUDA cores. A lane has eight channels, 16 bytes of a pixel.
// It reads the gradients of y of a run of adjacent positions, and for each of its rows of the filter every pixel of x
// that they lie over, once, and multiplies it by all gradients that meet it at a tap; the sums of the taps stay in
// registers from box to box. In the end the lanes of a warp add their sums.
#include <map>
#include <utility>
#include <vector>

#include "base/integer_math.h"
#include "compiler/emit/emit_program.h"
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

constexpr int kChannelsOfLane = ir::DepthwiseGradientAttrs::kChannels;
constexpr uint32_t kLanesOfPixel = 8, kRunsOfWarp = 4;  // that read a pixel, and adjacent runs of positions

// What a warp has: rows of the filter from `first_row` on, in one of the copies of the sums.
class TapsEmitter {
 public:
  // `sums`: row by row, tap by tap, channel by channel.
  TapsEmitter(const RoleContext& cx, const ir::DepthwiseGradientAttrs& attrs, const std::vector<Variable>& sums,
              Value* pass)
      : cx_(cx), e_(cx.e), b_(cx.e.ir()), attrs_(attrs), sums_(sums), copies_(attrs.Copies(cx.threads / kWarpThreads)) {
    Value* groups = e_.C32(static_cast<uint32_t>(attrs_.groups));
    Value* warps = e_.C32(static_cast<uint32_t>(cx.threads / kWarpThreads));
    Value* unit = b_.CreateAdd(b_.CreateMul(pass, warps), cx_.warp);
    first_row_ = b_.CreateMul(b_.CreateURem(unit, groups), e_.C32(static_cast<uint32_t>(attrs_.rows)));
    copy_ = b_.CreateUDiv(unit, groups);
    lane_channel_ = b_.CreateMul(b_.CreateURem(cx_.lane, e_.C32(kLanesOfPixel)), e_.C32(kChannelsOfLane));
  }

 protected:
  // Writes what the warps that have a copy do.
  template <typename Write>
  void IfWorks(const Write& write) const {
    e_.If(b_.CreateICmpULT(copy_, e_.C32(static_cast<uint32_t>(copies_))), write);
  }
  Value* RowsOfFilter() const {
    Value* rows = cx_.Param(Binding::kTapsR);
    return attrs_.planes ? b_.CreateMul(rows, cx_.Param(Binding::kTapsT)) : rows;
  }
  const Variable& SumOf(int tap, int channel) const {
    return sums_[static_cast<size_t>(tap * kChannelsOfLane + channel)];
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::DepthwiseGradientAttrs& attrs_;
  const std::vector<Variable>& sums_;
  const int copies_;
  Value *first_row_, *copy_, *lane_channel_;
};

// The positions of a box.
class TapsAdder : TapsEmitter {
 public:
  struct Box {
    Value* base;
    const ir::SharedLayout& layout;
  };
  TapsAdder(const RoleContext& cx, const ir::DepthwiseGradientAttrs& attrs, const std::vector<Variable>& sums,
            Value* pass, const Box& gradients, const Box& pixels)
      : TapsEmitter(cx, attrs, sums, pass), gradients_(gradients), pixels_(pixels) {}

  // Outputs of the image from the box's first one on.
  void Emit(Value* columns, Value* lines) {
    IfWorks([&] {
      Value* lane_byte = b_.CreateMul(lane_channel_, e_.C32(static_cast<uint32_t>(pixels_.layout.ElementBytes())));
      const std::vector<Value*> rows = RowOffsets();
      const int runs = gradients_.layout.outer / attrs_.run;
      const int steps = base::CeilDiv(runs, static_cast<int>(kRunsOfWarp));
      e_.For(copy_, e_.C32(static_cast<uint32_t>(steps)), copies_, [&](Value* step) {
        Value* of_warp = b_.CreateUDiv(cx_.lane, e_.C32(kLanesOfPixel));
        Value* number = b_.CreateAdd(b_.CreateMul(step, e_.C32(kRunsOfWarp)), of_warp);
        Value* across = e_.C32(static_cast<uint32_t>(attrs_.outputs / attrs_.run));
        Value* line = b_.CreateUDiv(number, across);
        Value* column = b_.CreateMul(b_.CreateURem(number, across), e_.C32(static_cast<uint32_t>(attrs_.run)));
        Value* inside = b_.CreateAnd(b_.CreateICmpULT(line, lines), b_.CreateICmpULT(column, columns));
        if (runs % static_cast<int>(kRunsOfWarp) != 0)
          inside = b_.CreateAnd(inside, b_.CreateICmpULT(number, e_.C32(static_cast<uint32_t>(runs))));
        Value* left = b_.CreateSub(columns, column);
        const Place place = PlaceOf(line, column, lane_byte);
        AddRun(place, rows, inside, left);
      });
    });
  }

 private:
  // Of a lane's next position: bytes from the beginning of both tiles.
  struct Place {
    Value *gradient, *pixel;
  };
  Value* Pixels(int count) const {
    return e_.C32(static_cast<uint32_t>(count * cx_.program.tile_m * pixels_.layout.ElementBytes()));
  }
  Place PlaceOf(Value* line, Value* column, Value* lane_byte) const {
    Value* gradient = b_.CreateAdd(b_.CreateMul(line, Pixels(attrs_.outputs)), b_.CreateMul(column, Pixels(1)));
    Value* down = b_.CreateMul(line, cx_.Param(Binding::kConvStrideH));
    Value* pixel = b_.CreateAdd(b_.CreateMul(down, Pixels(attrs_.line)), b_.CreateMul(column, Pixels(attrs_.stride)));
    return {b_.CreateAdd(gradient, lane_byte), b_.CreateAdd(pixel, lane_byte)};
  }
  Place Behind(Place place, Value* outputs) const {
    place.gradient = b_.CreateAdd(place.gradient, b_.CreateMul(outputs, Pixels(1)));
    place.pixel = b_.CreateAdd(place.pixel, b_.CreateMul(outputs, Pixels(attrs_.stride)));
    return place;
  }
  // For each of the warp's rows of the filter, bytes from a pixel under the first row; for rows that the filter does
  // not have, 0.
  std::vector<Value*> RowOffsets() const {
    std::vector<Value*> offsets;
    for (int row = 0; row < attrs_.rows; ++row) {
      Value* number = b_.CreateAdd(first_row_, e_.C32(static_cast<uint32_t>(row)));
      Value* taps = cx_.Param(Binding::kTapsR);
      Value* of_plane = attrs_.planes ? b_.CreateURem(number, taps) : number;
      Value* offset = b_.CreateMul(b_.CreateMul(of_plane, cx_.Param(Binding::kDilationH)), Pixels(attrs_.line));
      if (attrs_.planes) {
        Value* plane = b_.CreateMul(b_.CreateUDiv(number, taps), cx_.Param(Binding::kDilationD));
        offset = b_.CreateAdd(offset, b_.CreateMul(plane, Pixels(attrs_.line * attrs_.lines)));
      }
      offsets.push_back(b_.CreateSelect(b_.CreateICmpULT(number, RowsOfFilter()), offset, e_.C32(0)));
    }
    return offsets;
  }

  // A pixel of x that only positions after the line's end meet must not be multiplied, not even by 0, as it may be
  // infinite: the last run of a line goes position by position where it is not whole.
  void AddRun(const Place& place, const std::vector<Value*>& rows, Value* inside, Value* left) const {
    if (attrs_.whole) return e_.If(inside, [&] { AddOutputs(place, rows, attrs_.run); });
    Value* whole = b_.CreateICmpULE(e_.C32(static_cast<uint32_t>(attrs_.run)), left);
    e_.If(b_.CreateAnd(inside, whole), [&] { AddOutputs(place, rows, attrs_.run); });
    e_.If(b_.CreateAnd(inside, b_.CreateNot(whole)),
          [&] { e_.For(e_.C32(0), left, 1, [&](Value* output) { AddOutputs(Behind(place, output), rows, 1); }); });
  }

  // The column of the filter at which a pixel of x meets an output.
  struct Meeting {
    int column, output;
  };
  // `count` adjacent outputs, all of them in the line.
  void AddOutputs(const Place& place, const std::vector<Value*>& rows, int count) const {
    std::vector<std::vector<Value*>> gradients;
    for (int i = 0; i < count; ++i) gradients.push_back(Load(e_.Offset(gradients_.base, place.gradient), i));
    std::map<int, std::vector<Meeting>> pixels;  // by the distance from the first one
    for (int output = 0; output < count; ++output) {
      for (int column = 0; column < attrs_.columns; ++column)
        pixels[output * attrs_.stride + column * attrs_.dilation].push_back({column, output});
    }
    for (int row = 0; row < attrs_.rows; ++row) {
      Value* const line = e_.Offset(pixels_.base, b_.CreateAdd(place.pixel, rows[static_cast<size_t>(row)]));
      for (const auto& [distance, meetings] : pixels) {
        const std::vector<Value*> pixel = Load(line, distance);
        for (const Meeting& meeting : meetings) {
          Multiply(pixel, gradients[static_cast<size_t>(meeting.output)], row * attrs_.columns + meeting.column);
        }
      }
    }
  }
  std::vector<Value*> Load(Value* from, int pixel) const {
    return e_.WidenWords(cx_.program.operand_type, e_.LoadShared(e_.Offset(from, Pixels(pixel))));
  }
  void Multiply(const std::vector<Value*>& pixel, const std::vector<Value*>& gradient, int tap) const {
    for (int channel = 0; channel < kChannelsOfLane; ++channel) {
      const auto i = static_cast<size_t>(channel);
      const Variable& sum = SumOf(tap, channel);
      e_.Store(sum, b_.CreateIntrinsic(llvm::Intrinsic::fma, {e_.F32()}, {pixel[i], gradient[i], e_.Load(sum)}));
    }
  }

  const Box gradients_, pixels_;
};

class TapsStorer : TapsEmitter {
 public:
  TapsStorer(const RoleContext& cx, const ir::DepthwiseGradientAttrs& attrs, const std::vector<Variable>& sums,
             Value* pass, const ir::SharedLayout& layout, Value* tile)
      : TapsEmitter(cx, attrs, sums, pass), layout_(layout), tile_(tile) {}

  void Emit() const {
    IfWorks([&] {
      AddLanes();
      StoreSums();
    });
  }

 private:
  // The runs of the warp.
  void AddLanes() const {
    for (const Variable& sum : sums_) {
      for (int lanes = static_cast<int>(kLanesOfPixel); lanes < kWarpThreads; lanes *= 2) {
        Value* own = e_.Load(sum);
        Value* other = e_.ExchangeLanes(b_.CreateBitCast(own, e_.I32()), lanes);
        e_.Store(sum, b_.CreateFAdd(own, b_.CreateBitCast(other, e_.F32())));
      }
    }
  }

  // All runs have the same sums: the lanes of the first one store them.
  void StoreSums() const {
    Value* is_first = b_.CreateICmpULT(cx_.lane, e_.C32(kLanesOfPixel));
    Value* of_copy = b_.CreateMul(copy_, e_.C32(static_cast<uint32_t>(cx_.program.tile_n)));
    for (int row = 0; row < attrs_.rows; ++row) {
      Value* number = b_.CreateAdd(first_row_, e_.C32(static_cast<uint32_t>(row)));
      Value* exists = b_.CreateICmpULT(number, RowsOfFilter());
      e_.If(b_.CreateAnd(is_first, exists), [&] {
        Value* tap = b_.CreateMul(number, e_.C32(static_cast<uint32_t>(attrs_.columns)));
        for (int column = 0; column < attrs_.columns; ++column)
          StoreTap(b_.CreateAdd(b_.CreateAdd(of_copy, tap), e_.C32(static_cast<uint32_t>(column))),
                   row * attrs_.columns + column);
      });
    }
  }
  void StoreTap(Value* line, int tap) const {
    constexpr int kWordsOfStore = 4;  // of one store
    for (int first = 0; first < kChannelsOfLane; first += kWordsOfStore) {
      std::vector<Value*> words;
      for (int i = 0; i < kWordsOfStore; ++i)
        words.push_back(b_.CreateBitCast(e_.Load(SumOf(tap, first + i)), e_.I32()));
      Value* channel = b_.CreateAdd(lane_channel_, e_.C32(static_cast<uint32_t>(first)));
      Value* byte = b_.CreateMul(channel, e_.C32(static_cast<uint32_t>(layout_.ElementBytes())));
      e_.StoreShared(e_.Offset(tile_, e_.TileOffset(layout_, line, byte)), words);
    }
  }

  const ir::SharedLayout& layout_;
  Value* const tile_;
};

}  // namespace

void RoleEmitter::ClearTaps(const ir::Op& op) {
  while (taps_.size() < static_cast<size_t>(op.As<ir::DepthwiseGradientAttrs>().Sums()))
    taps_.push_back(e_.NewVariable(e_.F32(), Zero()));
  for (const Variable& sum : taps_) e_.Store(sum, Zero());
}

void RoleEmitter::AddTaps(const ir::Op& op) {
  const Slot& slot = SlotOf(op);
  TapsAdder(cx_, op.As<ir::DepthwiseGradientAttrs>(), taps_, Index(op, 3), {Tile(slot, 0), LayoutOf(slot, 0)},
            {Tile(slot, 1), LayoutOf(slot, 1)})
      .Emit(Index(op, 1), Index(op, 2));
}

void RoleEmitter::StoreTaps(const ir::Op& op) {
  const Slot& slot = SlotOf(op);
  TapsStorer(cx_, op.As<ir::DepthwiseGradientAttrs>(), taps_, Index(op, 1), LayoutOf(slot, 0), Tile(slot, 0)).Emit();
}

}  // namespace laneshift::compiler
