#include "compiler/build/k_loop.h"

namespace laneshift::compiler {

using ir::Binding;
using ir::Builder;
using ir::ValueId;

namespace {

ValueId TapsAlong(Builder& b, int dimension) { return b.ParamValue(ir::kSpatialBindings[dimension].taps); }

}  // namespace

ValueId KLoop::BlocksOfRun(Builder& b) const { return b.CeilDiv({b.ParamValue(Binding::kK), b.Constant(tile_k)}); }

ValueId KLoop::Blocks(Builder& b) const {
  ValueId blocks = BlocksOfRun(b);
  for (int d = first_dimension; d < dimensions; ++d) blocks = b.Mul({blocks, TapsAlong(b, d)});
  return blocks;
}

void KLoop::ForEachNumber(Builder& b, const Corner& corner, const std::function<void(ValueId)>& write) const {
  const ValueId end = EndOf(b, corner);
  ForEach(b, First(b, corner), end, write);
}

ValueId KLoop::First(Builder& b, const Corner& corner) { return corner.IsPart() ? corner.first : b.Constant(0); }

ValueId KLoop::IsLater(Builder& b, const Corner& corner, ValueId number) { return b.Less({First(b, corner), number}); }

void KLoop::ForEachBlock(Builder& b, const Corner& corner, const std::function<void(const KBlock&)>& write) const {
  for (int known = 0; known < unrolled; ++known) write({.known = known});
  if (unrolled > 0) return;
  if (corner.HasPartOfK()) {
    // Blocks end where the part does, so that it is its first block that reaches beyond.
    const ValueId before = b.Sub({corner.part_length, b.Mul({corner.part_blocks, b.Constant(tile_k)})});
    return ForEachNumber(b, corner, [&](ValueId number) {
      write({.number = number, .first = b.Add({before, b.Mul({number, b.Constant(tile_k)})})});
    });
  }
  if (!HasTaps()) {
    return ForEachNumber(b, corner, [&](ValueId number) {
      write({.number = number, .first = b.Mul({number, b.Constant(tile_k)})});
    });
  }
  std::vector<ValueId> taps(static_cast<size_t>(dimensions), ir::kNoValue);
  if (!corner.IsPart()) return LoopOverTaps(b, taps, dimensions - 1, write);
  // A section begins anywhere: the iterations in a row, each taken apart.
  ForEachNumber(b, corner, [&](ValueId iteration) {
    const ValueId blocks = BlocksOfRun(b);
    const ValueId number = b.Rem({iteration, blocks});
    const ValueId first = b.Mul({number, b.Constant(tile_k)});
    ValueId rest = b.Div({iteration, blocks});
    for (int d = first_dimension; d < dimensions; ++d) {
      const ValueId extent = TapsAlong(b, d);
      taps[static_cast<size_t>(d)] = b.Rem({rest, extent});
      rest = b.Div({rest, extent});
    }
    write({.taps = taps, .number = number, .first = first, .later = IsLater(b, corner, iteration)});
  });
}

void KLoop::LoopOverTaps(Builder& b, std::vector<ValueId>& taps, int dimension,
                         const std::function<void(const KBlock&)>& write) const {
  if (dimension >= first_dimension) {
    return ForEach(b, TapsAlong(b, dimension), [&](ValueId tap) {
      taps[static_cast<size_t>(dimension)] = tap;
      LoopOverTaps(b, taps, dimension - 1, write);
    });
  }
  ForEach(b, BlocksOfRun(b), [&](ValueId number) {
    ValueId before = number;  // positive after the first iteration
    for (size_t d = static_cast<size_t>(first_dimension); d < taps.size(); ++d) before = b.Add({before, taps[d]});
    const ValueId first = b.Mul({number, b.Constant(tile_k)});
    write({.taps = taps, .number = number, .first = first, .later = b.Less({b.Constant(0), before})});
  });
}

ValueId KLoop::TapNumber(Builder& b, const KBlock& block, ValueId column) const {
  ValueId number = block.taps.back();
  for (int d = dimensions - 1; d-- > 1;) {
    number = b.Add({b.Mul({number, TapsAlong(b, d)}), block.taps[static_cast<size_t>(d)]});
  }
  return b.Add({b.Mul({number, b.ParamValue(Binding::kTapsS)}), column});
}

std::vector<ValueId> KLoop::TapsOfNumber(Builder& b, ValueId number) const {
  std::vector<ValueId> taps;
  for (int d = 0; d < dimensions; ++d) {
    const ValueId extent = TapsAlong(b, d);
    taps.push_back(b.Rem({number, extent}));
    number = b.Div({number, extent});
  }
  return taps;
}

ValueId KLoop::Taps(Builder& b) const {
  ValueId taps = b.ParamValue(Binding::kTapsS);
  for (int d = 1; d < dimensions; ++d) taps = b.Mul({taps, TapsAlong(b, d)});
  return taps;
}

ValueId KLoop::NumberIn(Builder& b, const KBlock& block, ValueId tap) const {
  return b.Add({b.Mul({tap, BlocksOfRun(b)}), block.number});
}

}  // namespace laneshift::compiler
