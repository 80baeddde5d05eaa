#include "compiler/plan/filter_packing.h"

#include "base/integer_math.h"
#include "compiler/build/kernel_frame.h"
#include "compiler/emit/plain_kernel.h"
#include "compiler/legality/tma_addressable.h"
#include "ir/builder.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Builder;
using ir::StoredTensor;
using ir::ValueId;

// A lane has a row of the copy, and kPieces of 16 bytes of one tap: whole 32-byte sectors of the copy.
constexpr int kWarps = 4, kLanes = 32, kPieces = 2;
constexpr int64_t kPieceBytes = 16;

// Without gaps between taps.
bool IsDense(const Schedule& schedule) { return schedule.a_load == LoadPath::kCopy; }

}  // namespace

DataType TypeOfSize(DataType type) {
  const int bits = ir::BitsOf(type);
  return bits == 8 ? DataType::kE4m3 : bits == 16 ? DataType::kBf16 : DataType::kTf32;
}

bool ReadsFilterInPlace(const Contraction& contraction, const Schedule& schedule, const target::Target& target) {
  constexpr int kPatternBytes = 1024, kPatternRows = 8;
  const int64_t a_bytes = base::RoundUp(schedule.tile_m, kPatternRows) * contraction.a.BytesOf(schedule.tile_k);
  return contraction.merged == 1 && !contraction.geometry.HasPatches() && schedule.a_load != LoadPath::kCopy &&
         schedule.reuse != Reuse::kLaneShift && !Transposes(contraction.b, target) && a_bytes % kPatternBytes == 0;
}

OperandSource PackedFilter(const Contraction& contraction, const Schedule& schedule) {
  using enum StoredTensor::Dimension;
  const ConvGeometry& geometry = contraction.geometry;
  OperandSource packed = contraction.b;
  packed.outer_axis = ir::Axis::kN;
  packed.inner_axis = ir::Axis::kK;
  packed.align = kPieceBytes;
  StoredTensor& memory = packed.memory;
  const int64_t bytes = packed.ElementBytes(), filters = geometry.filters * contraction.batch;
  if (IsDense(schedule)) {
    // One run over all taps.
    packed.run = geometry.channels * geometry.taps;
    const int64_t pitch = base::RoundUp(packed.run, ir::kPackedLine / bytes);
    memory.extents = {filters, 1, 1, 1, packed.run};
    memory.pitches = {pitch, pitch, pitch, pitch, 1};
    return packed;
  }
  packed.run = geometry.channels;
  memory.extents = {filters, geometry.filter[kDepth], geometry.filter[kHeight], geometry.filter[kWidth],
                    geometry.channels};
  memory.pitches[kPixel] = base::RoundUp(geometry.channels, kPieceBytes / bytes);
  memory.pitches[kRow] = memory.extents[kPixel] * memory.pitches[kPixel];
  memory.pitches[kPlane] = memory.extents[kRow] * memory.pitches[kRow];
  memory.pitches[kImage] = base::RoundUp(memory.extents[kPlane] * memory.pitches[kPlane], ir::kPackedLine / bytes);
  return packed;
}

Result<ir::Program> BuildFilterPack(const Contraction& contraction, const Schedule& schedule,
                                    const target::Target& target) {
  ir::Program program;
  program.name = "pack_filter";
  program.target = std::string(target.name);
  program.operand_type = TypeOfSize(contraction.b.type());
  program.tile_m = kWarps * kPieces * static_cast<int>(kPieceBytes / DataTypeBytes(program.operand_type));
  program.tile_n = kLanes;
  program.tile_k = 1;
  program.threads = kWarps * kLanes;
  NamePatches(contraction.geometry.patch, program);
  const bool planes = contraction.geometry.planes;
  for (const Binding binding : {Binding::kBaseB, Binding::kPitchB, Binding::kStrideB, Binding::kRowB})
    program.params.push_back({binding});
  if (planes) program.params.push_back({Binding::kPlaneB});
  for (const Binding binding : {Binding::kWorkspace, Binding::kN, Binding::kBatch, Binding::kChannels})
    program.params.push_back({binding});
  const size_t dimensions = planes ? 3 : 2;
  for (size_t d = 0; d < dimensions; ++d) {
    const ir::SpatialBindings& of = ir::kSpatialBindings[d];
    for (const Binding binding : {of.taps, of.last_tap, of.tap_step}) program.params.push_back({binding});
    if (program.Patch() == 1) continue;
    for (const Binding binding : {of.stored_taps, of.tap_dilation}) program.params.push_back({binding});
  }
  AddRole(program, {.name = "copy_b", .kind = ir::RoleKind::kCopy, .warps = kWarps}, [&](Builder& b) {
    const ValueId tile_m = b.Constant(program.tile_m), tile_n = b.Constant(program.tile_n);
    ValueId products = b.ParamValue(Binding::kBatch);  // matrices: a tap of a group
    for (size_t d = 0; d < dimensions; ++d) products = b.Mul({products, b.ParamValue(ir::kSpatialBindings[d].taps)});
    const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kChannels), tile_m});
    const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
    const ValueId first = b.Work({rows, columns, products}, {.raster = 1});
    b.InBody([&] {
      b.PackFilter({b.Mul({Builder::Argument(first, 0), tile_m}), b.Mul({Builder::Argument(first, 1), tile_n}),
                    Builder::Argument(first, 2)},
                   {.planes = planes,
                    .dense = IsDense(schedule),
                    .transposed = IsTransposedFilter(contraction.b),
                    .merged = static_cast<int>(contraction.merged)});
    });
  });
  return LowerProgram(std::move(program), target);
}

int64_t TilesOfFilter(const Contraction& contraction, const ir::Program& program) {
  const ConvGeometry& geometry = contraction.geometry;
  return base::CeilDiv(geometry.channels, program.tile_m) * base::CeilDiv(geometry.filters, program.tile_n) *
         geometry.taps * contraction.batch;
}

}  // namespace laneshift::compiler
