// Engine::Quantize and Dequantize: bit for bit what the functions of the same name do on the host.
#include "runtime/block_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/small_float.h"
#include "laneshift/device_memory.h"
#include "laneshift/engine.h"
#include "laneshift/quantize.h"

namespace laneshift {
namespace {

constexpr DataType kNumberTypes[] = {DataType::kF32, DataType::kF16, DataType::kBf16};
struct Format {
  DataType type;
  OutputScaling scaling;
};
constexpr Format kFormats[] = {{DataType::kE4m3, OutputScaling::kMx},
                               {DataType::kE5m2, OutputScaling::kMx},
                               {DataType::kE2m1, OutputScaling::kMx},
                               {DataType::kE2m1, OutputScaling::kNv}};
constexpr const char* kTargets[] = {"sm_100a", "sm_90a"};

Result<Engine> Open(const char* target, AsyncOrder order = {}) {
  return Engine::Open({.device = "emulator", .target = target, .store_directory = ":memory:", .async_order = order});
}

// Blocks of many magnitudes: ordinary ones, zeros, subnormal numbers, infinities, NaNs, ties of every element.
std::vector<float> Numbers(const QuantizedTensor& tensor, uint64_t seed) {
  std::mt19937_64 random(seed);
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers;
  for (int64_t row = 0; row < tensor.batch * tensor.rows; ++row) {
    const int exponent = static_cast<int>(random() % 60) - 30;
    for (int64_t column = 0; column < tensor.columns; ++column) {
      float number = std::ldexp(static_cast<float>(random() % 97) - 48, exponent - static_cast<int>(random() % 4));
      if (row % 7 == 1) number = random() % 2 == 0 ? 0 : -0.0f;
      if (row % 7 == 2) number = std::ldexp(number, -140 - exponent);
      if (row % 7 == 3 && column % 40 == 9) number = random() % 2 == 0 ? infinity : -infinity;
      if (row % 7 == 4 && column % 50 == 5) number = random() % 2 == 0 ? std::nanf("") : -std::nanf("");
      if (row % 7 == 5) number = std::ldexp(static_cast<float>(random() % 25) - 12, -1);
      numbers.push_back(number);
    }
  }
  return numbers;
}

std::vector<uint8_t> AsType(DataType type, const std::vector<float>& numbers) {
  std::vector<uint8_t> bytes(numbers.size() * static_cast<size_t>(DataTypeBytes(type)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t half = type == DataType::kF16 ? base::FloatToF16(numbers[i]) : base::FloatToBf16(numbers[i]);
    if (type == DataType::kF32) {
      std::memcpy(&bytes[4 * i], &numbers[i], 4);
    } else {
      std::memcpy(&bytes[2 * i], &half, 2);
    }
  }
  return bytes;
}

// Device memory whose tensor begins `shift` bytes after its start.
struct Tensor {
  Tensor(const Engine& engine, const std::vector<uint8_t>& bytes, size_t shift_bytes)
      : size(bytes.size()), shift(shift_bytes), memory(DeviceMemory::Allocate(engine, size + 2 * shift).value()) {
    const std::vector<uint8_t> poison(size + 2 * shift, 0xee);
    EXPECT_TRUE(memory.CopyFromHost(poison.data(), poison.size()));
    EXPECT_TRUE(memory.CopyFromHost(bytes.data(), size, shift));
  }
  void* data() const { return static_cast<char*>(memory.data()) + shift; }
  // Nothing around the tensor was written.
  std::vector<uint8_t> Read() const {
    std::vector<uint8_t> all(size + 2 * shift);
    EXPECT_TRUE(memory.CopyToHost(all.data(), all.size()));
    for (size_t i = 0; i < shift; ++i) EXPECT_TRUE(all[i] == 0xee && all[size + shift + i] == 0xee);
    return {all.begin() + static_cast<std::ptrdiff_t>(shift), all.begin() + static_cast<std::ptrdiff_t>(shift + size)};
  }

  size_t size, shift;
  DeviceMemory memory;
};

// Both directions of one tensor. `shift`: elements from an aligned address.
void Compare(const Engine& engine, const QuantizedTensor& tensor, DataType numbers, size_t shift) {
  const std::string what = std::string(DataTypeName(numbers)) + " " + std::string(DataTypeName(tensor.type)) + " " +
                           std::to_string(tensor.rows) + "x" + std::to_string(tensor.columns);
  const float scale = tensor.scaling == OutputScaling::kNv ? 3.7f : 1;
  const std::vector<uint8_t> from = AsType(numbers, Numbers(tensor, 7));
  const QuantizedBytes bytes = BytesOf(tensor).value();
  std::vector<uint8_t> elements(bytes.elements, 0x11), factors(bytes.factors, 0x11), back(from.size());
  ASSERT_TRUE(Quantize(tensor, numbers, from.data(), scale, elements.data(), factors.data()));
  ASSERT_TRUE(Dequantize(tensor, elements.data(), factors.data(), scale, numbers, back.data()));

  const Tensor own(engine, from, shift * static_cast<size_t>(DataTypeBytes(numbers)));
  const Tensor to(engine, std::vector<uint8_t>(elements.size(), 0xee), shift);
  const Tensor blocks(engine, std::vector<uint8_t>(factors.size(), 0xee), 16);
  const Tensor again(engine, std::vector<uint8_t>(from.size(), 0xee), own.shift);
  const DeviceMemory factor = DeviceMemory::Allocate(engine, 4).value();
  ASSERT_TRUE(factor.CopyFromHost(&scale, 4));
  const float* own_scale = scale == 1 ? nullptr : static_cast<const float*>(factor.data());
  Status done = engine.Quantize(nullptr, tensor, numbers, own.data(), own_scale, to.data(), blocks.data());
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(to.Read(), elements) << what;
  EXPECT_EQ(blocks.Read(), factors) << what;
  done = engine.Dequantize(nullptr, tensor, to.data(), blocks.data(), own_scale, numbers, again.data());
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(again.Read(), back) << what;
  const auto report = engine.TakeReport();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->Clean()) << (report->hazards.empty() ? report->faults[0] : report->hazards[0]);
}

// Rows of whole pieces, rows that begin at any byte, and tensors that do.
TEST(BlockKernels, AsTheHost) {
  for (const char* target : kTargets) {
    const auto engine = Open(target);
    ASSERT_TRUE(engine.has_value());
    for (const Format& format : kFormats) {
      const int64_t odd = format.type == DataType::kE2m1 ? 0 : 1;
      for (const DataType numbers : kNumberTypes) {
        const auto compare = [&](int64_t batch, int64_t rows, int64_t columns, size_t shift) {
          Compare(*engine, {batch, rows, columns, format.type, format.scaling}, numbers, shift);
        };
        compare(1, 20, 320, 0);
        compare(2, 130, 42 + odd, 1);
        compare(1, 3, 2 - odd, 0);
      }
    }
  }
}

TEST(BlockKernels, InEveryOrder) {
  for (const char* target : kTargets) {
    for (const AsyncOrder order : {AsyncOrder{AsyncOrder::kLate}, AsyncOrder{AsyncOrder::kRandom, 5}}) {
      const auto engine = Open(target, order);
      ASSERT_TRUE(engine.has_value());
      for (const Format& format : kFormats)
        Compare(*engine, {1, 140, 70, format.type, format.scaling}, DataType::kBf16, 0);
    }
  }
}

TEST(BlockKernels, Refusals) {
  const auto engine = Open("sm_90a");
  ASSERT_TRUE(engine.has_value());
  const DeviceMemory memory = DeviceMemory::Allocate(*engine, 1024).value();
  auto* const bytes = static_cast<char*>(memory.data());
  const auto message = [&](const QuantizedTensor& tensor, DataType numbers, const void* from, const float* scale,
                           void* factors) {
    const Status done = engine->Quantize(nullptr, tensor, numbers, from, scale, bytes, factors);
    return done ? std::string() : done.error().message;
  };
  const QuantizedTensor one{.rows = 1, .columns = 2};
  QuantizedTensor nv{.rows = 1, .columns = 2, .type = DataType::kE2m1, .scaling = OutputScaling::kNv};
  EXPECT_EQ(message(one, DataType::kE4m3, bytes, nullptr, bytes),
            "numbers of e4m3 are not quantised; use f32, f16 or bf16");
  EXPECT_EQ(message(one, DataType::kF32, bytes, reinterpret_cast<float*>(bytes), bytes),
            "mx has no f32 factor; pass a null scale, or use nv");
  EXPECT_EQ(message(nv, DataType::kF32, bytes, nullptr, bytes), "pointer scale is null; pass device memory of 4 bytes");
  EXPECT_EQ(message(one, DataType::kF32, nullptr, nullptr, bytes),
            "pointer numbers is null; pass device memory of 8 bytes");
  EXPECT_NE(message(one, DataType::kF32, bytes + 2, nullptr, bytes).find("is not aligned to 4 bytes"),
            std::string::npos);
  EXPECT_NE(message(one, DataType::kF32, bytes, nullptr, bytes + 8).find("is not aligned to 16 bytes"),
            std::string::npos);
  EXPECT_NE(message({.rows = 200, .columns = 2}, DataType::kF32, bytes, nullptr, bytes).find("pointer numbers"),
            std::string::npos);
  const float host = 1;
  EXPECT_NE(message(one, DataType::kF32, &host, nullptr, bytes).find("is no address of"), std::string::npos);
}

}  // namespace
}  // namespace laneshift
