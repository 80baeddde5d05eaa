#include "autotune/pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "autotune/step_writer.h"
#include "base/integer_math.h"
#include "compiler/contraction/bindings.h"
#include "compiler/plan/work_plan.h"
#include "ir/stored_tensor.h"

namespace laneshift::autotune {
namespace {

using ir::SharedLayout;

double ProductsOf(const PipelineRole& role) {
  double times = 0;
  for (size_t i = 0; i < role.tile.kinds(); ++i) times += IsProduct(role.tile.kind(i).kind) ? role.tile.times(i) : 0;
  return times;
}

void CountUsers(Pipeline& pipeline) {
  for (const PipelineRole& role : pipeline.roles) {
    std::vector<bool> fills(pipeline.rings.size()), empties(pipeline.rings.size());
    for (const StepList* steps : {&role.before, &role.tile, &role.after}) {
      // Of ping-pong roles only one has the slots of each.
      const bool later = role.pingpong_index > 0 && steps == &role.tile;
      for (size_t i = 0; i < steps->kinds(); ++i) {
        const Step& step = steps->kind(i);
        if (step.ring < 0) continue;
        const auto ring = static_cast<size_t>(step.ring);
        if (later && !pipeline.rings[ring].order) continue;
        if (step.kind == StepKind::kSend || step.kind == StepKind::kSendLate) fills[ring] = true;
        const bool frees = step.kind == StepKind::kRelease || step.kind == StepKind::kReleaseLate;
        if (frees || step.kind == StepKind::kDrain) empties[ring] = true;
      }
    }
    for (size_t ring = 0; ring < pipeline.rings.size(); ++ring) {
      pipeline.rings[ring].producers += fills[ring] ? 1 : 0;
      pipeline.rings[ring].consumers += empties[ring] ? 1 : 0;
    }
  }
}

// Rows that end, or begin, outside of the tensor take the engine of bulk copies longer; threads copy nothing there.
bool IsBulkLoad(const Step& step) { return step.kind == StepKind::kLoad && step.accesses == 0; }

// The rows of bulk copies outside the tensor, on average over the tiles.
void CountOutside(Pipeline& pipeline, double outside_a, double outside_b) {
  for (PipelineRole& role : pipeline.roles) {
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      Step& step = role.tile.kind(i);
      if (IsBulkLoad(step)) step.outside = step.bytes / step.row_bytes * (step.of_b ? outside_b : outside_a);
    }
  }
}

// The fraction of bulk copies of rows along K whose end is outside: those of the last block, if it is not whole. If
// rows are not aligned to a sector of memory, each of them counts for several.
void CountPartial(const Problem& problem, const Schedule& schedule, double partial, Pipeline& pipeline) {
  constexpr double kUnaligned = 3;
  const auto weight = [&](bool of_b) {
    const ir::StoredTensor tensor = ir::Stored(problem, of_b ? ir::OperandRole::kB : ir::OperandRole::kA);
    const int64_t pitch = ir::BytesOf(tensor.type, tensor.pitches[ir::StoredTensor::kDimensions - 2]);
    const bool packed = (of_b ? schedule.b_load : schedule.a_load) == LoadPath::kPack;
    return packed || pitch % kSectorBytes == 0 ? 1.0 : kUnaligned;
  };
  const double of_a = partial * weight(false), of_b = partial * weight(true);
  for (PipelineRole& role : pipeline.roles) {
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      Step& step = role.tile.kind(i);
      if (IsBulkLoad(step) && step.along_k) step.partial = step.of_b ? of_b : of_a;
    }
  }
}

// Of a tile that divides the rows of its group only those are multiplied: the loop over K says how many.
bool CountsRows(const std::vector<ir::Op>& body) {
  return ir::AnyOp(body, [](const ir::Op& op) { return op.CountsRows(); });
}
void CountRows(const ir::Program& program, double part, Pipeline& pipeline) {
  for (PipelineRole& role : pipeline.roles) {
    if (!CountsRows(program.roles[static_cast<size_t>(role.program_role)].body)) continue;
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      Step& step = role.tile.kind(i);
      if (step.kind == StepKind::kMma) step.units *= part;
    }
  }
}

// The bytes of each operand that one tile loads, including the iterations that are not listed.
void CountReads(Pipeline& pipeline) {
  const double scale = pipeline.products / std::max(1.0, pipeline.counted);
  for (const PipelineRole& role : pipeline.roles) {
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      const Step& step = role.tile.kind(i);
      if (step.kind != StepKind::kLoad && step.kind != StepKind::kGather) continue;
      (step.of_b ? pipeline.b : pipeline.a).tile_bytes += role.tile.times(i) * step.Inside() / step.sharers * scale;
    }
  }
}

// Contiguous bytes of D that one store writes, on average: the last one of a tile's columns may write fewer.
double StoredRow(const ir::Program& program) {
  const SharedLayout& out = program.buffers.front().layout;
  const int most = out.RowBytes();
  const ir::Param* rest = program.FindParam(ir::Binding::kMapDRest);
  if (rest == nullptr) return most;
  const double least = rest->box.RowBytes();
  const int whole = program.tile_n / program.ColumnsPerOutput() / out.inner;
  return (whole * most + least) / (whole + 1);
}

// The bytes of each operand that exist, with those of the scale factors and metadata that bulk copies load too, and
// that are stored.
void CountMemory(const Problem& problem, const compiler::Contraction& contraction, const ir::Program& program,
                 Pipeline& pipeline) {
  const auto bytes = [](const compiler::OperandSource& source) {
    return static_cast<double>(source.BytesOf(source.memory.Elements()));
  };
  const auto loaded = [&](ir::OperandRole role) {
    return ir::Uses(problem, role) ? static_cast<double>(ir::Stored(problem, role).Bytes()) : 0.0;
  };
  pipeline.a.unique_bytes = bytes(contraction.a) + loaded(ir::OperandRole::kMetadataA);
  pipeline.b.unique_bytes = bytes(contraction.b);
  if (ir::BlockScalingOf(contraction.scale)) {
    pipeline.a.unique_bytes += loaded(ir::OperandRole::kScaleA);
    pipeline.b.unique_bytes += loaded(ir::OperandRole::kScaleB);
  }
  pipeline.stored_bytes = bytes(contraction.d);
  const auto row = [&](const compiler::OperandSource& source, int other) {
    return static_cast<double>(source.BytesOf(source.inner_axis == ir::Axis::kK ? program.tile_k : other));
  };
  pipeline.a.row_bytes = row(contraction.a, program.tile_m);
  pipeline.b.row_bytes = row(contraction.b, program.tile_n);
}

}  // namespace

void StepList::Add(const Step& step) {
  order_.push_back(static_cast<uint32_t>(steps_.size()));
  steps_.push_back(step);
  times_.push_back(1);
}

void StepList::Repeat(size_t first, int64_t times) {
  const size_t length = order_.size() - first;
  for (size_t i = first; i < first + length; ++i) times_[order_[i]] += static_cast<double>(times);
  order_.resize(order_.size() + length * static_cast<size_t>(times));
  for (size_t i = first + length; i < order_.size(); ++i) order_[i] = order_[i - length];
}

namespace {

// Blocks of K of all tiles.
double BlocksOf(const compiler::Contraction& contraction, const Schedule& schedule) {
  return static_cast<double>(compiler::PlanWork(contraction, schedule).Tiles() * contraction.Blocks(schedule));
}

void CountLaunches(const Problem& problem, const Schedule& schedule, const ir::Program& program, Pipeline& pipeline) {
  const size_t count = compiler::ContractionsOf(problem, schedule);
  pipeline.launches = program.OverlapsLaunches() ? 1 : static_cast<int>(count);
  if (count == 1) return;
  double blocks = 0;
  for (size_t i = 0; i < count; ++i) blocks += BlocksOf(compiler::ContractionOf(problem, schedule, i), schedule);
  pipeline.work = blocks / BlocksOf(compiler::ContractionOf(problem, schedule), schedule);
}

bool PromotesInTurn(const StepList& steps) {
  for (size_t i = 0; i < steps.kinds(); ++i) {
    if (steps.kind(i).own < 1) return true;
  }
  return false;
}

}  // namespace

Pipeline PipelineOf(const Problem& problem, const Schedule& schedule, const ir::Program& program,
                    const target::Target& target, const SimulatedPart& part, std::span<const int64_t> group_sizes) {
  const compiler::ProblemNumbers numbers(problem, schedule);
  Pipeline pipeline;
  pipeline.simulated_tiles = part.tiles;
  pipeline.shares_operands = schedule.cluster_m * schedule.cluster_n > schedule.ctas;
  if (!program.buffers.empty()) pipeline.store_row_bytes = StoredRow(program);
  const compiler::WorkPlan work = compiler::PlanWork(numbers.contraction(), schedule, group_sizes);
  const compiler::RowDivision division = compiler::DivideRows(work, numbers.contraction(), schedule, target);
  pipeline.of_groups = work.ContinuesGroups();
  // Tiles that fill no wave are all there are, or are taken for a wave of whole ones.
  const int64_t parts = work.PartsOn(target.default_sm_count);
  for (const ir::Channel& channel : program.channels) {
    pipeline.rings.push_back({.stages = channel.stages, .order = channel.space == ir::Space::kOrder});
  }
  for (const ir::Role& role : program.roles) {
    pipeline.begins_early |= role.early;
    WrittenRole written = WriteRole(problem, numbers, program, target, role, {parts, part.iterations});
    written.role.program_role = static_cast<int>(&role - program.roles.data());
    if (written.products > 0) {
      pipeline.products = written.products;
      pipeline.counted = ProductsOf(written.role);
    }
    pipeline.in_turn |= PromotesInTurn(written.role.tile);
    pipeline.roles.push_back(std::move(written.role));
  }
  // Resident B is being loaded before a ring is full.
  std::stable_partition(pipeline.roles.begin(), pipeline.roles.end(),
                        [](const PipelineRole& role) { return role.tile.size() == 0; });
  CountUsers(pipeline);
  pipeline.tile_rows = work.estimated_rows;
  pipeline.tile_columns = static_cast<double>(work.tile_columns);
  pipeline.tiles = work.EstimatedTiles() * static_cast<double>(parts);
  if (work.tile_deviation > 0) pipeline.likely_tiles = compiler::LikelyTiles(work, division);
  pipeline.raster = work.raster;
  pipeline.cta_multiple = static_cast<double>(work.column_step);
  if (work.source == ir::WorkSource::kLaunchControl) pipeline.order = TileOrder::kStolen;
  const auto outside = [](int64_t extent, double tiles, int tile) {
    return 1 - static_cast<double>(extent) / (tiles * tile);
  };
  const double outside_rows = work.ContinuesGroups() ? 0 : outside(work.rows, pipeline.tile_rows, work.tile_m);
  CountOutside(pipeline, outside_rows, outside(work.columns, pipeline.tile_columns, work.tile_n));
  if (const int64_t k = numbers.SizeOf(ir::Binding::kK); k % program.tile_k != 0)
    CountPartial(problem, schedule, 1 / static_cast<double>(base::CeilDiv(k, program.tile_k)), pipeline);
  CountRows(program, division.multiplied, pipeline);
  CountReads(pipeline);
  CountMemory(problem, numbers.contraction(), program, pipeline);
  pipeline.moves = compiler::MovesOf(problem, schedule, program);
  CountLaunches(problem, schedule, program, pipeline);
  return pipeline;
}

}  // namespace laneshift::autotune
