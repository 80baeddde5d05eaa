#include "compiler/plan/packing.h"

#include <algorithm>
#include <utility>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/legality/tma_addressable.h"
#include "compiler/plan/filter_packing.h"
#include "compiler/plan/im2col_packing.h"
#include "compiler/plan/window_packing.h"
#include "ir/builder.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// Each warp copies rows of kRowBytes, a 16-byte chunk a lane, kRowsOfWarp of them at once: enough in flight to hide the
// latency of memory where an SM has 16 such warps, and registers allow more.
constexpr int kPackWarps = 4;  // for each operand
constexpr int kRowsOfWarp = 4;
constexpr int kRowBytes = 32 * 16;
constexpr int64_t kCopyAlignment = 16;  // bytes, required by the TMA

LoadPath PathOf(const Schedule& schedule, Operand operand) {
  return operand == Operand::kA ? schedule.a_load : schedule.b_load;
}
LoadPath& PathOf(Schedule& schedule, Operand operand) {
  return operand == Operand::kA ? schedule.a_load : schedule.b_load;
}

// The same rows, with the layout of the copy.
OperandSource Packed(OperandSource source) {
  using enum ir::StoredTensor::Dimension;
  const int64_t line = ir::kPackedLine / source.ElementBytes();
  ir::StoredTensor& memory = source.memory;
  memory.pitches[kPixel] = base::RoundUp(memory.Inner(), line);
  memory.pitches[kRow] = memory.extents[kPixel] * memory.pitches[kPixel];
  memory.pitches[kPlane] = memory.extents[kRow] * memory.pitches[kRow];
  memory.pitches[kImage] = memory.extents[kPlane] * memory.pitches[kPlane];
  source.align = kCopyAlignment;
  return source;
}

// Whether all pixels of the images are rows of one matrix.
bool PixelsAreEven(const ir::StoredTensor& memory) {
  int64_t expected = memory.pitches[ir::StoredTensor::kPixel];
  for (size_t i = ir::StoredTensor::kPixel; i > ir::StoredTensor::kImage; --i) {
    expected *= memory.extents[i];
    if (memory.extents[i - 1] != 1 && memory.pitches[i - 1] != expected) return false;
  }
  return true;
}

int64_t& ExtentOf(Contraction& contraction, ir::Axis axis) {
  return axis == ir::Axis::kM ? contraction.m : axis == ir::Axis::kN ? contraction.n : contraction.run;
}

// Pixels as rows of one matrix.
Contraction RowsOfPixels(Contraction contraction, Operand operand) {
  OperandSource& source = contraction.Of(operand);
  const int64_t rows = source.memory.Rows(), channels = source.memory.Inner();
  source.kind = SourceKind::kMatrix;
  source.memory =
      ir::StoredTensor::Matrices(source.type(), 1, rows, channels, source.memory.pitches[ir::StoredTensor::kPixel], 0);
  contraction.batch = 1;
  ExtentOf(contraction, source.outer_axis) = rows;
  ExtentOf(contraction, source.inner_axis) = channels;
  return contraction;
}

// K as the operand has it in memory: a sparse A half of it.
Contraction OfStoredDepth(Contraction contraction, Operand operand) {
  contraction.run /= contraction.Of(operand).compression;
  return contraction;
}

// Tiles of one operand.
int64_t TilesOf(const OperandSource& source, const ir::Program& program) {
  return base::CeilDiv(source.MatrixRows(), program.tile_m) * base::CeilDiv(source.memory.Inner(), program.tile_n) *
         source.memory.extents[ir::StoredTensor::kImage];
}

// What one role copies, as code.
class CopyWriter {
 public:
  CopyWriter(const Contraction& contraction, Builder& b)
      : contraction_(contraction), b_(b), batch_(b.ParamValue(Binding::kBatch)) {}

  // Of the operand's copy. No device has memory for 2^31 of them.
  ValueId LinesOf(Operand operand) {
    const OperandSource& stored = contraction_.Of(operand);
    const auto elements = static_cast<int>(ir::kPackedLine / stored.ElementBytes());
    const ValueId of_row = b_.CeilDiv({Size(stored.inner_axis), b_.Constant(elements)});
    return b_.Mul({b_.Mul({Size(stored.outer_axis), MatricesOf(stored)}), of_row});
  }

  void Copy(const ir::Program& program, Operand operand, ValueId first_line) {
    const OperandSource& stored = contraction_.Of(operand);
    const ValueId tile_m = b_.Constant(program.tile_m);
    const ValueId tile_n = b_.Constant(program.tile_n);
    const ValueId rows = b_.CeilDiv({Size(stored.outer_axis), tile_m});
    const ValueId columns = b_.CeilDiv({Size(stored.inner_axis), tile_n});
    // Adjacent tiles of a row one after another: they share the cache lines at their ends.
    const ValueId first = b_.Work({rows, columns, MatricesOf(stored)}, {.raster = 1});
    b_.InBody([&] {
      b_.PackRows({b_.Mul({Builder::Argument(first, 0), tile_m}), b_.Mul({Builder::Argument(first, 1), tile_n}),
                   Builder::Argument(first, 2), first_line},
                  {.operand = operand, .outer = stored.outer_axis, .inner = stored.inner_axis});
    });
  }

 private:
  ValueId MatricesOf(const OperandSource& stored) { return stored.shared ? b_.Constant(1) : batch_; }
  ValueId Size(ir::Axis axis) { return b_.ParamValue(SizeAlong(axis)); }

  const Contraction& contraction_;
  Builder& b_;
  const ValueId batch_;
};

// Warps that copy one operand, concurrently with those of the other.
void AddCopyRole(const Contraction& contraction, const Schedule& schedule, Operand operand, ir::Program& program) {
  const ir::Role role{.name = Cat("copy_", ir::OperandName(operand)),
                      .kind = ir::RoleKind::kCopy,
                      .first_warp = program.threads / 32,
                      .warps = kPackWarps};
  program.threads += 32 * kPackWarps;
  AddRole(program, role, [&](Builder& b) {
    CopyWriter writer(contraction, b);
    const bool after_a = operand == Operand::kB && IsPacked(schedule, Operand::kA);
    writer.Copy(program, operand, after_a ? writer.LinesOf(Operand::kA) : b.Constant(0));
  });
}

}  // namespace

Binding SizeAlong(ir::Axis axis) {
  return axis == ir::Axis::kM ? Binding::kM : axis == ir::Axis::kN ? Binding::kN : Binding::kK;
}

bool IsPacked(const Schedule& schedule, Operand operand) {
  const bool of_product = operand == Operand::kA || operand == Operand::kB;
  return of_product && PathOf(schedule, operand) == LoadPath::kPack;
}

bool PacksAny(const Schedule& schedule) {
  return std::any_of(std::begin(kPackableOperands), std::end(kPackableOperands),
                     [&](Operand operand) { return IsPacked(schedule, operand); });
}

Status CheckPacks(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  for (const Operand operand : kPackableOperands) {
    const OperandSource& source = contraction.Of(operand);
    const std::string_view name = ir::OperandName(operand);
    if (NeedsFilterPack(contraction) && operand == Operand::kB) {
      if (IsPacked(schedule, operand)) continue;
      if (contraction.merged > 1)
        return MakeError(ErrorCode::kUnsupported,
                         Cat("with merge_groups a separate kernel packs ", source.name,
                             " with zeros for the channels of ", "other groups; use b_load=pack"));
      if (schedule.b_load == LoadPath::kTma && ReadsFilterInPlace(contraction, schedule, target)) continue;
      return MakeError(ErrorCode::kUnsupported,
                       Cat("a gradient of x reads ", source.name,
                           " transposed and its taps in reverse; bulk copies do for 16-bit filters, with a_load=tma, "
                           "tiles of 16 rows and "
                           "another reuse than lane_shift; otherwise a separate kernel packs it so; use b_load=pack"));
    }
    if (!IsPacked(schedule, operand)) continue;
    if (source.kind == SourceKind::kFilter) {
      return MakeError(
          ErrorCode::kUnsupported,
          Cat(name, "_load=pack copies the rows of a matrix; of a convolution use ", name, "_load=tma or copy"));
    }
    if (operand == Operand::kB && contraction.PacksTaps()) continue;
    if (source.kind == SourceKind::kPixels && !PixelsAreEven(source.memory)) {
      return MakeError(ErrorCode::kUnsupported,
                       Cat(name,
                           "_load=pack copies pixels at a constant stride, and there are gaps between rows, planes "
                           "or images of ",
                           source.name, "; pack its images, or use ", name, "_load=tma"));
    }
    if (contraction.IsPadded(source)) {
      return MakeError(ErrorCode::kUnsupported, Cat("only bulk copies pad elements of ", DataTypeName(source.type()),
                                                    "; use ", name, "_load=tma"));
    }
    if (DataTypeBits(source.type()) < 8) {
      return MakeError(ErrorCode::kUnsupported,
                       Cat("the TMA cannot reach ", name, ", and ", name, "_load=pack copies whole bytes: rows of ",
                           DataTypeName(source.type()), " begin at multiples of 16 bytes; pad them with ld", name, "=",
                           base::RoundUp(source.Pitch(), 8 * kCopyAlignment / DataTypeBits(source.type()))));
    }
    if (!Transposes(source, target)) continue;
    return MakeError(ErrorCode::kUnsupported, Cat(name, "_load=pack keeps the layout of rows, and the tensor core of ",
                                                  target.name, " reads ", DataTypeName(source.type()), " along k; use ",
                                                  name, "_load=copy, which transposes, or ", name, "_major=k"));
  }
  return Ok();
}

PackedProduct ProductOf(Contraction contraction, const Schedule& schedule) {
  PackedProduct product{std::move(contraction), schedule};
  for (const Operand operand : kPackableOperands) {
    if (!IsPacked(schedule, operand)) continue;
    product.contraction.Of(operand) = SourceForProduct(product.contraction, schedule, operand);
    PathOf(product.schedule, operand) = LoadPath::kTma;
  }
  return product;
}

OperandSource SourceForProduct(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  const OperandSource& source = contraction.Of(operand);
  if (!IsPacked(schedule, operand)) return source;
  if (operand == Operand::kB && contraction.taps == FilterTaps::kPackedColumns) return Im2colMatrix(contraction);
  if (operand == Operand::kB && contraction.taps == FilterTaps::kWindows) return PackedLines(contraction);
  return source.kind == SourceKind::kFilter ? PackedFilter(contraction, schedule) : Packed(source);
}

int64_t PackedBytes(const Contraction& contraction, const Schedule& schedule, Operand operand) {
  const OperandSource copy = SourceForProduct(contraction, schedule, operand);
  constexpr size_t kImage = ir::StoredTensor::kImage;
  return copy.memory.pitches[kImage] * copy.memory.extents[kImage] * copy.ElementBytes();
}

int64_t BytesToPack(const Problem& problem, const Schedule& schedule, Operand operand) {
  if (!IsPacked(schedule, operand)) return 0;
  const OperandSource stored = SourceOf(problem, operand);
  const bool packable = stored.kind != SourceKind::kFilter || IsTransposedFilter(stored) || schedule.merge_groups > 1;
  return packable ? stored.BytesOf(stored.memory.Elements()) : 0;
}

std::vector<PackStep> PackStepsOf(const Contraction& contraction, const Schedule& schedule) {
  std::vector<PackStep> steps;
  bool matrices = false;
  for (const Operand operand : kPackableOperands) {
    if (!IsPacked(schedule, operand)) continue;
    const SourceKind kind = contraction.Of(operand).kind;
    const bool together = kind == SourceKind::kMatrix && !contraction.IsSparse();
    matrices = matrices || together;
    if (together) continue;
    PackStep step{contraction, schedule};
    if (kind != SourceKind::kPixels) {
      step.contraction = OfStoredDepth(contraction, operand);
    } else if (operand == Operand::kA || !contraction.PacksTaps()) {
      step.contraction = RowsOfPixels(contraction, operand);
      step.contraction.taps = FilterTaps::kMatrices;
    }
    const Operand other = operand == Operand::kA ? Operand::kB : Operand::kA;
    if (IsPacked(schedule, other)) PathOf(step.schedule, other) = LoadPath::kTma;
    steps.push_back(std::move(step));
  }
  if (matrices) steps.push_back({contraction, schedule});
  // All rows that A has in memory, in their order there.
  if (matrices && contraction.a.indexed) steps.back().contraction.m = contraction.a.MatrixRows();
  return steps;
}

namespace {

// A step that packs filters packs nothing else.
bool IsFilterStep(const Contraction& contraction, const Schedule& schedule) {
  return NeedsFilterPack(contraction) && IsPacked(schedule, Operand::kB);
}
bool IsIm2colStep(const Contraction& contraction, const Schedule& schedule) {
  return contraction.taps == FilterTaps::kPackedColumns && IsPacked(schedule, Operand::kB);
}
bool IsWindowStep(const Contraction& contraction, const Schedule& schedule) {
  return contraction.taps == FilterTaps::kWindows && IsPacked(schedule, Operand::kB);
}

}  // namespace

Result<ir::Program> BuildPack(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  if (IsFilterStep(contraction, schedule)) return BuildFilterPack(contraction, schedule, target);
  if (IsIm2colStep(contraction, schedule)) return BuildIm2colPack(contraction, target);
  if (IsWindowStep(contraction, schedule)) return BuildWindowPack(contraction, target);
  ir::Program program;
  program.name = "pack";
  program.target = std::string(target.name);
  // Packed operands have one size; the other one may have another.
  program.operand_type = TypeOfSize(contraction.Of(IsPacked(schedule, Operand::kA) ? Operand::kA : Operand::kB).type());
  program.tile_m = kPackWarps * kRowsOfWarp;
  program.tile_n = kRowBytes / static_cast<int>(DataTypeBytes(program.operand_type));
  program.tile_k = 1;
  for (const Operand operand : kPackableOperands) {
    if (!IsPacked(schedule, operand)) continue;
    for (const Binding binding : {ir::BaseOf(operand), ir::PitchOf(operand), ir::StrideOf(operand)})
      program.params.push_back({binding});
  }
  for (const Binding binding : {Binding::kWorkspace, Binding::kM, Binding::kN, Binding::kK, Binding::kBatch})
    program.params.push_back({binding});
  for (const Operand operand : kPackableOperands) {
    if (IsPacked(schedule, operand)) AddCopyRole(contraction, schedule, operand, program);
  }
  return LowerProgram(std::move(program), target);
}

LaunchGeometry PackLaunch(const Contraction& contraction, const Schedule& schedule, const ir::Program& program,
                          int sm_count) {
  if (IsFilterStep(contraction, schedule)) return LaunchOver(TilesOfFilter(contraction, program), program, sm_count);
  if (IsIm2colStep(contraction, schedule)) return LaunchOver(TilesOfIm2col(contraction, program), program, sm_count);
  if (IsWindowStep(contraction, schedule)) return LaunchOver(TilesOfWindows(contraction, program), program, sm_count);
  // A CTA copies a tile of each operand.
  int64_t tiles = 0;
  for (const Operand operand : kPackableOperands) {
    if (IsPacked(schedule, operand)) tiles = std::max(tiles, TilesOf(contraction.Of(operand), program));
  }
  return LaunchOver(tiles, program, sm_count);
}

}  // namespace laneshift::compiler
