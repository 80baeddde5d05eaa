#include "emulator/units/tensor_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

namespace laneshift::emulator {
namespace {

constexpr uint64_t kBase = 0x100000;
constexpr uint8_t kUntouched = 0xcd;

// Global memory from kBase, filled with noise; traversals may not leave it.
struct World {
  explicit World(size_t bytes) : global(bytes), shared(256 * 1024, kUntouched) {
    std::mt19937 random(9);
    for (uint8_t& b : global) b = static_cast<uint8_t>(random());
  }
  void Load(const TensorMap& map, const CopyPlan& plan) {
    for (const TensorRun& run : plan.runs) {
      ASSERT_TRUE(run.global == 0 || (run.global >= kBase && run.global - kBase + run.global_bytes <= global.size()));
      ASSERT_LE(run.shared + run.bytes, shared.size());
      LoadRun(map, run, run.global == 0 ? nullptr : global.data() + (run.global - kBase), {shared, 0});
    }
  }
  void Store(const TensorMap& map, const CopyPlan& plan) {
    for (const TensorRun& run : plan.runs) {
      ASSERT_TRUE(run.global >= kBase && run.global - kBase + run.global_bytes <= global.size());
      StoreRun(map, run, global.data() + (run.global - kBase), {shared, 0});
    }
  }
  std::vector<uint8_t> global, shared;
};

// The swizzle as a permutation of address bits.
uint32_t Swizzled(TensorSwizzle swizzle, uint32_t a) {
  const auto bit = [a](int n) { return a >> n & 1; };
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return a;
    case TensorSwizzle::k32B:
      return a ^ bit(7) << 4;
    case TensorSwizzle::k64B:
      return a ^ bit(7) << 4 ^ bit(8) << 5;
    case TensorSwizzle::k128B:
      return a ^ bit(7) << 4 ^ bit(8) << 5 ^ bit(9) << 6;
    case TensorSwizzle::k128BAtom32B:
      return a ^ bit(7) << 5 ^ bit(8) << 6;
    case TensorSwizzle::k128BAtom32BFlip8B:
      return a ^ bit(7) << 5 ^ bit(8) << 6 ^ bit(7) << 3;
    case TensorSwizzle::k128BAtom64B:
      return a ^ bit(7) << 6;
  }
  return a;
}
constexpr uint32_t kSpans[] = {0, 32, 64, 128, 128, 128, 128};

struct Random {
  std::mt19937 engine{21};
  int To(int low, int high) { return low + static_cast<int>(engine() % static_cast<uint32_t>(high - low + 1)); }
};

TensorMap RandomTensor(Random& r, int rank) {
  TensorMap map;
  constexpr TensorElement kTypes[] = {TensorElement::kU8, TensorElement::kBf16, TensorElement::kF32,
                                      TensorElement::kU64};
  map.element = kTypes[r.To(0, 3)];
  map.swizzle = static_cast<TensorSwizzle>(r.To(0, 6));
  map.fill = map.element == TensorElement::kBf16 && r.To(0, 1) ? TensorFill::kNan : TensorFill::kZero;
  map.rank = rank;
  map.address = kBase;
  uint64_t pitch = 0;
  const auto es = static_cast<uint64_t>(ElementBits(map.element) / 8);
  for (int i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(i);
    map.dims[at] = static_cast<uint64_t>(r.To(i == 0 ? 8 : 2, i == 0 ? 60 : 7));
    map.element_strides[at] = static_cast<uint32_t>(r.To(1, 3));
    if (i == 0) {
      pitch = (map.dims[0] * es + 15) / 16 * 16 + 16 * static_cast<uint64_t>(r.To(0, 1));
    } else {
      map.strides[at] = pitch;
      pitch *= map.dims[at];
    }
  }
  return map;
}

int64_t InnerElements(Random& r, const TensorMap& map, uint32_t& bytes) {
  const uint32_t span = kSpans[static_cast<size_t>(map.swizzle)];
  const uint32_t atom = map.swizzle == TensorSwizzle::k128BAtom64B ? 64 : 16;
  bytes = span == 0 ? 16 * static_cast<uint32_t>(r.To(1, 6))
                    : atom * static_cast<uint32_t>(r.To(1, static_cast<int>(span / atom)));
  return bytes * 8 / ElementBits(map.element);
}

// Compares the image with `value(row, element)`: the global byte offset of an element, or -1 for fill.
template <typename Value>
void ExpectImage(const TensorMap& map, const World& world, uint32_t shared, uint32_t rows, uint32_t row_bytes,
                 Value value) {
  const uint32_t span = kSpans[static_cast<size_t>(map.swizzle)];
  const uint32_t pitch = span == 0 ? row_bytes : span;
  const auto es = static_cast<uint32_t>(ElementBits(map.element) / 8);
  std::vector<uint8_t> want(world.shared.size(), kUntouched);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t b = 0; b < row_bytes; ++b) {
      const int64_t from = value(row, b / es);
      const uint8_t fill = map.fill == TensorFill::kZero ? 0 : b % 2 == 0 ? 0xf7 : 0x7f;
      want[Swizzled(map.swizzle, shared + row * pitch + b)] =
          from < 0 ? fill : world.global[static_cast<size_t>(from) + b % es];
    }
  }
  ASSERT_TRUE(want == world.shared);
}

TEST(TensorCopy, RandomTilesEqualTheElementwiseDefinition) {
  Random r;
  CopyPlan plan;
  for (int round = 0; round < 1500; ++round) {
    TensorMap map = RandomTensor(r, r.To(1, 5));
    const auto rank = static_cast<size_t>(map.rank);
    uint32_t row_bytes = 0;
    map.box[0] = static_cast<uint32_t>(InnerElements(r, map, row_bytes));
    TensorCopy copy;
    copy.shared = 128 * static_cast<uint32_t>(r.To(0, 24));
    const int64_t es = ElementBits(map.element) / 8;
    copy.coordinates[0] = static_cast<int32_t>(r.To(-4, 5) * 16 / es);
    std::array<uint32_t, 5> n{1, 1, 1, 1, 1};
    uint32_t rows = 1;
    for (size_t i = 1; i < rank; ++i) {
      map.box[i] = static_cast<uint32_t>(r.To(1, 5));
      n[i] = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
      rows *= n[i];
      copy.coordinates[i] = r.To(-3, 8);
    }
    World world(64 + map.strides[rank > 1 ? rank - 1 : 0] * map.dims[rank - 1] + map.dims[0] * 8);
    ASSERT_TRUE(ValidateTensorMap(map, TensorMapDialect::kBlackwell));
    ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
    EXPECT_EQ(plan.transaction_bytes, rows * row_bytes);
    world.Load(map, plan);
    ExpectImage(map, world, copy.shared, rows, row_bytes, [&](uint32_t row, uint32_t element) -> int64_t {
      int64_t at = (copy.coordinates[0] + static_cast<int64_t>(element)) * es;
      if (at < 0 || at >= static_cast<int64_t>(map.dims[0]) * es) return -1;
      for (size_t i = 1; i < rank; ++i) {
        const int64_t g = copy.coordinates[i] + static_cast<int64_t>(row % n[i] * map.element_strides[i]);
        row /= n[i];
        if (g < 0 || g >= static_cast<int64_t>(map.dims[i])) return -1;
        at += g * static_cast<int64_t>(map.strides[i]);
      }
      return at;
    });
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(TensorCopy, StoresClipDimensionZeroAtSixteenBytes) {
  TensorMap map;
  map.element = TensorElement::kBf16;
  map.rank = 2;
  map.address = kBase;
  map.dims = {13, 3};
  map.strides = {0, 48};
  map.box = {16, 4};
  map.element_strides = {1, 1};
  World world(48 * 4);
  const std::vector<uint8_t> before = world.global;
  for (size_t i = 0; i < world.shared.size(); ++i) world.shared[i] = static_cast<uint8_t>(i * 7);
  CopyPlan plan;
  ASSERT_TRUE(PlanTensorStore(map, {}, plan));
  world.Store(map, plan);
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t row = i / 48, byte = i % 48;
    const bool written = row < 3 && byte < 32;  // 26 bytes exist, 32 are written
    EXPECT_EQ(world.global[i], written ? static_cast<uint8_t>((row * 32 + byte) * 7) : before[i]) << i;
  }
  TensorCopy past;
  past.coordinates = {16, 0};
  ASSERT_TRUE(PlanTensorStore(map, past, plan));
  EXPECT_TRUE(plan.runs.empty());
}

TEST(TensorCopy, LoadAndStoreAreInverse) {
  TensorMap map;
  map.element = TensorElement::kF32;
  map.swizzle = TensorSwizzle::k128B;
  map.rank = 2;
  map.address = kBase;
  map.dims = {64, 40};
  map.strides = {0, 256};
  map.box = {32, 16};
  map.element_strides = {1, 1};
  World world(256 * 40);
  const std::vector<uint8_t> before = world.global;
  CopyPlan plan;
  TensorCopy copy;
  copy.coordinates = {32, 10};
  copy.shared = 2048 + 128;
  ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
  world.Load(map, plan);
  std::fill(world.global.begin(), world.global.end(), uint8_t{0});
  ASSERT_TRUE(PlanTensorStore(map, copy, plan));
  world.Store(map, plan);
  for (size_t i = 0; i < before.size(); ++i) {
    const bool inside = i / 256 >= 10 && i / 256 < 26 && i % 256 >= 128;
    ASSERT_EQ(world.global[i], inside ? before[i] : 0);
  }
}

// Every stop of the bounding box in order, image after image: the traversal is a window of this list.
TEST(TensorCopy, RandomIm2colEqualsTheListOfStops) {
  Random r;
  CopyPlan plan;
  for (int round = 0; round < 800; ++round) {
    TensorMap map = RandomTensor(r, r.To(3, 5));
    const auto rank = static_cast<size_t>(map.rank), spatial = rank - 2;
    map.mode = TensorMapMode::kIm2col;
    map.element_strides[rank - 1] = 1;
    uint32_t row_bytes = 0;
    map.channels = static_cast<uint32_t>(InnerElements(r, map, row_bytes));
    map.pixels = static_cast<uint32_t>(r.To(1, 60));
    std::vector<std::array<int64_t, 4>> stops{{}};  // W, H, D of one image, W fastest
    for (size_t s = spatial; s-- > 0;) {
      map.lower_corner[s] = r.To(-3, 1);
      map.upper_corner[s] = std::max(r.To(-3, 2), map.lower_corner[s] + 1 - static_cast<int>(map.dims[s + 1]));
      std::vector<std::array<int64_t, 4>> more;
      for (const auto& stop : stops) {
        for (int64_t p = map.lower_corner[s]; p <= static_cast<int64_t>(map.dims[s + 1]) - 1 + map.upper_corner[s];
             p += map.element_strides[s + 1]) {
          more.push_back(stop);
          more.back()[s] = p;
        }
      }
      stops = std::move(more);
    }
    TensorCopy copy;
    copy.form = CopyForm::kIm2col;
    copy.shared = 128 * static_cast<uint32_t>(r.To(0, 24));
    const int64_t es = ElementBits(map.element) / 8;
    copy.coordinates[0] = static_cast<int32_t>(r.To(-2, 3) * 16 / es);
    const auto first = static_cast<size_t>(r.To(0, static_cast<int>(stops.size()) - 1));
    for (size_t s = 0; s < spatial; ++s) {
      copy.coordinates[s + 1] = static_cast<int32_t>(stops[first][s]);
      copy.offsets[s] = static_cast<uint32_t>(r.To(0, 4));
    }
    const int image = r.To(-1, static_cast<int>(map.dims[rank - 1]));
    copy.coordinates[rank - 1] = image;
    World world(64 + map.strides[rank - 1] * map.dims[rank - 1] + map.dims[0] * 8);
    ASSERT_TRUE(ValidateTensorMap(map, TensorMapDialect::kBlackwell));
    ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
    EXPECT_EQ(plan.transaction_bytes, map.pixels * row_bytes);
    world.Load(map, plan);
    ExpectImage(map, world, copy.shared, map.pixels, row_bytes, [&](uint32_t row, uint32_t element) -> int64_t {
      const int64_t c = copy.coordinates[0] + static_cast<int64_t>(element);
      const size_t index = first + row;
      const int64_t n = image + static_cast<int64_t>(index / stops.size());
      if (c < 0 || c >= static_cast<int64_t>(map.dims[0]) || n < 0 || n >= static_cast<int64_t>(map.dims[rank - 1]))
        return -1;
      int64_t at = c * es + n * static_cast<int64_t>(map.strides[rank - 1]);
      for (size_t s = 0; s < spatial; ++s) {
        const int64_t p = stops[index % stops.size()][s] + copy.offsets[s];
        if (p < 0 || p >= static_cast<int64_t>(map.dims[s + 1])) return -1;
        at += p * static_cast<int64_t>(map.strides[s + 1]);
      }
      return at;
    });
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(TensorCopy, Gather4TakesFourRows) {
  TensorMap map;
  map.element = TensorElement::kU8;
  map.rank = 2;
  map.address = kBase;
  map.dims = {64, 10};
  map.strides = {0, 64};
  map.box = {32, 1};
  map.element_strides = {1, 1};
  World world(640);
  TensorCopy copy;
  copy.form = CopyForm::kGather4;
  copy.coordinates = {16, 7, 0, 10, 3};
  CopyPlan plan;
  ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
  EXPECT_EQ(plan.transaction_bytes, 128u);
  world.Load(map, plan);
  for (uint32_t k = 0; k < 4; ++k) {
    for (uint32_t b = 0; b < 32; ++b) {
      const auto row = static_cast<size_t>(copy.coordinates[k + 1]);
      EXPECT_EQ(world.shared[k * 32 + b], row == 10 ? 0 : world.global[row * 64 + 16 + b]);
    }
  }
  map.box[1] = 2;
  EXPECT_FALSE(PlanTensorLoad(map, copy, plan));
}

TEST(TensorCopy, WideIm2colWalksOneRowAndItsHalo) {
  TensorMap map;
  map.mode = TensorMapMode::kIm2colWide;
  map.element = TensorElement::kU8;
  map.swizzle = TensorSwizzle::k64B;
  map.rank = 4;
  map.address = kBase;
  map.dims = {64, 20, 3, 5};
  map.strides = {0, 64, 1280, 3840};
  map.element_strides = {1, 1, 1, 1};
  map.lower_corner = {-1};
  map.upper_corner = {-1};  // stops -1 .. 18: twenty per image
  map.channels = 64;
  map.pixels = 16;
  World world(3840 * 5);
  TensorCopy copy;
  copy.form = CopyForm::kIm2col;
  copy.coordinates = {0, 9, 2, 1};
  copy.offsets = {2, 0};
  CopyPlan plan;
  ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
  EXPECT_EQ(plan.transaction_bytes, 18u * 64);
  world.Load(map, plan);
  const auto stop = [&](int q, uint32_t) -> int64_t {
    const int w = (10 + q) % 20 - 1, n = 1 + (10 + q) / 20;
    return w < 0 ? -1 : w * 64 + 2 * 1280 + n * 3840;
  };
  ExpectImage(map, world, 0, 18, 64, [&](uint32_t row, uint32_t c) -> int64_t {
    const int64_t at = stop(static_cast<int>(row), c);
    return at < 0 ? -1 : at + c;
  });
  map.mode = TensorMapMode::kIm2colWide128;
  std::fill(world.shared.begin(), world.shared.end(), kUntouched);
  copy.coordinates = {0, 9, 2, -2};
  ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
  EXPECT_EQ(plan.transaction_bytes, (128u + 4 * 2) * 64);
  world.Load(map, plan);
  ExpectImage(map, world, 0, 136, 64, [&](uint32_t row, uint32_t c) -> int64_t {
    const int q = static_cast<int>(row < 128 ? row : (row - 128) / 2 * 32 + 32 + (row - 128) % 2);
    const int w = (10 + q) % 20 - 1, n = -2 + (10 + q) / 20;
    return w < 0 || n < 0 || n >= 5 ? -1 : w * 64 + 2 * 1280 + n * 3840 + static_cast<int64_t>(c);
  });
}

TEST(TensorCopy, FaultsOfTheHardware) {
  TensorMap map;
  map.element = TensorElement::kBf16;
  map.rank = 2;
  map.address = kBase;
  map.dims = {64, 10};
  map.strides = {0, 128};
  map.box = {64, 8};
  map.element_strides = {1, 1};
  CopyPlan plan;
  const auto message = [&](Status status) { return status ? std::string() : status.error().message; };
  TensorCopy copy;
  copy.shared = 64;
  EXPECT_NE(message(PlanTensorLoad(map, copy, plan)).find("misaligned"), std::string::npos);
  copy.shared = 128;
  copy.coordinates[0] = 4;
  EXPECT_NE(message(PlanTensorLoad(map, copy, plan)).find("illegal instruction"), std::string::npos);
  copy.coordinates = {0, -1};
  EXPECT_EQ(message(PlanTensorLoad(map, copy, plan)), "");
  EXPECT_NE(message(PlanTensorStore(map, copy, plan)).find("must not be negative"), std::string::npos);
  copy.form = CopyForm::kIm2col;
  EXPECT_NE(message(PlanTensorLoad(map, copy, plan)).find("tiled tensor map"), std::string::npos);
}

TEST(TensorCopy, Im2colStartsInsideItsBox) {
  TensorMap map;
  map.mode = TensorMapMode::kIm2col;
  map.rank = 3;
  map.address = kBase;
  map.dims = {64, 10, 2};
  map.strides = {0, 64, 640};
  map.element_strides = {1, 1, 1};
  map.lower_corner = {-1};
  map.upper_corner = {-2};
  map.channels = 64;
  map.pixels = 4;
  CopyPlan plan;
  TensorCopy copy;
  copy.form = CopyForm::kIm2col;
  for (int w = -3; w < 12; ++w) {
    copy.coordinates = {0, w, 0};
    EXPECT_EQ(PlanTensorLoad(map, copy, plan).has_value(), w >= -1 && w <= 7) << w;
  }
}

// Measured on an H200: a corner that is not 0 makes a store illegal wherever it starts; with corners of 0 it clips.
TEST(TensorCopy, Im2colStoresNeedTheWholeTensorAsTheirBox) {
  TensorMap map;
  map.mode = TensorMapMode::kIm2col;
  map.element = TensorElement::kBf16;
  map.rank = 4;
  map.address = kBase;
  map.dims = {64, 10, 6, 2};
  map.strides = {0, 128, 1280, 7680};
  map.element_strides = {1, 1, 1, 1};
  map.channels = 64;
  map.pixels = 8;
  CopyPlan plan;
  TensorCopy copy;
  copy.form = CopyForm::kIm2col;
  copy.coordinates = {0, 4, 5, 1};
  ASSERT_TRUE(PlanTensorStore(map, copy, plan));
  size_t written = 0;
  for (const TensorRun& run : plan.runs) written += run.global_bytes;
  EXPECT_EQ(written, 6u * 128);  // pixels 4 to 9 of the last row; two are after the last image
  for (const auto& [lower, upper] : {std::pair{-1, 0}, {0, 1}, {0, -1}, {1, 0}}) {
    for (const size_t dimension : {size_t{0}, size_t{1}}) {
      TensorMap moved = map;
      moved.lower_corner[dimension] = lower;
      moved.upper_corner[dimension] = upper;
      EXPECT_TRUE(PlanTensorLoad(moved, {CopyForm::kIm2col, {0, 4, 2, 1}}, plan));
      const Status stored = PlanTensorStore(moved, {CopyForm::kIm2col, {0, 4, 2, 0}}, plan);
      ASSERT_FALSE(stored.has_value()) << lower << " " << upper << " " << dimension;
      EXPECT_NE(stored.error().message.find("illegal instruction: an im2col store needs pixel box corners of 0"),
                std::string::npos)
          << stored.error().message;
    }
  }
}

TEST(TensorCopy, Tf32LoadsRoundToNearestEven) {
  TensorMap map;
  map.element = TensorElement::kTf32;
  const uint32_t words[] = {0x3f801000, 0x3f803000, 0x3f801001, 0x7f800000,
                            0x7f800001, 0x00001001, 0x7f7fffff, 0xbf800fff};
  const uint32_t want[] = {0x3f800000, 0x3f804000, 0x3f802000, 0x7f800000,
                           0x7fffe000, 0x00002000, 0x7f800000, 0xbf800000};
  uint32_t got[8];
  LoadRun(map, {kBase, 0, 0, 32, 32}, reinterpret_cast<const uint8_t*>(words),
          {std::span(reinterpret_cast<uint8_t*>(got), sizeof(got)), 0});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], want[i]);
}

TEST(TensorCopy, PaddedSubByteRows) {
  TensorMap map;
  map.element = TensorElement::k16U4Align16B;
  map.rank = 2;
  map.address = kBase;
  map.dims = {256, 2};
  map.strides = {0, 128};
  map.box = {128, 2};
  map.element_strides = {1, 1};
  World world(256);
  TensorCopy copy;
  copy.coordinates = {128, 1};
  CopyPlan plan;
  ASSERT_TRUE(PlanTensorLoad(map, copy, plan));
  world.Load(map, plan);
  for (size_t chunk = 0; chunk < 8; ++chunk) {
    EXPECT_EQ(0, std::memcmp(world.shared.data() + chunk * 16, world.global.data() + 128 + 64 + chunk * 8, 8));
    EXPECT_EQ(world.shared[128 + chunk * 16], 0);  // row 2 does not exist
  }
  map.element = TensorElement::k16U6Align16B;
  map.strides[1] = 192;
  uint8_t containers[16], packed[12];
  for (uint8_t i = 0; i < 16; ++i) containers[i] = static_cast<uint8_t>(0xc0 | (i * 3));
  StoreRun(map, {kBase, 0, 0, 16, 12}, packed, {containers, 0});
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t value = 0;
    for (uint32_t bit = 0; bit < 6; ++bit) value |= (packed[(6 * i + bit) / 8] >> (6 * i + bit) % 8 & 1u) << bit;
    EXPECT_EQ(value, i * 3);
  }
}

}  // namespace
}  // namespace laneshift::emulator
