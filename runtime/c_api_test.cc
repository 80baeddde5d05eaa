// The C interface: whatever comes in, a status, a line or nothing comes out.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "laneshift/c.h"

namespace laneshift {
namespace {

class CApiTest : public testing::Test {
 protected:
  CApiTest() {
    EXPECT_EQ(laneshift_engine_open("emulator", "sm_90a", ":memory:", &engine, error, sizeof error), LANESHIFT_OK)
        << error;
  }
  ~CApiTest() override { laneshift_engine_close(engine); }

  bool Says(const char* text) const { return std::strstr(error, text) != nullptr; }

  char error[256] = "";
  laneshift_engine* engine = nullptr;
};

TEST_F(CApiTest, NullsAreErrorsOrNothing) {
  laneshift_engine_finish_tuning(nullptr);
  laneshift_engine_close(nullptr);
  laneshift_plan_free(nullptr);
  EXPECT_STREQ(laneshift_plan_schedule(nullptr), "");
  EXPECT_STREQ(laneshift_plan_cache(nullptr), "");
  EXPECT_STREQ(laneshift_plan_choice(nullptr), "");
  EXPECT_EQ(laneshift_plan_workspace_bytes(nullptr), 0u);
  const auto refused = [&](laneshift_status status, const char* what) {
    EXPECT_EQ(status, LANESHIFT_INVALID_ARGUMENT) << what;
    EXPECT_TRUE(Says((std::string(what) + " is null").c_str())) << error;
  };
  const char* problem = "gemm m=32 n=32 k=32";
  const char* no_problem = nullptr;
  char step[64];
  laneshift_plan* plan = nullptr;
  laneshift_engine* other = nullptr;
  const laneshift_options options = {};
  refused(laneshift_engine_open(nullptr, nullptr, nullptr, nullptr, error, sizeof error), "engine");
  refused(laneshift_engine_open_with(&options, nullptr, error, sizeof error), "engine");
  refused(laneshift_engine_open_with(nullptr, &other, error, sizeof error), "options");
  refused(laneshift_engine_prepare(nullptr, &problem, 1, error, sizeof error), "engine");
  refused(laneshift_engine_prepare(engine, nullptr, 1, error, sizeof error), "problems");
  refused(laneshift_engine_prepare(engine, &no_problem, 1, error, sizeof error), "a problem");
  refused(laneshift_engine_take_report(nullptr, nullptr, nullptr, nullptr, 0, error, sizeof error), "engine");
  refused(laneshift_step_make(nullptr, "", "", "f", nullptr, 0, step, 64, error, sizeof error), "engine");
  refused(laneshift_step_make(engine, nullptr, "", "f", nullptr, 0, step, 64, error, sizeof error), "source");
  refused(laneshift_step_make(engine, "", nullptr, nullptr, nullptr, 0, step, 64, error, sizeof error), "function");
  refused(laneshift_step_make(engine, "", nullptr, "f", nullptr, 1, step, 64, error, sizeof error), "numbers");
  refused(laneshift_step_make(engine, "", nullptr, "f", nullptr, 0, nullptr, 0, error, sizeof error), "step");
  refused(laneshift_plan_make(nullptr, problem, nullptr, &plan, error, sizeof error), "engine");
  refused(laneshift_plan_make(engine, nullptr, nullptr, &plan, error, sizeof error), "problem");
  refused(laneshift_plan_make(engine, problem, nullptr, nullptr, error, sizeof error), "plan");
  refused(laneshift_plan_execute(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, error,
                                 sizeof error),
          "plan");
  ASSERT_EQ(laneshift_plan_make(engine, problem, nullptr, &plan, nullptr, 0), LANESHIFT_OK);
  refused(laneshift_plan_execute_fused(plan, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr, 1, nullptr, error, sizeof error),
          "epilogue");
  laneshift_arguments arguments = {};
  refused(laneshift_plan_execute_arguments(plan, nullptr, nullptr, error, sizeof error), "arguments");
  arguments.struct_bytes = sizeof arguments - 1;
  EXPECT_EQ(laneshift_plan_execute_arguments(plan, nullptr, &arguments, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("arguments.struct_bytes is ")) << error;
  arguments.struct_bytes = sizeof arguments;
  arguments.epilogue_count = 1;
  refused(laneshift_plan_execute_arguments(plan, nullptr, &arguments, error, sizeof error), "epilogue");
  laneshift_plan_free(plan);
  EXPECT_EQ(laneshift_engine_prepare(engine, nullptr, 0, nullptr, 0), LANESHIFT_OK);
}

// As a program of another version fills it.
struct LaterOptions {
  laneshift_options known;
  const char* later;
};

TEST_F(CApiTest, OptionsOfOtherVersionsAreUnderstood) {
  laneshift_engine* other = nullptr;
  LaterOptions later = {};
  later.known.device = "emulator";
  later.known.target = "sm_90a";
  later.known.store_directory = ":memory:";
  const auto open = [&](size_t bytes) {
    later.known.struct_bytes = bytes;
    const laneshift_status status = laneshift_engine_open_with(&later.known, &other, error, sizeof error);
    laneshift_engine_close(other);
    return status;
  };
  EXPECT_EQ(open(sizeof(laneshift_options)), LANESHIFT_OK) << error;
  EXPECT_EQ(open(sizeof(LaterOptions)), LANESHIFT_OK) << error;
  // The first version had no include_directories: whatever lies there in memory is not the caller's.
  later.known.include_directories = reinterpret_cast<const char*>(1);
  EXPECT_EQ(open(offsetof(laneshift_options, include_directories)), LANESHIFT_OK) << error;
  later.known.include_directories = nullptr;
  later.known.functions_in_process = 2;
  EXPECT_EQ(open(sizeof(laneshift_options)), LANESHIFT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("functions_in_process")) << error;
  later.known.functions_in_process = 1;
  EXPECT_EQ(open(sizeof(laneshift_options)), LANESHIFT_OK) << error;
  later.later = "new";
  EXPECT_EQ(open(sizeof(LaterOptions)), LANESHIFT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("does not have")) << error;
  EXPECT_EQ(open(sizeof(laneshift_options)), LANESHIFT_OK) << error;
  for (const size_t wrong :
       {size_t{0}, sizeof(size_t), offsetof(laneshift_options, tuner), sizeof(laneshift_options) - 1}) {
    EXPECT_EQ(open(wrong), LANESHIFT_INVALID_ARGUMENT) << wrong;
    EXPECT_TRUE(Says("options.struct_bytes is ")) << error;
  }
}

TEST_F(CApiTest, Quantises) {
  laneshift_quantized tensor = {sizeof(laneshift_quantized), 1, 2, 32, "e4m3", "mx", 1};
  size_t elements = 0, factors = 0;
  ASSERT_EQ(laneshift_quantized_bytes(&tensor, &elements, &factors, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(elements, 64u);
  EXPECT_EQ(factors, 512u);
  float numbers[64] = {}, back[64] = {};
  numbers[0] = 448;
  numbers[40] = -7;
  unsigned char codes[64], scales[512];
  ASSERT_EQ(laneshift_quantize(&tensor, "f32", numbers, codes, scales, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(codes[0], 0x7e);
  EXPECT_EQ(codes[40], 0xfe);
  EXPECT_EQ(scales[0], 127);
  EXPECT_EQ(scales[16], 127 - 6);
  ASSERT_EQ(laneshift_dequantize(&tensor, codes, scales, "f32", back, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(std::memcmp(numbers, back, sizeof back), 0);
  tensor.scaling = "tensor";
  EXPECT_EQ(laneshift_quantize(&tensor, "f32", numbers, codes, scales, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error).find("is not a scaling of D"), std::string::npos) << error;
  tensor.struct_bytes = 8;
  EXPECT_EQ(laneshift_quantize(&tensor, "f32", numbers, codes, scales, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
}

TEST_F(CApiTest, QuantisesOnTheDevice) {
  const laneshift_quantized tensor = {sizeof(laneshift_quantized), 1, 2, 32, "e4m3", "mx", 1};
  float numbers[64] = {}, back[64] = {};
  numbers[0] = 448;
  numbers[40] = -7;
  unsigned char codes[64], scales[512], own_codes[64], own_scales[512];
  ASSERT_EQ(laneshift_quantize(&tensor, "f32", numbers, codes, scales, error, sizeof error), LANESHIFT_OK) << error;
  laneshift_memory* memory = nullptr;
  ASSERT_EQ(laneshift_memory_allocate(engine, 1280, &memory, error, sizeof error), LANESHIFT_OK) << error;
  char* const from = static_cast<char*>(laneshift_memory_address(memory));
  char *const elements = from + 256, *const factors = from + 512, *const to = from + 1024;
  EXPECT_EQ(laneshift_memory_write(memory, 0, numbers, sizeof numbers, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(laneshift_enqueue_quantize(engine, nullptr, &tensor, "f32", from, nullptr, elements, factors, error,
                                       sizeof error),
            LANESHIFT_OK)
      << error;
  EXPECT_EQ(laneshift_enqueue_dequantize(engine, nullptr, &tensor, elements, factors, nullptr, "f32", to, error,
                                         sizeof error),
            LANESHIFT_OK)
      << error;
  EXPECT_EQ(laneshift_memory_read(memory, 256, own_codes, 64, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(laneshift_memory_read(memory, 512, own_scales, 512, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(laneshift_memory_read(memory, 1024, back, sizeof back, error, sizeof error), LANESHIFT_OK) << error;
  EXPECT_EQ(std::memcmp(codes, own_codes, sizeof codes), 0);
  EXPECT_EQ(std::memcmp(scales, own_scales, sizeof scales), 0);
  EXPECT_EQ(std::memcmp(numbers, back, sizeof back), 0);
  EXPECT_EQ(laneshift_enqueue_quantize(nullptr, nullptr, &tensor, "f32", from, nullptr, elements, factors, error,
                                       sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("engine is null")) << error;
  EXPECT_EQ(
      laneshift_enqueue_dequantize(engine, nullptr, &tensor, elements, factors, nullptr, "s8", to, error, sizeof error),
      LANESHIFT_INVALID_ARGUMENT);
  EXPECT_TRUE(Says("numbers of s8 are not quantised")) << error;
  laneshift_memory_free(memory);
}

TEST_F(CApiTest, PathsMayBeAnyBytes) {
  laneshift_engine* other = nullptr;
  EXPECT_EQ(laneshift_engine_open("emulator", "sm_90a", "/nonexistent\xff/store", &other, error, sizeof error),
            LANESHIFT_OK)  // which is in memory then, with a warning
      << error;
  laneshift_engine_close(other);
  laneshift_plan* plan = nullptr;
  for (const std::string file : {"/absent\xff.cu", "/nonexistent/directory.cu"}) {
    const std::string problem = "gemm m=32 n=32 k=32 epilogue=" + file + ":F";
    EXPECT_EQ(laneshift_plan_make(engine, problem.c_str(), nullptr, &plan, error, sizeof error),
              LANESHIFT_INVALID_ARGUMENT);
    EXPECT_TRUE(Says("cannot be opened")) << error;
  }
}

TEST_F(CApiTest, TheReportIsTaken) {
  size_t faults = 7, hazards = 7;
  char report[16] = "before";
  EXPECT_EQ(laneshift_engine_take_report(engine, &faults, &hazards, report, sizeof report, error, sizeof error),
            LANESHIFT_OK);
  EXPECT_EQ(faults, 0u);
  EXPECT_EQ(hazards, 0u);
  EXPECT_STREQ(report, "");
}

TEST(CSparsity, AMatrixIsCompressedAndExpanded) {
  const char* problem = "gemm m=2 n=8 k=8 a=s8 sparse=a";
  char error[256] = "";
  size_t elements_bytes = 0, metadata_bytes = 0, dense_bytes = 0;
  ASSERT_EQ(laneshift_sparse_bytes(problem, &elements_bytes, &metadata_bytes, &dense_bytes, error, sizeof error),
            LANESHIFT_OK)
      << error;
  EXPECT_EQ(elements_bytes, 8u);
  EXPECT_EQ(metadata_bytes, 2048u);
  EXPECT_EQ(dense_bytes, 16u);
  signed char dense[16] = {0, 1, 0, 2, 3, 0, 0, 4, 0, 0, 5, 0, 0, 0, 0, 6}, expanded[16] = {}, elements[8] = {};
  std::string metadata(metadata_bytes, '\0');
  ASSERT_EQ(laneshift_sparse_compress(problem, dense, elements, metadata.data(), error, sizeof error), LANESHIFT_OK)
      << error;
  EXPECT_EQ(elements[0], 1);
  EXPECT_EQ(elements[1], 2);
  EXPECT_EQ(static_cast<unsigned char>(metadata[0]), 0xcdu) << "elements 1 and 3, then 0 and 3";
  ASSERT_EQ(laneshift_sparse_expand(problem, elements, metadata.data(), expanded, error, sizeof error), LANESHIFT_OK);
  EXPECT_EQ(std::memcmp(dense, expanded, sizeof dense), 0);
  dense[0] = 7;
  EXPECT_EQ(laneshift_sparse_compress(problem, dense, elements, metadata.data(), error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(error, "row 0, group 0 (k=0 to 3) has 3"), nullptr) << error;
  EXPECT_EQ(laneshift_sparse_bytes("gemm m=2 n=8 k=8", nullptr, nullptr, nullptr, error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
  EXPECT_EQ(laneshift_sparse_compress(problem, nullptr, elements, metadata.data(), error, sizeof error),
            LANESHIFT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace laneshift
