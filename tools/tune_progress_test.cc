#include "tools/tune_progress.h"

#include <gtest/gtest.h>

#include "tools/terminal.h"

namespace laneshift::tools {
namespace {

const autotune::TuneProgress kProgress = {.problem = "gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16",
                                          .trials = 16,
                                          .max_trials = 64,
                                          .known = 3,
                                          .failed = 2,
                                          .best_us = 104,
                                          .default_us = 121,
                                          .predicted_us = 110,
                                          .seconds = 6};

TEST(TuneProgress, SaysWhereTheSearchStands) {
  EXPECT_EQ(PrintProgress(kProgress, 2, 24, 41, kUnlimited),
            "3/24 gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16: 16/64 trials (3 known), best 104 us (model 110 us, "
            "default 121 us), 2 failed, 41 s left");
}

TEST(TuneProgress, FitsEveryWidth) {
  EXPECT_EQ(PrintProgress(kProgress, 2, 24, 5400, 80),
            "3/24 gemm m=4096 n..: 16/64 trials (3 known), best 104 us, 2 failed, 90 min left");
  for (size_t width = 70; width < 200; ++width) EXPECT_LE(PrintProgress(kProgress, 2, 24, 41, width).size(), width);
}

TEST(TuneProgress, TheShareIsThatOfTheBudgetThatEndsFirst) {
  EXPECT_EQ(ShareDone(kProgress, 0), 0.25);
  EXPECT_EQ(ShareDone(kProgress, 8), 0.75);
  EXPECT_EQ(ShareDone(kProgress, 3), 1);
}

}  // namespace
}  // namespace laneshift::tools
