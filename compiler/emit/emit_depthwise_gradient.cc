// The gradient of the filters of a depthwise convolution on CUDA cores. A lane has eight channels, 16 bytes of a pixel.
// It holds the gradients of y of a run of adjacent positions, and for each of its rows of the filter loads every pixel
// of x that they lie over, once, and multiplies it by all gradients that meet it at a tap; the sums of the taps stay in
// registers. In the end the lanes of a warp add their sums.
#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_role.h"
#include "compiler/legality/check_direct.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Operand;

constexpr int kWordsOfLane = 4, kChannelsOfLane = 8;    // of a pixel
constexpr uint32_t kLanesOfPixel = 8, kRunsOfWarp = 4;  // that read a pixel, and adjacent runs of positions

class DepthwiseGradientEmitter {
 public:
  DepthwiseGradientEmitter(const RoleContext& cx, const ir::SharedLayout& sums, const ir::DepthwiseGradientAttrs& attrs,
                           Value* sums_base, Value* channel, Value* first, Value* end)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        layout_(sums),
        attrs_(attrs),
        sums_base_(sums_base),
        first_(first),
        dimensions_(attrs.planes ? 3 : 2) {
    Value* in_pixel = b_.CreateURem(cx_.lane, e_.C32(kLanesOfPixel));
    lane_channel_ = b_.CreateMul(in_pixel, e_.C32(kChannelsOfLane));
    channel_ = b_.CreateAdd(channel, lane_channel_);
    end_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, cx_.Param(Binding::kK));
    for (int i = 0; i < attrs_.rows * attrs_.columns * kChannelsOfLane; ++i)
      sums_.push_back(e_.NewVariable(e_.F32(), llvm::ConstantFP::get(e_.F32(), 0)));
  }

  void Emit() {
    const int warps = cx_.threads / kWarpThreads, copies = attrs_.Copies(warps);
    e_.For(cx_.warp, e_.C32(static_cast<uint32_t>(attrs_.groups * copies)), warps, [&](Value* unit) {
      Value* groups = e_.C32(static_cast<uint32_t>(attrs_.groups));
      row_ = b_.CreateMul(b_.CreateURem(unit, groups), e_.C32(static_cast<uint32_t>(attrs_.rows)));
      Value* copy = b_.CreateUDiv(unit, groups);
      for (const Variable& sum : sums_) e_.Store(sum, llvm::ConstantFP::get(e_.F32(), 0));
      AddPositions(copy, static_cast<uint32_t>(copies));
      AddLanes();
      StoreSums(copy);
    });
  }

 private:
  Value* Bytes(Value* elements) const {
    return b_.CreateMul(elements, e_.C64(static_cast<uint64_t>(DataTypeBytes(cx_.program.operand_type))));
  }
  Value* Along(Operand operand, size_t d, Value* pixels) const {
    const ir::PixelPitches pitches = ir::PixelPitchesOf(operand);
    const Binding of_dimension[] = {ir::PitchOf(operand), pitches.row, pitches.plane};
    return b_.CreateMul(b_.CreateSExt(pixels, e_.I64()), cx_.Param(of_dimension[d]));
  }
  Value* IsInImage(size_t d, Value* pixel) const {
    return b_.CreateICmpULT(pixel, cx_.Param(ir::kSpatialBindings[d].extent));
  }
  Value* RowsOfFilter() const {
    Value* rows = cx_.Param(Binding::kTapsR);
    return dimensions_ == 3 ? b_.CreateMul(rows, cx_.Param(Binding::kTapsT)) : rows;
  }

  // Of this copy: every run of those that `copies` warps have in turn.
  void AddPositions(Value* copy, uint32_t copies) {
    const auto run = static_cast<uint32_t>(attrs_.run);
    Value* first = b_.CreateAdd(first_, b_.CreateMul(copy, e_.C32(kRunsOfWarp * run)));
    Value* run_of_warp = b_.CreateMul(b_.CreateUDiv(cx_.lane, e_.C32(kLanesOfPixel)), e_.C32(run));
    Value* has_channels = b_.CreateICmpULT(channel_, cx_.Param(Binding::kM));
    e_.For(first, end_, static_cast<int>(copies * kRunsOfWarp * run), [&](Value* position) {
      Value* own = b_.CreateAdd(position, run_of_warp);
      const Place place = FindRun(own);
      Value* inside = b_.CreateAnd(has_channels, b_.CreateICmpULT(own, end_));
      Value* left = b_.CreateSub(cx_.Param(Binding::kOutQ), place.output);
      Value* whole = b_.CreateICmpULE(e_.C32(run), left);
      e_.If(b_.CreateAnd(inside, whole), [&] { AddOutputs(place, attrs_.run); });
      // The last run of a line, position by position: a pixel of x that only positions after the line's end meet must
      // not be multiplied, not even by 0, as it may be infinite.
      e_.If(b_.CreateAnd(inside, b_.CreateNot(whole)),
            [&] { e_.For(e_.C32(0), left, 1, [&](Value* output) { AddOutputs(Behind(place, output), 1); }); });
    });
  }

  // A run: where its first gradient of y is, its column, and where the pixel of x under the first tap is, in bytes and
  // in each dimension.
  struct Place {
    Value *y, *output, *x;
    std::array<Value*, 3> pixel;
  };
  Place FindRun(Value* position) const {
    Value* rest = position;
    Place place{};
    Value* y = b_.CreateZExt(channel_, e_.I64());
    Value* x = y;
    for (size_t d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      Value* output = b_.CreateURem(rest, cx_.Param(of.outputs));
      rest = b_.CreateUDiv(rest, cx_.Param(of.outputs));
      if (d == 0) place.output = output;
      place.pixel[d] = b_.CreateSub(b_.CreateMul(output, cx_.Param(of.stride)), cx_.Param(of.pad));
      y = b_.CreateAdd(y, Along(Operand::kA, d, output));
      x = b_.CreateAdd(x, Along(Operand::kB, d, place.pixel[d]));
    }
    const auto at = [&](Operand operand, Value* offset) {
      Value* image = b_.CreateMul(b_.CreateZExt(rest, e_.I64()), cx_.Param(ir::StrideOf(operand)));
      return b_.CreateAdd(cx_.Param(ir::BaseOf(operand)), Bytes(b_.CreateAdd(offset, image)));
    };
    place.y = at(Operand::kA, y);
    place.x = at(Operand::kB, x);
    return place;
  }
  Place Behind(Place place, Value* outputs) const {
    Value* pixels = b_.CreateMul(outputs, e_.C32(static_cast<uint32_t>(attrs_.stride)));
    place.y = b_.CreateAdd(place.y, Bytes(Along(Operand::kA, 0, outputs)));
    place.x = b_.CreateAdd(place.x, Bytes(Along(Operand::kB, 0, pixels)));
    place.pixel[0] = b_.CreateAdd(place.pixel[0], pixels);
    return place;
  }

  // The tap of the lane at which a pixel of x meets an output.
  struct Meeting {
    int tap, output;
  };
  // Adjacent pixels of a line: by their distance from the first one, what they meet.
  struct Batch {
    int row;  // of the lane's
    std::vector<std::pair<int, std::vector<Meeting>>> pixels;
  };
  std::vector<Batch> BatchesFor(int outputs) const {
    std::vector<Batch> batches;
    for (int row = 0; row < attrs_.rows; ++row) {
      std::map<int, std::vector<Meeting>> pixels;
      for (int output = 0; output < outputs; ++output) {
        for (int column = 0; column < attrs_.columns; ++column) {
          pixels[output * attrs_.stride + column * attrs_.dilation].push_back({row * attrs_.columns + column, output});
        }
      }
      size_t number = 0;
      for (const auto& pixel : pixels) {
        if (number++ % kDirectGradientPixels == 0) batches.push_back({row, {}});
        batches.back().pixels.push_back(pixel);
      }
    }
    return batches;
  }

  // `count` adjacent outputs, all of them in the line. The pixels of a batch are on their way while those of the one
  // before are multiplied.
  void AddOutputs(const Place& place, int count) {
    using Words = std::vector<std::vector<Value*>>;
    Words of_gradients;
    for (int i = 0; i < count; ++i) {
      Value* at = b_.CreateAdd(place.y, Bytes(Along(Operand::kA, 0, e_.C32(static_cast<uint32_t>(i)))));
      of_gradients.push_back(e_.LoadGlobal(at, kWordsOfLane, e_.True()));
    }
    std::vector<Line> lines;
    for (int row = 0; row < attrs_.rows; ++row) lines.push_back(LineOf(place, row));
    const std::vector<Batch> batches = BatchesFor(count);
    const auto load = [&](const Batch& batch) {
      Words words;
      const Line& line = lines[static_cast<size_t>(batch.row)];
      for (const auto& pixel : batch.pixels) words.push_back(LoadPixel(place, line, pixel.first));
      return words;
    };
    Words next = load(batches.front());
    std::vector<std::vector<Value*>> gradients;
    for (const std::vector<Value*>& words : of_gradients)
      gradients.push_back(e_.WidenWords(cx_.program.operand_type, words));
    for (size_t i = 0; i < batches.size(); ++i) {
      const Words current = std::move(next);
      if (i + 1 < batches.size()) next = load(batches[i + 1]);
      for (size_t pixel = 0; pixel < current.size(); ++pixel) {
        const std::vector<Value*> values = e_.WidenWords(cx_.program.operand_type, current[pixel]);
        for (const Meeting& meeting : batches[i].pixels[pixel].second)
          Multiply(values, gradients[static_cast<size_t>(meeting.output)], meeting.tap);
      }
    }
  }

  // The pixels under one of the lane's rows of the filter.
  struct Line {
    Value *start, *inside;
  };
  Line LineOf(const Place& place, int row) const {
    Value* number = b_.CreateAdd(row_, e_.C32(static_cast<uint32_t>(row)));
    Line line{place.x, b_.CreateICmpULT(number, RowsOfFilter())};
    Value* taps = cx_.Param(Binding::kTapsR);
    const std::array<Value*, 3> tap = {nullptr, dimensions_ == 3 ? b_.CreateURem(number, taps) : number,
                                       dimensions_ == 3 ? b_.CreateUDiv(number, taps) : nullptr};
    for (size_t d = 1; d < dimensions_; ++d) {
      Value* distance = b_.CreateMul(tap[d], cx_.Param(ir::kSpatialBindings[d].dilation));
      line.inside = b_.CreateAnd(line.inside, IsInImage(d, b_.CreateAdd(place.pixel[d], distance)));
      line.start = b_.CreateAdd(line.start, Bytes(Along(Operand::kB, d, distance)));
    }
    return line;
  }
  std::vector<Value*> LoadPixel(const Place& place, const Line& line, int pixel) const {
    Value* distance = e_.C32(static_cast<uint32_t>(pixel));
    Value* address = b_.CreateAdd(line.start, Bytes(Along(Operand::kB, 0, distance)));
    Value* inside = b_.CreateAnd(line.inside, IsInImage(0, b_.CreateAdd(place.pixel[0], distance)));
    return e_.LoadGlobal(address, kWordsOfLane, inside);
  }

  void Multiply(const std::vector<Value*>& pixel, const std::vector<Value*>& gradient, int tap) {
    for (size_t i = 0; i < kChannelsOfLane; ++i) {
      const Variable& sum = SumOf(tap, i);
      e_.Store(sum, b_.CreateIntrinsic(llvm::Intrinsic::fma, {e_.F32()}, {pixel[i], gradient[i], e_.Load(sum)}));
    }
  }
  const Variable& SumOf(int tap, size_t channel) const {
    return sums_[static_cast<size_t>(tap) * kChannelsOfLane + channel];
  }

  // The runs of the warp.
  void AddLanes() {
    for (const Variable& sum : sums_) {
      for (int lanes = kLanesOfPixel; lanes < kWarpThreads; lanes *= 2) {
        Value* own = e_.Load(sum);
        Value* other = e_.ExchangeLanes(b_.CreateBitCast(own, e_.I32()), lanes);
        e_.Store(sum, b_.CreateFAdd(own, b_.CreateBitCast(other, e_.F32())));
      }
    }
  }

  // All runs have the same sums: the lanes of the first one store them.
  void StoreSums(Value* copy) {
    Value* is_first = b_.CreateICmpULT(cx_.lane, e_.C32(kLanesOfPixel));
    Value* of_copy = b_.CreateMul(copy, e_.C32(static_cast<uint32_t>(cx_.program.tile_n)));
    for (int row = 0; row < attrs_.rows; ++row) {
      Value* number = b_.CreateAdd(row_, e_.C32(static_cast<uint32_t>(row)));
      Value* exists = b_.CreateICmpULT(number, RowsOfFilter());
      e_.If(b_.CreateAnd(is_first, exists), [&] {
        Value* tap = b_.CreateMul(number, e_.C32(static_cast<uint32_t>(attrs_.columns)));
        for (int column = 0; column < attrs_.columns; ++column)
          StoreTap(b_.CreateAdd(b_.CreateAdd(of_copy, tap), e_.C32(static_cast<uint32_t>(column))),
                   row * attrs_.columns + column);
      });
    }
  }
  void StoreTap(Value* line, int tap) {
    constexpr size_t kWordsOfStore = 4;  // of one store
    for (size_t first = 0; first < kChannelsOfLane; first += kWordsOfStore) {
      std::vector<Value*> words;
      for (size_t i = 0; i < kWordsOfStore; ++i)
        words.push_back(b_.CreateBitCast(e_.Load(SumOf(tap, first + i)), e_.I32()));
      Value* channel = b_.CreateAdd(lane_channel_, e_.C32(static_cast<uint32_t>(first)));
      Value* byte = b_.CreateMul(channel, e_.C32(static_cast<uint32_t>(layout_.ElementBytes())));
      e_.StoreShared(e_.Offset(sums_base_, e_.TileOffset(layout_, line, byte)), words);
    }
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& layout_;
  const ir::DepthwiseGradientAttrs& attrs_;
  Value *const sums_base_, *const first_;
  const size_t dimensions_;
  std::vector<Variable> sums_;                          // row by row, tap by tap, channel by channel
  Value *lane_channel_ = nullptr, *channel_ = nullptr;  // in the tile, and of all
  Value *end_ = nullptr, *row_ = nullptr;  // of the positions; the first one of the filter that is the warp's
};

}  // namespace

void RoleEmitter::DepthwiseGradient(const ir::Op& op) {
  const auto& attrs = op.As<ir::DepthwiseGradientAttrs>();
  const Slot& slot = SlotOf(op);
  DepthwiseGradientEmitter(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2),
                           Index(op, 3))
      .Emit();
}

}  // namespace laneshift::compiler
