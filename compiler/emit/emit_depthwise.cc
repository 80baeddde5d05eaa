// A depthwise convolution on CUDA cores. A lane has eight channels, 16 bytes of a pixel, at a run of adjacent outputs.
// For each row of the filter it loads every pixel of its line that an output of the run is under, once, and multiplies
// it by all taps that meet it. The sums of an output get their products in the order of the taps.
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
  DepthwiseEmitter(const RoleContext& cx, const ir::SharedLayout& filters, const ir::DepthwiseAttrs& attrs,
                   Value* filters_base, Value* row, Value* column)
      : cx_(cx),
        e_(cx.e),
        b_(cx.e.ir()),
        filters_(filters),
        attrs_(attrs),
        filters_base_(filters_base),
        layout_{attrs.fragment, cx.program.tile_n},
        channels_(layout_.Facts().run),
        outputs_(layout_.Facts().rows_of_lane),
        dimensions_(attrs.planes ? 3 : 2),
        index_(cx, layout_, row, column) {}

  Fragment Emit() {
    for (int j = 0; j < layout_.Registers(); ++j)
      sums_.push_back(e_.NewVariable(e_.F32(), llvm::ConstantFP::get(e_.F32(), 0)));
    for (const Variable& sum : sums_) e_.Store(sum, llvm::ConstantFP::get(e_.F32(), 0));
    FindFirstPixel();
    if (dimensions_ == 3) {
      e_.For(e_.C32(0), Taps(2), 1, [&](Value* t) { AddPlane(t); });
    } else {
      AddPlane(e_.C32(0));
    }
    Fragment fragment{layout_, {}};
    for (const Variable& sum : sums_) fragment.values.push_back(e_.Load(sum));
    return fragment;
  }

 private:
  // Dimensions are w, h, d.
  Value* Taps(size_t d) const { return cx_.Param(ir::kSpatialBindings[d].taps); }
  Value* Along(size_t d, Value* pixels) const {
    constexpr Binding kPitches[] = {Binding::kPitchA, Binding::kRowA, Binding::kPlaneA};
    return b_.CreateMul(b_.CreateSExt(pixels, e_.I64()), cx_.Param(kPitches[d]));
  }
  Value* Bytes(Value* elements) const {
    return b_.CreateMul(elements, e_.C64(static_cast<uint64_t>(DataTypeBytes(cx_.program.operand_type))));
  }
  Value* IsInImage(size_t d, Value* pixel) const {
    return b_.CreateICmpULT(pixel, cx_.Param(ir::kSpatialBindings[d].extent));
  }

  // Whether a dimension's strides divide, and so which of its taps meet a pixel is known at run time only. Along w it
  // is known for each row of the run.
  bool Divides(size_t d) const { return attrs_.divides && d > 0; }

  // The pixel under the first tap of the lane's first output. Where strides divide, `first_` is still to be divided,
  // except along w.
  void FindFirstPixel() {
    Value* rest = index_.first_row;
    Value* offset = b_.CreateZExt(index_.first_column, e_.I64());
    for (size_t d = 0; d < dimensions_; ++d) {
      const ir::SpatialBindings& of = ir::kSpatialBindings[d];
      Value* output = b_.CreateURem(rest, cx_.Param(of.outputs));
      if (attrs_.divides) {
        first_[d] = b_.CreateSub(output, cx_.Param(of.pad));
        if (d == 0) first_[d] = DividedByStride(first_[d]);
      } else {
        first_[d] = b_.CreateSub(b_.CreateMul(output, cx_.Param(of.stride)), cx_.Param(of.pad));
      }
      if (!Divides(d)) offset = b_.CreateAdd(offset, Along(d, first_[d]));
      rest = b_.CreateUDiv(rest, cx_.Param(of.outputs));
    }
    Value* image = b_.CreateMul(b_.CreateZExt(rest, e_.I64()), cx_.Param(Binding::kStrideA));
    start_ = b_.CreateAdd(cx_.Param(Binding::kBaseA), Bytes(b_.CreateAdd(offset, image)));
    inside_ = b_.CreateAnd(b_.CreateICmpULT(index_.first_row, cx_.Param(Binding::kM)),
                           b_.CreateICmpULT(index_.first_column, cx_.Param(Binding::kN)));
  }

  // Along w a run begins with the same phase everywhere, so that there is no remainder.
  Value* DividedByStride(Value* distance) const {
    Value* whole = b_.CreateSub(distance, e_.C32(static_cast<uint32_t>(attrs_.phase)));
    return b_.CreateExactSDiv(whole, e_.C32(static_cast<uint32_t>(attrs_.stride)));
  }

  // A tap along dimension `d`: pixels from the lane's start to the pixel under it. Where strides divide, that is the
  // quotient of `dividend`.
  struct TapPlace {
    Value *distance, *dividend;
  };
  TapPlace PlaceOf(size_t d, Value* tap) const {
    Value* distance = b_.CreateMul(tap, cx_.Param(ir::kSpatialBindings[d].dilation));
    if (!Divides(d)) return {distance, nullptr};
    Value* dividend = b_.CreateAdd(first_[d], distance);
    return {b_.CreateSDiv(dividend, cx_.Param(ir::kSpatialBindings[d].stride)), dividend};
  }
  // Whether the tap meets a pixel of the image.
  Value* IsUnder(size_t d, const TapPlace& tap, Value* inside) const {
    if (!Divides(d)) return b_.CreateAnd(inside, IsInImage(d, b_.CreateAdd(first_[d], tap.distance)));
    Value* product = b_.CreateMul(tap.distance, cx_.Param(ir::kSpatialBindings[d].stride));
    inside = b_.CreateAnd(inside, b_.CreateICmpEQ(product, tap.dividend));
    return b_.CreateAnd(inside, IsInImage(d, tap.distance));
  }

  void AddPlane(Value* t) {
    Value* start = start_;
    Value* inside = inside_;
    if (dimensions_ == 3) {
      const TapPlace plane = PlaceOf(2, t);
      start = b_.CreateAdd(start, Bytes(Along(2, plane.distance)));
      inside = IsUnder(2, plane, inside);
    }
    e_.For(e_.C32(0), Taps(1), 1, [&](Value* r) {
      const TapPlace place = PlaceOf(1, r);
      Value* in_row = IsUnder(1, place, inside);
      Value* row = dimensions_ == 3 ? b_.CreateAdd(b_.CreateMul(t, Taps(1)), r) : r;
      Value* line = b_.CreateAdd(start, Bytes(Along(1, place.distance)));
      if (!attrs_.divides) return AddRow(line, in_row, row);
      // A row of the filter may meet no pixel of a lane.
      e_.If(in_row, [&] { AddRow(line, in_row, row); });
    });
  }

  // The taps of one row of the filter that meet a pixel, and the outputs for which they do.
  struct Meeting {
    int tap, output;
  };

  void AddRow(Value* start, Value* inside, Value* row) {
    std::map<int, std::vector<Meeting>> pixels;  // by the distance from the first one
    for (int output = 0; output < outputs_; ++output) {
      for (int tap = 0; tap < attrs_.columns; ++tap) {
        const int pixel = attrs_.PixelUnder(output, tap);
        if (pixel >= 0) pixels[pixel].push_back({tap, output});
      }
    }
    const std::vector<std::vector<Value*>> taps = LoadTaps(row);
    for (auto at = pixels.begin(); at != pixels.end();) {
      // So many loads at once hide the latency of memory; more would need more registers than a lane has.
      std::vector<std::vector<Value*>> words;
      const auto begin = at;
      for (; at != pixels.end() && words.size() < ir::kMostPixelsAtOnce; ++at) {
        Value* distance = e_.C32(static_cast<uint32_t>(at->first));
        Value* address = b_.CreateAdd(start, Bytes(Along(0, distance)));
        Value* in_line = b_.CreateAnd(inside, IsInImage(0, b_.CreateAdd(first_[0], distance)));
        words.push_back(e_.LoadGlobal(address, kWordsOfPixel, in_line));
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
    std::vector<std::vector<Value*>> taps;
    for (int tap = 0; tap < attrs_.columns; ++tap) {
      Value* distance = e_.C32(static_cast<uint32_t>(tap));
      Value* number = attrs_.reversed ? b_.CreateSub(first, distance) : b_.CreateAdd(first, distance);
      Value* from = e_.Offset(filters_base_, e_.TileOffset(filters_, number, byte));
      taps.push_back(e_.WidenWords(filters_.type, e_.LoadShared(from)));
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

  static constexpr int kWordsOfPixel = 4;

  const RoleContext& cx_;
  Emitter& e_;
  llvm::IRBuilder<>& b_;
  const ir::SharedLayout& filters_;
  const ir::DepthwiseAttrs& attrs_;
  Value* const filters_base_;
  const ir::FragmentLayout layout_;
  const int channels_, outputs_;  // of a lane
  const size_t dimensions_;
  const ElementIndex index_;
  std::vector<Variable> sums_;                  // in the order of the fragment's registers
  std::array<Value*, 3> first_{};               // pixel under the first tap of the first output, in each dimension
  Value *start_ = nullptr, *inside_ = nullptr;  // its address; whether the lane has outputs
};

}  // namespace

void RoleEmitter::Depthwise(const ir::Op& op) {
  const auto& attrs = op.As<ir::DepthwiseAttrs>();
  const Slot& slot = SlotOf(op);
  fragments_[op.result] =
      DepthwiseEmitter(cx_, LayoutOf(slot, attrs.tile), attrs, Tile(slot, attrs.tile), Index(op, 1), Index(op, 2))
          .Emit();
}

}  // namespace laneshift::compiler
