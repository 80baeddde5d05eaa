// tests/emulator/tensor_copies_sm100a.ptx: tensor copies inside a kernel of two CTAs, and a map that it edits.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr uint32_t kRows = 32, kColumns = 16;

// A map of u32 rows of 16 columns.
device::CuTensorMap MapOf(TestDevice& device, device::CuDevicePtr base, uint64_t rows, uint32_t box_rows) {
  device::CuTensorMap map{};
  const uint64_t dims[] = {kColumns, rows}, strides[] = {kColumns * 4};
  const uint32_t box[] = {kColumns, box_rows}, steps[] = {1, 1};
  EXPECT_EQ(device.api.TensorMapEncodeTiled(&map, device::kCuTensorMapUint32, 2, reinterpret_cast<void*>(base), dims,
                                            strides, box, steps, device::kCuInterleaveNone, device::kCuSwizzleNone,
                                            device::kCuL2None, device::kCuOobZero),
            device::kCuSuccess);
  return map;
}

class TensorCopies : public testing::TestWithParam<Completion> {};

TEST_P(TensorCopies, OfAPairOfCtas) {
  Options options;
  options.completion = GetParam();
  options.seed = 5;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(ReadTestFile("tensor_copies_sm100a.ptx"), "copies");
  ASSERT_NE(kernel, nullptr) << device.log;
  std::vector<uint32_t> values(kRows * kColumns), others(8 * kColumns);
  for (uint32_t i = 0; i < values.size(); ++i) values[i] = 1000 + i;
  for (uint32_t i = 0; i < others.size(); ++i) others[i] = 7 * i;
  device::CuDevicePtr in = device.Upload(values), other = device.Upload(others);
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(values.size(), 0));
  device::CuDevicePtr rows = device.Upload(std::vector<uint32_t>(8 * kColumns, 9));
  device::CuDevicePtr edited = device.Allocate(128), last = device.Allocate(512);
  device::CuTensorMap in_map = MapOf(device, in, kRows, 8), out_map = MapOf(device, out, kRows, 8);
  device::CuTensorMap row_map = MapOf(device, in, kRows, 1), rows_out_map = MapOf(device, rows, 8, 1);
  ASSERT_EQ(
      device.Launch(kernel, {2, 1, 1}, 32, 0, {&in_map, &out_map, &row_map, &rows_out_map, &edited, &other, &last}, 2),
      device::kCuSuccess)
      << TakeReport().Print();
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
  const auto got = device.Download<uint32_t>(out, values.size());
  const auto scattered = device.Download<uint32_t>(rows, 8 * kColumns);
  const auto edits = device.Download<uint32_t>(last, 8 * kColumns);
  const int gathered[] = {31, 5, 17, -1};
  for (uint32_t c = 0; c < kColumns; ++c) {
    for (uint32_t r = 0; r < kRows; ++r) {
      // Tiles of both CTAs, then the multicast tile, which each adds to zeros.
      const uint32_t from = r < 16 ? r : 16 + r % 8;
      EXPECT_EQ(got[r * kColumns + c], values[from * kColumns + c]) << r << "," << c;
    }
    for (uint32_t r = 0; r < 8; ++r) {
      const int from = gathered[r % 4];
      EXPECT_EQ(scattered[r * kColumns + c], from < 0 ? 0 : values[static_cast<uint32_t>(from) * kColumns + c])
          << r << "," << c;
      EXPECT_EQ(edits[r * kColumns + c], others[r * kColumns + c]) << r << "," << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, TensorCopies,
                         testing::Values(Completion::kEager, Completion::kLate, Completion::kRandom));

// The same map edit without the user's acquire.
TEST(TensorMapEdits, NeedAnAcquire) {
  std::string text = ReadTestFile("tensor_copies_sm100a.ptx");
  const std::string fence = "fence.proxy.tensormap::generic.acquire.gpu [%rd20], 128;";
  ASSERT_NE(text.find(fence), std::string::npos);
  text.erase(text.find(fence), fence.size());
  TestDevice device({});
  const device::CuFunction kernel = device.Load(text, "copies");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr in = device.Upload(std::vector<uint32_t>(kRows * kColumns, 1));
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(kRows * kColumns, 1));
  device::CuDevicePtr edited = device.Allocate(128), last = device.Allocate(512);
  device::CuTensorMap map = MapOf(device, in, kRows, 8), out_map = MapOf(device, out, kRows, 8);
  device::CuTensorMap row_map = MapOf(device, in, kRows, 1), rows_out_map = MapOf(device, out, 8, 1);
  EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 32, 0, {&map, &out_map, &row_map, &rows_out_map, &edited, &in, &last}, 2),
            device::kCuSuccess);
  const Report report = TakeReport();
  bool found = false;
  for (const Hazard& hazard : report.hazards) found |= hazard.message.find("acquire") != std::string::npos;
  EXPECT_TRUE(found) << report.Print();
}

}  // namespace
}  // namespace laneshift::emulator
