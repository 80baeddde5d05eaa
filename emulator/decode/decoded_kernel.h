// A kernel ready to run: instructions decoded once into handlers and register-file offsets.
//
// The register file of a warp is one block of bytes: a value of up to 32 bits takes 32 words, a 64-bit value 32 double
// words, a 128-bit value 64 double words (low halves first), a predicate one mask word. Constants, special registers
// and symbol addresses are slots too, filled when the warp starts, so that a handler reads nothing but slots.
// Thread-safety: immutable once built.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/ptx_syntax.h"
#include "emulator/ptx/ptx_types.h"

namespace laneshift::emulator {

class Warp;
struct Instruction;

enum class Outcome : uint8_t {
  kNext,     // go on with the following instruction
  kJumped,   // the handler has set the path's position, or ended it
  kBlocked,  // nothing happened; execute the same instruction again later
  kFault,    // the launch is over; the cluster knows why
};
// `mask` holds the lanes that execute; never empty.
using Handler = Outcome (*)(Warp&, const Instruction&, uint32_t mask);

inline constexpr uint32_t kNoSlot = 0xffffffff;
inline constexpr uint32_t kNoTarget = 0xffffffff;
inline constexpr int kLanes = 32;
inline constexpr uint32_t kFullMask = 0xffffffff;

struct DecodedOperand {
  uint32_t slot = kNoSlot;  // kNoSlot: absent, or a `_` destination
  uint8_t bytes = 0;        // per lane in the register file: 0 predicate, 4, 8, 16
  bool negated = false;     // predicates
  bool is_destination = false;
  bool is_address = false;                   // slot holds the base
  int64_t offset = 0;                        // address: displacement; immediate: the value
  const DecodedOperand* elements = nullptr;  // vector operands
  uint32_t count = 0;
};

struct Instruction {
  Handler handler = nullptr;
  const DecodedOperand* operands = nullptr;
  uint32_t operand_count = 0;
  uint32_t guard = kNoSlot;
  bool guard_negated = false;
  bool watches_registers = true;  // false: no register of it can be due, or its handler checks that (async_registers.h)
  bool is_move = false;           // copies one 32-bit register
  bool is_branch = false;
  bool is_wgmma = false;
  bool meets_wgmma = false;    // accesses registers of a wgmma (async_registers.h)
  uint8_t async_operands = 0;  // bit i: the registers of operand i are accessed asynchronously
  StateSpace space = StateSpace::kGeneric;
  bool ends_function = false;  // the exit or return at the end of a body
  bool never_returns = false;  // a trap or a failed assertion: no lane continues after it
  uint32_t target = kNoTarget;
  uint32_t reconvergence = kNoTarget;
  uint32_t table = kNoTarget;  // of Kernel::jump_tables, for a branch through one
  uint64_t modifiers = 0;      // meaning chosen by the binder
  Handler inner = nullptr;     // of an .aligned instruction: what `handler` calls once it has looked at the mask
  uint32_t opcode = 0;         // index into Kernel::opcodes
  Position at;

  const DecodedOperand& operator[](size_t i) const { return operands[i]; }
};

// What a slot holds when a warp starts.
enum class SlotSource : uint8_t {
  kConstant,       // value, broadcast
  kPredicate,      // value 0 or 1, all lanes
  kSharedAddress,  // value: offset in the CTA's window; the CTA's rank is added
  kSpecial,        // value: index of the special register
};
struct SlotInitial {
  SlotSource source;
  uint8_t bytes;
  uint32_t slot;
  uint64_t value;
};

// A device function that calls may go to.
struct CallTarget {
  struct Saved {
    uint32_t slot;
    uint8_t bytes;  // per lane, 0: a predicate
  };
  struct FrameAddress {
    uint32_t slot;
    uint8_t bytes;
    uint64_t offset;  // in the frame
  };
  struct Formal {
    uint64_t offset, bytes;
  };
  std::string name;
  uint32_t start = kNoTarget;
  uint64_t frame_bytes = 0;  // of local memory: parameters and variables
  std::vector<Saved> saved;  // the slots of its registers
  std::vector<FrameAddress> frame_addresses;
  std::vector<Formal> returns, parameters;
};

struct DecodedKernel {
  std::string name;
  const FunctionSyntax* syntax = nullptr;
  std::vector<Instruction> code;  // ends with an exit
  std::vector<std::unique_ptr<DecodedOperand[]>> operand_blocks;
  std::vector<SlotInitial> initial;
  std::deque<CallTarget> callees;
  std::unordered_map<uint64_t, uint32_t> function_addresses;  // of callees
  std::vector<std::vector<uint32_t>> jump_tables;
  std::vector<std::string> opcodes;
  std::vector<uint32_t> opcode_rows;  // of the instruction table, by opcode
  uint32_t register_bytes = 0;
  struct Cleared {
    uint32_t begin, end;
  };
  std::vector<Cleared> cleared;  // the parts of the register file that are zero when a warp starts
  uint32_t scratch_slot = 0;     // 512 bytes that `_` destinations are written to
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_align = 16;
  uint32_t dynamic_shared_offset = 0;  // window offset of `.extern .shared` variables
  uint64_t local_bytes = 0;
  bool lets_others_begin = false;  // griddepcontrol.launch_dependents
  bool cancels_clusters = false;   // asks for it, at least
};

// Where shared variables start in a CTA's window: the first KiB is reserved.
inline constexpr uint32_t kSharedBase = 0x400;
// Generic addresses of the windows; everything else is global.
inline constexpr uint64_t kSharedWindow = uint64_t{0x0100} << 32;
inline constexpr uint64_t kLocalWindow = uint64_t{0x0200} << 32;
inline constexpr uint64_t kParamWindow = uint64_t{0x0300} << 32;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
inline constexpr uint32_t kRankShift = 24;

// Special registers that do not change while a warp runs.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClusteridX,
  kClusteridY,
  kClusteridZ,
  kNclusteridX,
  kNclusteridY,
  kNclusteridZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kDynamicSmemSize,
  kTotalSmemSize,
  kAggrSmemSize,
  kZero,
  // These do; a separate instruction reads them.
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
};
struct SpecialFacts {
  std::string_view name;
  Special special;
  Type type;
};
const SpecialFacts* FindSpecial(std::string_view name);
inline bool IsClock(Special special) { return special >= Special::kClock; }

}  // namespace laneshift::emulator
