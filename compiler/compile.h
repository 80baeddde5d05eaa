// Problem + Schedule + Target -> TileProgram -> PTX.
//
// A tile program depends on the problem's class (types, majors, what TMA can reach, which terms the epilogue has), not
// on its sizes: sizes, pitches, alpha and beta are kernel parameters. One compiled kernel serves every problem of its
// class.
//
// Thread-safety: pure functions; EmitPtx may be called from any number of threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/operand_rings.h"
#include "ir/program.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// Raised whenever the PTX of the same tile program changes (compiler/emit/emission_test.cc fails where it was
// forgotten).
constexpr int kGeneratorRevision = 25;

// The compiler of tile programs to PTX, as it goes into every kernel's key and into every stored choice and trial:
// the revision and the LLVM that it is linked with, "14/llvm-22.1.0".
const std::string& Generator();

// What a schedule needs of an SM.
struct Footprint {
  int smem_bytes = 0;          // of a CTA
  int stage_bytes = 0;         // of it, each stage of the operands' ring, with its barriers; 0: there is none
  int filter_stage_bytes = 0;  // the same for the ring of filter tiles, if there is one
  int tmem_columns = 0;        // allocated
};

// The footprint, or why the schedule cannot run this problem on this target: kUnsupported for a rule,
// kResourceExhausted for what does not fit (which resource, how much over). REQUIRES: `problem` is complete
// (CompleteProblem).
Result<Footprint> ValidateSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target);

// The tile program as it is built: channels are abstract, sizes are known, nothing is verified. For estimates, which
// need many of them.
struct Sketch {
  ir::Program program;
  Footprint footprint;
  ir::OperandRings rings;
};
// Errors as ValidateSchedule.
Result<Sketch> SketchSchedule(const Problem& problem, const Schedule& schedule, const target::Target& target);
// The number of stages of a ring beyond which more are worth nothing that shared memory can be used for otherwise.
inline constexpr int kUsefulStages = 8;
// Changes the sketched program to that of `schedule`, which may differ from its own only in the depth of its rings;
// except for offsets in shared memory.
void DeepenRings(Sketch& sketch, const Schedule& schedule);

// The tile program after each pass, for inspection.
struct PassDump {
  std::string pass;
  std::string text;
};

// Of the main kernel; compiler/plan/kernel_plan.h has all kernels of a plan.
// Runs the passes of kPipeline (compile.cc): build, lower channels, assign storage; verified after each.
// ENSURES: the result is lowered and has its storage. Errors as ValidateSchedule.
Result<ir::Program> BuildProgram(const Problem& problem, const Schedule& schedule, const target::Target& target,
                                 std::vector<PassDump>* dumps = nullptr);

struct PtxModule {
  std::string ptx;
  std::string entry;    // name of the kernel
  std::string llvm_ir;  // before optimisation; only where asked for
};

// The PTX of users' functions (compiler/functions/function_module.h), by digest.
using FunctionTexts = std::map<std::string, std::string>;

struct EmitOptions {
  bool with_llvm_ir = false;
  FunctionTexts functions{};  // of every function that the program calls
};

// LLVM IR by the NVPTX back end, then text. kInternal if the emitted PTX breaks a rule of ptx_check.h; kNotFound if the
// program calls a function whose text is not given.
Result<PtxModule> EmitPtx(const ir::Program& program, const target::Target& target, const EmitOptions& options = {});

// Identifies a kernel: equal keys have equal PTX. Stable across processes.
std::string KernelKey(const ir::Program& program);

// The grid of a launch and the resources of its CTAs.
struct LaunchGeometry {
  unsigned grid = 1;     // CTAs
  unsigned cluster = 1;  // CTAs of one cluster
  unsigned threads = 0;
  unsigned smem_bytes = 0;
};

}  // namespace laneshift::compiler
