#include "laneshift/device_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace laneshift {
namespace {

Result<Engine> OpenEmulator() {
  EngineOptions options;
  options.device = "emulator";
  options.store_directory = ":memory:";
  return Engine::Open(options);
}

TEST(DeviceMemory, HoldsAProductsOperands) {
  const auto engine = OpenEmulator();
  ASSERT_TRUE(engine.has_value());
  const auto problem = ParseProblem("gemm m=8 n=16 k=32 a=bf16 b=bf16 d=f32");
  const auto plan = engine->MakePlan(*problem);
  ASSERT_TRUE(plan.has_value());
  const std::vector<uint16_t> a(8 * 32, 0x3f80), b(16 * 32, 0x4000);  // 1.0 and 2.0
  std::vector<float> d(8 * 16);
  const auto device_a = DeviceMemory::Allocate(*engine, a.size() * 2);
  const auto device_b = DeviceMemory::Allocate(*engine, b.size() * 2);
  const auto device_d = DeviceMemory::Allocate(*engine, d.size() * 4);
  const auto workspace = DeviceMemory::Allocate(*engine, plan->workspace_bytes());
  ASSERT_TRUE(device_a && device_b && device_d && workspace);
  ASSERT_TRUE(device_a->CopyFromHost(a.data(), a.size() * 2));
  ASSERT_TRUE(device_b->CopyFromHost(b.data(), b.size() * 2));
  ASSERT_TRUE(
      plan->Execute(nullptr, {.a = device_a->data(), .b = device_b->data(), .d = device_d->data()}, workspace->data()));
  ASSERT_TRUE(device_d->CopyToHost(d.data(), d.size() * 4));
  for (const float sum : d) EXPECT_EQ(sum, 64.0f);
}

TEST(DeviceMemory, BeginsAsZeroAndIsCopiedByParts) {
  const auto engine = OpenEmulator();
  auto memory = DeviceMemory::Allocate(*engine, 16);
  ASSERT_TRUE(memory.has_value());
  const uint32_t word = 7;
  ASSERT_TRUE(memory->CopyFromHost(&word, 4, 8));
  const DeviceMemory moved = std::move(*memory);
  uint32_t words[4] = {1, 1, 1, 1};
  ASSERT_TRUE(moved.CopyToHost(words, 16));
  EXPECT_EQ(std::vector<uint32_t>(words, words + 4), (std::vector<uint32_t>{0, 0, 7, 0}));
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(memory->size(), 0u);
}

TEST(DeviceMemory, RefusesWhatDoesNotFit) {
  const auto engine = OpenEmulator();
  const auto memory = DeviceMemory::Allocate(*engine, 16);
  uint8_t bytes[32] = {};
  for (const size_t offset : {size_t{1}, size_t{17}, ~size_t{0}}) {
    EXPECT_EQ(memory->CopyFromHost(bytes, 16, offset).error().code, ErrorCode::kInvalidArgument) << offset;
    EXPECT_EQ(memory->CopyToHost(bytes, 16, offset).error().code, ErrorCode::kInvalidArgument) << offset;
  }
  EXPECT_EQ(memory->CopyFromHost(nullptr, 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(memory->CopyToHost(nullptr, 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(memory->CopyToHost(nullptr, 0));
  EXPECT_EQ(DeviceMemory::Allocate(*engine, ~size_t{0}).error().code, ErrorCode::kResourceExhausted);
}

TEST(DeviceMemory, KeepsTheDeviceAlive) {
  auto engine = OpenEmulator();
  auto memory = DeviceMemory::Allocate(*engine, 64);
  ASSERT_TRUE(memory.has_value());
  engine = OpenEmulator();
  uint8_t byte = 1;
  EXPECT_TRUE(memory->CopyToHost(&byte, 1));
  EXPECT_EQ(byte, 0);
}

}  // namespace
}  // namespace laneshift
