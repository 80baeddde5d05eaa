#include "compiler/kernel_builder.h"

#include <algorithm>
#include <utility>

namespace laneshift::compiler {

using ir::Axis;
using ir::Binding;
using ir::Builder;
using ir::Operand;
using ir::RoleKind;
using ir::SharedLayout;
using ir::ValueId;

namespace {

// Warps of a CTA. Warp 0 issues bulk copies and warp 1 MMAs; the warps left in the first warpgroup copy what the TMA
// cannot reach; the epilogue, which must start at a multiple of four warps to own its lanes of Tensor Memory or to form
// warpgroups, comes behind.
constexpr int kLoadWarp = 0;
constexpr int kMmaWarp = 1;
constexpr int kEpilogueWarp = 4;

// For two math warpgroups beside the loading one: together at most what the CTA is launched with, 3 x 168.
constexpr RegisterSplit kTmaOnly = {40, 232};
constexpr RegisterSplit kWithCopies = {88, 208};
constexpr RegisterSplit kWithUnrolledGather = {104, 200};
constexpr RegisterSplit kNarrowWithCopies = {168, 152};  // for accumulators of at most kNarrow columns
constexpr int kNarrow = 128;

// Slots whose release waits for the products issued on them while the next ones are issued.
constexpr int kReleaseLag = 1;

}  // namespace

KernelBuilder::KernelBuilder(std::string name, const Schedule& schedule, const target::Target& target,
                             DataType operand_type, EpilogueTerms terms)
    : schedule_(schedule), in_tensor_memory_(target.Has(target::Feature::kTensorMemory)), terms_(std::move(terms)) {
  program_.name = std::move(name);
  program_.target = target.name;
  program_.tile_m = schedule.tile_m;
  program_.tile_n = schedule.tile_n;
  program_.tile_k = schedule.tile_k;
  program_.operand_type = operand_type;
}

ir::Program KernelBuilder::Build() {
  program_.kept_rows = KeptRows();
  AddOperands();
  for (size_t i = 0; i < program_.channels.size(); ++i) {
    const bool stays = std::find(residents_.begin(), residents_.end(), static_cast<int>(i)) != residents_.end();
    if (program_.channels[i].space == ir::Space::kShared && !stays) operand_channels_.push_back(static_cast<int>(i));
  }
  if (in_tensor_memory_) {
    accumulators_ = AddChannel({.name = "acc",
                                .space = ir::Space::kTensor,
                                .stages = schedule_.acc_stages,
                                .rows = schedule_.tile_m,
                                .columns = schedule_.tile_n});
  }
  PlanEpilogue();
  AddOutputs(program_.buffers.empty() ? SharedLayout{} : program_.buffers[0].layout);
  AddLoadRole(LoadPath::kTma);
  if (in_tensor_memory_) AddMmaRole();
  AddLoadRole(LoadPath::kCopy);
  AddEpilogueRole();
  program_.threads = 32 * (kEpilogueWarp + EpilogueWarps());
  return std::move(program_);
}

int KernelBuilder::AddChannel(ir::Channel channel) {
  program_.channels.push_back(std::move(channel));
  return static_cast<int>(program_.channels.size()) - 1;
}

int KernelBuilder::AddResidentChannel(ir::Channel channel) {
  residents_.push_back(AddChannel(std::move(channel)));
  return residents_.back();
}

// Decides the fragments in which the accumulator is read, and the staging buffer.
void KernelBuilder::PlanEpilogue() {
  fragment_ = ir::AccumulatorFragment(schedule_.tile_m / schedule_.math_warpgroups);
  const int bytes = static_cast<int>(DataTypeBytes(terms_.type));
  const ir::Swizzle swizzle = ir::WidestSwizzle(schedule_.tile_n * bytes);
  panel_ = ir::SpanBytes(swizzle) / bytes;
  if (schedule_.d_store == StorePath::kDirect) return;
  // Two copies alternate only if the panels of a tile are even in number: else a tile would begin with the copy that
  // the last store may still read.
  const int panels = schedule_.tile_n / panel_;
  program_.buffers.push_back({.name = "out",
                              .layout = {.type = terms_.type,
                                         .outer_axis = Axis::kM,
                                         .inner_axis = Axis::kN,
                                         .outer = ir::FragmentLayout{fragment_}.Rows(),
                                         .inner = panel_,
                                         .swizzle = swizzle},
                              .copies = panels % 2 == 0 ? 2 : 1,
                              .warps = EpilogueWarps()});
}

void KernelBuilder::ForEach(Builder& b, ValueId count, const std::function<void(ValueId)>& write) {
  const ValueId index = b.For({b.Constant(0), count});
  b.InBody([&] { write(index); });
}

void KernelBuilder::ForEachTile(Builder& b, const std::function<void(const Corner&)>& write) {
  const ValueId tile_m = b.Constant(program_.TileRows());
  const ValueId tile_n = b.Constant(schedule_.tile_n);
  const ValueId rows = b.CeilDiv({b.ParamValue(Binding::kM), tile_m});
  const ValueId columns = b.CeilDiv({b.ParamValue(Binding::kN), tile_n});
  const ValueId first = b.Tiles({rows, columns, b.ParamValue(Binding::kBatch)}, {.raster = schedule_.raster});
  b.InBody([&] {
    const ValueId row = b.Mul({Builder::Argument(first, 0), tile_m});
    const ValueId column = b.Mul({Builder::Argument(first, 1), tile_n});
    write({row, column, Builder::Argument(first, 2)});
  });
}

void KernelBuilder::Multiply(Builder& b, ValueId accumulator, ValueId a_slot, ValueId b_slot, ValueId accumulate,
                             ir::MmaAttrs attrs) const {
  if (in_tensor_memory_) {
    b.Mma({accumulator, a_slot, b_slot, accumulate}, attrs);
  } else {
    b.MmaRegisters({a_slot, b_slot, accumulate}, attrs);
  }
}

void KernelBuilder::ReleaseOperand(Builder& b, ValueId slot, ValueId later) const {
  if (in_tensor_memory_) {
    b.Release({slot});
  } else {
    b.ReleaseLate({slot, later}, {.lag = kReleaseLag});
  }
}

void KernelBuilder::AddRole(ir::Role role, const std::function<void(Builder&)>& write) {
  std::vector<ir::Op> body;
  Builder b(program_, body);
  write(b);
  role.body = std::move(body);
  program_.roles.push_back(std::move(role));
}

// Load 0: as launched.
RegisterSplit KernelBuilder::Registers() const {
  if (in_tensor_memory_ || schedule_.math_warpgroups < 2) return {0, 0};
  if (!LoadsBy(LoadPath::kCopy)) return kTmaOnly;
  if (schedule_.tile_n <= kNarrow) return kNarrowWithCopies;
  return UnrollsGather() ? kWithUnrolledGather : kWithCopies;
}

void KernelBuilder::AddLoadRole(LoadPath path) {
  if (!LoadsBy(path)) return;
  const bool bulk = path == LoadPath::kTma;
  const int first_free_warp = LoadsBy(LoadPath::kTma) ? kLoadWarp + 1 : kLoadWarp;
  const int first_copy_warp = in_tensor_memory_ ? kMmaWarp + 1 : first_free_warp;
  const ir::Role role{.name = bulk ? "load" : "copy",
                      .kind = bulk ? RoleKind::kLoad : RoleKind::kCopy,
                      .first_warp = bulk ? kLoadWarp : first_copy_warp,
                      .warps = bulk ? 1 : kEpilogueWarp - first_copy_warp,
                      .elected = bulk ? 1 : 0,
                      .registers = Registers().load};
  AddRole(role, [&](Builder& b) {
    WriteResidentLoads(b, path);
    ForEachTile(b, [&](const Corner& corner) { WriteLoads(b, path, corner); });
  });
}

// The MMA issuer of targets with Tensor Memory.
void KernelBuilder::AddMmaRole() {
  AddRole({.name = "mma", .kind = RoleKind::kMma, .first_warp = kMmaWarp, .warps = 1, .elected = 1}, [&](Builder& b) {
    TakeResidents(b);
    ForEachTile(b, [&](const Corner& corner) {
      const ValueId accumulator = b.Put({}, {.channel = accumulators_});
      WriteProducts(b, accumulator, corner);
      b.Send({accumulator});
    });
    ReleaseResidents(b);
  });
}

// Reads accumulators out and writes D; on targets without Tensor Memory it also multiplies.
void KernelBuilder::AddEpilogueRole() {
  const ir::Role role{.name = in_tensor_memory_ ? "epilogue" : "math",
                      .kind = in_tensor_memory_ ? RoleKind::kEpilogue : RoleKind::kMath,
                      .first_warp = kEpilogueWarp,
                      .warps = EpilogueWarps(),
                      .registers = Registers().math};
  AddRole(role, [&](Builder& b) {
    if (!in_tensor_memory_) TakeResidents(b);
    ForEachTile(b, [&](const Corner& corner) {
      ValueId accumulator = ir::kNoValue;
      if (in_tensor_memory_) {
        accumulator = b.Take({}, {.channel = accumulators_});
      } else {
        WriteProducts(b, accumulator, corner);
        for (const int channel : operand_channels_) b.Drain({}, {.channel = channel, .lag = kReleaseLag});
      }
      WriteTile(b, accumulator, corner);
    });
    if (!in_tensor_memory_) ReleaseResidents(b);
    if (schedule_.d_store == StorePath::kTma) b.BulkWait({}, {.pending = 0});
  });
}

void KernelBuilder::WriteTile(Builder& b, ValueId accumulator, const Corner& corner) {
  const ValueId row = b.Add({corner.row, b.WarpRow({}, {.rows = program_.TileRows() / EpilogueWarps()})});
  const bool bulk = schedule_.d_store == StorePath::kTma;
  const std::vector<ValueId> start = bulk ? StoreStart(b, row, corner) : std::vector<ValueId>{};
  const auto write_panel = [&](ValueId panel, ValueId first, ValueId fragment) {
    const ValueId column = b.Add({corner.column, first});
    fragment = Finish(b, fragment, row, column, corner.batch);
    if (schedule_.d_store == StorePath::kDirect) {
      b.GlobalStore({fragment, row, column, corner.batch}, GlobalAccess(Operand::kD));
      return;
    }
    const int copies = program_.buffers[0].copies;
    const ValueId copy = b.Rem({panel, b.Constant(copies)});
    if (bulk) b.BulkWait({}, {.pending = copies - 1});
    b.StageStore({fragment, copy}, {.buffer = 0});
    if (bulk) {
      WriteBulkStore(b, copy, column, corner, start);
    } else {
      b.StoreRows({copy, row, column, corner.batch}, {.buffer = 0, .rows = terms_.rows});
    }
  };
  const int panels = schedule_.tile_n / panel_;
  if (in_tensor_memory_) {
    ForEach(b, b.Constant(panels), [&](ValueId panel) {
      const ValueId first = b.Mul({panel, b.Constant(panel_)});
      write_panel(panel, first, b.AccRead({accumulator, first}, {.columns = panel_, .fragment = fragment_}));
    });
    b.Release({accumulator});
    return;
  }
  // Registers cannot be indexed at run time: unrolled.
  for (int i = 0; i < panels; ++i) {
    write_panel(b.Constant(i), b.Constant(i * panel_), b.AccRegisters({}, {.column = i * panel_, .columns = panel_}));
  }
}

// alpha * accumulator + beta * C + bias.
ValueId KernelBuilder::Finish(Builder& b, ValueId fragment, ValueId row, ValueId column, ValueId batch) {
  fragment = b.Scale({fragment}, {.binding = Binding::kAlpha});
  if (terms_.adds_c) {
    const ir::GlobalAttrs c = GlobalAccess(Operand::kC);
    fragment = b.CombineMatrix(
        {fragment, row, column, batch},
        {.base = c.base, .operand = c.operand, .type = c.type, .vector = c.vector, .rows = c.rows, .beta = 1});
  }
  if (terms_.bias != BiasAxis::kNone) {
    fragment = b.CombineVector({fragment, row, column, batch},
                               {.axis = terms_.bias, .type = terms_.type, .rows = terms_.rows});
  }
  StepCursor cursor;
  for (const EpilogueStep& step : terms_.steps) fragment = WriteStep(b, step, cursor, fragment, row, column, batch);
  return fragment;
}

ValueId KernelBuilder::WriteStep(Builder& b, const EpilogueStep& step, StepCursor& cursor, ValueId fragment,
                                 ValueId row, ValueId column, ValueId batch) {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  const int number = cursor.number;
  cursor.number += info.numbers;
  if (info.operand == ir::StepOperand::kNone) {
    if (info.action == ir::StepAction::kMultiply) {
      return b.Scale({fragment}, {.binding = ir::EpilogueNumber(number)});
    }
    return b.Map({fragment}, {.function = info.function,
                              .number = info.numbers > 0 ? number : 0,
                              .approximate = terms_.type != DataType::kF32});
  }
  const Binding base = ir::EpilogueBase(cursor.operand++);
  const DataType type = step.operand_type.value_or(terms_.type);
  const ir::Combine how = info.action == ir::StepAction::kAdd ? ir::Combine::kAdd : ir::Combine::kMultiply;
  const std::vector<ValueId> at = {fragment, row, column, batch};
  if (info.operand == ir::StepOperand::kRowVector || info.operand == ir::StepOperand::kColumnVector) {
    const BiasAxis axis = info.operand == ir::StepOperand::kRowVector ? BiasAxis::kM : BiasAxis::kN;
    return b.CombineVector(at, {.base = base, .how = how, .axis = axis, .type = type, .rows = terms_.rows});
  }
  const ir::GlobalAttrs access = StepAccess(base, type);
  if (info.operand == ir::StepOperand::kOutput) {
    b.GlobalStore(at, access);
    return fragment;
  }
  return b.CombineMatrix(at, {.base = base,
                              .how = how,
                              .operand = access.operand,
                              .type = type,
                              .vector = access.vector,
                              .rows = terms_.rows,
                              .derivative = info.function});
}

void KernelBuilder::AddEpilogueParams() {
  StepCursor cursor;
  for (const EpilogueStep& step : terms_.steps) {
    const ir::StepInfo& info = ir::InfoOf(step.kind);
    if (info.operand != ir::StepOperand::kNone) AddParam(ir::EpilogueBase(cursor.operand++));
    for (int i = 0; i < info.numbers; ++i) AddParam(ir::EpilogueNumber(cursor.number++));
  }
}

bool EpilogueTerms::HasMatrices() const {
  return std::any_of(steps.begin(), steps.end(), [](const EpilogueStep& step) {
    const ir::StepOperand operand = ir::InfoOf(step.kind).operand;
    return operand == ir::StepOperand::kMatrix || operand == ir::StepOperand::kOutput;
  });
}

ir::GlobalAttrs KernelBuilder::GlobalAccess(Operand operand) const {
  const int run = ir::FragmentLayout{fragment_, panel_}.Run();
  const DataType type = operand == Operand::kC ? terms_.c_type : terms_.type;
  return {.operand = operand,
          .base = ir::BaseOf(operand),
          .type = type,
          .vector = AccessWidthOf(operand, run),
          .rows = terms_.rows};
}

// As wide as D's accesses, within 16 bytes: the matrix begins at a multiple of those, and its runs are D's.
ir::GlobalAttrs KernelBuilder::StepAccess(Binding base, DataType type) const {
  ir::GlobalAttrs access = GlobalAccess(Operand::kD);
  access.base = base;
  access.type = type;
  access.vector = std::min(access.vector, static_cast<int>(16 / DataTypeBytes(type)));
  return access;
}

}  // namespace laneshift::compiler
