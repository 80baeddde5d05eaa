#include "compiler/contraction/operand_source.h"

#include "base/check.h"

namespace laneshift::compiler {
namespace {

using ir::Axis;
using ir::Operand;
using ir::StoredTensor;

constexpr int64_t kWidestAccess = 16;  // bytes

// The outer and the inner axis.
struct SourceAxes {
  Axis outer, inner;
};

constexpr SourceAxes AxesOf(const GemmProblem& problem, Operand operand) {
  switch (operand) {
    case Operand::kA:
      return problem.a_major == Major::kK ? SourceAxes{Axis::kM, Axis::kK} : SourceAxes{Axis::kK, Axis::kM};
    case Operand::kB:
      return problem.b_major == Major::kK ? SourceAxes{Axis::kN, Axis::kK} : SourceAxes{Axis::kK, Axis::kN};
    case Operand::kC:
    case Operand::kD:
      break;
  }
  return {Axis::kM, Axis::kN};
}

SourceAxes AxesOf(const GroupedGemmProblem& problem, Operand operand) {
  if (operand == Operand::kA)
    return problem.DividesK() ? SourceAxes{Axis::kK, Axis::kM} : SourceAxes{Axis::kM, Axis::kK};
  if (operand != Operand::kB) return {Axis::kM, Axis::kN};
  return problem.b_major == Major::kK ? SourceAxes{Axis::kN, Axis::kK} : SourceAxes{Axis::kK, Axis::kN};
}

// Channels are contiguous. In a forward convolution they are K of x and w, and N of y and z. For the gradient of x,
// channels of y are K, and those of x and w are N; for that of w, pixels are K.
constexpr SourceAxes AxesOf(const ConvProblem& problem, Operand operand) {
  const bool wgrad = problem.pass == ConvPass::kWgrad;
  switch (operand) {
    case Operand::kA:
      return wgrad ? SourceAxes{Axis::kK, Axis::kM} : SourceAxes{Axis::kM, Axis::kK};
    case Operand::kB:
      return problem.pass == ConvPass::kForward ? SourceAxes{Axis::kN, Axis::kK} : SourceAxes{Axis::kK, Axis::kN};
    case Operand::kC:
    case Operand::kD:
      break;
  }
  return {Axis::kM, Axis::kN};
}

constexpr SourceKind KindOf(const GemmProblem&, Operand) { return SourceKind::kMatrix; }
constexpr SourceKind KindOf(const GroupedGemmProblem&, Operand) { return SourceKind::kMatrix; }
constexpr SourceKind KindOf(const ConvProblem& problem, Operand operand) {
  const bool of_w =
      problem.pass == ConvPass::kWgrad ? operand == Operand::kC || operand == Operand::kD : operand == Operand::kB;
  return of_w ? SourceKind::kFilter : SourceKind::kPixels;
}

// Groups divide the channels of a pixel; a filter has only the channels of its group.
int64_t RunOf(const GemmProblem&, const StoredTensor& memory, Operand) { return memory.Inner(); }
int64_t RunOf(const GroupedGemmProblem&, const StoredTensor& memory, Operand) { return memory.Inner(); }
int64_t RunOf(const ConvProblem& problem, const StoredTensor& memory, Operand operand) {
  return KindOf(problem, operand) == SourceKind::kFilter ? memory.Inner() : memory.Inner() / problem.groups;
}

constexpr bool IsShared(const GemmProblem&, Operand) { return false; }
constexpr bool IsShared(const ConvProblem&, Operand) { return false; }
bool IsShared(const GroupedGemmProblem& problem, Operand operand) {
  if (problem.DividesK()) return operand == Operand::kA || operand == Operand::kB;
  return operand != Operand::kB;
}

constexpr bool IsIndexed(const GemmProblem&, Operand) { return false; }
constexpr bool IsIndexed(const ConvProblem&, Operand) { return false; }
bool IsIndexed(const GroupedGemmProblem& problem, Operand operand) {
  if (operand == Operand::kB) return false;
  return operand == Operand::kA ? problem.Gathers() : problem.Scatters();
}

constexpr bool IsDivided(const GemmProblem&, Operand) { return false; }
constexpr bool IsDivided(const ConvProblem&, Operand) { return false; }
bool IsDivided(const GroupedGemmProblem& problem, Operand operand) {
  return problem.DividesK() && IsShared(problem, operand);
}

constexpr int CompressionOf(const GemmProblem& problem, Operand operand) {
  return problem.sparse == Sparsity::kA && operand == Operand::kA ? 2 : 1;
}
constexpr int CompressionOf(const ConvProblem&, Operand) { return 1; }
constexpr int CompressionOf(const GroupedGemmProblem&, Operand) { return 1; }

constexpr ir::OperandRole RoleOf(Operand operand) { return static_cast<ir::OperandRole>(operand); }
static_assert(RoleOf(Operand::kA) == ir::OperandRole::kA && RoleOf(Operand::kB) == ir::OperandRole::kB &&
              RoleOf(Operand::kC) == ir::OperandRole::kC && RoleOf(Operand::kD) == ir::OperandRole::kD);

using DistanceNames = std::array<std::string_view, StoredTensor::kElement>;

DistanceNames NamesOf(SourceKind kind) {
  switch (kind) {
    case SourceKind::kMatrix:
      return {"batch stride", "", "", "pitch"};
    case SourceKind::kPixels:
      return {"image pitch", "plane pitch", "row pitch", "pixel pitch"};
    case SourceKind::kFilter:
      return {"filter pitch", "plane pitch", "row pitch", "tap pitch"};
  }
  __builtin_unreachable();
}

// The scale factors that copies of A or B read: those in memory, or the blocks that factors in rows are packed to
// (compiler/plan/factor_packing.h).
template <typename Kind>
StoredTensor ScalesOf(Kind kind, Operand operand) {
  const bool scaled = ir::BlockScalingOf(kind.scale) || kind.scale == Scaling::kBlock;
  if (!scaled || (operand != Operand::kA && operand != Operand::kB)) return {};
  if constexpr (requires { kind.scale_layout; }) kind.scale_layout = ScaleLayout::k128x4;
  return ir::Stored(kind, operand == Operand::kA ? ir::OperandRole::kScaleA : ir::OperandRole::kScaleB);
}

}  // namespace

OperandSource SourceOf(const Problem& problem, Operand operand) {
  const ir::OperandRole role = RoleOf(operand);
  return std::visit(
      [&](const auto& kind) {
        const StoredTensor memory = ir::Stored(kind, role);
        const SourceAxes axes = AxesOf(kind, operand);
        return OperandSource{.kind = KindOf(kind, operand),
                             .name = ir::NameOf(problem, role),
                             .memory = memory,
                             .outer_axis = axes.outer,
                             .inner_axis = axes.inner,
                             .run = RunOf(kind, memory, operand),
                             .align = ir::AlignmentOf(problem, role),
                             .shared = IsShared(kind, operand),
                             .indexed = IsIndexed(kind, operand),
                             .divided = IsDivided(kind, operand),
                             .compression = CompressionOf(kind, operand),
                             .scales = ScalesOf(kind, operand)};
      },
      problem);
}

bool OperandSource::HasAlignedScaleRows() const {
  constexpr int64_t kTmaStep = 16;  // bytes
  // The stride of a dimension of extent 1 is never used.
  const auto aligned = [&](StoredTensor::Dimension dimension) {
    return scales.extents[dimension] == 1 || ir::BytesOf(scales.type, scales.pitches[dimension]) % kTmaStep == 0;
  };
  return aligned(StoredTensor::kPixel) && aligned(StoredTensor::kImage);
}

std::array<SourceDistance, 4> DistancesOf(const OperandSource& source) {
  const DistanceNames names = NamesOf(source.kind);
  const StoredTensor::Dimensions& extents = source.memory.extents;
  std::array<SourceDistance, 4> distances;
  bool several = source.kind == SourceKind::kMatrix;  // tensor maps have the pitch of a single row, too
  for (size_t i = StoredTensor::kPlane; i <= StoredTensor::kPixel; ++i) {
    several = several || extents[i] > 1;
    distances[StoredTensor::kPixel - i] = {names[i], source.memory.pitches[i], several && !names[i].empty()};
  }
  constexpr size_t kImage = StoredTensor::kImage;
  distances.back() = {names[kImage], source.memory.pitches[kImage], extents[kImage] > 1};
  return distances;
}

std::optional<OperandSource> AsMatrix(const OperandSource& source) {
  using enum StoredTensor::Dimension;
  const StoredTensor& rows = source.memory;
  int64_t pitch = rows.Inner(), count = 1;
  for (const auto dimension : {kPixel, kRow, kPlane, kImage}) {
    if (rows.extents[dimension] == 1) continue;
    if (count == 1) pitch = rows.pitches[dimension];
    if (rows.pitches[dimension] != count * pitch) return std::nullopt;
    count *= rows.extents[dimension];
  }
  OperandSource matrix = source;
  matrix.kind = SourceKind::kMatrix;
  matrix.memory = StoredTensor::Matrices(source.type(), 1, count, rows.Inner(), pitch, count * pitch);
  matrix.run = rows.Inner();
  return matrix;
}

int AccessWidth(const OperandSource& source, int limit) {
  const std::array<SourceDistance, 4> distances = DistancesOf(source);
  const auto fits = [&](int64_t width) {
    bool even = width <= limit && source.align % source.BytesOf(width) == 0 && source.run % width == 0;
    for (const SourceDistance& distance : distances) even = even && (!distance.used || distance.elements % width == 0);
    return even;
  };
  int width = static_cast<int>(8 * kWidestAccess / DataTypeBits(source.type()));
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

int RowAlignment(const OperandSource& source) {
  int64_t starts = source.align | kWidestAccess;
  for (const SourceDistance& distance : DistancesOf(source)) {
    if (distance.used) starts |= source.BytesOf(distance.elements);
  }
  return static_cast<int>(starts & -starts);
}

int GatherWidth(const OperandSource& pixels) {
  const int whole = static_cast<int>(8 * kWidestAccess / DataTypeBits(pixels.type()));
  return AccessWidth(pixels, whole) == whole ? whole : 1;
}

bool TapsAreEven(const OperandSource& filter, bool dense) {
  LS_CHECK(filter.kind == SourceKind::kFilter, filter.name, " has no taps");
  const StoredTensor& memory = filter.memory;
  int64_t expected = dense ? memory.Inner() : memory.pitches[StoredTensor::kPixel];
  for (size_t i = StoredTensor::kPixel; i >= StoredTensor::kPlane; --i) {
    if (memory.extents[i] != 1 && memory.pitches[i] != expected) return false;
    expected *= memory.extents[i];
  }
  return true;
}

}  // namespace laneshift::compiler
