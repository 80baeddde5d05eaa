#include "compiler/packing.h"

#include <algorithm>

#include "base/text.h"
#include "compiler/passes.h"
#include "ir/builder.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

constexpr Operand kPackable[] = {Operand::kA, Operand::kB};

// Each warp copies rows of kRowBytes, a 16-byte piece a lane, kRowsOfWarp of them at once: enough under way to hide the
// latency of memory where an SM has four such CTAs, and registers allow more. So many CTAs come to each SM one after
// another that those which come last hold up nothing; only of huge operands a CTA copies several tiles.
constexpr int kWarps = 4;
constexpr int kRowsOfWarp = 4;
constexpr int kRowBytes = 32 * 16;
constexpr int kCtasForSm = 64;

// How many of `unit` an extent begins.
constexpr int64_t Begun(int64_t extent, int64_t unit) { return (extent + unit - 1) / unit; }
constexpr int64_t RoundUp(int64_t extent, int64_t unit) { return Begun(extent, unit) * unit; }

LoadPath PathOf(const Schedule& schedule, Operand operand) {
  return operand == Operand::kA ? schedule.a_load : schedule.b_load;
}

// The same rows, as they lie in the copy.
StoredOperand Packed(StoredOperand stored) {
  const int64_t line = kPackedLine / DataTypeBytes(stored.type);
  stored.pitch = RoundUp(stored.inner, line);
  stored.batch_stride = stored.pitch * stored.outer;
  stored.align = 16;
  return stored;
}
int64_t PackedBytes(const StoredOperand& packed, int64_t batch) {
  return packed.batch_stride * batch * DataTypeBytes(packed.type);
}

// A copy moves bytes: all types of one size have one kernel.
DataType TypeOfSize(DataType type) { return ir::IsEightBit(type) ? DataType::kE4m3 : DataType::kBf16; }

GemmProblem CopyOf(const GemmProblem& problem, const StoredOperand& from) {
  const StoredOperand to = Packed(from);
  const DataType type = TypeOfSize(from.type);
  return {.m = from.outer,
          .n = from.inner,
          .k = from.inner,
          .batch = problem.batch,
          .a = type,
          .b = type,
          .c = type,
          .d = type,
          .lda = from.pitch,
          .ldd = to.pitch,
          .stride_a = from.batch_stride,
          .stride_d = to.batch_stride};
}

}  // namespace

bool IsPacked(const Schedule& schedule, Operand operand) {
  const bool of_product = operand == Operand::kA || operand == Operand::kB;
  return of_product && PathOf(schedule, operand) == LoadPath::kPack;
}

bool PacksAny(const Schedule& schedule) {
  return std::any_of(std::begin(kPackable), std::end(kPackable),
                     [&](Operand operand) { return IsPacked(schedule, operand); });
}

Status CheckPacks(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  for (const Operand operand : kPackable) {
    if (!IsPacked(schedule, operand) || !Transposes(problem, operand, target)) continue;
    const std::string_view name = ir::OperandName(operand);
    return MakeError(ErrorCode::kUnsupported,
                     Cat(name, "_load=pack copies rows as they lie, and the tensor core of ", target.name, " reads ",
                         DataTypeName(Stored(problem, operand).type), " along k; use ", name,
                         "_load=copy, which transposes, or ", name, "_major=k"));
  }
  return Ok();
}

Status CheckPacks(const ConvProblem&, const Schedule& schedule, const target::Target&) {
  for (const Operand operand : kPackable) {
    if (!IsPacked(schedule, operand)) continue;
    const std::string_view name = ir::OperandName(operand);
    return MakeError(ErrorCode::kUnsupported, Cat(name, "_load=pack copies the rows of a matrix; of a convolution use ",
                                                  name, "_load=tma or copy"));
  }
  return Ok();
}

Product ProductOf(const GemmProblem& problem, const Schedule& schedule) {
  Product product{problem, schedule};
  if (IsPacked(schedule, Operand::kA)) {
    const StoredOperand a = Packed(Stored(problem, Operand::kA));
    product.problem.lda = a.pitch;
    product.problem.stride_a = a.batch_stride;
    product.problem.align_a = a.align;
    product.schedule.a_load = LoadPath::kTma;
  }
  if (IsPacked(schedule, Operand::kB)) {
    const StoredOperand b = Packed(Stored(problem, Operand::kB));
    product.problem.ldb = b.pitch;
    product.problem.stride_b = b.batch_stride;
    product.problem.align_b = b.align;
    product.schedule.b_load = LoadPath::kTma;
  }
  return product;
}

StoredOperand StoredForProduct(const GemmProblem& problem, const Schedule& schedule, Operand operand) {
  const StoredOperand stored = Stored(problem, operand);
  return IsPacked(schedule, operand) ? Packed(stored) : stored;
}

PackPlan PlanPacks(const Problem& problem, const Schedule& schedule, size_t product_bytes) {
  PackPlan plan{.packs = {}, .workspace_bytes = product_bytes};
  if (!PacksAny(schedule)) return plan;
  const auto& gemm = std::get<GemmProblem>(problem);
  int64_t end = std::max(static_cast<int64_t>(product_bytes), ir::WorkspaceLayout::kCounterBytes);
  for (const Operand operand : kPackable) {
    if (!IsPacked(schedule, operand)) continue;
    const StoredOperand stored = Stored(gemm, operand);
    const int64_t offset = RoundUp(end, kPackedLine);
    plan.packs.push_back({operand, CopyOf(gemm, stored), static_cast<size_t>(offset)});
    end = offset + PackedBytes(Packed(stored), gemm.batch);
  }
  plan.workspace_bytes = static_cast<size_t>(end);
  return plan;
}

Result<ir::Program> BuildPack(const Pack& pack, const target::Target& target) {
  ir::Program program;
  program.name = "pack";
  program.target = std::string(target.name);
  program.threads = 32 * kWarps;
  program.tile_m = kWarps * kRowsOfWarp;
  program.tile_n = kRowBytes / static_cast<int>(DataTypeBytes(pack.copy.a));
  program.tile_k = 1;
  program.operand_type = pack.copy.a;
  for (const Binding binding : {Binding::kBaseA, Binding::kPitchA, Binding::kStrideA, Binding::kBaseD, Binding::kPitchD,
                                Binding::kStrideD, Binding::kM, Binding::kN, Binding::kBatch}) {
    program.params.push_back({binding});
  }
  ir::Role role{.name = "copy", .kind = ir::RoleKind::kCopy, .first_warp = 0, .warps = kWarps};
  std::vector<ir::Op> body;
  Builder b(program, body);
  const ValueId tile_m = b.Constant(program.tile_m);
  const ValueId tile_n = b.Constant(program.tile_n);
  const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kM), tile_m});
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
  // Neighbours in a row one after another: they share the lines at their ends.
  const ValueId first = b.Tiles({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = 1});
  b.InBody([&] {
    b.PackRows({b.Mul({Builder::Argument(first, 0), tile_m}), b.Mul({Builder::Argument(first, 1), tile_n}),
                Builder::Argument(first, 2)});
  });
  role.body = std::move(body);
  program.roles.push_back(std::move(role));
  LS_TRY(ir::VerifyProgram(program, target));
  LS_TRY(LowerChannels(program, target));
  LS_TRY(AssignStorage(program, target));
  LS_TRY(ir::VerifyProgram(program, target));
  return program;
}

LaunchShape PackLaunch(const Pack& pack, const ir::Program& program, int sm_count) {
  const int64_t tiles = Begun(pack.copy.m, program.tile_m) * Begun(pack.copy.n, program.tile_n) * pack.copy.batch;
  return {.grid = static_cast<unsigned>(std::min(tiles, int64_t{sm_count} * kCtasForSm)),
          .threads = static_cast<unsigned>(program.threads),
          .smem_bytes = static_cast<unsigned>(program.smem_bytes)};
}

}  // namespace laneshift::compiler
