// The texts that stored choices and trials are filed under: every field of a problem and of a schedule shows in them. A
// new field does not compile here until it is in the list of its struct.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift {
namespace {

template <typename F>
void ForEachField(GemmProblem& problem, F&& visit) {
  auto& [m, n, k, batch, a, b, c, d, a_major, b_major, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d,
         alpha, beta, bias, sum, scale, scale_type, scale_layout, d_scale, sparse, constant, numerics, align_a, align_b,
         align_c, align_d, epilogue] = problem;
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  all(m, n, k, batch, a, b, c, d, a_major, b_major, lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d, alpha,
      beta, bias, sum, scale, scale_type, scale_layout, d_scale, sparse, constant, numerics, align_a, align_b, align_c,
      align_d, epilogue);
}

template <typename F>
void ForEachField(GroupedGemmProblem& problem, F&& visit) {
  auto& [groups, m, n, k, a, b, c, d, layout, rows, a_rows, d_rows, b_major, lda, ldb, ldc, ldd, stride_b, stride_c,
         stride_d, alpha, beta, bias, sum, scale, scale_type, numerics, align_a, align_b, align_c, align_d, epilogue] =
      problem;
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  all(groups, m, n, k, a, b, c, d, layout, rows, a_rows, d_rows, b_major, lda, ldb, ldc, ldd, stride_b, stride_c,
      stride_d, alpha, beta, bias, sum, scale, scale_type, numerics, align_a, align_b, align_c, align_d, epilogue);
}

template <typename F>
void ForEachField(ConvPitches& pitches, F&& visit) {
  auto& [pixel, row, plane, image] = pitches;
  visit(pixel), visit(row), visit(plane), visit(image);
}

template <typename F>
void ForEachField(ConvProblem& problem, F&& visit) {
  auto& [pass, n, c, k, groups, input, filter, pad_before, pad_after, stride, dilation, x, w, z, y, x_pitch, w_pitch,
         z_pitch, y_pitch, alpha, beta, bias, sum, scale, numerics, align_x, align_w, align_z, align_y, epilogue] =
      problem;
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  all(pass, n, c, k, groups, x, w, z, y, alpha, beta, bias, sum, scale, numerics, align_x, align_w, align_z, align_y,
      epilogue);
  for (Spatial* spatial : {&input, &filter, &pad_before, &pad_after, &stride, &dilation}) {
    for (int64_t& value : *spatial) visit(value);
  }
  for (ConvPitches* pitches : {&x_pitch, &w_pitch, &z_pitch, &y_pitch}) ForEachField(*pitches, visit);
}

template <typename F>
void ForEachField(Schedule& schedule, F&& visit) {
  auto& [tile_m, tile_n, tile_k, stages, acc_stages, math_warpgroups, raster, a_load, b_load, b_keep, d_store, reuse,
         shift, border, filter_stages, cluster_m, cluster_n, cluster_k, ctas, scheduler, rows, consumers, split_k,
         merge_groups, scale_warps, early] = schedule;
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  all(tile_m, tile_n, tile_k, stages, acc_stages, math_warpgroups, raster, a_load, b_load, b_keep, d_store, reuse,
      shift, border, filter_stages, cluster_m, cluster_n, cluster_k, ctas, scheduler, rows, consumers, split_k,
      merge_groups, scale_warps, early);
}

void Change(Epilogue& epilogue) {
  epilogue.push_back({.kind = EpilogueKind::kRelu, .numbers = {}, .operand_type = {}});
}

template <typename T>
void Change(T& field) {
  if constexpr (std::is_enum_v<T>) {
    field = field == T{} ? static_cast<T>(1) : T{};
  } else {
    field = field * 2 + 1;
  }
}

// The text of `original` and of each struct that differs from it in one field.
template <typename T, typename Print>
void ExpectEveryFieldShows(const T& original, Print&& print) {
  std::set<std::string> texts = {print(original)};
  size_t fields = 0;
  T counted = original;
  ForEachField(counted, [&](auto&) { ++fields; });
  for (size_t i = 0; i < fields; ++i) {
    T changed = original;
    size_t at = 0;
    ForEachField(changed, [&](auto& field) {
      if (at++ == i) Change(field);
    });
    EXPECT_FALSE(changed == original);
    EXPECT_TRUE(texts.insert(print(changed)).second) << "field " << i << ": " << print(changed);
  }
  EXPECT_EQ(texts.size(), fields + 1);
}

TEST(Keys, EveryFieldOfAProblemShows) {
  const Problem gemm = *ParseProblem("gemm m=16 n=32 k=64 batch=3 a=f16 d=f32 beta=1 bias=m");
  ExpectEveryFieldShows(std::get<GemmProblem>(gemm), [](const GemmProblem& p) { return PrintProblem(p); });
  const Problem conv =
      *ParseProblem("conv n=2 d=6 h=7 w=8 c=16 k=32 t=3 r=3 s=3 pad=1 stride=2 dilation=2 groups=4 x=f16 y=f32 beta=1");
  ExpectEveryFieldShows(std::get<ConvProblem>(conv), [](const ConvProblem& p) { return PrintProblem(p); });
  const Problem grouped = *ParseProblem("grouped_gemm groups=4 m=16 n=32 k=64 a=f16 d=f32 beta=1 bias=m");
  ExpectEveryFieldShows(std::get<GroupedGemmProblem>(grouped),
                        [](const GroupedGemmProblem& p) { return PrintProblem(p); });
}

TEST(Keys, EveryFieldOfAScheduleShows) {
  ExpectEveryFieldShows(Schedule{}, [](const Schedule& schedule) { return PrintSchedule(schedule); });
}

TEST(Keys, HowAProblemIsWrittenDoesNotMatter) {
  const auto key = [](std::string_view text) { return PrintProblem(*ParseProblem(text)); };
  const std::string gemm = key("gemm m=16 n=32 k=64 d=bf16");
  for (const char* same : {"gemm k=64 n=32 m=16", "gemm  m=16 n=32 k=64 lda=64 ldd=32 stride_b=2048",
                           "gemm m=16 n=32 k=64 c=bf16 alpha=1.0 beta=-0 batch=1 align_a=16"}) {
    EXPECT_EQ(key(same), gemm) << same;
  }
  const std::string conv = key("conv n=1 h=9 w=9 c=8 k=8 r=3 s=3 pad=1");
  EXPECT_EQ(key("conv w=9 h=9 c=8 k=8 s=3 r=3 pad=1:1,1:1 stride=1,1 x_pixel=8 groups=1"), conv);
}

}  // namespace
}  // namespace laneshift
