// The 64-bit shared-memory matrix descriptors of tcgen05 (sm_100) and wgmma (sm_90): decoding, addresses, operand
// fetch.
//
// Addresses are shared-window offsets; the swizzle XOR acts on these absolute addresses, never on an offset from the
// descriptor's start.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/units/cta_state.h"
#include "emulator/units/policies.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

enum class MatrixSwizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B };
std::string_view NameOf(MatrixSwizzle swizzle);
// The bytes of one swizzled row: 16 (kNone), 32, 64 or 128.
uint32_t SpanOf(MatrixSwizzle swizzle);
// The address that `address` becomes; `base_offset` is subtracted from the row phase (0 but for wgmma descriptors).
uint32_t SwizzleAddress(MatrixSwizzle swizzle, uint32_t address, uint32_t base_offset = 0);

// Which of an operand's two dimensions is contiguous in memory. MN is M for A and N for B.
enum class OperandMajor : uint8_t { kK, kMn };

struct MatrixDescriptor {
  uint32_t start = 0;    // bytes
  uint32_t leading = 0;  // leading byte offset, LBO
  uint32_t stride = 0;   // stride byte offset, SBO
  uint32_t base_offset = 0;
  MatrixSwizzle swizzle = MatrixSwizzle::kNone;
  // `leading` is the address at which the bytes of K after the end of a row's span begin, in its first row (K-major
  // with 128B swizzle).
  bool absolute = false;
};

// Errors name the bits that are wrong, and say so when the value looks like one of the other architecture.
// `absolute`: whether the device has absolute leading offsets (sm_103a).
Result<MatrixDescriptor> DecodeTcgen05Descriptor(uint64_t bits, const Policies& policies = {}, bool absolute = false);
Result<MatrixDescriptor> DecodeWgmmaDescriptor(uint64_t bits);

// The tile that an instruction reads: rows of A or columns of B (mn), by bytes of K (element_bytes wide).
struct OperandTile {
  OperandMajor major = OperandMajor::kK;
  int mn = 0;             // rows
  int k_bytes = 0;        // bytes of K per row
  int element_bytes = 1;  // 1 for everything below 16 bits
};

// The shared-window offset of byte `k_byte` of row `mn` (K-major), or of element (mn, k_byte / element_bytes) plus the
// byte inside it (MN-major), after the XOR, modulo the 18 address bits of a descriptor.
uint32_t ByteAddress(const MatrixDescriptor& descriptor, const OperandTile& tile, int mn, int k_byte);

// The 16-byte granules that the tile occupies, added to others or by themselves. Outside the window: an Error that
// names the first bad address.
Status AddGranules(const MatrixDescriptor& descriptor, const OperandTile& tile, const SharedWindow& window,
                   GranuleSet& to);
Result<std::vector<SharedRange>> TouchedGranules(const MatrixDescriptor& descriptor, const OperandTile& tile,
                                                 const SharedWindow& window);

// Where the pieces of 16 bytes of a K-major tile lie, row after row: what GatherTile would compute again for each
// execution of one instruction. Empty for other tiles.
std::vector<uint32_t> PieceOffsets(const MatrixDescriptor& descriptor, const OperandTile& tile);

// Copies the tile to packed rows: row mn at to + mn * row_bytes, K contiguous, whatever the major.
// REQUIRES: TouchedGranules or AddGranules succeeded for the same arguments.
// `pieces`: PieceOffsets of the tile, or nothing.
void GatherTile(const MatrixDescriptor& descriptor, const OperandTile& tile, const SharedWindow& window, uint8_t* to,
                size_t row_bytes, std::span<const uint32_t> pieces = {});

}  // namespace laneshift::emulator
