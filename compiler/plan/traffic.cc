#include "compiler/plan/traffic.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/integer_math.h"
#include "compiler/compile.h"
#include "compiler/contraction/bindings.h"
#include "compiler/plan/constant_indices.h"
#include "compiler/plan/work_plan.h"
#include "ir/element_type.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using ir::Op;
using ir::OpCategory;
using ir::OpKind;
using ir::SharedLayout;
using ir::ValueId;

constexpr double kFillBytesPerClock = 49;
constexpr double kSharedReadBytesPerClock = 128;

// The ops of one role, each counted as often as it runs.
class RoleTraffic {
 public:
  RoleTraffic(const ProblemNumbers& numbers, const ir::Program& program, const target::Target& target,
              const ir::Role& role)
      : program_(program), target_(target), role_(role), indices_(numbers, program) {}

  // What a CTA runs once, outside of the loop over output tiles.
  Traffic OutsideWork(const std::vector<Op>& body) {
    Traffic sum;
    for (const Op& op : body) {
      if (op.kind != OpKind::kWork) sum += Count(op);
    }
    return sum;
  }
  Traffic OfOneTile(const std::vector<Op>& body) {
    Traffic sum;
    for (const Op& op : body) {
      if (op.kind != OpKind::kWork) {
        indices_.Note(op);
        continue;
      }
      const auto& work = op.As<ir::WorkAttrs>();
      // The parts of a tile together are a whole one.
      if (op.BodyArguments() > ir::kWorkTileArguments && work.source == ir::WorkSource::kStatic) {
        indices_.Set(op.result + 3, 0);
        indices_.Set(op.result + 4, indices_.At(op.operands[ir::kWorkTileOperands]));
      }
      if (work.source == ir::WorkSource::kPartsOfK) indices_.SetPartOfK(op);
      // Of ping-pong roles, one has each tile.
      if (work.pingpong_index > 0) continue;
      sum += CountAll(op.body);
    }
    return sum;
  }

 private:
  Traffic CountAll(const std::vector<Op>& body) {
    Traffic sum;
    for (const Op& op : body) sum += Count(op);
    return sum;
  }

  Traffic Count(const Op& op) {
    indices_.Note(op);
    NoteSlot(op);
    switch (InfoOf(op.kind).category) {
      case OpCategory::kStructure:
        return op.kind == OpKind::kFor ? CountLoop(op) : CountCondition(op);
      case OpCategory::kBulkLoad:
        return {.bulk_bytes = LoadedBytes(op)};
      case OpCategory::kThreadLoad:
        return {.thread_bytes = LoadedBytes(op)};
      case OpCategory::kMma:
        return CountProduct(op);
      case OpCategory::kTensorMove:
        return CountTensorMove(op);
      // These move no operand of the main kernel to shared memory.
      case OpCategory::kIndex:
      case OpCategory::kWork:
      case OpCategory::kChannel:
      case OpCategory::kBarrier:
      case OpCategory::kMemory:
      case OpCategory::kFma:
      case OpCategory::kAccumulator:
      case OpCategory::kElementwise:
      case OpCategory::kReduction:
      case OpCategory::kStore:
      case OpCategory::kSplitK:
        return {};
    }
    __builtin_unreachable();
  }

  Traffic CountCondition(const Op& op) {
    const Traffic body = CountAll(op.body);
    LS_CHECK(body == Traffic{}, "traffic under a condition is not counted");
    return body;
  }

  // Bytes that a load brings.
  int64_t LoadedBytes(const Op& op) const {
    if (const auto* pixels = std::get_if<ir::PixelLoadAttrs>(&op.attrs)) {
      return pixels->Bytes(Tile(op, 0, pixels->tile), program_.FindParam(pixels->map)->box) *
             program_.Parts(pixels->to);
    }
    if (const auto* rows = std::get_if<ir::RowLoadAttrs>(&op.attrs)) return Tile(op, 0, rows->tile).CopiedBytes();
    const auto* gather = std::get_if<ir::GatherAttrs>(&op.attrs);
    return Tile(op, 0, gather != nullptr ? gather->tile : op.As<ir::LoadAttrs>().tile).CopiedBytes();
  }

  Traffic CountProduct(const Op& op) const {
    const int most = target_.mma.most_rows;
    if (op.kind == OpKind::kMmaRegisters) {
      const int blocks = program_.Blocks(role_, op.As<ir::MmaAttrs>());
      return Products(blocks * role_.warps / ir::kWarpgroupWarps, most, most, false);
    }
    if (op.kind == OpKind::kMmaTensor) return Products(1, program_.tile_m, 0, op.As<ir::MmaTensorAttrs>().idle);
    return Products(1, program_.Rows(), program_.Rows(), false).Share(1, op.PartsOfBlock());
  }

  Traffic CountTensorMove(const Op& op) const {
    if (const auto* shift = std::get_if<ir::TensorShiftAttrs>(&op.attrs))
      return {.tensor_shifts = Steps() * shift->issues};
    if (op.kind == OpKind::kTensorRefresh)
      return {.tensor_refreshes = Steps(), .tensor_copy_bytes = Steps() * ir::kRefreshedRows * StepBytes()};
    if (const auto* blocks = std::get_if<ir::BlockCopyAttrs>(&op.attrs)) {
      const SharedLayout& tile = Tile(op, 1, blocks->tile);
      const int64_t bytes = tile.Bytes() / blocks->parts;
      if (op.kind == OpKind::kBlockStore) return {.tensor_copy_bytes = ir::kWarpgroupWarps * bytes};
      return {.tensor_copies = blocks->Blocks(tile), .tensor_copy_bytes = bytes};
    }
    return {.tensor_copies = Steps(), .tensor_copy_bytes = Steps() * program_.tile_m * StepBytes()};
  }

  Traffic CountLoop(const Op& op) {
    const Traffic body = CountAll(op.body);
    if (body == Traffic{}) return body;
    return body * indices_.Iterations(op);
  }

  void NoteSlot(const Op& op) {
    if (const auto* channel = std::get_if<ir::ChannelAttrs>(&op.attrs)) slots_[op.result] = channel->channel;
    if (const auto* cursor = std::get_if<ir::CursorAttrs>(&op.attrs)) slots_[op.result] = cursor->channel;
  }
  const SharedLayout& Tile(const Op& op, size_t operand, int tile) const {
    const ir::Channel& channel = program_.channels[static_cast<size_t>(slots_.at(op.operands[operand]))];
    return channel.tiles[static_cast<size_t>(tile)].layout;
  }

  // An instruction works on 32 bytes of K, with a sparse A on 64 of B, or on 48 of both, in the same time.
  int64_t Steps() const { return program_.Steps(); }
  int64_t StepBytes() const { return program_.StepBytes(); }

  // One MMA of a tile: `units` instructions a step, of `rows` rows each, of which `read` come from shared memory.
  Traffic Products(int64_t units, int64_t rows, int64_t read, bool idle) const {
    const int64_t instructions = Steps() * units;
    const int64_t timed = std::max<int64_t>(rows, target_.mma.full_rate_rows);
    return {
        .mma_instructions = instructions,
        .idle_mmas = idle ? instructions : 0,
        .mma_shared_bytes = instructions *
                            (read + program_.Columns() / program_.ctas * program_.Compression(ir::Operand::kA)) *
                            StepBytes(),
        // The rate is one of bytes: operands of other types take the clocks of 16-bit ones of the same bytes.
        .mma_clocks = instructions * timed * program_.Columns() * (ir::kMmaRowBits / 16) / target_.mma_macs_per_clock};
  }

  const ir::Program& program_;
  const target::Target& target_;
  const ir::Role& role_;
  ConstantIndices indices_;
  std::map<ValueId, int> slots_;
};

// Every counter, for operations that treat all alike.
constexpr int64_t Traffic::*kCounts[] = {
    &Traffic::bulk_bytes,        &Traffic::thread_bytes,  &Traffic::mma_instructions, &Traffic::idle_mmas,
    &Traffic::mma_shared_bytes,  &Traffic::tensor_copies, &Traffic::tensor_refreshes, &Traffic::tensor_shifts,
    &Traffic::tensor_copy_bytes, &Traffic::mma_clocks,
};
static_assert(sizeof(Traffic) == sizeof(int64_t) * std::size(kCounts), "a count is missing");

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const auto count : kCounts) this->*count += other.*count;
  return *this;
}

Traffic Traffic::operator*(int64_t times) const {
  Traffic product = *this;
  for (const auto count : kCounts) product.*count *= times;
  return product;
}

Traffic Traffic::Share(int64_t times, int64_t parts) const {
  Traffic share = *this * times;
  for (const auto count : kCounts) share.*count = base::CeilDiv(share.*count, parts);
  return share;
}

namespace {

KernelTraffic CountLaunch(const ProblemNumbers& numbers, const Schedule& schedule, const ir::Program& program,
                          const target::Target& target, int sm_count) {
  Traffic once, tile;
  for (const ir::Role& role : program.roles) {
    RoleTraffic role_traffic(numbers, program, target, role);
    once += role_traffic.OutsideWork(role.body);
    tile += role_traffic.OfOneTile(role.body);
  }
  // Where clusters steal the units of others, the resident ones share all units.
  const WorkPlan work = PlanWork(numbers.contraction(), schedule);
  const WorkDivision division = DivideWork(work, std::max(1, sm_count / work.ClusterSize()));
  KernelTraffic traffic{.all = tile * work.Tiles(), .busiest = tile * division.waves};
  if (work.cuts_k) traffic.busiest = tile.Share(work.Units(), division.resident);
  if (work.cluster_k > 1) traffic.busiest = traffic.busiest.Share(1, work.cluster_k);
  traffic.all += once * (division.resident * work.ClusterSize());
  traffic.busiest += once;
  return traffic;
}

}  // namespace

KernelTraffic CountTraffic(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                           const target::Target& target, int sm_count) {
  KernelTraffic traffic;
  const size_t count = ContractionsOf(problem, schedule);
  for (size_t i = 0; i < count; ++i) {
    const KernelTraffic launch =
        CountLaunch(ProblemNumbers(ContractionOf(problem, schedule, i)), schedule, program, target, sm_count);
    traffic.all += launch.all;
    traffic.busiest += launch.busiest;
  }
  return traffic;
}

double TrafficBound::Clocks() const { return std::max({fill, shared_reads, mma}); }

std::string_view TrafficBound::By() const {
  if (mma == Clocks()) return "mma";
  return shared_reads == Clocks() ? "shared_reads" : "fill";
}

TrafficBound BoundOf(const Traffic& t) {
  return {.fill = static_cast<double>(t.GlobalToSharedBytes()) / kFillBytesPerClock,
          .shared_reads = static_cast<double>(t.SharedReadBytes()) / kSharedReadBytesPerClock,
          .mma = static_cast<double>(t.mma_clocks)};
}

}  // namespace laneshift::compiler
