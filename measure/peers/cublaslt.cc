#include "measure/peers/cublaslt.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/shared_library.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/event.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/problem_keys.h"
#include "measure/peers/cublas_types.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using base::SharedLibrary;

// Values of cublasLt.h and library_types.h.
constexpr int32_t kOpN = 0, kOpT = 1;
constexpr int kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26, kScalePointerA = 17,
              kScalePointerB = 18, kScalePointerD = 20, kFastSum = 25;
constexpr int kBatchCount = 5, kBatchStride = 6;
constexpr int kMaxWorkspace = 1;
constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA recommends for Hopper and later
constexpr int kMostAlgorithms = 16;
constexpr int kTimedCalls = 5;

struct Algorithm {  // cublasLtMatmulHeuristicResult_t
  std::array<uint64_t, 8> algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  std::array<int, 4> reserved;
};

// Epilogues that the library has: a bias along the rows of its D, which are our columns, then a function.
constexpr uint32_t kPlain = 1, kAddsBias = 4;
struct KnownFunction {
  EpilogueKind kind;
  uint32_t code;
};
constexpr KnownFunction kKnownFunctions[] = {{EpilogueKind::kRelu, 2}, {EpilogueKind::kGeluTanh, 32}};

// The library's code for the whole epilogue of the problem, or the parts without a code, which are left out.
struct LibraryEpilogue {
  uint32_t code = kPlain;
  bool whole = true;
};
LibraryEpilogue EpilogueOf(const GemmProblem& problem) {
  uint32_t code = problem.bias == BiasAxis::kN ? kAddsBias : 0;
  size_t i = 0;
  const Epilogue& steps = problem.epilogue;
  if (code == 0 && i < steps.size() && steps[i].kind == EpilogueKind::kBiasColumn) code = kAddsBias, ++i;
  for (const KnownFunction& function : kKnownFunctions) {
    if (i < steps.size() && steps[i].kind == function.kind) {
      code += function.code;
      ++i;
      break;
    }
  }
  if (i < steps.size() || problem.bias == BiasAxis::kM) return {kPlain, false};
  return {code == 0 ? kPlain : code, true};
}

struct Functions {
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*create_operation)(void** operation, int compute, int scale_type) = nullptr;
  int (*set_operation)(void* operation, int attribute, const void* value, size_t bytes) = nullptr;
  int (*destroy_operation)(void* operation) = nullptr;
  int (*create_layout)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t pitch) = nullptr;
  int (*set_layout)(void* layout, int attribute, const void* value, size_t bytes) = nullptr;
  int (*destroy_layout)(void* layout) = nullptr;
  int (*create_preference)(void** preference) = nullptr;
  int (*set_preference)(void* preference, int attribute, const void* value, size_t bytes) = nullptr;
  int (*destroy_preference)(void* preference) = nullptr;
  int (*propose)(void* handle, void* operation, void* a, void* b, void* c, void* d, void* preference, int wanted,
                 Algorithm* algorithms, int* found) = nullptr;
  int (*multiply)(void* handle, void* operation, const void* alpha, const void* a, void* a_layout, const void* b,
                  void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                  const void* algorithm, void* workspace, size_t bytes, device::CuStream stream) = nullptr;
};

Result<Functions> Bind(const SharedLibrary& library) {
  Functions f;
  LS_TRY(library.Bind("cublasLtCreate", &f.create));
  LS_TRY(library.Bind("cublasLtDestroy", &f.destroy));
  LS_TRY(library.Bind("cublasLtMatmulDescCreate", &f.create_operation));
  LS_TRY(library.Bind("cublasLtMatmulDescSetAttribute", &f.set_operation));
  LS_TRY(library.Bind("cublasLtMatmulDescDestroy", &f.destroy_operation));
  LS_TRY(library.Bind("cublasLtMatrixLayoutCreate", &f.create_layout));
  LS_TRY(library.Bind("cublasLtMatrixLayoutSetAttribute", &f.set_layout));
  LS_TRY(library.Bind("cublasLtMatrixLayoutDestroy", &f.destroy_layout));
  LS_TRY(library.Bind("cublasLtMatmulPreferenceCreate", &f.create_preference));
  LS_TRY(library.Bind("cublasLtMatmulPreferenceSetAttribute", &f.set_preference));
  LS_TRY(library.Bind("cublasLtMatmulPreferenceDestroy", &f.destroy_preference));
  LS_TRY(library.Bind("cublasLtMatmulAlgoGetHeuristic", &f.propose));
  LS_TRY(library.Bind("cublasLtMatmul", &f.multiply));
  return f;
}

Status Check(int status, std::string_view call) {
  if (status == 0) return Ok();
  constexpr int kNotSupported = 15;
  return MakeError(status == kNotSupported ? ErrorCode::kUnsupported : ErrorCode::kDriver,
                   Cat(call, ": cuBLAS status ", status));
}

std::string Ordinal(size_t number) {
  constexpr std::string_view kEndings[] = {"st", "nd", "rd"};
  const bool teen = number % 100 / 10 == 1;
  return Cat(number, !teen && number % 10 >= 1 && number % 10 <= 3 ? kEndings[number % 10 - 1] : "th");
}

}  // namespace

struct Cublaslt::State {
  Functions f;
  device::Context context;
  device::CuStream stream = nullptr;
  GemmProblem problem;
  LibraryEpilogue epilogue;
  void* handle = nullptr;
  void* operation = nullptr;
  void* preference = nullptr;
  // cuBLAS is column-major: our row-major D is its D transposed, so that its A is our B.
  void* left = nullptr;
  void* right = nullptr;
  void* out = nullptr;
  std::optional<device::DeviceBuffer> workspace;
  Algorithm first{}, best{};
  std::string choice;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const auto active = device::ActiveContext::Enter(context);
    if (preference != nullptr) f.destroy_preference(preference);
    for (void* layout : {left, right, out}) {
      if (layout != nullptr) f.destroy_layout(layout);
    }
    if (operation != nullptr) f.destroy_operation(operation);
    if (handle != nullptr) f.destroy(handle);
  }

  template <typename T>
  Status SetOperation(int attribute, const T& value) {
    return Check(f.set_operation(operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }

  // A stored matrix of `columns` runs of `rows` contiguous elements.
  Status Describe(void** layout, DataType type, int64_t rows, int64_t columns, int64_t pitch, int64_t stride) {
    LS_TRY(Check(f.create_layout(layout, ir::InfoOf(type).cuda, static_cast<uint64_t>(rows),
                                 static_cast<uint64_t>(columns), pitch),
                 "cublasLtMatrixLayoutCreate"));
    const auto batch = static_cast<int32_t>(problem.batch);
    LS_TRY(Check(f.set_layout(*layout, kBatchCount, &batch, sizeof batch), "cublasLtMatrixLayoutSetAttribute"));
    return Check(f.set_layout(*layout, kBatchStride, &stride, sizeof stride), "cublasLtMatrixLayoutSetAttribute");
  }

  Status DescribeProblem() {
    const GemmProblem& p = problem;
    const bool a_k = p.a_major == Major::kK, b_k = p.b_major == Major::kK;
    const CublasArithmetic arithmetic = ArithmeticOf(p);
    LS_TRY(Check(f.create_operation(&operation, arithmetic.compute, arithmetic.scale), "cublasLtMatmulDescCreate"));
    LS_TRY(SetOperation(kTransA, b_k ? kOpT : kOpN));
    LS_TRY(SetOperation(kTransB, a_k ? kOpN : kOpT));
    if (ir::IsFloat8(p.a)) LS_TRY(SetOperation(kFastSum, static_cast<int8_t>(p.sum == SumPrecision::kFast ? 1 : 0)));
    LS_TRY(SetOperation(kEpilogue, epilogue.code));
    if ((epilogue.code & kAddsBias) != 0) {
      const DataType type = p.bias == BiasAxis::kN ? ir::AddendType(p.d) : ir::OperandTypeOf(p.epilogue[0], p.d);
      LS_TRY(SetOperation(kBiasType, static_cast<int32_t>(ir::InfoOf(type).cuda)));
    }
    LS_TRY(Describe(&left, p.b, b_k ? p.k : p.n, b_k ? p.n : p.k, p.ldb, p.stride_b));
    LS_TRY(Describe(&right, p.a, a_k ? p.k : p.m, a_k ? p.m : p.k, p.lda, p.stride_a));
    return Describe(&out, p.d, p.n, p.m, p.ldd, p.stride_d);
  }

  Status SetPointers(const GemmArguments& arguments) {
    if ((epilogue.code & kAddsBias) != 0) {
      const void* bias = problem.bias == BiasAxis::kN ? arguments.bias : arguments.epilogue[0];
      LS_TRY(SetOperation(kBiasPointer, bias));
    }
    if (problem.scale != Scaling::kTensor) return Ok();
    LS_TRY(SetOperation(kScalePointerA, arguments.scale_b));
    LS_TRY(SetOperation(kScalePointerB, arguments.scale_a));
    return ir::IsFloat8(problem.d) ? SetOperation(kScalePointerD, arguments.scale_d) : Ok();
  }

  Result<std::vector<Algorithm>> Propose() {
    LS_TRY(Check(f.create_preference(&preference), "cublasLtMatmulPreferenceCreate"));
    LS_TRY(Check(f.set_preference(preference, kMaxWorkspace, &kWorkspaceBytes, sizeof kWorkspaceBytes),
                 "cublasLtMatmulPreferenceSetAttribute"));
    std::vector<Algorithm> algorithms(kMostAlgorithms);
    int found = 0;
    LS_TRY(Check(
        f.propose(handle, operation, left, right, out, out, preference, kMostAlgorithms, algorithms.data(), &found),
        "cublasLtMatmulAlgoGetHeuristic"));
    algorithms.resize(static_cast<size_t>(found));
    std::erase_if(algorithms, [](const Algorithm& algorithm) { return algorithm.status != 0; });
    if (algorithms.empty()) return MakeError(ErrorCode::kUnsupported, "cuBLASLt has no algorithm for this problem");
    return algorithms;
  }

  Status Multiply(const Algorithm& algorithm, const GemmArguments& arguments) {
    LS_TRY(SetPointers(arguments));
    const CublasScalar alpha(problem, problem.alpha), beta(problem, problem.beta);
    return Check(f.multiply(handle, operation, alpha.pointer(), arguments.b, left, arguments.a, right, beta.pointer(),
                            arguments.d, out, arguments.d, out, &algorithm.algorithm,
                            reinterpret_cast<void*>(workspace->pointer()), kWorkspaceBytes, stream),
                 "cublasLtMatmul");
  }

  // The median over a few calls, each after `scratch` has swept the operands out of the cache.
  Result<float> Milliseconds(const Algorithm& algorithm, const device::Stream& on, const GemmArguments& arguments,
                             const device::DeviceBuffer& scratch) {
    LS_TRY(Multiply(algorithm, arguments));
    LS_ASSIGN(const device::Event start, device::Event::Create(context));
    LS_ASSIGN(const device::Event end, device::Event::Create(context));
    std::array<float, kTimedCalls> times;
    for (float& time : times) {
      LS_TRY(scratch.FillBytes(on, 0));
      LS_TRY(start.Record(on));
      LS_TRY(Multiply(algorithm, arguments));
      LS_TRY(end.Record(on));
      LS_TRY(end.Synchronize());
      LS_ASSIGN(time, end.MillisecondsSince(start));
    }
    std::nth_element(times.begin(), times.begin() + kTimedCalls / 2, times.end());
    return times[kTimedCalls / 2];
  }

  Status Choose(const device::Device& device, const device::Stream& on, const GemmArguments& arguments) {
    LS_TRY(SetPointers(arguments));
    LS_ASSIGN(const std::vector<Algorithm> algorithms, Propose());
    const auto sweep = static_cast<size_t>(2 * std::max(1, device.facts().l2_bytes));
    LS_ASSIGN(const device::DeviceBuffer scratch, device::DeviceBuffer::Allocate(context, sweep));
    first = best = algorithms.front();
    float least = 1e30f;
    size_t place = 0;
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const auto time = Milliseconds(algorithms[i], on, arguments, scratch);
      if (!time && i == 0) return time.error();
      if (!time || *time >= least) continue;
      least = *time;
      best = algorithms[i];
      place = i;
    }
    choice = Cat("fastest of ", algorithms.size(), " algorithms, the heuristic's ", Ordinal(place + 1));
    return Ok();
  }
};

Cublaslt::Cublaslt(std::unique_ptr<State> state) : state_(std::move(state)) {}
Cublaslt::Cublaslt(Cublaslt&&) noexcept = default;
Cublaslt& Cublaslt::operator=(Cublaslt&&) noexcept = default;
Cublaslt::~Cublaslt() = default;

Result<Cublaslt> Cublaslt::Open(const std::vector<std::string>& library_directories, const device::Device& device,
                                const device::Stream& stream, const GemmProblem& problem,
                                const GemmArguments& arguments) {
  if (problem.scale == Scaling::kBlock || problem.scale == Scaling::kRow) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("cuBLASLt is not asked for scale=", ir::NameOf(problem.scale), "; compare with scale=tensor"));
  }
  if (problem.scale_layout != ScaleLayout::k128x4) {
    return MakeError(ErrorCode::kUnsupported,
                     "cuBLASLt reads scale factors in blocks of 128x4; compare without scale_layout=linear");
  }
  if (problem.sparse != Sparsity::kNone) {
    return MakeError(ErrorCode::kUnsupported, "cuBLASLt multiplies dense matrices; compare without sparse=a");
  }
  if (ir::IsGated(problem.epilogue)) {
    return MakeError(ErrorCode::kUnsupported,
                     "cuBLASLt has no gated linear units; compare with an epilogue without them");
  }
  auto library = SharedLibrary::Open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}, library_directories);
  if (!library) {
    return MakeError(ErrorCode::kUnsupported, Cat("no cuBLASLt: ", library.error().message,
                                                  "; install the CUDA toolkit's libcublas or set CUDA_HOME"));
  }
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  auto state = std::make_unique<State>();
  state->context = device.context();
  state->stream = stream.handle();
  state->problem = problem;
  state->epilogue = EpilogueOf(problem);
  LS_ASSIGN(state->f, Bind(*library));
  LS_TRY(Check(state->f.create(&state->handle), "cublasLtCreate"));
  LS_ASSIGN(state->workspace, device::DeviceBuffer::Allocate(device.context(), kWorkspaceBytes));
  LS_TRY(state->DescribeProblem());
  LS_TRY(state->Choose(device, stream, arguments));
  return Cublaslt(std::move(state));
}

Status Cublaslt::MultiplyByBest(const GemmArguments& arguments) const {
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(state_->context));
  return state_->Multiply(state_->best, arguments);
}
Status Cublaslt::MultiplyByFirst(const GemmArguments& arguments) const {
  LS_ASSIGN(const device::ActiveContext active, device::ActiveContext::Enter(state_->context));
  return state_->Multiply(state_->first, arguments);
}

const std::string& Cublaslt::choice() const { return state_->choice; }
bool Cublaslt::fuses() const { return state_->epilogue.whole; }

}  // namespace laneshift::measure
