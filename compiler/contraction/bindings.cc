#include "compiler/contraction/bindings.h"

#include "base/check.h"
#include "compiler/contraction/im2col_box.h"
#include "compiler/plan/packing.h"
#include "ir/epilogue_steps.h"
#include "ir/metadata_block.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::BindingFamily;
using ir::Operand;
using ir::StoredTensor;

constexpr int64_t kPieceBytes = 16;  // of a packed line

constexpr double Number(int64_t value) { return static_cast<double>(value); }

// Taps of a filter in memory inside of those of a dimension: from one of its taps to the next.
int64_t TapsInside(const StoredTensor& filter, size_t spatial) {
  int64_t taps = 1;
  for (size_t d = spatial + 1; d <= kWidth; ++d) taps *= filter.extents[StoredTensor::kPlane + d];
  return taps;
}
int64_t TapsOf(const StoredTensor& filter) { return filter.extents[StoredTensor::kPlane] * TapsInside(filter, 0); }

// The spatial dimension of a binding of a family that has one for each, width first.
constexpr size_t DimensionOf(Binding binding) { return kWidth - binding.index; }

// The operand whose tensor the map describes.
Operand OperandOf(Binding map) {
  if (map == Binding::kMapEdge) return Operand::kA;
  if (map == Binding::kMapDRest) return Operand::kD;
  if (map.family == BindingFamily::kMapScale || map.family == BindingFamily::kMapMetadata)
    return static_cast<Operand>(map.index);
  LS_CHECK(map.family == BindingFamily::kMap, "no operand has the tensor map ", ir::PrintBinding(map));
  return static_cast<Operand>(map.index);
}

// The same rows, but those `distance` apart are interleaved: an extra dimension of extent 2 before that of the rows,
// which then covers only the first half.
MappedTensor Interleaved(MappedTensor tensor, int64_t distance) {
  tensor.dims[1] -= distance;
  tensor.dims.insert(tensor.dims.begin() + 1, 2);
  tensor.strides.insert(tensor.strides.begin(), distance * tensor.strides[0]);
  tensor.box[1] /= 2;
  tensor.box.insert(tensor.box.begin() + 1, 2);
  return tensor;
}

// Dimensions: the contiguous elements, the `rows` rows, and then matrices or runs of K where there are several.
// A box is one swizzle span wide and the tile's outer extent high: the copy engine fills a tile
// column by column (ir/layout.h).
MappedTensor TiledTensor(const OperandSource& source, int64_t run, int64_t rows, int64_t several,
                         const ir::Param& param) {
  // Copies of several rows of any index need a map of two dimensions.
  if (source.indexed) {
    return {.type = source.type(),
            .dims = {run, rows},
            .strides = {source.Pitch()},
            .box = {param.box.ColumnElements(), param.box.outer}};
  }
  return {.type = source.type(),
          .dims = {run, rows, several},
          .strides = {source.Pitch(), source.Stride()},
          .box = {param.box.ColumnElements(), param.box.outer, 1}};
}

MappedTensor PixelTensor(const OperandSource& source, const Im2colBox& box, bool planes, const ir::Param& param) {
  const StoredTensor& memory = source.memory;
  MappedTensor mapped{.type = source.type(),
                      .dims = {memory.Inner()},
                      .box = {param.box.ColumnElements(), param.box.outer},
                      .im2col = true,
                      .element_strides = {1}};
  const size_t dimensions = planes ? 3 : 2;
  for (size_t d = 0; d < dimensions; ++d) {
    mapped.dims.push_back(memory.extents[StoredTensor::kPixel - d]);
    mapped.strides.push_back(memory.pitches[StoredTensor::kPixel - d]);
    mapped.element_strides.push_back(box.step[d]);
    mapped.lower.push_back(box.lower[d]);
    mapped.upper.push_back(box.upper[d]);
  }
  mapped.dims.push_back(memory.extents[StoredTensor::kImage]);
  mapped.strides.push_back(memory.pitches[StoredTensor::kImage]);
  mapped.element_strides.push_back(1);
  return mapped;
}

// Images by boxes of pixels. Dimensions: elements, columns, rows[, planes], images.
MappedTensor BoxTensor(const OperandSource& source, const Spatial& box, bool planes, const ir::Param& param) {
  const StoredTensor& memory = source.memory;
  MappedTensor mapped{.type = source.type(), .dims = {memory.Inner()}, .box = {param.box.ColumnElements()}};
  const auto add = [&](size_t dimension, int64_t extent) {
    mapped.dims.push_back(memory.extents[dimension]);
    mapped.strides.push_back(memory.pitches[dimension]);
    mapped.box.push_back(extent);
  };
  for (size_t d = 0; d < (planes ? 3 : 2); ++d) add(StoredTensor::kPixel - d, box[kWidth - d]);
  add(StoredTensor::kImage, 1);
  return mapped;
}

// Blocks of positions of windows of packed pixels: windows of adjacent positions overlap. The same dimensions.
MappedTensor WindowTensor(const Contraction& contraction, const OperandSource& source, const ir::Param& param) {
  const ConvGeometry& geometry = contraction.geometry;
  const PixelWindows& windows = contraction.windows;
  const int64_t position = geometry.stride[kWidth] * windows.rows * windows.channels;
  const int64_t plane = windows.image_lines * source.Pitch();
  MappedTensor mapped{
      .type = source.type(),
      .dims = {int64_t{windows.spans} * windows.elements, geometry.output[kWidth], windows.image_lines},
      .strides = {position, source.Pitch()},
      .box = {param.box.ColumnElements(), windows.block_columns, param.box.AllRows() / windows.block_columns}};
  const auto add = [&](int64_t extent, int64_t stride) {
    mapped.dims.push_back(extent);
    mapped.strides.push_back(stride);
    mapped.box.push_back(1);
  };
  if (geometry.planes) add(geometry.input[kDepth], plane);
  add(geometry.images, geometry.input[kDepth] * plane);
  return mapped;
}

// The box of pixels that a tile of the operand is, where it is one: {0, 0, 0} otherwise.
Spatial BoxOf(const Contraction& contraction, Operand operand, const ir::Param& param) {
  const ConvGeometry& geometry = contraction.geometry;
  const int64_t columns = contraction.windows.block_columns;
  if (geometry.HasBoxes()) return contraction.ReadsTaps(operand) ? geometry.box : geometry.outputs_of_box;
  return columns > 0 ? Spatial{1, param.box.outer / columns, columns} : Spatial{};
}

MappedTensor SourceTensor(const Contraction& contraction, const OperandSource& source, Operand operand,
                          const ir::Param& param) {
  if (contraction.taps == FilterTaps::kWindows && operand == Operand::kB)
    return WindowTensor(contraction, source, param);
  switch (source.kind) {
    case SourceKind::kMatrix:
      return TiledTensor(source, source.run, source.MatrixRows(), source.Matrices(), param);
    case SourceKind::kPixels:
      if (const Spatial box = BoxOf(contraction, operand, param); box[kWidth] > 0)
        return BoxTensor(source, box, contraction.geometry.planes, param);
      return PixelTensor(source, contraction.ReadsTaps(operand) ? BoxOfX(contraction.geometry) : BoxOfY(),
                         contraction.geometry.planes, param);
    case SourceKind::kFilter:
      if (source.inner_axis == ir::Axis::kN) {
        const StoredTensor& memory = source.memory;
        return TiledTensor(source, memory.Inner(), memory.extents[StoredTensor::kImage], TapsOf(memory), param);
      }
      return TiledTensor(source, contraction.run, contraction.n * contraction.batch, contraction.runs, param);
  }
  __builtin_unreachable();
}

// Whether only contractions over pixels have this number.
constexpr bool IsOfPixels(BindingFamily family) {
  return family == BindingFamily::kRow || family == BindingFamily::kPlane ||
         (family >= BindingFamily::kChannels && family <= BindingFamily::kTapDilation);
}

}  // namespace

double ProblemNumbers::Of(Binding binding) const {
  const Contraction& c = contraction_;
  const ConvGeometry& geometry = c.geometry;
  LS_CHECK(c.a.kind == SourceKind::kPixels || !IsOfPixels(binding.family), "a product of matrices has no ",
           ir::PrintBinding(binding));
  const auto source = [&]() -> const OperandSource& { return c.Of(static_cast<Operand>(binding.index)); };
  switch (binding.family) {
    case BindingFamily::kPitch:
      return Number(source().Pitch());
    case BindingFamily::kStride:
      return Number(source().Stride());
    case BindingFamily::kRow:
      return Number(source().memory.pitches[StoredTensor::kRow]);
    case BindingFamily::kPlane:
      return Number(source().memory.pitches[StoredTensor::kPlane]);
    case BindingFamily::kM:
      return Number(c.m);
    case BindingFamily::kN:
      return Number(c.n);
    case BindingFamily::kK:
      return Number(c.run);
    case BindingFamily::kBatch:
      return Number(c.batch);
    case BindingFamily::kColumns:
      return Number(c.columns);
    case BindingFamily::kChannels:
      return Number(geometry.channels);
    case BindingFamily::kFilters:
      return Number(geometry.filters * c.batch);
    case BindingFamily::kPaddedQ:
      return Number(geometry.padded_q);
    case BindingFamily::kOut:
      return Number(geometry.output[DimensionOf(binding)]);
    case BindingFamily::kIn:
      return Number(geometry.input[DimensionOf(binding)]);
    case BindingFamily::kTaps:
      return Number(geometry.filter[DimensionOf(binding)]);
    case BindingFamily::kLastTap:
      return Number(geometry.last_tap[DimensionOf(binding)]);
    case BindingFamily::kTapStep:
      return Number(geometry.tap_step[DimensionOf(binding)]);
    case BindingFamily::kFirstTap: {
      int64_t first = 0;
      for (size_t d = kDepth; d <= kWidth; ++d) first += geometry.last_tap[d] * TapsInside(c.b.memory, d);
      return Number(first);
    }
    case BindingFamily::kTapMove: {
      const size_t d = DimensionOf(binding);
      return Number(-geometry.tap_step[d] * TapsInside(c.b.memory, d));
    }
    case BindingFamily::kConvStride:
      return Number(geometry.stride[DimensionOf(binding)]);
    case BindingFamily::kPad:
      return Number(geometry.pad[DimensionOf(binding)]);
    case BindingFamily::kDilation:
      return Number(geometry.dilation[DimensionOf(binding)]);
    case BindingFamily::kPixels:
      return Number(c.d.memory.extents[StoredTensor::kPlane + DimensionOf(binding)]);
    case BindingFamily::kStoredTaps:
      return Number(c.b.memory.extents[StoredTensor::kPlane + DimensionOf(binding)]);
    case BindingFamily::kTapDilation:
      return Number(geometry.tap_dilation[DimensionOf(binding)]);
    case BindingFamily::kGroupRows:
      return Number(c.group_rows);
    case BindingFamily::kStoredRows:
      return Number(source().MatrixRows());
    case BindingFamily::kPackedLines:
      return Number(LinesOf(c.geometry, c.windows));
    case BindingFamily::kPackedPieces:
      return Number(c.windows.line_bytes / kPieceBytes);
    case BindingFamily::kFollows:
      return c.follows ? 1 : 0;
    case BindingFamily::kAlpha:
      return c.alpha;
    case BindingFamily::kBeta:
      return c.beta;
    case BindingFamily::kNumberE:
      return ir::NumbersOf(c.epilogue())[binding.index];
    case BindingFamily::kMap:
    case BindingFamily::kMapEdge:
    case BindingFamily::kMapDRest:
    case BindingFamily::kMapScale:
    case BindingFamily::kMapMetadata:
    case BindingFamily::kBase:
    case BindingFamily::kBaseBias:
    case BindingFamily::kBaseScale:
    case BindingFamily::kBaseTensorScale:
    case BindingFamily::kBaseBlockScale:
    case BindingFamily::kWorkspace:
    case BindingFamily::kStamps:
    case BindingFamily::kBaseE:
    case BindingFamily::kBasePartialRows:
    case BindingFamily::kLengthPartialRows:
    case BindingFamily::kCountPartialRows:
    case BindingFamily::kGroupOffsets:
    case BindingFamily::kGroupSizes:
    case BindingFamily::kRowIndices:
      break;
  }
  LS_CHECK(false, "binding ", ir::PrintBinding(binding), " is not a number of a problem");
}

namespace {

// Where the contraction's elements of C, D and what lies as D does begin in the caller's tensors.
int64_t OffsetOf(const Contraction& contraction, Binding binding) {
  if (binding == Binding::kMapD || binding == Binding::kMapDRest || binding == Binding::kBaseD)
    return contraction.d.BytesOf(contraction.d.first);
  if (binding == Binding::kBaseC) return contraction.c.first * contraction.c.ElementBytes();
  if (binding.family != BindingFamily::kBaseE) return 0;
  size_t operand = 0;
  for (const EpilogueStep& step : contraction.epilogue()) {
    for (const ir::StepTensor& tensor : ir::TensorsOf(step, contraction.d.type())) {
      if (operand++ != binding.index) continue;
      return ir::IsMatrix(tensor.operand) ? contraction.d.first * DataTypeBytes(tensor.type) : 0;
    }
  }
  LS_CHECK(false, "no step has the operand ", ir::PrintBinding(binding));
}

}  // namespace

std::vector<BoundParam> BindParams(const Problem& problem, const Schedule& schedule, const ir::Program& program) {
  return BindParams(ContractionOf(problem, schedule), schedule, program);
}

std::vector<BoundParam> BindParams(const Contraction& contraction, const Schedule& schedule,
                                   const ir::Program& program) {
  const ProblemNumbers numbers(contraction);
  std::vector<BoundParam> bound;
  for (const ir::Param& param : program.params) {
    bound.push_back({.param = param});
    const ir::ParamKind kind = ir::KindOf(param.binding);
    bound.back().offset = OffsetOf(numbers.contraction(), param.binding);
    if (param.binding == Binding::kWorkspace) bound.back().in_workspace = 0;
    if (kind == ir::ParamKind::kTensorMap) {
      bound.back().tensor = TensorOf(numbers.contraction(), schedule, param);
    } else if (kind != ir::ParamKind::kPointer) {
      bound.back().number = numbers.Of(param.binding);
    }
  }
  return bound;
}

void PlaceInWorkspace(std::vector<BoundParam>& params, Binding base, size_t begin) {
  for (BoundParam& bound : params) {
    const bool mapped = ir::KindOf(bound.param.binding) == ir::ParamKind::kTensorMap;
    if (mapped && bound.tensor.component != ir::OperandComponent::kElements) continue;
    if ((mapped ? ir::BaseOf(bound.tensor.operand) : bound.param.binding) == base) bound.in_workspace = begin;
  }
}

void PlaceInWorkspace(std::vector<BoundParam>& params, Operand operand, ir::OperandComponent component, size_t begin) {
  for (BoundParam& bound : params) {
    const bool mapped = ir::KindOf(bound.param.binding) == ir::ParamKind::kTensorMap;
    if (mapped && bound.tensor.operand == operand && bound.tensor.component == component) bound.in_workspace = begin;
  }
}

// Matrices of lines of blocks, many of which are a row of the tensor map.
MappedTensor BlockTensor(const StoredTensor& memory, Operand operand, ir::OperandComponent component,
                         const ir::Param& param) {
  constexpr int kRow = ir::ScaleBlock::kMapRowBytes, kLines = ir::ScaleBlock::kMapRowLines;
  return {.operand = operand,
          .component = component,
          .type = memory.type,
          .dims = {kRow, memory.extents[StoredTensor::kPixel] / kLines, memory.extents[StoredTensor::kImage]},
          .strides = {kRow, memory.pitches[StoredTensor::kImage]},
          .box = {kRow, param.box.outer / kLines, 1}};
}

// Scale factors of scale=block: of A rows of M, of B rows of K, in words of one or of four. If the TMA cannot step from
// row to row, all of them are one row.
MappedTensor RunScaleTensor(const OperandSource& source, Operand operand, const ir::Param& param) {
  const StoredTensor& memory = source.scales;
  const bool vector = !source.HasAlignedScaleRows();
  const int64_t rows = operand == Operand::kA || vector ? 1 : param.box.outer;
  const bool packed = memory.type == DataType::kUe8m0;
  const int64_t of_word = packed ? ir::PackedFactors::kOfWord : 1;
  MappedTensor tensor = {
      .operand = operand,
      .component = ir::OperandComponent::kScales,
      .type = packed ? DataType::kS32 : memory.type,
      .dims = {memory.Inner() / of_word, memory.extents[StoredTensor::kPixel], memory.extents[StoredTensor::kImage]},
      .strides = {memory.pitches[StoredTensor::kPixel] / of_word, memory.pitches[StoredTensor::kImage] / of_word},
      .box = {int64_t{param.box.outer} * param.box.inner / rows, rows, 1}};
  if (!vector) return tensor;
  tensor.dims = {memory.Elements() / of_word, 1, 1};
  tensor.strides = {tensor.box[0], tensor.box[0]};
  return tensor;
}

MappedTensor ScaleTensor(const Contraction& contraction, Operand operand, const ir::Param& param) {
  if (contraction.scale == Scaling::kBlock) return RunScaleTensor(contraction.Of(operand), operand, param);
  LS_CHECK(ir::BlockScalingOf(contraction.scale).has_value(), "no scale factors in blocks");
  return BlockTensor(contraction.Of(operand).scales, operand, ir::OperandComponent::kScales, param);
}

MappedTensor MetadataTensor(const Contraction& contraction, const ir::Param& param) {
  LS_CHECK(contraction.IsSparse(), "no metadata of a dense operand");
  return BlockTensor(ir::MetadataBlocks(contraction.OperandBits(), contraction.batch, contraction.m, contraction.run),
                     Operand::kA, ir::OperandComponent::kMetadata, param);
}

MappedTensor TensorOf(const Contraction& contraction, const Schedule& schedule, const ir::Param& param) {
  const Operand operand = OperandOf(param.binding);
  if (param.binding.family == BindingFamily::kMapScale) return ScaleTensor(contraction, operand, param);
  if (param.binding.family == BindingFamily::kMapMetadata) return MetadataTensor(contraction, param);
  const OperandSource source = SourceForProduct(contraction, schedule, operand);
  MappedTensor tensor = SourceTensor(contraction, source, operand, param);
  tensor.operand = operand;
  const bool interleaved = operand == Operand::kB && ir::HasSplitGateUp(contraction.epilogue());
  return interleaved ? Interleaved(std::move(tensor), contraction.n / 2) : tensor;
}

}  // namespace laneshift::compiler
