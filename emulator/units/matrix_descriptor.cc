#include "emulator/units/matrix_descriptor.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/text.h"

namespace laneshift::emulator {
namespace {

constexpr uint32_t kAddressMask = 0x3ffff;  // a descriptor knows 18 address bits

// Which address bits a swizzle XORs: (address >> 7 & mask) << shift.
struct SwizzleRule {
  std::string_view name;
  uint32_t span, mask, shift;
};
constexpr SwizzleRule kSwizzles[] = {
    {"none", 16, 0, 4}, {"32B", 32, 1, 4}, {"64B", 64, 3, 4}, {"128B", 128, 7, 4}, {"128B with 32B atoms", 128, 3, 5},
};
const SwizzleRule& RuleOf(MatrixSwizzle swizzle) { return kSwizzles[static_cast<size_t>(swizzle)]; }

inline uint32_t Swizzled(const SwizzleRule& rule, uint32_t address, uint32_t base_offset) {
  return address ^ (((address >> 7) - base_offset) & rule.mask) << rule.shift;
}

uint32_t Field(uint64_t bits, int low, int width) {
  return static_cast<uint32_t>(bits >> low & ((uint64_t{1} << width) - 1));
}

std::string Hex(uint64_t bits) {
  std::ostringstream out;
  out << "0x" << std::hex << bits;
  return std::move(out).str();
}

MatrixDescriptor CommonFields(uint64_t bits) {
  MatrixDescriptor d;
  d.start = Field(bits, 0, 14) << 4;
  d.leading = Field(bits, 16, 14) << 4;
  d.stride = Field(bits, 32, 14) << 4;
  d.base_offset = Field(bits, 49, 3);
  return d;
}

std::optional<MatrixSwizzle> Tcgen05Swizzle(uint32_t code) {
  switch (code) {
    case 0:
      return MatrixSwizzle::kNone;
    case 1:
      return MatrixSwizzle::k128BAtom32B;
    case 2:
      return MatrixSwizzle::k128B;
    case 4:
      return MatrixSwizzle::k64B;
    case 6:
      return MatrixSwizzle::k32B;
  }
  return std::nullopt;
}

// The address before the XOR: where the canonical layouts put (mn, byte) (PTX ISA, matrix descriptor layouts).
inline uint32_t LinearAddress(const MatrixDescriptor& d, const OperandTile& t, int mn, int k_byte) {
  const uint32_t span = RuleOf(d.swizzle).span;
  if (t.major == OperandMajor::kK) {
    const auto row = static_cast<uint32_t>(mn), byte = static_cast<uint32_t>(k_byte);
    if (d.swizzle == MatrixSwizzle::kNone) {
      return d.start + row % 8 * 16 + row / 8 * d.stride + byte / 16 * d.leading + byte % 16;
    }
    const uint32_t of_row = row % 8 * span + row / 8 * d.stride;
    // The start may be within a row of the tile, which begins at a multiple of the span.
    if (const uint32_t at = d.start % span + byte; d.absolute && at >= span) return d.leading + of_row + at - span;
    return d.start + of_row + byte;
  }
  const auto element = static_cast<uint32_t>(t.element_bytes);
  const uint32_t k = static_cast<uint32_t>(k_byte) / element;
  const uint32_t byte = static_cast<uint32_t>(mn) * element + static_cast<uint32_t>(k_byte) % element;
  switch (d.swizzle) {
    case MatrixSwizzle::kNone:
      return d.start + byte / 16 * d.stride + byte % 16 + k % 8 * 16 + k / 8 * d.leading;
    case MatrixSwizzle::k128BAtom32B:  // 32-bit elements: four rows of K per group
      return d.start + byte / 128 * d.leading + byte % 128 + k % 4 * 128 + k / 4 * d.stride;
    case MatrixSwizzle::k32B:
    case MatrixSwizzle::k64B:
    case MatrixSwizzle::k128B:
      return d.start + byte / span * d.leading + byte % span + k % 8 * span + k / 8 * d.stride;
  }
  return d.start;
}

inline uint32_t AddressOf(const MatrixDescriptor& d, const OperandTile& t, int mn, int k_byte) {
  return Swizzled(RuleOf(d.swizzle), LinearAddress(d, t, mn, k_byte) & kAddressMask, d.base_offset);
}

}  // namespace

std::string_view NameOf(MatrixSwizzle swizzle) { return RuleOf(swizzle).name; }
uint32_t SpanOf(MatrixSwizzle swizzle) { return RuleOf(swizzle).span; }

uint32_t SwizzleAddress(MatrixSwizzle swizzle, uint32_t address, uint32_t base_offset) {
  return Swizzled(RuleOf(swizzle), address, base_offset);
}

Result<MatrixDescriptor> DecodeTcgen05Descriptor(uint64_t bits, const Policies& policies, bool absolute) {
  const auto bad = [&](auto... why) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("tcgen05 matrix descriptor ", Hex(bits), ": ", why...));
  };
  if (Field(bits, 46, 3) != 1) {
    return bad("bits 48:46 are ", Field(bits, 46, 3), ", must be 1",
               Field(bits, 46, 3) == 0 ? " (0 is what a wgmma descriptor of sm_90 has)" : "");
  }
  MatrixDescriptor d = CommonFields(bits);
  const std::optional<MatrixSwizzle> swizzle = Tcgen05Swizzle(Field(bits, 61, 3));
  if (!swizzle) return bad("swizzle code ", Field(bits, 61, 3), " does not exist; 0, 1, 2, 4 and 6 do");
  d.swizzle = *swizzle;
  d.absolute = Field(bits, 52, 1) != 0;
  if (d.absolute && !absolute) return bad("bit 52, the absolute leading offset, exists on sm_103a only");
  if (d.absolute && (d.swizzle != MatrixSwizzle::k128B || d.base_offset != 0))
    return bad("bit 52, the absolute leading offset, needs 128B swizzle and a base offset of 0");
  if (d.base_offset != 0 && policies.base_offset == BaseOffset::kRefused) {
    return bad("base offset ", d.base_offset, " is not supported; align the tile and use 0");
  }
  if (Field(bits, 14, 2) != 0 || Field(bits, 30, 2) != 0 || Field(bits, 53, 8) != 0) {
    return bad("the reserved bits 15:14, 31:30 and 60:53 must be 0");
  }
  return d;
}

Result<MatrixDescriptor> DecodeWgmmaDescriptor(uint64_t bits) {
  const auto bad = [&](auto... why) {
    return MakeError(ErrorCode::kInvalidArgument, base::Cat("wgmma matrix descriptor ", Hex(bits), ": ", why...));
  };
  if (Field(bits, 46, 3) != 0) return bad("bits 48:46 must be 0 (1 is what a tcgen05 descriptor of sm_100 has)");
  if (Field(bits, 14, 2) != 0 || Field(bits, 30, 2) != 0 || Field(bits, 52, 10) != 0) {
    return bad("the reserved bits 15:14, 31:30 and 61:52 must be 0");
  }
  MatrixDescriptor d = CommonFields(bits);
  constexpr MatrixSwizzle kCodes[] = {MatrixSwizzle::kNone, MatrixSwizzle::k128B, MatrixSwizzle::k64B,
                                      MatrixSwizzle::k32B};
  d.swizzle = kCodes[Field(bits, 62, 2)];
  return d;
}

uint32_t ByteAddress(const MatrixDescriptor& descriptor, const OperandTile& tile, int mn, int k_byte) {
  return AddressOf(descriptor, tile, mn, k_byte);
}

namespace {

// Calls visit(mn, k_byte, address, bytes) for runs that are contiguous in memory and lie inside one 16-byte granule:
// along K for K-major tiles, along MN otherwise.
template <typename Visit>
void ForEachRun(const MatrixDescriptor& d, const OperandTile& t, Visit visit) {
  if (t.major == OperandMajor::kK) {
    const SwizzleRule rule = RuleOf(d.swizzle);
    const uint32_t step = d.swizzle == MatrixSwizzle::kNone ? d.leading : 16;  // from a row's granule to its next
    for (int mn = 0; mn < t.mn; ++mn) {
      uint32_t linear = LinearAddress(d, t, mn, 0);
      for (int byte = 0; byte < t.k_bytes; byte += 16, linear += step) {
        if (d.absolute) linear = LinearAddress(d, t, mn, byte);
        visit(mn, byte, Swizzled(rule, linear & kAddressMask, d.base_offset), 16);
      }
    }
    return;
  }
  const int per_granule = 16 / t.element_bytes;
  for (int k_byte = 0; k_byte < t.k_bytes; k_byte += t.element_bytes) {
    for (int mn = 0; mn < t.mn; mn += per_granule) {
      const int elements = std::min(per_granule, t.mn - mn);
      visit(mn, k_byte, AddressOf(d, t, mn, k_byte), elements * t.element_bytes);
    }
  }
}

}  // namespace

Result<std::vector<SharedRange>> TouchedGranules(const MatrixDescriptor& descriptor, const OperandTile& tile,
                                                 const SharedWindow& window) {
  GranuleSet granules;
  LS_TRY(AddGranules(descriptor, tile, window, granules));
  return granules.Ranges();
}

Status AddGranules(const MatrixDescriptor& descriptor, const OperandTile& tile, const SharedWindow& window,
                   GranuleSet& to) {
  std::optional<uint32_t> outside;
  ForEachRun(descriptor, tile, [&](int, int, uint32_t address, int) {
    if (!window.Contains(address & ~15u, 16) && !outside) outside = address;
    to.Add(address);
  });
  if (outside) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the operand tile reads shared address ", Hex(*outside), ", outside the CTA's window ",
                               Hex(window.base), " to ", Hex(window.base + window.bytes.size())));
  }
  return Ok();
}

std::vector<uint32_t> PieceOffsets(const MatrixDescriptor& descriptor, const OperandTile& tile) {
  std::vector<uint32_t> pieces;
  if (tile.major != OperandMajor::kK) return pieces;
  ForEachRun(descriptor, tile, [&](int, int, uint32_t address, int) { pieces.push_back(address); });
  return pieces;
}

void GatherTile(const MatrixDescriptor& descriptor, const OperandTile& tile, const SharedWindow& window, uint8_t* to,
                size_t row_bytes, std::span<const uint32_t> pieces) {
  if (!pieces.empty() && row_bytes == static_cast<size_t>(tile.k_bytes)) {
    const SharedWindow from = window;  // apart from what is written
    for (const uint32_t piece : pieces) {
      std::memcpy(to, from.At(piece), 16);
      to += 16;
    }
    return;
  }
  if (tile.major == OperandMajor::kK) {
    ForEachRun(descriptor, tile, [&](int mn, int byte, uint32_t address, int) {
      std::memcpy(to + static_cast<size_t>(mn) * row_bytes + byte, window.At(address), 16);
    });
    return;
  }
  const auto element = static_cast<size_t>(tile.element_bytes);
  ForEachRun(descriptor, tile, [&](int mn, int k_byte, uint32_t address, int bytes) {
    uint8_t* row = to + static_cast<size_t>(mn) * row_bytes + k_byte;
    const uint8_t* from = window.At(address);
    for (int i = 0; i < bytes; i += tile.element_bytes, row += row_bytes) std::memcpy(row, from + i, element);
  });
}

}  // namespace laneshift::emulator
