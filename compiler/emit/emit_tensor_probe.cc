#include "base/text.h"
#include "compiler/emit/emitter.h"
#include "compiler/emit/nvptx_backend.h"
#include "compiler/probes/tensor_probe.h"
#include "ir/mma.h"

namespace laneshift::compiler {
namespace {

constexpr const char* kTensorProbeEntry = "laneshift_tensor_probe";
constexpr int kRowWords = 8;  // 32 bytes: the K of one product
constexpr int kProductN = 16;
constexpr int kFreshRows = 4;

// Tiles without swizzle, K contiguous: groups of 8 rows, each two columns of 16-byte chunks.
constexpr int kProbeChunkBytes = 16;
constexpr int kRowsOfGroup = 8;
constexpr int kChunkColumnBytes = kRowsOfGroup * kProbeChunkBytes;
constexpr int kGroupBytes = 2 * kChunkColumnBytes;
constexpr uint64_t kTileBits =
    uint64_t{kChunkColumnBytes >> 4} << 16 | uint64_t{kGroupBytes >> 4} << 32 | uint64_t{1} << 46;

// Shared memory.
constexpr int kOperandOffset = 0;
constexpr int kFreshOffset = kOperandOffset + static_cast<int>(kProbeThreads) / kRowsOfGroup * kGroupBytes;
constexpr int kFilterOffset = kFreshOffset + kGroupBytes;
constexpr int kBarrierOffset = kFilterOffset + kProductN / kRowsOfGroup * kGroupBytes;
constexpr int kSlotOffset = kBarrierOffset + 2 * 8;
static_assert(kSlotOffset + 4 <= kProbeSharedBytes);

// Columns of Tensor Memory: an operand tile for each experiment, and the accumulator of the last.
constexpr int kAllocatedColumns = 64;
constexpr int kProductColumn = 32;

class ProbeEmitter {
 public:
  ProbeEmitter(const target::Target& target, llvm::Module& module) : e_(module, target), b_(e_.ir()) {}

  void Emit() {
    e_.BeginKernel(kTensorProbeEntry, {e_.I64()}, static_cast<int>(kProbeThreads));
    shared_ = e_.DynamicShared();
    thread_ = e_.ThreadIndex();
    warp_ = e_.BroadcastLane0(b_.CreateLShr(thread_, 5));
    WriteTiles();
    Begin();
    Step(0, [&] {
      for (int i = 0; i < kProbeExperiments; ++i) e_.TensorCopy(Cells(i * kRowWords), Tile(kOperandOffset));
    });
    Step(1, [&] {
      e_.TensorShift(Cells(ColumnOf(ProbeExperiment::kShift)));
      e_.TensorRefresh(Cells(ColumnOf(ProbeExperiment::kRefresh)), Tile(kFreshOffset));
      const ir::MmaOperand operand{.type = DataType::kBf16};
      e_.TensorMmaA(ir::InstructionOf(operand, operand, static_cast<int>(kProbeThreads), kProductN),
                    Cells(kProductColumn), Cells(ColumnOf(ProbeExperiment::kAshift)), Tile(kFilterOffset), e_.False(),
                    /*disabled=*/nullptr, /*shift=*/true);
    });
    WriteResult(ProbeExperiment::kShift, ColumnOf(ProbeExperiment::kShift));
    WriteResult(ProbeExperiment::kRefresh, ColumnOf(ProbeExperiment::kRefresh));
    WriteResult(ProbeExperiment::kAshift, kProductColumn);
    End();
    e_.Return();
  }

 private:
  static int ColumnOf(ProbeExperiment experiment) { return static_cast<int>(experiment) * kRowWords; }
  Value* Shared(int offset) { return e_.Offset(shared_, e_.C32(offset)); }
  Value* Cells(int column) { return b_.CreateAdd(base_, e_.C32(column)); }
  Value* Tile(int offset) {
    Value* start = b_.CreateLShr(b_.CreateAnd(e_.SharedAddress(Shared(offset)), e_.C32(0x3FFFF)), 4);
    return b_.CreateOr(b_.CreateZExt(start, e_.I64()), e_.C64(kTileBits));
  }
  void InFirstWarp(const std::function<void()>& body) { e_.If(b_.CreateICmpEQ(warp_, e_.C32(0)), body); }

  // The thread's row of a tile; `word(i)` is its i-th word.
  void WriteRow(int tile, const std::function<Value*(int)>& word) {
    Value* row = b_.CreateAdd(b_.CreateMul(b_.CreateLShr(thread_, 3), e_.C32(kGroupBytes)),
                              b_.CreateMul(b_.CreateAnd(thread_, e_.C32(kRowsOfGroup - 1)), e_.C32(kProbeChunkBytes)));
    for (int chunk = 0; chunk < 2; ++chunk) {
      std::vector<Value*> words;
      for (int i = 0; i < 4; ++i) words.push_back(word(4 * chunk + i));
      e_.StoreShared(e_.Offset(Shared(tile + chunk * kChunkColumnBytes), row), words);
    }
  }
  // A row's number as bf16, exact up to 256.
  Value* Tag(Value* row) { return b_.CreateLShr(b_.CreateBitCast(b_.CreateUIToFP(row, e_.F32()), e_.I32()), 16); }

  void WriteTiles() {
    Value* own = Tag(thread_);
    WriteRow(kOperandOffset, [&](int) { return own; });
    e_.If(b_.CreateICmpULT(thread_, e_.C32(kFreshRows)), [&] {
      Value* fresh = Tag(b_.CreateAdd(thread_, e_.C32(kProbeThreads)));
      WriteRow(kFreshOffset, [&](int) { return fresh; });
    });
    // Takes the first element of each row of the operand.
    constexpr uint32_t kOne = 0x3f80;
    e_.If(b_.CreateICmpULT(thread_, e_.C32(kProductN)),
          [&] { WriteRow(kFilterOffset, [&](int i) { return e_.C32(i == 0 ? kOne : 0); }); });
    e_.FenceProxyAsyncShared();
  }

  void Synchronize() {
    e_.TensorFence(/*after=*/false);
    e_.BarrierSync(0);
    e_.TensorFence(/*after=*/true);
  }

  void Begin() {
    InFirstWarp([&] {
      e_.IfElected([&] {
        for (int step = 0; step < 2; ++step) e_.MbarrierInit(Shared(kBarrierOffset + 8 * step), 1);
        e_.FenceMbarrierInit();
      });
      e_.TensorAlloc(Shared(kSlotOffset), kAllocatedColumns);
      e_.TensorRelinquish();
    });
    Synchronize();
    base_ = b_.CreateAlignedLoad(e_.I32(), Shared(kSlotOffset), llvm::Align(4));
  }

  // One thread issues; all wait until it is done.
  void Step(int step, const std::function<void()>& issue) {
    Value* barrier = Shared(kBarrierOffset + 8 * step);
    InFirstWarp([&] {
      e_.IfElected([&] {
        issue();
        e_.TensorCommit(barrier);
      });
    });
    e_.MbarrierWait(barrier, e_.C32(0));
    e_.TensorFence(/*after=*/true);
  }

  void WriteResult(ProbeExperiment experiment, int column) {
    Value* lanes = b_.CreateShl(warp_, 5 + 16);
    const ir::FragmentLayout layout{ir::FragmentKind::kRowPerLane, kProbeColumns};
    std::vector<Value*> words;
    for (Value* value : e_.TensorLoad(b_.CreateAdd(Cells(column), lanes), layout, DataType::kF32)) {
      words.push_back(b_.CreateBitCast(value, e_.I32()));
    }
    Value* lane = b_.CreateAdd(thread_, e_.C32(static_cast<uint32_t>(experiment) * kProbeThreads));
    Value* bytes = b_.CreateZExt(b_.CreateMul(lane, e_.C32(4 * kProbeColumns)), e_.I64());
    for (int half = 0; half < 2; ++half) {
      Value* address = b_.CreateAdd(b_.CreateAdd(e_.Parameter(0), bytes), e_.C64(static_cast<uint64_t>(half) * 16));
      e_.StoreGlobal(address, {words.begin() + 4 * half, words.begin() + 4 * half + 4}, e_.True());
    }
  }

  void End() {
    Synchronize();
    InFirstWarp([&] { e_.TensorDealloc(base_, kAllocatedColumns); });
  }

  Emitter e_;
  llvm::IRBuilder<>& b_;
  Value* shared_ = nullptr;
  Value* thread_ = nullptr;
  Value* warp_ = nullptr;
  Value* base_ = nullptr;  // of the allocated columns
};

}  // namespace

Result<PtxModule> EmitTensorProbe(const target::Target& target) {
  if (!target.Has(target::Feature::kTensorMemory)) {
    return MakeError(ErrorCode::kUnsupported, base::Cat(target.name, " has no Tensor Memory to probe"));
  }
  LS_ASSIGN(BackendText text,
            CompileModule(target, false, [&](llvm::Module& module) { ProbeEmitter(target, module).Emit(); }));
  return PtxModule{.ptx = std::move(text.ptx), .entry = kTensorProbeEntry, .llvm_ir = {}};
}

}  // namespace laneshift::compiler
