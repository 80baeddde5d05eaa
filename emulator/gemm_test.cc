// Complete warp-specialised GEMM kernels: right numbers and no hazards under every completion order.

#include <chrono>
#include <random>

#include "base/small_float.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

struct Case {
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.file; }
  std::string file, kernel;
  Profile profile;
  Completion completion;
  uint64_t seed;
  uint32_t tile_m, tile_n, threads, stage_bytes;
};

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const char* order[] = {"Eager", "Late", "Random"};
  return info.param.kernel + order[static_cast<size_t>(info.param.completion)] + std::to_string(info.param.seed);
}

class Gemm : public testing::TestWithParam<Case> {};

TEST_P(Gemm, IsRight) {
  const Case& c = GetParam();
  Options options;
  options.profile = c.profile;
  options.completion = c.completion;
  options.seed = c.seed;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(ReadTestFile(c.file), c.kernel.c_str());
  ASSERT_NE(kernel, nullptr) << device.log;
  uint32_t m = 256, n = 256, k = 320;
  std::mt19937 random(7);
  std::vector<uint16_t> a(m * k), b(n * k);
  for (auto* matrix : {&a, &b}) {
    for (uint16_t& x : *matrix) x = base::FloatToF16(static_cast<float>(static_cast<int>(random() % 9) - 4) * 0.25f);
  }
  device::CuTensorMap map_a = device.Map(device::kCuTensorMapFloat16, device.Upload(a), m, k, c.tile_m);
  device::CuTensorMap map_b = device.Map(device::kCuTensorMapFloat16, device.Upload(b), n, k, c.tile_n);
  device::CuDevicePtr d = device.Allocate(m * n * 2);
  ASSERT_EQ(device.Launch(kernel, {m / c.tile_m, n / c.tile_n, 1}, c.threads, 4 * c.stage_bytes,
                          {&map_a, &map_b, &d, &m, &n, &k}),
            device::kCuSuccess)
      << TakeReport().Print();
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
  EXPECT_EQ(report.counters.mma_multiplies, uint64_t{m} * n * k);
  const auto got = device.Download<uint16_t>(d, m * n);
  for (uint32_t row = 0; row < m; ++row) {
    for (uint32_t column = 0; column < n; ++column) {
      float sum = 0;  // exact: quarters below 2^24
      for (uint32_t x = 0; x < k; ++x) sum += base::F16ToFloat(a[row * k + x]) * base::F16ToFloat(b[column * k + x]);
      ASSERT_EQ(got[row * n + column], base::FloatToF16(sum)) << row << "," << column;
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&](Completion completion, uint64_t seed) {
    cases.push_back({"gemm_sm100a.ptx", "gemm_sm100", Profile::kB200, completion, seed, 128, 128, 192, 32768});
    cases.push_back({"wgmma_sm90a.ptx", "wgmma_sm90", Profile::kH200, completion, seed, 128, 256, 384, 49152});
  };
  add(Completion::kEager, 0);
  add(Completion::kLate, 0);
  for (uint64_t seed = 1; seed <= 3; ++seed) add(Completion::kRandom, seed);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Orders, Gemm, testing::ValuesIn(Cases()), CaseName);

TEST(NvccKernels, NaiveGemmIsRight) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(ReadTestFile("nvcc_sm100a.ptx"), "naive");
  ASSERT_NE(kernel, nullptr) << device.log;
  int m = 9, n = 21, k = 37;
  std::vector<uint16_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(n * k));
  for (size_t i = 0; i < a.size(); ++i) a[i] = base::FloatToBf16(static_cast<float>(i % 7) - 3);
  for (size_t i = 0; i < b.size(); ++i) b[i] = base::FloatToBf16(static_cast<float>(i % 5) * 0.5f);
  device::CuDevicePtr da = device.Upload(a), db = device.Upload(b), d = device.Allocate(static_cast<size_t>(m * n) * 4);
  ASSERT_EQ(device.Launch(kernel, {1, static_cast<unsigned>(m), 1}, 32, 0, {&da, &db, &d, &m, &n, &k}),
            device::kCuSuccess)
      << TakeReport().Print();
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
  const auto got = device.Download<float>(d, static_cast<size_t>(m * n));
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int x = 0; x < k; ++x)
        sum += base::Bf16ToFloat(a[static_cast<size_t>(row * k + x)]) *
               base::Bf16ToFloat(b[static_cast<size_t>(column * k + x)]);
      EXPECT_EQ(got[static_cast<size_t>(row * n + column)], sum) << row << "," << column;
    }
  }
}

TEST(NvccKernels, HistogramCountsAcrossBlocks) {
  TestDevice device({});
  const device::CuFunction kernel = device.Load(ReadTestFile("nvcc_sm100a.ptx"), "hist");
  ASSERT_NE(kernel, nullptr) << device.log;
  int n = 1000;
  std::vector<int> values(static_cast<size_t>(n)), zero(32, 0), want(32, 0);
  for (int i = 0; i < n; ++i) ++want[static_cast<size_t>((values[static_cast<size_t>(i)] = i * i) & 31)];
  device::CuDevicePtr x = device.Upload(values), out = device.Upload(zero);
  ASSERT_EQ(device.Launch(kernel, {4, 1, 1}, 96, 0, {&x, &out, &n}), device::kCuSuccess) << TakeReport().Print();
  EXPECT_TRUE(TakeReport().Clean());
  EXPECT_EQ(device.Download<int>(out, 32), want);
}

}  // namespace
}  // namespace laneshift::emulator
