#include "compiler/plan/stamps.h"

#include <utility>

#include "ir/stamp_buffer.h"

namespace laneshift::compiler {
namespace {

using ir::Op;
using ir::OpKind;
using ir::StampEvent;

bool Waits(OpKind kind) {
  return kind == OpKind::kBarrierWait || kind == OpKind::kMmaWait || kind == OpKind::kCopyWait ||
         kind == OpKind::kBulkWait;
}

class StampWriter {
 public:
  void AddTo(ir::Role& role) {
    std::vector<Op> body = Stamped(std::move(role.body));
    body.insert(body.begin(), Stamp(StampEvent::kBegin));
    body.push_back(Stamp(StampEvent::kEnd));
    role.body = std::move(body);
  }

 private:
  std::vector<Op> Stamped(std::vector<Op> body) {
    std::vector<Op> stamped;
    for (Op& op : body) {
      op.body = Stamped(std::move(op.body));
      if (op.kind == OpKind::kWork) op.body.insert(op.body.begin(), Stamp(StampEvent::kTile));
      const bool waits = Waits(op.kind);
      if (waits) stamped.push_back(Stamp(StampEvent::kWait));
      stamped.push_back(std::move(op));
      if (waits) stamped.push_back(Stamp(StampEvent::kResume));
    }
    return stamped;
  }

  Op Stamp(StampEvent event) {
    return {.kind = OpKind::kStamp, .attrs = ir::StampAttrs{.event = event, .id = next_++}};
  }

  int next_ = 0;
};

}  // namespace

void AddStamps(ir::Program& program) {
  StampWriter writer;
  for (ir::Role& role : program.roles) writer.AddTo(role);
  program.params.push_back({.binding = ir::Binding::kStamps});
}

Result<std::vector<StampRegion>> AddStamps(KernelPlan& plan, const target::Target& target) {
  std::vector<StampRegion> regions;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    PlannedLaunch& launch = plan.launches[i];
    if (launch.purpose != LaunchPurpose::kMain) continue;
    AddStamps(launch.program);
    if (Status valid = ir::VerifyProgram(launch.program, target); !valid) return valid.error().Within("with stamps");
    const size_t bytes = ir::StampBuffer::Bytes(launch.program);
    regions.push_back({i, plan.workspace.Add(WorkspaceUse::kStamps, bytes), bytes});
    launch.params.push_back({.param = launch.program.params.back(), .in_workspace = regions.back().begin});
  }
  return regions;
}

}  // namespace laneshift::compiler
