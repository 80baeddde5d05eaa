#include "compiler/plan/packing.h"

#include <algorithm>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/emit/plain_kernel.h"
#include "ir/builder.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::ValueId;

// Each warp copies rows of kRowBytes, a 16-byte piece a lane, kRowsOfWarp of them at once: enough under way to hide the
// latency of memory where an SM has 16 such warps, and registers allow more.
constexpr int kPackWarps = 4;  // for each operand
constexpr int kRowsOfWarp = 4;
constexpr int kRowBytes = 32 * 16;

LoadPath PathOf(const Schedule& schedule, Operand operand) {
  return operand == Operand::kA ? schedule.a_load : schedule.b_load;
}

// The same rows, as they lie in the copy.
StoredOperand Packed(StoredOperand stored) {
  const int64_t line = ir::kPackedLine / DataTypeBytes(stored.type);
  stored.pitch = base::RoundUp(stored.inner, line);
  stored.batch_stride = stored.pitch * stored.outer;
  stored.align = 16;
  return stored;
}

// A copy moves bytes: all types of one size have one kernel.
DataType TypeOfSize(DataType type) { return ir::IsEightBit(type) ? DataType::kE4m3 : DataType::kBf16; }

// Tiles of one operand.
int64_t TilesOf(const GemmProblem& problem, const StoredOperand& stored, const ir::Program& program) {
  return base::CeilDiv(stored.outer, program.tile_m) * base::CeilDiv(stored.inner, program.tile_n) * problem.batch;
}

// What one role copies, as code.
class CopyWriter {
 public:
  CopyWriter(const GemmProblem& problem, Builder& b)
      : problem_(problem), b_(b), batch_(b.ParamValue(Binding::kBatch)) {}

  // Of the operand's copy. A device has no memory for 2^31 of them.
  ValueId LinesOf(Operand operand) {
    const StoredOperand stored = Stored(problem_, operand);
    const auto elements = static_cast<int>(ir::kPackedLine / DataTypeBytes(stored.type));
    const ValueId of_row = b_.CeilDiv({Size(stored.inner_axis), b_.Constant(elements)});
    return b_.Mul({b_.Mul({Size(stored.outer_axis), batch_}), of_row});
  }

  void Copy(const ir::Program& program, Operand operand, ValueId first_line) {
    const StoredOperand stored = Stored(problem_, operand);
    const ValueId tile_m = b_.Constant(program.tile_m);
    const ValueId tile_n = b_.Constant(program.tile_n);
    const ValueId rows = b_.CeilDiv({Size(stored.outer_axis), tile_m});
    const ValueId columns = b_.CeilDiv({Size(stored.inner_axis), tile_n});
    // Neighbours in a row one after another: they share the lines at their ends.
    const ValueId first = b_.Work({rows, columns, batch_}, {.raster = 1});
    b_.InBody([&] {
      b_.PackRows({b_.Mul({Builder::Argument(first, 0), tile_m}), b_.Mul({Builder::Argument(first, 1), tile_n}),
                   Builder::Argument(first, 2), first_line},
                  {.operand = operand, .outer = stored.outer_axis, .inner = stored.inner_axis});
    });
  }

 private:
  ValueId Size(ir::Axis axis) { return b_.ParamValue(SizeAlong(axis)); }

  const GemmProblem& problem_;
  Builder& b_;
  const ValueId batch_;
};

// Warps that copy one operand, beside those of the other.
void AddRole(const GemmProblem& problem, const Schedule& schedule, Operand operand, ir::Program& program) {
  ir::Role role{.name = Cat("copy_", ir::OperandName(operand)),
                .kind = ir::RoleKind::kCopy,
                .first_warp = program.threads / 32,
                .warps = kPackWarps};
  program.threads += 32 * kPackWarps;
  std::vector<ir::Op> body;
  Builder b(program, body);
  CopyWriter writer(problem, b);
  const bool behind_a = operand == Operand::kB && IsPacked(schedule, Operand::kA);
  writer.Copy(program, operand, behind_a ? writer.LinesOf(Operand::kA) : b.Constant(0));
  role.body = std::move(body);
  program.roles.push_back(std::move(role));
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

Status CheckPacks(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  for (const Operand operand : kPackableOperands) {
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
  for (const Operand operand : kPackableOperands) {
    if (!IsPacked(schedule, operand)) continue;
    const std::string_view name = ir::OperandName(operand);
    return MakeError(ErrorCode::kUnsupported, Cat(name, "_load=pack copies the rows of a matrix; of a convolution use ",
                                                  name, "_load=tma or copy"));
  }
  return Ok();
}

PackedProduct ProductOf(const GemmProblem& problem, const Schedule& schedule) {
  PackedProduct product{problem, schedule};
  const auto pack = [&](Operand operand, int64_t& pitch, int64_t& stride, auto& align, LoadPath& path) {
    if (path != LoadPath::kPack) return;
    const StoredOperand copy = Packed(Stored(problem, operand));
    pitch = copy.pitch;
    stride = copy.batch_stride;
    align = copy.align;
    path = LoadPath::kTma;
  };
  pack(Operand::kA, product.problem.lda, product.problem.stride_a, product.problem.align_a, product.schedule.a_load);
  pack(Operand::kB, product.problem.ldb, product.problem.stride_b, product.problem.align_b, product.schedule.b_load);
  return product;
}

StoredOperand StoredForProduct(const GemmProblem& problem, const Schedule& schedule, Operand operand) {
  const StoredOperand stored = Stored(problem, operand);
  return IsPacked(schedule, operand) ? Packed(stored) : stored;
}

int64_t PackedBytes(const GemmProblem& problem, Operand operand) {
  const StoredOperand copy = Packed(Stored(problem, operand));
  return copy.batch_stride * problem.batch * DataTypeBytes(copy.type);
}

int64_t BytesToPack(const Problem& problem, const Schedule& schedule, Operand operand) {
  const auto* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm == nullptr || !IsPacked(schedule, operand)) return 0;
  const StoredOperand stored = Stored(*gemm, operand);
  return stored.outer * stored.inner * gemm->batch * DataTypeBytes(stored.type);
}

Result<ir::Program> BuildPack(const GemmProblem& problem, const Schedule& schedule, const target::Target& target) {
  ir::Program program;
  program.name = "pack";
  program.target = std::string(target.name);
  program.operand_type = TypeOfSize(problem.a);
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
    if (IsPacked(schedule, operand)) AddRole(problem, schedule, operand, program);
  }
  return LowerProgram(std::move(program), target);
}

LaunchGeometry PackLaunch(const GemmProblem& problem, const Schedule& schedule, const ir::Program& program,
                          int sm_count) {
  // A CTA copies a tile of each operand.
  int64_t tiles = 0;
  for (const Operand operand : kPackableOperands) {
    if (IsPacked(schedule, operand)) tiles = std::max(tiles, TilesOf(problem, Stored(problem, operand), program));
  }
  return LaunchOver(tiles, program, sm_count);
}

}  // namespace laneshift::compiler
