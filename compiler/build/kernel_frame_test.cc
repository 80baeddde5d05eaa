// That a kernel is joined from whatever parts it is given: an operand more is a loader more, and nothing else.
#include "compiler/build/kernel_frame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/build/matrix_loader.h"
#include "compiler/build/ring_mainloop.h"
#include "compiler/compile.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Operand;

class PlainOutput final : public OutputTensor {
 public:
  void AddPitches(Operand operand, std::vector<ir::Param>& params) const override {
    params.insert(params.end(), {{ir::PitchOf(operand), {}}, {ir::StrideOf(operand), {}}});
  }
  void AddSizes(std::vector<ir::Param>& params) const override {
    for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
  }
  int AccessWidthOf(Operand, int run) const override { return run; }
  std::vector<ir::ValueId> StoreStart(ir::Builder&, ir::ValueId row, const Corner& corner) const override {
    return {row, corner.batch};
  }
  void BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner&,
                 const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const override {
    b.TmaStore({copy, column, start[0], start[1]}, attrs);
  }
};

MatrixOperand OperandOf(Operand operand, int rows) {
  return {.operand = operand,
          .tile = {.type = DataType::kBf16,
                   .outer_axis = operand == Operand::kA ? ir::Axis::kM : ir::Axis::kN,
                   .inner_axis = ir::Axis::kK,
                   .outer = rows,
                   .inner = 64,
                   .swizzle = ir::Swizzle::k128}};
}

// A product of A and B; the ring has a tile for each loader.
KernelParts PartsOf(const OperandParts& cluster, const std::vector<LoadPath>& paths) {
  KernelParts parts{.name = "gemm", .operand_type = DataType::kBf16, .k = {.tile_k = 64}};
  ir::Channel ring{.name = "ring", .stages = 3};
  for (size_t i = 0; i < paths.size(); ++i) {
    const MatrixOperand operand = OperandOf(i == 0 ? Operand::kA : Operand::kB, i == 0 ? 128 : 64);
    ring.tiles.push_back({"tile" + std::to_string(i), operand.tile});
    const LoadTarget to{.path = paths[i], .channel = 0, .tile = static_cast<int>(i)};
    parts.loaders.push_back(std::make_unique<MatrixLoader>(to, operand, cluster));
  }
  parts.channels.push_back(std::move(ring));
  parts.mainloop = std::make_unique<RingMainloop>(parts.k, RingSlots{.ring = 0});
  parts.output = std::make_unique<PlainOutput>();
  return parts;
}

// The loads that a role issues for a block of K, between taking a slot and sending it: the tiles of the slot.
std::vector<int> TilesOf(const ir::Program& program, std::string_view role_name) {
  const ir::Role* role = nullptr;
  for (const ir::Role& one : program.roles) {
    if (one.name == role_name) role = &one;
  }
  if (role == nullptr) return {};
  std::vector<int> tiles;
  bool filling = false;
  const std::function<void(const std::vector<ir::Op>&)> walk = [&](const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (op.kind == ir::OpKind::kPut || op.kind == ir::OpKind::kSend) filling = op.kind == ir::OpKind::kPut;
      if (op.kind == ir::OpKind::kTmaLoad || op.kind == ir::OpKind::kCopyLoad) {
        EXPECT_TRUE(filling);
        tiles.push_back(op.As<ir::LoadAttrs>().tile);
      }
      walk(op.body);
    }
  };
  walk(role->body);
  return tiles;
}

const Schedule kSchedule{.tile_m = 128, .tile_n = 64, .tile_k = 64, .stages = 3, .acc_stages = 1};

TEST(KernelFrame, AnOperandMoreIsALoaderMore) {
  const OperandParts cluster(kSchedule, false);
  const target::Target& target = target::NamedTarget("sm_100a");
  const std::vector<LoadPath> three = {LoadPath::kTma, LoadPath::kTma, LoadPath::kCopy};
  const ir::Program program = JoinKernel(PartsOf(cluster, three), kSchedule, target);
  EXPECT_EQ(TilesOf(program, "load"), (std::vector<int>{0, 1}));
  EXPECT_EQ(TilesOf(program, "copy"), (std::vector<int>{2}));
  const auto verified = ir::VerifyProgram(program, target);
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST(KernelFrame, ARoleLoadsTheOperandsOfItsPath) {
  const OperandParts cluster(kSchedule, false);
  const target::Target& target = target::NamedTarget("sm_100a");
  const ir::Program program =
      JoinKernel(PartsOf(cluster, {LoadPath::kCopy, LoadPath::kTma, LoadPath::kCopy}), kSchedule, target);
  EXPECT_EQ(TilesOf(program, "load"), (std::vector<int>{1}));
  EXPECT_EQ(TilesOf(program, "copy"), (std::vector<int>{0, 2}));
  const auto verified = ir::VerifyProgram(program, target);
  EXPECT_TRUE(verified) << verified.error().message;
}

// Those of the role that writes D, in order, as far as `wanted` says.
std::vector<ir::OpKind> OpsOf(const ir::Program& program, const std::vector<ir::OpKind>& wanted) {
  std::vector<ir::OpKind> kinds;
  const std::function<void(const std::vector<ir::Op>&)> walk = [&](const std::vector<ir::Op>& body) {
    for (const ir::Op& op : body) {
      if (std::find(wanted.begin(), wanted.end(), op.kind) != wanted.end()) kinds.push_back(op.kind);
      walk(op.body);
    }
  };
  for (const ir::Role& role : program.roles) {
    if (ir::RoleSet(1u << static_cast<int>(role.kind)) & ir::kReaders) walk(role.body);
  }
  return kinds;
}

ir::Program ProgramOf(const char* problem, const char* schedule, const char* target_name) {
  const target::Target& target = target::NamedTarget(target_name);
  const auto asked = ParseSchedule(schedule);
  EXPECT_TRUE(asked) << asked.error().message;
  auto program = BuildProgram(*ParseProblem(problem), asked->Apply(Schedule{}), target);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

TEST(KernelFrame, MatricesAreAskedForBeforeTheProductsAreWaitedFor) {
  using enum ir::OpKind;
  const std::vector<ir::OpKind> of_interest = {kPrefetchMatrix, kBarrierWait, kCombineMatrix};
  const auto first = [&](const char* problem, const char* schedule, const char* target) {
    const std::vector<ir::OpKind> ops = OpsOf(ProgramOf(problem, schedule, target), of_interest);
    return ops.empty() ? kConst : ops.front();
  };
  const char* const kTile = "tile=128x128x64 stages=3";
  const char* const kResidual = "gemm m=512 n=512 k=512 epilogue=residual";
  EXPECT_EQ(first(kResidual, kTile, "sm_100a"), kPrefetchMatrix);
  EXPECT_EQ(first(kResidual, "tile=128x128x64 stages=3 acc=1 math=2", "sm_90a"), kPrefetchMatrix);
  EXPECT_EQ(first("gemm m=512 n=512 k=512 beta=1", kTile, "sm_100a"), kPrefetchMatrix);
  // Nothing is read; rows that are no whole 16 bytes; one of several CTAs reads.
  EXPECT_EQ(first("gemm m=512 n=512 k=512 epilogue=aux", kTile, "sm_100a"), kBarrierWait);
  EXPECT_EQ(
      first("gemm m=512 n=510 k=512 epilogue=residual", "tile=128x128x64 stages=3 d_store=rows b_load=tma", "sm_100a"),
      kBarrierWait);
  EXPECT_EQ(first(kResidual, "tile=128x128x64 stages=3 split_k=2", "sm_100a"), kBarrierWait);
}

}  // namespace
}  // namespace laneshift::compiler
