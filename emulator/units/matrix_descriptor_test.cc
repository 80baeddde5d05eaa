#include "emulator/units/matrix_descriptor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace laneshift::emulator {
namespace {

TEST(MatrixDescriptor, DecodesTheWorkedTcgen05Values) {
  struct Row {
    uint64_t bits;
    uint32_t start, leading, stride;
    MatrixSwizzle swizzle;
  };
  for (const Row& row : {Row{0x4000404000000040, 0x400, 0, 1024, MatrixSwizzle::k128B},
                         Row{0x4000404000010040, 0x400, 16, 1024, MatrixSwizzle::k128B},
                         Row{0x0000400800800000, 0, 2048, 128, MatrixSwizzle::kNone},
                         Row{0xC000401000000040, 0x400, 0, 256, MatrixSwizzle::k32B},
                         Row{0x8000402000000040, 0x400, 0, 512, MatrixSwizzle::k64B},
                         Row{0x4000404002000040, 0x400, 8192, 1024, MatrixSwizzle::k128B},
                         Row{0x2000402001000040, 0x400, 4096, 512, MatrixSwizzle::k128BAtom32B}}) {
    const auto d = DecodeTcgen05Descriptor(row.bits);
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->start, row.start);
    EXPECT_EQ(d->leading, row.leading);
    EXPECT_EQ(d->stride, row.stride);
    EXPECT_EQ(d->swizzle, row.swizzle);
  }
}

TEST(MatrixDescriptor, RefusesWhatIsWrongByName) {
  const auto message = [](uint64_t bits) {
    const auto d = DecodeTcgen05Descriptor(bits);
    return d ? std::string() : d.error().message;
  };
  EXPECT_NE(message(0x4000004000000040).find("wgmma"), std::string::npos);  // no version field
  EXPECT_NE(message(0x6000404000000040).find("swizzle code 3"), std::string::npos);
  EXPECT_NE(message(0x4002404000000040).find("base offset 1"), std::string::npos);
  EXPECT_NE(message(0x4010404000000040).find("bit 52"), std::string::npos);
  EXPECT_NE(message(0x4000404000004040).find("reserved"), std::string::npos);
  EXPECT_FALSE(DecodeWgmmaDescriptor(0x4000404000000040));  // a tcgen05 value
  const auto hopper = DecodeWgmmaDescriptor(0x4000004000010040);
  ASSERT_TRUE(hopper);
  EXPECT_EQ(hopper->swizzle, MatrixSwizzle::k128B);
  EXPECT_EQ(DecodeWgmmaDescriptor(uint64_t{2} << 62)->swizzle, MatrixSwizzle::k64B);
  EXPECT_EQ(DecodeWgmmaDescriptor(uint64_t{3} << 62)->swizzle, MatrixSwizzle::k32B);
}

// Rows of 48 bytes that begin 96 bytes within a span of 128 go on in the one that the descriptor names.
TEST(MatrixDescriptor, RowsGoOnAtAnAbsoluteAddress) {
  constexpr uint32_t kTile = 0x400, kNext = 0x2400;
  const uint64_t bits = 0x4010404000000000 | uint64_t{kNext >> 4} << 16 | (kTile + 96) >> 4;
  EXPECT_FALSE(DecodeTcgen05Descriptor(bits));
  const auto d = DecodeTcgen05Descriptor(bits, {}, true);
  ASSERT_TRUE(d) << d.error().message;
  const OperandTile tile{.mn = 16, .k_bytes = 48};
  for (int row = 0; row < 16; ++row) {
    const uint32_t of_row = static_cast<uint32_t>(row % 8 * 128 + row / 8 * 1024);
    for (int byte = 0; byte < 48; ++byte) {
      const uint32_t linear = byte < 32 ? kTile + of_row + 96 + static_cast<uint32_t>(byte)
                                        : kNext + of_row + static_cast<uint32_t>(byte) - 32;
      EXPECT_EQ(ByteAddress(*d, tile, row, byte), SwizzleAddress(MatrixSwizzle::k128B, linear)) << row << " " << byte;
    }
  }
  const std::vector<uint32_t> pieces = PieceOffsets(*d, tile);
  ASSERT_EQ(pieces.size(), 16u * 3);
  EXPECT_EQ(pieces[2], kNext);
  EXPECT_NE(DecodeTcgen05Descriptor(bits & ~(uint64_t{7} << 61), {}, true).error().message.find("needs 128B swizzle"),
            std::string::npos);
}

// The canonical layouts as CuTe writes them, ((8,m),(T,2k)) : strides in elements, evaluated digit by digit, with the
// swizzle applied as a bit permutation of the address: an independent spelling of the manual's tables.
uint32_t SwizzledByBits(MatrixSwizzle swizzle, uint32_t address) {
  struct Pair {
    int to, from;
  };
  std::vector<Pair> pairs;
  switch (swizzle) {
    case MatrixSwizzle::kNone:
      break;
    case MatrixSwizzle::k32B:
      pairs = {{4, 7}};
      break;
    case MatrixSwizzle::k64B:
      pairs = {{4, 7}, {5, 8}};
      break;
    case MatrixSwizzle::k128B:
      pairs = {{4, 7}, {5, 8}, {6, 9}};
      break;
    case MatrixSwizzle::k128BAtom32B:
      pairs = {{5, 7}, {6, 8}};
      break;
  }
  uint32_t result = address;
  for (const Pair& p : pairs) result ^= (address >> p.from & 1) << p.to;
  return result;
}

TEST(MatrixDescriptor, KMajorAddressesAreTheRowsOfATmaBox) {
  // A box whose rows are one swizzle span wide, stacked at the natural pitch: row r, byte b at r * span + b.
  for (MatrixSwizzle swizzle :
       {MatrixSwizzle::k32B, MatrixSwizzle::k64B, MatrixSwizzle::k128B, MatrixSwizzle::k128BAtom32B}) {
    const uint32_t span = SpanOf(swizzle);
    const MatrixDescriptor d{0x2000, 16, 8 * span, 0, swizzle};
    for (int row = 0; row < 128; ++row) {
      for (uint32_t byte = 0; byte < 32; ++byte) {
        const uint32_t linear = 0x2000 + static_cast<uint32_t>(row) * span + byte;
        EXPECT_EQ(ByteAddress(d, {OperandMajor::kK, 128, 32, 2}, row, static_cast<int>(byte)),
                  SwizzledByBits(swizzle, linear));
      }
    }
  }
}

TEST(MatrixDescriptor, AdvancingTheStartIsTheSameAsALargerK) {
  for (uint32_t step = 0; step < 4; ++step) {
    const MatrixDescriptor whole{0x4000, 0, 1024, 0, MatrixSwizzle::k128B};
    const MatrixDescriptor advanced{0x4000 + 32 * step, 0, 1024, 0, MatrixSwizzle::k128B};
    for (int row = 0; row < 64; ++row) {
      for (int byte = 0; byte < 32; ++byte) {
        EXPECT_EQ(ByteAddress(advanced, {OperandMajor::kK, 64, 32, 2}, row, byte),
                  ByteAddress(whole, {OperandMajor::kK, 64, 128, 2}, row, byte + static_cast<int>(32 * step)));
      }
    }
  }
}

TEST(MatrixDescriptor, MnMajorAddressesAreKRowsOfSpans) {
  // Stored as K rows of one span of MN each, in groups of 8 K rows SBO apart and spans LBO apart.
  for (MatrixSwizzle swizzle : {MatrixSwizzle::k32B, MatrixSwizzle::k64B, MatrixSwizzle::k128B}) {
    const uint32_t span = SpanOf(swizzle);
    const MatrixDescriptor d{0x1000, 64 * span, 8 * span, 0, swizzle};
    for (uint32_t k = 0; k < 16; ++k) {
      for (uint32_t mn = 0; mn < 128; ++mn) {
        const uint32_t linear = 0x1000 + mn * 2 / span * 64 * span + k * span + mn * 2 % span;
        EXPECT_EQ(ByteAddress(d, {OperandMajor::kMn, 128, 32, 2}, static_cast<int>(mn), static_cast<int>(2 * k)),
                  SwizzledByBits(swizzle, linear));
      }
    }
  }
  // 8 x 8 core matrices without a swizzle: SBO along MN, LBO along K.
  const MatrixDescriptor plain{0, 4096, 256, 0, MatrixSwizzle::kNone};
  EXPECT_EQ(ByteAddress(plain, {OperandMajor::kMn, 64, 32, 2}, 9, 2 * 10), 256u + 2 + 2 * 16 + 4096);
  // 32-bit elements in 32-byte atoms: groups of four K rows.
  const MatrixDescriptor atoms{0x400, 4096, 512, 0, MatrixSwizzle::k128BAtom32B};
  EXPECT_EQ(ByteAddress(atoms, {OperandMajor::kMn, 64, 32, 4}, 33, 4 * 5),
            SwizzledByBits(MatrixSwizzle::k128BAtom32B, 0x400 + 4096 + 4 + 128 + 512));
}

TEST(MatrixDescriptor, BaseOffsetMovesTheRowPhase) {
  const MatrixDescriptor d{0x480, 0, 1024, 1, MatrixSwizzle::k128B};
  EXPECT_EQ(ByteAddress(d, {OperandMajor::kK, 8, 32, 2}, 0, 0), 0x480u);
  EXPECT_EQ(ByteAddress(d, {OperandMajor::kK, 8, 32, 2}, 1, 0), 0x510u);
}

TEST(MatrixDescriptor, GatherAndGranulesAgreeWithTheAddresses) {
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(64 * 1024);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  const SharedWindow window{bytes, 0x400};
  for (int round = 0; round < 200; ++round) {
    const auto swizzle = static_cast<MatrixSwizzle>(random() % 5);
    const MatrixDescriptor d{0x400 + 16 * static_cast<uint32_t>(random() % 256),
                             16 * static_cast<uint32_t>(random() % 64), 16 * static_cast<uint32_t>(random() % 100), 0,
                             swizzle};
    OperandTile tile{static_cast<OperandMajor>(random() % 2), static_cast<int>(8 * (1 + random() % 16)), 32,
                     static_cast<int>(1u << random() % 3)};
    const auto ranges = TouchedGranules(d, tile, window);
    if (!ranges) continue;
    std::vector<uint8_t> got(static_cast<size_t>(tile.mn) * 48, 0xee);
    GatherTile(d, tile, window, got.data(), 48);
    std::vector<uint8_t> packed(static_cast<size_t>(tile.mn * 32)), by_pieces(packed.size());
    GatherTile(d, tile, window, packed.data(), 32);
    GatherTile(d, tile, window, by_pieces.data(), 32, PieceOffsets(d, tile));
    ASSERT_EQ(by_pieces, packed);
    std::set<uint32_t> granules;
    for (int mn = 0; mn < tile.mn; ++mn) {
      for (int byte = 0; byte < 32; ++byte) {
        const uint32_t address = ByteAddress(d, tile, mn, byte);
        granules.insert(address / 16);
        ASSERT_EQ(got[static_cast<size_t>(mn * 48 + byte)], bytes[address - 0x400]);
      }
      ASSERT_EQ(got[static_cast<size_t>(mn * 48 + 32)], 0xee);
    }
    std::set<uint32_t> reported;
    uint32_t last = 0;
    for (const SharedRange& r : *ranges) {
      EXPECT_GT(r.begin, last);
      last = r.end;
      for (uint32_t g = r.begin / 16; g < r.end / 16; ++g) reported.insert(g);
    }
    ASSERT_EQ(reported, granules);
  }
}

TEST(MatrixDescriptor, OutsideTheWindowIsAnErrorWithTheAddress) {
  std::vector<uint8_t> bytes(1024);
  const SharedWindow window{bytes, 0x400};
  const auto r = TouchedGranules({0x400, 0, 1024, 0, MatrixSwizzle::k128B}, {OperandMajor::kK, 16, 32, 2}, window);
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("0x800"), std::string::npos) << r.error().message;
}

}  // namespace
}  // namespace laneshift::emulator
