// The engine: describe -> plan -> workspace -> execute.
//
//   auto engine = laneshift::Engine::Open({.device = "auto"});
//   auto problem = laneshift::ParseProblem("gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16");
//   auto plan = engine->MakePlan(*problem);
//   plan->Execute(stream, {.a = a, .b = b, .d = d}, workspace);  // plan->workspace_bytes() of zeroed device memory
//
// Thread-safety: an Engine and a Plan may be used from any number of threads at once. A Plan keeps its engine's
// device alive. `Execute` allocates nothing on the device, synchronises nothing and touches no file: it may be captured
// into a CUDA graph. Making a plan may load a kernel, which a capture forbids: Prepare() beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "laneshift/epilogue_function.h"
#include "laneshift/problem.h"
#include "laneshift/quantize.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"

struct CUstream_st;

namespace laneshift {

// When the emulator lets asynchronous operations (bulk copies, MMAs, stores) take effect.
struct AsyncOrder {
  enum Kind : uint8_t {
    kEager,   // at once
    kLate,    // as late as the memory model allows
    kRandom,  // in an order drawn from `seed`
  } kind = kEager;
  uint64_t seed = 0;
};
// "eager", "late", "random:SEED".
Result<AsyncOrder> ParseAsyncOrder(std::string_view text);

// How the emulator computes tensor-core sums.
enum class Arithmetic : uint8_t {
  kHardware,  // bit-exact
  kFast,      // plain f32: close and faster, but not the bits of a GPU
};
// "hardware", "fast".
std::string_view ArithmeticName(Arithmetic arithmetic);
Result<Arithmetic> ParseArithmetic(std::string_view text);

// Whether the emulator grants work stealing between clusters (cluster launch control).
enum class ClusterCancel : uint8_t { kAccept, kRefuse };

enum class Assembler : uint8_t {
  kAuto,    // ptxas if it is found, otherwise the driver
  kPtxas,   // ptxas; an error if there is none
  kDriver,  // the driver's own compiler
};

// What MakePlan does for a problem without a stored measured schedule for the device.
enum class MissPolicy : uint8_t {
  kHeuristic,   // takes the timing model's best, at once
  kTune,        // measures first, in a separate process: seconds to minutes
  kBackground,  // takes the timing model's best at once, measures meanwhile, and switches plans to the winner
  kError,       // refuses: kNotFound
};
// "heuristic", "tune", "background", "error".
std::string_view MissPolicyName(MissPolicy policy);
Result<MissPolicy> ParseMissPolicy(std::string_view text);

// Whether a plan's kernel may be set up while the previous kernel on the stream finishes (programmatic dependent
// launch). In both cases it reads and writes nothing before the previous kernel has ended, but for an operand that the
// problem declares constant (ConstantOperand): that it reads, and its kernel is launched programmatically in both
// cases. In a graph it is a programmatic edge.
enum class LaunchOverlap : uint8_t { kNone, kProgrammatic };

// Limits of NVRTC for one source of users' epilogue functions. Exceeding one is an error that names the limit.
struct FunctionLimits {
  int64_t memory_bytes = int64_t{4} << 30;  // of address space
  int cpu_seconds = 60;
  int wall_seconds = 120;
};

struct EngineOptions {
  // "cuda", "cuda:N", "emulator", or "auto": a GPU if there is one with a supported target, otherwise the emulator.
  std::string device = "auto";
  // "sm_100a" or "sm_90a": the chip that the emulator emulates. Empty: the first of them; a GPU determines its target.
  std::string target{};
  // Where kernels and choices are stored. Empty: where the program `laneshift` stores them, LANESHIFT_CACHE_DIR, else
  // XDG_CACHE_HOME/laneshift, else ~/.cache/laneshift. ":memory:": only in memory.
  std::string store_directory{};
  // A database to read if the store has no entry (`laneshift db seal` makes one). Empty: the one installed with
  // laneshift, if there is one.
  std::string system_store{};
  // Whether its kernels are used too, and not only its choices and measurements. Their code then runs with the rights
  // of this process (docs/security.md).
  bool system_store_kernels = false;
  MissPolicy on_miss = MissPolicy::kHeuristic;
  // The program `laneshift`, which measures for kTune and kBackground in a separate process. Empty: searched on PATH
  // and where it was installed with the library.
  std::string tuner{};
  // For users' epilogue functions (laneshift/epilogue_function.h): directories in which to look for NVRTC and CUDA's
  // headers next to it, before the toolkit's usual place and the loader's path; additional include directories of their
  // sources; and the path of NVRTC, if it is to be fixed.
  std::vector<std::string> library_directories{};
  std::vector<std::string> include_directories{};
  std::string nvrtc{};
  // They are compiled in a separate process under these limits. It is the program `laneshift`, found as `tuner` is.
  FunctionLimits function_limits{};
  // Whether they may be compiled in this process, without limits, if there is no such program; otherwise that is
  // kNotFound (docs/security.md).
  bool functions_in_process = false;
  Assembler assembler = Assembler::kAuto;
  std::string ptxas{};  // path; empty: searched on PATH and in the toolkit's usual place
  LaunchOverlap launch_overlap = LaunchOverlap::kNone;
  // Of the emulator; without effect on a GPU.
  AsyncOrder async_order{};
  Arithmetic arithmetic = Arithmetic::kHardware;
  ClusterCancel cluster_cancel = ClusterCancel::kAccept;
  int emulator_threads = 0;          // 0: all cores; at most 1024
  int emulator_multiprocessors = 0;  // of the emulated device; 0: as many as the chip has; at most 1024
  // "NAME=ANSWER": the emulator's behaviour where the manual is silent (docs/emulator.md has the names and answers).
  std::vector<std::string> policies{};
};

// Device addresses. `c` is read if beta != 0, `bias` if the problem has one. `d` may equal `c`. The scale factors are
// read according to the problem's `scale` (laneshift/problem.h), that of D only if D is 8-bit, those of whole tensors
// only with Scaling::kNv. `epilogue`: the operands of the problem's epilogue, in the order of the steps that have one.
// `group_offsets`: only of a grouped GEMM, the row of A at which each group begins, and that at which the last one
// ends; with layout=masked instead `group_sizes`, the rows of each group; with rows=gather and scatter
// `a_row_indices` and `d_row_indices`, for each row of the product its row of A, and of C and D. `block_scale_d`: only
// with d_scale, the scale factors of the blocks of D, which are written, all of their layout; with d_scale=nv `scale_d`
// is the f32 factor of D. `metadata_a`: of a sparse A, aligned to 16 bytes (laneshift/sparsity.h).
struct GemmArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
  const void* scale_d = nullptr;
  const void* tensor_scale_a = nullptr;
  const void* tensor_scale_b = nullptr;
  EpilogueArguments epilogue{};
  const int32_t* group_offsets = nullptr;
  const int32_t* group_sizes = nullptr;
  void* block_scale_d = nullptr;
  const void* metadata_a = nullptr;
  const int32_t* a_row_indices = nullptr;
  const int32_t* d_row_indices = nullptr;
};

// The same for a convolution. `z` is read if beta != 0, `bias` if the problem has one. `y` may equal `z`.
struct ConvArguments {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* z = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* scale_x = nullptr;
  const void* scale_w = nullptr;
  const void* scale_y = nullptr;
  EpilogueArguments epilogue{};
};

// The same for the gradient of x. `z` is read if beta != 0 and may equal `x`.
struct ConvDgradArguments {
  const void* y = nullptr;
  const void* w = nullptr;
  const void* z = nullptr;
  void* x = nullptr;
  const void* scale_y = nullptr;
  const void* scale_w = nullptr;
  const void* scale_x = nullptr;
  EpilogueArguments epilogue{};
};

// The same for the gradient of w. `z` is read if beta != 0 and may equal `w`.
struct ConvWgradArguments {
  const void* y = nullptr;
  const void* x = nullptr;
  const void* z = nullptr;
  void* w = nullptr;
  const void* scale_y = nullptr;
  const void* scale_x = nullptr;
  const void* scale_w = nullptr;
};

// One alternative for each name of ProblemKind(); a grouped GEMM has those of a GEMM.
using Arguments = std::variant<GemmArguments, ConvArguments, ConvDgradArguments, ConvWgradArguments>;

// Where a kernel came from.
enum class CacheState : uint8_t { kMemory, kStore, kCompiled };
std::string_view CacheStateName(CacheState state);  // "memory", "store", "compiled"

// Why a plan has its schedule. The program `laneshift`, its JSON and its store use the same names.
enum class ChoiceOrigin : uint8_t {
  kRule,       // the timing model's best
  kPrior,      // measured with another revision of the code generator: a better guess, but not a measured choice
  kPredicted,  // stored without a measurement: the best prediction, run and found right
  kStale,      // measured under another driver; to be measured again when there is time
  kMeasured,
  kGiven,  // fixed by the caller's constraint
};
std::string_view ChoiceOriginName(ChoiceOrigin origin);  // "rule", "prior", …

// What a plan is, and the cost of making it.
struct PlanReport {
  std::string problem;  // one-line form
  std::string target;
  std::string device;    // the device's own name
  std::string schedule;  // text form
  ChoiceOrigin choice = ChoiceOrigin::kRule;
  CacheState cache = CacheState::kCompiled;
  double plan_ms = 0;      // everything of MakePlan; 0 if the plan was remembered
  double ptx_ms = 0;       // tile program to PTX; 0 if it came from a cache
  double assemble_ms = 0;  // PTX to loaded module; 0 if a cubin came from a cache
  int registers = 0;       // per thread; 0 if the device does not report it (the emulator)
  int local_bytes = 0, smem_bytes = 0, threads = 0;
  unsigned grid = 0;
};

// What launches on the emulator leave in addition to their results.
struct EmulatorReport {
  uint64_t launches = 0;
  // What ended a kernel: the kind of fault, kernel, PTX line, CTA and warp, and then who waits for whom.
  std::vector<std::string> faults{};
  // Races, uninitialised reads, leaks and the like (docs/emulator.md), one line each with the same place.
  std::vector<std::string> hazards{};
  // The questions that the manual leaves open and that a result depends on: "shift_scope=groups: 12 uses (…)".
  std::vector<std::string> policies{};
  std::string output{};  // of printf in kernels
  Arithmetic arithmetic = Arithmetic::kHardware;

  bool Clean() const { return faults.empty() && hazards.empty(); }
};

class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // Describes the schedule that the next Execute uses; valid as long as the plan. It changes if tuning in the
  // background (MissPolicy::kBackground) finds a better schedule that needs no more workspace.
  const PlanReport& report() const;
  // Device memory that Execute needs in addition to its arguments, in bytes; 0: none. It must be zero before its first
  // use. Plans may use one workspace one after another, never at the same time, and leave it ready for the next.
  size_t workspace_bytes() const;
  // Enqueues the kernel, after one that packs its operands if the schedule says so, and before those that add the
  // partial rows of deterministic reductions. `stream` is a CUstream or cudaStream_t of the engine's device; null is
  // the default stream. kInvalidArgument, by name: arguments of another kind of problem; a pointer or workspace that is
  // missing or misaligned, that the device cannot use, or whose allocation is smaller than its operand. kDriver carries
  // the driver's message, and says so if the fault of an earlier kernel has lost the context. On the emulator the
  // kernel has finished when the call returns: its fault is this call's error (kDriver; kTimeout for a deadlock), the
  // report (Engine::TakeReport) has the details, and the engine can be used as before.
  Status Execute(CUstream_st* stream, const Arguments& arguments, void* workspace = nullptr) const;
  // So that plain braces work: Execute(stream, {.a = a, .b = b, .d = d}), Execute(stream, {.x = x, .w = w, .y = y}).
  Status Execute(CUstream_st* stream, const GemmArguments& arguments, void* workspace = nullptr) const {
    return Execute(stream, Arguments(arguments), workspace);
  }
  Status Execute(CUstream_st* stream, const ConvArguments& arguments, void* workspace = nullptr) const {
    return Execute(stream, Arguments(arguments), workspace);
  }

 private:
  friend class Engine;
  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

class Engine {
 public:
  // kNotFound: no such device. kUnsupported: the device or its driver cannot run any of laneshift's targets.
  static Result<Engine> Open(const EngineOptions& options);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Chooses a schedule (within `constraint`), compiles or fetches the kernel, loads it. May take milliseconds, or as
  // long as the miss policy allows; afterwards the same problem is a look-up. kUnsupported: no schedule fits, and why.
  // kNotFound: see MissPolicy::kError. kInvalidArgument also during a stream capture, which is detected unless the
  // captured streams do not wait for the default stream.
  Result<Plan> MakePlan(const Problem& problem, const ScheduleConstraint& constraint = {}) const;

  // Makes the plans of all problems and keeps them, so that MakePlan and Run find them at once and work during a
  // capture. Stops at the first failure.
  Status Prepare(std::span<const Problem> problems) const;

  // ParseProblem for a problem whose epilogue may name users' functions in files: "… epilogue=bias_n+act.cu:Swish:1.5".
  // Errors of a function are those of MakeStep.
  Result<Problem> ReadProblem(std::string_view text) const;

  // Compiles a user's function, or finds it in the store. kInvalidArgument: the source does not compile (with NVRTC's
  // log), lacks the function or has several of that name, or its signature is not supported. kUnsupported: there is no
  // NVRTC, or the function does what an epilogue cannot. For the function of a gated linear unit, `pairs` of the step
  // selects the gate/up layout.
  Result<EpilogueStep> MakeStep(const FunctionSource& source) const;

  // Waits until nothing is left to measure in the background.
  void FinishTuning() const;

  // Compile-and-run: MakePlan, with pointer alignments taken from `arguments`, then Execute. If the plan would need a
  // workspace, the schedule is one with split_k=1 and no packed operand. kInvalidArgument: `stream` is being captured
  // and the plan does not exist yet; kUnsupported: every plan needs a workspace (deterministic reductions, gradients of
  // convolutions that pack operands).
  Status Run(const Problem& problem, CUstream_st* stream, const Arguments& arguments) const;
  Status Run(const Problem& problem, CUstream_st* stream, const GemmArguments& arguments) const {
    return Run(problem, stream, Arguments(arguments));
  }
  Status Run(const Problem& problem, CUstream_st* stream, const ConvArguments& arguments) const {
    return Run(problem, stream, Arguments(arguments));
  }

  // Quantises numbers in device memory, and the inverse: Quantize and Dequantize of laneshift/quantize.h, with the same
  // shapes, types and bits, as one kernel on `stream`. All pointers are device addresses: numbers are aligned to their
  // size and `factors` to 16 bytes. `scale`: with OutputScaling::kNv one f32, positive, which the kernel reads; null
  // otherwise. The first call for some types loads a kernel, which a capture forbids. kInvalidArgument: as Quantize, a
  // pointer that is missing, misaligned, or smaller than its tensor, or a capture; other errors as Plan::Execute.
  Status Quantize(CUstream_st* stream, const QuantizedTensor& tensor, DataType from_type, const void* from,
                  const float* scale, void* elements, void* factors) const;
  Status Dequantize(CUstream_st* stream, const QuantizedTensor& tensor, const void* elements, const void* factors,
                    const float* scale, DataType to_type, void* to) const;

  // The report of all launches on this process's emulator since the last call: faults, hazards and open questions.
  // Empty on a GPU, which detects none of them. Engines of one process share the emulator and its report.
  std::optional<EmulatorReport> TakeReport() const;

  // Name of the device and of the target whose code it runs.
  std::string device_name() const;
  std::string target() const;
  // Problems that made no call fail, such as a store that is not durable; in order, each once.
  std::vector<std::string> warnings() const;

  // For laneshift's own tools: the parts below the public interface (runtime/engine_parts.h).
  struct Parts;
  Parts& parts() const;

 private:
  friend class DeviceMemory;
  struct Impl;
  explicit Engine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace laneshift
