// The kernel around its roles: parameters, barriers, Tensor Memory, dispatch of warps to roles.
#include <algorithm>

#include "base/check.h"
#include "compiler/emit/emit_program.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DIBuilder.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;
using ir::Role;
using ir::RoleKind;

class FrameEmitter {
 public:
  FrameEmitter(const ir::Program& program, const target::Target& target, llvm::Module& module, FunctionTable& functions,
               const OpLines* lines)
      : program_(program),
        module_(module),
        emitter_(module, target),
        cx_{.program = program, .target = target, .e = emitter_, .functions = &functions, .lines = lines} {}

  void Emit(const std::string& entry) {
    BeginKernel(entry);
    if (cx_.lines != nullptr) DescribeLines(entry);
    Value* tid = emitter_.ThreadIndex();
    auto& b = emitter_.ir();
    cx_.lane = b.CreateAnd(tid, emitter_.C32(31));
    Value* warp = emitter_.BroadcastLane0(b.CreateLShr(tid, 5));
    const ClusterPlace cluster(program_, emitter_, cx_.lane);
    cx_.cluster = &cluster;
    InitBarriers(warp);
    AllocateTensorMemory(warp);
    BeginAfterOthers();
    Dispatch(tid, warp);
    FreeTensorMemory(warp);
    // What waits for this launch waits for those that it has overlapped with.
    if (program_.OverlapsLaunches()) emitter_.GridWait();
    emitter_.Return();
  }

 private:
  // Up to here nothing was read that another kernel may write: the launch overlaps the end of the one before, and with
  // launches of the same plan all of it.
  void BeginAfterOthers() {
    if (program_.LoadsEarly()) return;
    if (!program_.OverlapsLaunches()) return emitter_.GridWait();
    emitter_.If(emitter_.ir().CreateICmpEQ(cx_.Param(ir::Binding::kFollows), emitter_.C32(0)),
                [&] { emitter_.GridWait(); });
    emitter_.LaunchDependents();
  }

  llvm::Type* TypeOf(ir::ParamKind kind) {
    switch (kind) {
      case ir::ParamKind::kTensorMap:
        return emitter_.Pointer(0);
      case ir::ParamKind::kPointer:
      case ir::ParamKind::kInt64:
        return emitter_.I64();
      case ir::ParamKind::kInt32:
        return emitter_.I32();
      case ir::ParamKind::kFloat:
        return emitter_.F32();
    }
    __builtin_unreachable();
  }

  void BeginKernel(const std::string& entry) {
    std::vector<llvm::Type*> types;
    for (const ir::Param& param : program_.params) types.push_back(TypeOf(KindOf(param.binding)));
    emitter_.BeginKernel(entry, types, program_.threads, program_.ClusterSize(), program_.ctas);
    for (size_t i = 0; i < program_.params.size(); ++i) {
      const Binding binding = program_.params[i].binding;
      if (KindOf(binding) == ir::ParamKind::kTensorMap) emitter_.MarkTensorMap(static_cast<int>(i));
      cx_.params[binding] = emitter_.Parameter(static_cast<int>(i));
    }
    cx_.shared = emitter_.DynamicShared();
  }

  // The kernel is a function of one file, the program's text. Its own instructions are no op's.
  void DescribeLines(const std::string& entry) {
    auto& b = emitter_.ir();
    llvm::Function* kernel = b.GetInsertBlock()->getParent();
    module_.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    llvm::DIBuilder builder(module_);
    llvm::DIFile* file = builder.createFile("program.tir", "");
    builder.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C), file, "laneshift", false, "", 0, "",
                              llvm::DICompileUnit::DebugDirectivesOnly);
    llvm::DISubroutineType* type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
    kernel->setSubprogram(builder.createFunction(file, entry, entry, file, 1, type, 1, llvm::DINode::FlagZero,
                                                 llvm::DISubprogram::SPFlagDefinition));
    builder.finalize();
    b.SetCurrentDebugLocation(llvm::DILocation::get(module_.getContext(), 0, 0, kernel->getSubprogram()));
  }

  void InitBarriers(Value* warp) {
    emitter_.If(emitter_.ir().CreateICmpEQ(warp, emitter_.C32(0)), [&] {
      emitter_.IfElected([&] {
        for (const ir::Param& param : program_.params) {
          if (KindOf(param.binding) == ir::ParamKind::kTensorMap) emitter_.PrefetchTensorMap(cx_.Param(param.binding));
        }
        for (const ir::Channel& channel : program_.channels) {
          // No producer fills a role's own ring.
          for (int i = channel.is_private ? channel.stages : 0; i < channel.Barriers(); ++i) {
            emitter_.MbarrierInit(cx_.Shared(channel.barrier_offset + i * ir::kBarrierBytes),
                                  i < channel.stages ? channel.full_arrivals : channel.empty_arrivals);
          }
        }
        emitter_.FenceMbarrierInit();
      });
    });
  }

  Value* IsMmaWarp(Value* warp) {
    const auto mma = std::find_if(program_.roles.begin(), program_.roles.end(),
                                  [](const Role& role) { return role.kind == RoleKind::kMma; });
    LS_CHECK(mma != program_.roles.end(), "Tensor Memory without an MMA role");
    return emitter_.ir().CreateICmpEQ(warp, emitter_.C32(mma->first_warp));
  }

  // All threads that may touch the CTA's barriers or its part of a pair's Tensor Memory.
  void SyncAll() {
    if (program_.ClusterSize() == 1) return emitter_.BarrierSync(0);
    emitter_.ClusterSync();
  }

  // One warp allocates and frees, in both CTAs of a pair; the barrier publishes the barriers and the address.
  void AllocateTensorMemory(Value* warp) {
    if (program_.tmem_columns == 0) return SyncAll();
    Value* slot = cx_.Shared(program_.tmem_slot_offset);
    emitter_.If(IsMmaWarp(warp), [&] {
      emitter_.TensorAlloc(slot, program_.tmem_columns);
      emitter_.TensorRelinquish();
    });
    emitter_.TensorFence(/*after=*/false);
    SyncAll();
    emitter_.TensorFence(/*after=*/true);
    cx_.tensor_base = emitter_.ir().CreateAlignedLoad(emitter_.I32(), slot, llvm::Align(4));
  }

  void FreeTensorMemory(Value* warp) {
    if (program_.tmem_columns == 0) return;
    emitter_.TensorFence(/*after=*/false);
    // Both CTAs of a pair must be there, and freeing may wait for the other.
    program_.ctas > 1 ? emitter_.ClusterSync() : emitter_.BarrierSync(0);
    emitter_.TensorFence(/*after=*/true);
    emitter_.If(IsMmaWarp(warp), [&] { emitter_.TensorDealloc(cx_.tensor_base, program_.tmem_columns); });
  }

  // Compare chain over the roles. Where registers move between warpgroups, adjacent warpgroups with the same number are
  // one arm of an if/else that begins with setmaxnreg: ptxas requires that shape.
  void Dispatch(Value* tid, Value* warp) {
    std::vector<std::vector<const Role*>> arms(2);
    for (const Role& role : program_.roles) {
      const bool working = role.first_warp >= ir::kWarpgroupWarps;
      const bool next = working && !arms.back().empty() && arms.back().front()->registers != role.registers;
      if (next && arms.back().front()->first_warp >= ir::kWarpgroupWarps) arms.emplace_back();
      arms[working ? arms.size() - 1 : 0].push_back(&role);
    }
    if (arms.back().empty()) arms.pop_back();  // the first role may have warps of several warpgroups
    DispatchFrom(arms, 0, tid, warp);
  }

  void DispatchFrom(const std::vector<std::vector<const Role*>>& arms, size_t first, Value* tid, Value* warp) {
    const auto increases = [&] {
      int most = 0;
      for (const auto& arm : arms) most = std::max(most, RegistersOf(arm));
      return RegistersOf(arms[first]) == most;
    };
    if (first + 1 == arms.size()) return DispatchArm(arms[first], tid, warp, increases());
    const int end = arms[first + 1].front()->first_warp;
    emitter_.If(
        emitter_.ir().CreateICmpULT(warp, emitter_.C32(static_cast<uint32_t>(end))),
        [&] { DispatchArm(arms[first], tid, warp, increases()); }, [&] { DispatchFrom(arms, first + 1, tid, warp); });
  }

  // The first of the roles that load operands of each tile.
  const Role* Loader() const {
    for (const Role& role : program_.roles) {
      const bool works = std::any_of(role.body.begin(), role.body.end(),
                                     [](const ir::Op& op) { return op.kind == ir::OpKind::kWork; });
      if (works && (role.kind == RoleKind::kLoad || role.kind == RoleKind::kCopy)) return &role;
    }
    return nullptr;
  }

  static int RegistersOf(const std::vector<const Role*>& roles) { return roles.empty() ? 0 : roles[0]->registers; }

  void DispatchArm(const std::vector<const Role*>& roles, Value* tid, Value* warp, bool increase) {
    if (!roles.empty() && roles[0]->registers != 0) emitter_.SetMaxRegisters(roles[0]->registers, increase);
    for (const Role* role : roles) {
      auto& b = emitter_.ir();
      Value* first = emitter_.C32(role->first_warp);
      Value* in_role = b.CreateAnd(b.CreateICmpUGE(warp, first),
                                   b.CreateICmpULT(warp, emitter_.C32(role->first_warp + role->warps)));
      if (role->leader) in_role = b.CreateAnd(in_role, cx_.cluster->IsLeader());
      emitter_.If(in_role, [&] {
        cx_.warp = b.CreateSub(warp, first);
        cx_.first_warp = role->first_warp;
        cx_.thread = b.CreateSub(tid, emitter_.C32(32 * role->first_warp));
        cx_.threads = 32 * role->warps;
        cx_.registers = role->registers;
        const bool early = program_.LoadsEarly(), told = early || program_.OverlapsLaunches();
        if (early && !role->early) emitter_.GridWait();
        // The next kernel may fill its ring from now on, too.
        if (role->early) emitter_.LaunchDependents();
        cx_.blocks = program_.Blocks(*role);
        EmitRole(cx_, *role);
        // Its last tile is in flight: the prologue of the next kernel overlaps with the rest of this one.
        if (role == Loader() && !told) emitter_.LaunchDependents();
      });
    }
  }

  const ir::Program& program_;
  llvm::Module& module_;
  Emitter emitter_;
  RoleContext cx_;
};

}  // namespace

void EmitProgram(const ir::Program& program, const target::Target& target, llvm::Module& module,
                 const std::string& entry, FunctionTable& functions, const OpLines* lines) {
  FrameEmitter(program, target, module, functions, lines).Emit(entry);
}

}  // namespace laneshift::compiler
