// A depthwise convolution on CUDA cores. A lane has eight channels, 16 bytes of a pixel, at a run of adjacent outputs.
// For each row of the filter it reads every pixel of its line that an output of the run is under from shared memory,
// once, and multiplies it by all taps that meet it. The sums of an output get their products in the order of the taps.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "compiler/emit/emit_place.h"
#include "compiler/emit/emit_role.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

class DepthwiseEmitter {
 public:
  // `phases`: of the tile along h and d, where strides divide.
  DepthwiseEmitter(const RoleContext& cx, const ir::SharedLayout& filters, const ir::DepthwiseAttrs& attrs,
                   Value* filters_base, Value* pixels_base, Value* row, std::vector<Value*> phases)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        filters_(filters),
        attrs_(attrs),
        filters_base_(filters_base),
        pixels_base_(pixels_base),
        phases_(std::move(phases)),
        layout_{attrs.fragment, cx.program.tile_n},
        channels_(layout_.Facts().run),
        outputs_(layout_.Facts().rows_of_lane),
        index_(cx, layout_, row, e_.C32(0)) {}

  Fragment Emit() {
    for (int j = 0; j < layout_.Registers(); ++j)
      sums_.push_back(e_.NewVariable(e_.F32(), llvm::ConstantFP::get(e_.F32(), 0)));
    for (const Variable& sum : sums_) e_.Store(sum, llvm::ConstantFP::get(e_.F32(), 0));
    FindFirstPixel();
    if (attrs_.planes) {
      e_.For(e_.C32(0), Taps(2), 1, [&](Value* t) { AlongTap(2, t, start_, [&](Value* at) { AddPlane(t, at); }); });
    } else {
      AddPlane(e_.C32(0), start_);
    }
    Fragment fragment{layout_, {}};
    for (const Variable& sum : sums_) fragment.values.push_back(e_.Load(sum));
    return fragment;
  }

 private:
  // Dimensions are w, h, d.
  Value* Taps(size_t d) const { return cx_.Param(ir::kSpatialBindings[d].taps); }
  // Bytes of the tile from one pixel to the next.
  Value* Step(size_t d) const {
    const int pixels[] = {1, attrs_.line, attrs_.line * attrs_.lines};
    return e_.C32(static_cast<uint32_t>(pixels[d] * cx_.program.tile_n * filters_.ElementBytes()));
  }

  // The pixel under the first tap of the lane's first output; where strides divide, along w only.
  void FindFirstPixel() {
    Value* columns = e_.C32(static_cast<uint32_t>(cx_.program.box_columns));
    Value* column = b_.CreateURem(index_.first_row, columns);
    line_ = b_.CreateUDiv(index_.first_row, columns);
    Value* stride = e_.C32(static_cast<uint32_t>(attrs_.stride));
    Value* pixel = attrs_.divides ? b_.CreateUDiv(column, stride) : b_.CreateMul(column, stride);
    start_ = b_.CreateAdd(b_.CreateMul(pixel, Step(0)),
                          b_.CreateMul(index_.lane_column, e_.C32(static_cast<uint32_t>(filters_.ElementBytes()))));
    if (attrs_.divides) return;
    Value* first = b_.CreateMul(line_, cx_.Param(ir::kSpatialBindings[1].stride));
    start_ = b_.CreateAdd(start_, b_.CreateMul(first, Step(1)));
  }

  // Writes what uses the pixels under a tap along `d`: they are as far from `start` as the result is. Where strides
  // divide, the tap may meet no pixel of the lane.
  template <typename Use>
  void AlongTap(size_t d, Value* tap, Value* start, const Use& use) {
    Value* distance = b_.CreateMul(tap, cx_.Param(ir::kSpatialBindings[d].dilation));
    if (!attrs_.divides) return use(b_.CreateAdd(start, b_.CreateMul(distance, Step(d))));
    Value* dividend = b_.CreateAdd(phases_[d - 1], distance);
    if (d == 1) dividend = b_.CreateAdd(dividend, line_);
    Value* stride = cx_.Param(ir::kSpatialBindings[d].stride);
    Value* pixel = b_.CreateUDiv(dividend, stride);
    e_.If(b_.CreateICmpEQ(b_.CreateMul(pixel, stride), dividend),
          [&] { use(b_.CreateAdd(start, b_.CreateMul(pixel, Step(d)))); });
  }

  void AddPlane(Value* t, Value* start) {
    e_.For(e_.C32(0), Taps(1), 1, [&](Value* r) {
      Value* row = attrs_.planes ? b_.CreateAdd(b_.CreateMul(t, Taps(1)), r) : r;
      AlongTap(1, r, start, [&](Value* at) { AddRow(at, row); });
    });
  }

  // The taps of one row of the filter that meet a pixel, and the outputs for which they do.
  struct Meeting {
    int tap, output;
  };

  void AddRow(Value* start, Value* row) {
    std::map<int, std::vector<Meeting>> pixels;  // by the distance from the first one
    for (int output = 0; output < outputs_; ++output) {
      for (int tap = 0; tap < attrs_.columns; ++tap) {
        const int pixel = attrs_.PixelUnder(output, tap);
        if (pixel >= 0) pixels[pixel].push_back({tap, output});
      }
    }
    const std::vector<std::vector<Value*>> taps = LoadTaps(row);
    Value* const line = e_.Offset(pixels_base_, start);
    for (auto at = pixels.begin(); at != pixels.end();) {
      // So many loads at once hide the latency of shared memory; more would need more registers than a lane has.
      std::vector<std::vector<Value*>> words;
      const auto begin = at;
      for (; at != pixels.end() && words.size() < ir::kMostPixelsAtOnce; ++at) {
        const int bytes = at->first * cx_.program.tile_n * filters_.ElementBytes();
        words.push_back(e_.LoadShared(e_.Offset(line, e_.C32(static_cast<uint32_t>(bytes)))));
      }
      size_t loaded = 0;
      for (auto pixel = begin; pixel != at; ++pixel) {
        const std::vector<Value*> values = e_.WidenWords(cx_.program.operand_type, words[loaded++]);
        for (const Meeting& meeting : pixel->second) Multiply(values, taps[static_cast<size_t>(meeting.tap)], meeting);
      }
    }
  }

  // Those of a row of the filter, for the lane's channels.
  std::vector<std::vector<Value*>> LoadTaps(Value* row) {
    Value* first = b_.CreateMul(row, e_.C32(static_cast<uint32_t>(attrs_.columns)));
    if (attrs_.reversed) first = b_.CreateSub(b_.CreateSub(cx_.Param(Binding::kK), e_.C32(1)), first);
    Value* byte = b_.CreateMul(index_.lane_column, e_.C32(static_cast<uint32_t>(filters_.ElementBytes())));
    Value* const from = e_.Offset(filters_base_, e_.TileOffset(filters_, first, byte));
    std::vector<std::vector<Value*>> taps;
    for (int tap = 0; tap < attrs_.columns; ++tap) {
      const int distance = (attrs_.reversed ? -tap : tap) * filters_.Span();
      taps.push_back(
          e_.WidenWords(filters_.type, e_.LoadShared(e_.Offset(from, e_.C32(static_cast<uint32_t>(distance))))));
    }
    return taps;
  }

  void Multiply(const std::vector<Value*>& pixel, const std::vector<Value*>& tap, const Meeting& meeting) {
    for (int channel = 0; channel < channels_; ++channel) {
      const auto i = static_cast<size_t>(channel);
      const Variable& sum = sums_[static_cast<size_t>(meeting.output * channels_ + channel)];
      e_.Store(sum, b_.CreateIntrinsic(llvm::Intrinsic::fma, {e_.F32()}, {pixel[i], tap[i], e_.Load(sum)}));
    }
  }

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& filters_;
  const ir::DepthwiseAttrs& attrs_;
  Value *const filters_base_, *const pixels_base_;
  const std::vector<Value*> phases_;
  const ir::FragmentLayout layout_;
  const int channels_, outputs_;  // of a lane
  const ElementIndex index_;
  std::vector<Variable> sums_;  // in the order of the fragment's registers
  Value* line_ = nullptr;       // of the tile's outputs, that the lane's are in
  Value* start_ = nullptr;      // bytes from the tile's first pixel to the lane's
};

}  // namespace

void RoleEmitter::Depthwise(const ir::Op& op) {
  const auto& attrs = op.As<ir::DepthwiseAttrs>();
  const Slot &pixels = SlotOf(op), &filters = SlotOf(op, 1);
  std::vector<Value*> phases;
  for (size_t i = 3; i < op.operands.size(); ++i) phases.push_back(Index(op, static_cast<int>(i)));
  fragments_[op.result] = DepthwiseEmitter(cx_, LayoutOf(filters, attrs.tile), attrs, Tile(filters, attrs.tile),
                                           Tile(pixels, 0), Index(op, 2), std::move(phases))
                              .Emit();
}

}  // namespace laneshift::compiler
