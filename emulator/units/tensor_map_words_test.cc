#include "emulator/units/tensor_map_words.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace laneshift::emulator {
namespace {

TensorMap Matrix() {
  TensorMap map;
  map.element = TensorElement::kBf16;
  map.swizzle = TensorSwizzle::k128B;
  map.rank = 2;
  map.address = 0x7f0000000000;
  map.dims = {4096, 1000};
  map.strides = {0, 8192};
  map.box = {64, 128};
  map.element_strides = {1, 1};
  return map;
}

TensorMap Images() {
  TensorMap map = Matrix();
  map.mode = TensorMapMode::kIm2col;
  map.rank = 4;
  map.dims = {64, 56, 56, 32};
  map.strides = {0, 128, 7168, 401408};
  map.element_strides = {1, 1, 1, 1};
  map.box = {};
  map.lower_corner = {-1, -1};
  map.upper_corner = {-1, -1};
  map.channels = 64;
  map.pixels = 128;
  return map;
}

TEST(TensorMap, EncodingKeepsEveryField) {
  for (TensorMap map : {Matrix(), Images()}) {
    map.dims[0] = uint64_t{1} << 32;
    const auto decoded = DecodeTensorMap(EncodeTensorMap(map));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, map);
  }
}

TEST(TensorMap, DamageIsFoundOut) {
  TensorMapBytes bytes = EncodeTensorMap(Matrix());
  for (size_t i = 0; i < bytes.size(); ++i) {
    TensorMapBytes damaged = bytes;
    damaged[i] ^= 1;
    EXPECT_FALSE(DecodeTensorMap(damaged)) << i;
  }
  EXPECT_FALSE(DecodeTensorMap(TensorMapBytes{}));
}

TEST(TensorMap, EveryRuleNamesItsParameter) {
  struct Rule {
    const char* parameter;
    std::function<void(TensorMap&)> break_it;
  };
  const Rule rules[] = {
      {"tensorRank", [](TensorMap& m) { m.rank = 0; }},
      {"tensorRank", [](TensorMap& m) { m.rank = 6; }},
      {"globalAddress", [](TensorMap& m) { m.address += 8; }},
      {"globalDim[1]", [](TensorMap& m) { m.dims[1] = 0; }},
      {"globalDim[0]", [](TensorMap& m) { m.dims[0] = (uint64_t{1} << 32) + 1; }},
      {"globalStrides[0]", [](TensorMap& m) { m.strides[1] = 8200; }},
      {"globalStrides[0]", [](TensorMap& m) { m.strides[1] = uint64_t{1} << 40; }},
      {"boxDim[1]", [](TensorMap& m) { m.box[1] = 257; }},
      {"boxDim[1]", [](TensorMap& m) { m.box[1] = 0; }},
      {"boxDim[0]", [](TensorMap& m) { m.box[0] = 4; }},
      {"boxDim[0]", [](TensorMap& m) { m.box[0] = 72; }},
      {"elementStrides[1]", [](TensorMap& m) { m.element_strides[1] = 9; }},
      {"elementStrides[0]", [](TensorMap& m) { m.element_strides[0] = 0; }},
      {"oobFill", [](TensorMap& m) { m.element = TensorElement::kU16, m.fill = TensorFill::kNan; }},
      {"l2Promotion", [](TensorMap& m) { m.l2_promotion = 4; }},
      {"swizzle", [](TensorMap& m) { m.swizzle = TensorSwizzle::k128BAtom32B; }},
      {"tensorDataType", [](TensorMap& m) { m.element = TensorElement::k16U4Align8B; }},
  };
  EXPECT_TRUE(ValidateTensorMap(Matrix(), TensorMapDialect::kHopper));
  for (const Rule& rule : rules) {
    TensorMap map = Matrix();
    rule.break_it(map);
    const Status status = ValidateTensorMap(map, TensorMapDialect::kHopper);
    ASSERT_FALSE(status) << rule.parameter;
    EXPECT_NE(status.error().message.find(rule.parameter), std::string::npos) << status.error().message;
  }
}

TEST(TensorMap, Im2colRules) {
  const auto message = [](const std::function<void(TensorMap&)>& change, TensorMapDialect dialect) {
    TensorMap map = Images();
    change(map);
    const Status status = ValidateTensorMap(map, dialect);
    return status ? std::string("accepted") : status.error().message;
  };
  const auto hopper = TensorMapDialect::kHopper, blackwell = TensorMapDialect::kBlackwell;
  EXPECT_EQ(message([](TensorMap&) {}, hopper), "accepted");
  EXPECT_NE(message([](TensorMap& m) { m.lower_corner[1] = -129; }, hopper).find("LowerCorner[1]"), std::string::npos);
  EXPECT_NE(message([](TensorMap& m) { m.upper_corner[0] = 128; }, hopper).find("UpperCorner[0]"), std::string::npos);
  EXPECT_NE(message([](TensorMap& m) { m.channels = 128; }, hopper).find("channelsPerPixel"), std::string::npos);
  EXPECT_NE(message([](TensorMap& m) { m.pixels = 1025; }, hopper).find("pixelsPerColumn"), std::string::npos);
  EXPECT_NE(message([](TensorMap& m) { m.rank = 2; }, hopper).find("tensorRank"), std::string::npos);
  const auto wide = [](TensorMap& m) { m.mode = TensorMapMode::kIm2colWide; };
  EXPECT_NE(message(wide, hopper).find("sm_100"), std::string::npos);
  EXPECT_EQ(message(wide, blackwell), "accepted");
}

TEST(TensorMap, PackedTypes) {
  TensorMap map = Matrix();
  map.element = TensorElement::k16U4Align16B;
  map.box = {128, 8};
  map.strides[1] = 2048;
  EXPECT_TRUE(ValidateTensorMap(map, TensorMapDialect::kBlackwell)) << "as the rules ask";
  map.strides[1] = 2064;
  EXPECT_FALSE(ValidateTensorMap(map, TensorMapDialect::kBlackwell));
  map.strides[1] = 2048;
  map.box[0] = 64;
  EXPECT_FALSE(ValidateTensorMap(map, TensorMapDialect::kBlackwell));
}

TEST(TensorMap, InterleavedLayoutsAreRefusedByName) {
  TensorMap map = Images();
  map.mode = TensorMapMode::kTiled;
  map.box = {8, 8, 8, 1};
  map.interleave = TensorInterleave::k16B;
  const Status status = ValidateTensorMap(map, TensorMapDialect::kBlackwell);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace laneshift::emulator
