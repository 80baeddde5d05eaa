// The report of a launch: hazards, the fault that ended it, counters.
//
// Thread-safety: HazardLog may be called from all host threads of a launch; the rest are plain values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/hazards/hazard_rules.h"
#include "emulator/ptx/ptx_types.h"
#include "emulator/units/fused_sum.h"
#include "emulator/units/policies.h"

namespace laneshift::emulator {

struct ModuleSyntax;

// "k(float*)" for "_Z1kPf", and for "_Z1kPf (f)", as places name a function in a kernel, "k(float*) (f)". Other names
// as they are.
std::string ReadableName(std::string_view name);

// A line of the program that PTX was compiled from; line 0: not known.
struct SourcePosition {
  std::string file;  // as the compiler was given it
  int line = 0;

  std::string Print() const;  // "file.cu:12"
};

// Where in a launch something happened.
struct SourcePlace {
  std::string kernel;
  int line = 0;
  std::array<uint32_t, 3> cta{};
  int warp = 0;
  int lane = -1;  // -1: the warp as a whole
  // Of the line, when the report is made (source_lines.h).
  SourcePosition source = {}, inlined_at = {};
  std::string ptx = {};

  // Of the kernel: within a function or after a label `kernel` names that, too, as "kernel (function)".
  std::string Entry() const { return kernel.substr(0, kernel.find(" (")); }
  std::string Print() const;
};

struct Hazard {
  HazardKind kind;
  SourcePlace place;  // of the first occurrence in the first CTA of the grid that has it
  std::string message;
  uint64_t count = 1;
  HazardLevel level = HazardLevel::kError;

  std::string Print() const;
};

enum class FaultKind : uint8_t {
  kIllegalAddress,
  kMisalignedAddress,
  kIllegalInstruction,
  kInvalidAddressSpace,
  kLaunchFailure,  // "unspecified launch failure" on hardware: trap, mbarrier overflow
  kDeadlock,
  kLivelock,
// Limits (limits.def).
#define LIMIT(field, fault, standard, counts) k##fault,
#include "emulator/machine/limits.def"
};
std::string_view NameOf(FaultKind kind);

// One path of a warp that waits.
struct WaitingPath {
  SourcePlace who;
  std::string what;                    // "waits for parity 0 of the mbarrier at …"
  std::vector<std::string> could_end;  // the warps that could end it, if known
};

struct Fault {
  FaultKind kind = FaultKind::kLaunchFailure;
  SourcePlace place;
  std::string message;
  // Of a deadlock, a livelock or an exceeded limit: all waiters, and warps each of which waits for the next.
  std::vector<WaitingPath> waits = {};
  std::vector<std::string> cycle = {};

  std::string Print() const;
  // Several lines: Print(), and below it who waits for whom.
  std::string Picture() const;
};

struct Counters {
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t mma_instructions = 0;  // tcgen05.mma and wgmma
  uint64_t mma_multiplies = 0;    // M x N x K of them
  uint64_t mma_shared_bytes = 0;  // read by them
  uint64_t bytes_global_to_shared = 0;
  uint64_t bytes_shared_to_global = 0;
  uint64_t tensor_copies = 0;  // tcgen05.cp
  uint64_t tensor_copy_bytes = 0;
  uint64_t tensor_shifts = 0;
  uint64_t barrier_waits = 0;               // try_wait and test_wait that returned true
  uint64_t cancelled_clusters = 0;          // by clusterlaunchcontrol
  std::map<std::string, uint64_t> opcodes;  // warp instructions by opcode
  // Operations whose result depends on a policy.
  std::array<uint64_t, kPolicies> policies{};
  std::vector<uint64_t> rows;  // warp instructions by row of the instruction table; short if there are none

  void Add(const Counters& other);
};

// The cost of the launches of one kernel.
struct KernelUse {
  uint64_t launches = 0;
  uint64_t warp_instructions = 0, thread_instructions = 0;
  double seconds = 0;  // of the host
};

// Collects hazards: one entry per kind and PTX line, at most kMaxEntries of them, subject to its rules.
class HazardLog {
 public:
  static constexpr size_t kMaxEntries = 200;
  // For hazards from now on; resets the suppressions' use.
  void SetRules(HazardRules rules);
  // The PTX texts to which lines refer from now on, by the kernel's name. They outlive the next Take.
  using Modules = std::map<std::string, const ModuleSyntax*>;
  void SetModules(Modules modules);
  void Add(HazardKind kind, const SourcePlace& place, std::string message);
  std::vector<Hazard> Take();
  // The suppressions that nothing has matched since SetRules, as their texts.
  std::vector<std::string> UnusedSuppressions();

 private:
  using Key = std::pair<HazardKind, std::pair<std::string, int>>;
  HazardLevel Judge(HazardKind kind, const SourcePlace& place);
  void AnnotateIfKnown(SourcePlace& place) const;

  std::mutex mutex_;
  HazardRules rules_;
  Modules modules_;
  std::set<size_t> used_;  // suppressions
  std::set<Key> silent_;   // silenced by them and by levels
  std::map<Key, Hazard> entries_;
};

// What kernels print, in the order in which their threads execute printf.
class PrintLog {
 public:
  // The most bytes between two takes; 0 at first.
  void Allow(uint64_t most);
  // False: it exceeds the limit, and is dropped.
  bool Add(std::string_view text);
  std::string Take();

 private:
  std::mutex mutex_;
  std::string text_;
  uint64_t most_ = 0;
};

struct Report {
  std::vector<Hazard> hazards;
  std::string output;  // of printf in kernels
  std::vector<Fault> faults;
  Counters counters;
  uint64_t launches = 0;
  std::map<std::string, KernelUse> kernels;  // by name
  Policies policies;                         // the answers that the launches ran with
  SumArithmetic arithmetic = SumArithmetic::kHardware;

  std::vector<std::string> unused_suppressions;

  // Whether there is no fault and no hazard but notes.
  bool Clean() const;
  std::string Print() const;
  // One line per policy that mattered: "shift_scope=groups: 12 uses (which lanes …)".
  std::vector<std::string> PolicyUses() const;
  // One line per kernel: launches, instructions, seconds, millions of instructions a second.
  std::vector<std::string> KernelUses() const;
};

}  // namespace laneshift::emulator
