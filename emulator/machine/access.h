// How a thread's address is resolved: state spaces, windows, bounds, alignment, and the checks of ordinary accesses.
//
// Thread-safety: as the warp.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/machine/cluster.h"
#include "emulator/machine/warp.h"
#include "emulator/ptx/ptx_instructions.h"

namespace laneshift::emulator {

// Strong: volatile, relaxed or stronger. Strong accesses and atomics do not race with each other.
enum class AccessKind : uint8_t { kRead, kWrite, kAtomic, kStrongRead, kStrongWrite };
inline bool Reads(AccessKind kind) { return kind != AccessKind::kWrite && kind != AccessKind::kStrongWrite; }
inline bool Writes(AccessKind kind) { return kind != AccessKind::kRead && kind != AccessKind::kStrongRead; }
inline bool IsStrong(AccessKind kind) { return kind >= AccessKind::kAtomic; }

struct Located {
  uint8_t* host = nullptr;
  StateSpace space = StateSpace::kGlobal;  // never generic
  Allocation* allocation = nullptr;        // global
  Cta* cta = nullptr;                      // shared
  uint32_t offset = 0;                     // shared: in the window of `cta`
  uint64_t address = 0;                    // global
};

// Resolves `bytes` bytes at `address` for an ordinary access of one lane, and reports what such an access must not do:
// touch ranges that asynchronous operations use, read what was never written. False after a fault.
bool Locate(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, int lane, AccessKind kind, Located& to);
// Where each lane's bytes lie.
using HostBytes = std::array<uint8_t*, kLanes>;
// The same for all lanes of `mask` at once, for weak accesses of `bytes` bytes at the addresses of `operand`. False: a
// lane has a fault, or a hazard other than a race, and nothing has been done; Locate has to check each lane.
bool LocateLanes(Warp& warp, StateSpace space, const DecodedOperand& operand, uint32_t bytes, uint32_t mask,
                 AccessKind kind, HostBytes& hosts);
// The bytes only, without hazard checks.
bool LocateQuietly(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, int lane, Located& to);
// An address of a shared window, generic or not, as CTA and offset. False after a fault. `any_cta`: other CTAs of the
// cluster are allowed.
bool LocateShared(Warp& warp, StateSpace space, uint64_t address, uint32_t bytes, uint32_t align, int lane,
                  bool any_cta, Located& to);

// modifiers of ld, st and atomics: the access acquires, releases, has CTA or cluster scope.
inline constexpr uint64_t kAcquires = 0x400, kReleases = 0x800, kCtaScope = 0x1000, kClusterScope = 0x2000;
uint64_t OrderOf(const Match& match);
// Threads synchronise by the word at `at`, if the access orders memory by itself or a fence orders it.
void Synchronise(Warp& warp, const Instruction& instruction, const Located& at, int lane, AccessKind kind);

std::string HexAddress(uint64_t address);

}  // namespace laneshift::emulator
