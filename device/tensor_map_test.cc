#include "device/tensor_map.h"

#include <gtest/gtest.h>

#include <functional>

#include "device/fake_driver.h"

namespace laneshift::device {
namespace {

TensorMapTiled Tile() {
  return {.tensor = {.type = kCuTensorMapBfloat16,
                     .address = 0x1000,
                     .dims = {4096, 512},
                     .strides = {8192},
                     .element_strides = {},
                     .swizzle = kCuSwizzle128},
          .box = {64, 128}};
}

TensorMapIm2col Image() {
  return {.tensor = {.type = kCuTensorMapBfloat16,
                     .address = 0x1000,
                     .dims = {64, 56, 56, 32},
                     .strides = {128, 7168, 401408},
                     .element_strides = {},
                     .swizzle = kCuSwizzle128},
          .lower_corner = {-1, -1},
          .upper_corner = {-1, -1},
          .channels_per_pixel = 64,
          .pixels_per_column = 128};
}

template <typename Map>
std::string Refusal(Map map, const std::function<void(Map&)>& change) {
  change(map);
  Status status = Validate(map);
  if (!status && status.error().code != ErrorCode::kInvalidArgument) return "wrong code";
  return status ? "accepted" : status.error().message;
}

struct TiledCase {
  const char* expected;  // in the message
  std::function<void(TensorMapTiled&)> change;
};

TEST(TensorMap, EveryRuleOfTiledMapsNamesItsParameter) {
  const TiledCase cases[] = {
      {"rank is 0", [](auto& m) { m.tensor.dims = {}; }},
      {"rank is 6", [](auto& m) { m.tensor.dims.assign(6, 16); }},
      {"rank is 2; an interleaved", [](auto& m) { m.tensor.interleave = kCuInterleave16; }},
      {"dims[1] is 0", [](auto& m) { m.tensor.dims[1] = 0; }},
      {"dims[0] is 4294967297", [](auto& m) { m.tensor.dims[0] = (uint64_t{1} << 32) + 1; }},
      {"address is null", [](auto& m) { m.tensor.address = 0; }},
      {"address is not a multiple of 16 bytes: it is 8", [](auto& m) { m.tensor.address += 8; }},
      {"there are 0 strides; rank 2 needs 1", [](auto& m) { m.tensor.strides = {}; }},
      {"strides[0] (of dimension 1) is 8200", [](auto& m) { m.tensor.strides[0] = 8200; }},
      {"below 2^40", [](auto& m) { m.tensor.strides[0] = uint64_t{1} << 40; }},
      {"there are 1 element_strides", [](auto& m) { m.tensor.element_strides = {1}; }},
      {"element_strides[1] is 9",
       [](auto& m) {
         m.tensor.element_strides = {1, 9};
       }},
      {"box has 1 extents", [](auto& m) { m.box = {64}; }},
      {"box[0] is 0", [](auto& m) { m.box[0] = 0; }},
      {"box[1] is 257", [](auto& m) { m.box[1] = 257; }},
      {"multiple of 16 bytes", [](auto& m) { m.box[0] = 60; }},
      {"a row of 256 bytes; the swizzle allows 128", [](auto& m) { m.box[0] = 128; }},
      {"the swizzle allows 32", [](auto& m) { m.tensor.swizzle = kCuSwizzle32; }},
      {"NaN needs a floating-point type",
       [](auto& m) {
         m.tensor.type = kCuTensorMapUint16;
         m.tensor.fill = kCuOobNan;
       }},
      {"this packed type needs 128", [](auto& m) { m.tensor.type = kCuTensorMap16U4Align16; }},
      {"address is not a multiple of 32",
       [](auto& m) {
         m.tensor.type = kCuTensorMap16U6Align16;
         m.tensor.address += 16;
       }},
      {"allows no swizzle but 128",
       [](auto& m) {
         m.tensor.type = kCuTensorMap16U4Align16;
         m.tensor.swizzle = kCuSwizzle64;
         m.box[0] = 128;
       }},
  };
  for (const TiledCase& c : cases) {
    std::string message = Refusal(Tile(), c.change);
    EXPECT_NE(message.find(c.expected), std::string::npos) << "wanted: " << c.expected << "\ngot: " << message;
  }
  EXPECT_TRUE(Validate(Tile()));
}

TEST(TensorMap, LimitsThemselvesAreAccepted) {
  auto accepted = [](const std::function<void(TensorMapTiled&)>& change) { return Refusal(Tile(), change); };
  EXPECT_EQ(accepted([](auto& m) { m.tensor.dims[0] = uint64_t{1} << 32; }), "accepted");
  EXPECT_EQ(accepted([](auto& m) { m.box[1] = 256; }), "accepted");
  EXPECT_EQ(accepted([](auto& m) { m.tensor.strides[0] = 0; }), "accepted") << "broadcast";
  EXPECT_EQ(accepted([](auto& m) {
              m.tensor.swizzle = kCuSwizzleNone;
              m.box[0] = 256;
            }),
            "accepted");
  EXPECT_EQ(accepted([](auto& m) {
              m.tensor.type = kCuTensorMap16U4Align8;
              m.box[0] = 256;
            }),
            "accepted");
}

TEST(TensorMap, RulesOfIm2col) {
  using Change = std::function<void(TensorMapIm2col&)>;
  EXPECT_TRUE(Validate(Image()));
  auto refusal = [](const Change& change) { return Refusal(Image(), change); };
  EXPECT_NE(refusal([](auto& m) { m.tensor.dims = {64, 56}; }).find("im2col needs 3 to 5"), std::string::npos);
  EXPECT_NE(refusal([](auto& m) { m.lower_corner = {-1}; }).find("needs 2 of each"), std::string::npos);
  EXPECT_NE(
      refusal([](auto& m) { m.lower_corner[1] = -129; }).find("lower_corner[1] is -129; rank 4 allows -128 to 127"),
      std::string::npos);
  EXPECT_NE(refusal([](auto& m) { m.upper_corner[0] = 128; }).find("upper_corner[0] is 128"), std::string::npos);
  EXPECT_NE(refusal([](auto& m) { m.pixels_per_column = 1025; }).find("pixels_per_column is 1025"), std::string::npos);
  EXPECT_NE(refusal([](auto& m) { m.channels_per_pixel = 128; }).find("channels_per_pixel is 128"), std::string::npos);
}

TEST(TensorMap, TheDriverIsAskedOnlyForWhatIsValid) {
  DriverApi api = FakeDriver::Reset();
  TensorMapTiled bad = Tile();
  bad.box[0] = 60;
  EXPECT_FALSE(EncodeTensorMap(api, bad));
  EXPECT_FALSE(FakeDriver::Instance().Called("cuTensorMapEncodeTiled"));
  EXPECT_TRUE(EncodeTensorMap(api, Tile()));
  EXPECT_TRUE(EncodeTensorMap(api, Image()));
  FakeDriver::Instance().failures["cuTensorMapEncodeTiled"] = kCuErrorInvalidValue;
  auto refused = EncodeTensorMap(api, Tile());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDriver);
}

}  // namespace
}  // namespace laneshift::device
