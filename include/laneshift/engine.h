// The engine: describe -> plan -> workspace -> execute.
//
//   auto engine = laneshift::Engine::Open({.device = "auto"});
//   auto problem = laneshift::ParseProblem("gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16");
//   auto plan = engine->MakePlan(*problem);
//   plan->Execute(stream, {.a = a, .b = b, .d = d}, workspace);  // plan->workspace_bytes() of zeroed device memory
//
// Thread-safety: an Engine may be used from any number of threads at once, and a Plan too. A Plan keeps its engine's
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

// How the emulator computes the tensor core's sums.
enum class Arithmetic : uint8_t {
  kHardware,  // bit for bit as the chip does
  kFast,      // plain f32: close, quicker, and not what a GPU gives
};
// "hardware", "fast".
std::string_view ArithmeticName(Arithmetic arithmetic);
Result<Arithmetic> ParseArithmetic(std::string_view text);

// Whether the emulator lets clusters take over the work of others (cluster launch control).
enum class Takeover : uint8_t { kGranted, kRefused };

enum class Assembler : uint8_t {
  kAuto,    // ptxas where it is found, else the driver
  kPtxas,   // ptxas; an error where there is none
  kDriver,  // the driver's own compiler
};

// What MakePlan does about a problem of which no measured schedule is stored for the device.
enum class MissPolicy : uint8_t {
  kHeuristic,   // takes the timing model's best, at once
  kTune,        // measures first, in a process of its own: seconds to minutes
  kBackground,  // takes the timing model's best at once, measures meanwhile, and lets plans switch to the winner
  kError,       // refuses: kNotFound
};
// "heuristic", "tune", "background", "error".
std::string_view MissPolicyName(MissPolicy policy);
Result<MissPolicy> ParseMissPolicy(std::string_view text);

// Whether a plan's kernel may be set up while the kernel before it on the stream still ends (programmatic dependent
// launch). Either way it reads and writes nothing before that one has ended; graphs take it as an edge of a kind of its
// own.
enum class LaunchOverlap : uint8_t { kNone, kProgrammatic };

// What NVRTC may take for one source of users' epilogue functions: beyond it the function is an error that says which.
struct FunctionLimits {
  int64_t memory_bytes = int64_t{4} << 30;  // of address space
  int cpu_seconds = 60;
  int wall_seconds = 120;
};

struct EngineOptions {
  // "cuda", "cuda:N", "emulator", or "auto": a GPU if there is one that has a target, else the emulator.
  std::string device = "auto";
  // "sm_100a" or "sm_90a": which chip the emulator stands for. Empty: the emulator's first; a GPU decides for itself.
  std::string target{};
  // Where kernels and choices are kept. Empty: where the program `laneshift` keeps them, LANESHIFT_CACHE_DIR, else
  // XDG_CACHE_HOME/laneshift, else ~/.cache/laneshift. ":memory:": in memory only.
  std::string store_directory{};
  // A database that is read where the store has nothing (`laneshift db seal` makes one). Empty: the one that was
  // installed with laneshift, if there is one.
  std::string system_store{};
  // Whether its kernels are used too, and not only its choices and measurements: their code then runs as this process's
  // own (docs/security.md).
  bool system_store_kernels = false;
  MissPolicy on_miss = MissPolicy::kHeuristic;
  // The program `laneshift`, which measures for kTune and kBackground in a process of its own. Empty: searched on PATH
  // and where it was installed with the library.
  std::string tuner{};
  // For users' epilogue functions (laneshift/epilogue_function.h): where NVRTC, and CUDA's headers beside it, are
  // looked for, before the toolkit's usual place and the loader's own; where else their sources' includes are; and
  // NVRTC's path, if no other is to be taken.
  std::vector<std::string> library_directories{};
  std::vector<std::string> include_directories{};
  std::string nvrtc{};
  // They are compiled in a process of their own under these limits. It is the program `laneshift`, found as `tuner` is;
  // where that is not installed they are compiled in this process, without limits, and one line of the log says so.
  FunctionLimits function_limits{};
  Assembler assembler = Assembler::kAuto;
  std::string ptxas{};  // path; empty: searched on PATH and in the toolkit's usual place
  LaunchOverlap launch_overlap = LaunchOverlap::kNone;
  // Of the emulator; without effect on a GPU.
  AsyncOrder async_order{};
  Arithmetic arithmetic = Arithmetic::kHardware;
  Takeover takeover = Takeover::kGranted;
  int emulator_threads = 0;          // 0: all cores
  int emulator_multiprocessors = 0;  // of the emulated device; 0: as many as the chip has
  // "NAME=ANSWER": what the emulator does where the manual is silent (docs/emulator.md has the names and answers).
  std::vector<std::string> policies{};
};

// Device addresses. `c` is read where beta != 0, `bias` where the problem has one. `d` may equal `c`. The factors, f32,
// are read where the problem's `scale` says so (laneshift/problem.h), that of D where D is 8-bit besides. `epilogue`:
// the operands of the problem's epilogue, in the order of the steps that have one.
struct GemmArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
  const void* scale_d = nullptr;
  EpilogueArguments epilogue{};
};

// The same of a convolution. `z` is read where beta != 0, `bias` where the problem has one. `y` may equal `z`.
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

// One alternative for each kind of problem, in the order of Problem.
using Arguments = std::variant<GemmArguments, ConvArguments>;

// Where a kernel came from.
enum class CacheState : uint8_t { kMemory, kStore, kCompiled };
std::string_view CacheStateName(CacheState state);  // "memory", "store", "compiled"

// Why a plan has its schedule. `laneshift`, its JSON and its store say the same words.
enum class ChoiceOrigin : uint8_t {
  kRule,       // the timing model's best
  kPrior,      // measured with another revision of the code generator: a better guess, no measured choice
  kPredicted,  // stored without a measurement: the best prediction, run and found right
  kStale,      // measured under another driver; to be measured again when there is time
  kMeasured,
  kGiven,  // the caller's constraint left nothing open that a store could know
};
std::string_view ChoiceOriginName(ChoiceOrigin origin);  // "rule", "prior", …

// What a plan is and what making it cost.
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
  int registers = 0;       // of a thread; 0 where the device does not tell (the emulator)
  int local_bytes = 0, smem_bytes = 0, threads = 0;
  unsigned grid = 0;
};

// What launches on the emulator have left beside their results.
struct EmulatorReport {
  uint64_t launches = 0;
  // What ended a kernel: the kind of fault, kernel, PTX line, CTA and warp, and below it who waits for whom.
  std::vector<std::string> faults{};
  // Races, uninitialised reads, leaks and the like (docs/emulator.md), one line each, which name the same.
  std::vector<std::string> hazards{};
  // The questions that the manual leaves open and a result depends on: "shift_scope=groups: 12 uses (…)".
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

  // Of the schedule that the next Execute uses; valid as long as the plan. It changes where tuning in the background
  // (MissPolicy::kBackground) finds a better one, which takes no more workspace.
  const PlanReport& report() const;
  // Device memory that Execute needs beside its arguments, in bytes; 0: none. It is zero before its first use; plans
  // may use one workspace one after another, never at the same time, and leave it as the next one needs it.
  size_t workspace_bytes() const;
  // Enqueues the kernel, behind one that packs its operands where the schedule says so, and before those that add up
  // the epilogue's sums where they are deterministic. `stream` is a CUstream or cudaStream_t of the engine's device;
  // null is the default stream.
  // kInvalidArgument, by name: arguments of another kind of problem; a pointer or workspace that is missing or
  // misaligned, is no address that the device can use, or has less memory than its operand takes. kDriver carries the
  // driver's words, and says so where an earlier kernel's fault has lost the context. On the emulator the kernel has
  // run when the call returns: its fault is this call's error (kDriver, kTimeout of a deadlock), the report
  // (Engine::TakeReport) tells it in full, and the engine can be used as before.
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
  // kNotFound: as MissPolicy::kError says. kInvalidArgument also while the device is seen to be captured from; of
  // streams that do not wait for the default stream it is not seen.
  Result<Plan> MakePlan(const Problem& problem, const ScheduleConstraint& constraint = {}) const;

  // Makes the plans of all of them and keeps them, so that MakePlan and Run find them at once and work during a
  // capture. The first failure ends it.
  Status Prepare(std::span<const Problem> problems) const;

  // A problem whose epilogue may name users' functions in files: "… epilogue=bias_n+act.cu:Swish:1.5". As ParseProblem
  // otherwise; errors of a function as MakeStep.
  Result<Problem> ReadProblem(std::string_view text) const;

  // Compiles a user's function, or finds it in the store. kInvalidArgument: the source does not compile (with NVRTC's
  // log), lacks the function or has several of the name, or its signature cannot be served. kUnsupported: there is no
  // NVRTC, or the function does what an epilogue cannot. Of a function that joins pairs, `pairs` of the step says from
  // where they come.
  Result<EpilogueStep> MakeStep(const FunctionSource& source) const;

  // Waits until nothing is left to measure in the background.
  void FinishTuning() const;

  // Compile-and-run: MakePlan, with pointer alignments taken from `arguments`, then Execute; by a schedule with
  // split_k=1 and no operand packed where the plan's needs a workspace. kInvalidArgument: `stream` is being captured
  // and the plan is not there yet; kUnsupported: every plan needs a workspace (the epilogue's sums are to be
  // deterministic).
  Status Run(const Problem& problem, CUstream_st* stream, const Arguments& arguments) const;
  Status Run(const Problem& problem, CUstream_st* stream, const GemmArguments& arguments) const {
    return Run(problem, stream, Arguments(arguments));
  }
  Status Run(const Problem& problem, CUstream_st* stream, const ConvArguments& arguments) const {
    return Run(problem, stream, Arguments(arguments));
  }

  // What the launches of this process's emulator have left since the last call: faults, hazards and open questions.
  // Nothing on a GPU, which notices none of it. Engines of one process share the emulator and its report.
  std::optional<EmulatorReport> TakeReport() const;

  // Name of the device and of the target whose code it runs.
  std::string device_name() const;
  std::string target() const;
  // What went wrong without failing anything, such as a store that is not durable; in order, each once.
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
