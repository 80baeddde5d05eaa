#include "measure/operand_memory.h"

#include <gtest/gtest.h>

namespace laneshift::measure {
namespace {

TEST(HostMemory, NamesTheLargestOperandWithItsBytes) {
  EXPECT_TRUE(CheckHostMemory(*ParseProblem("gemm m=64 n=64 k=64"), HostCopies::kTwice));
  // 3 rows of 2^37 elements, and 4 elements more.
  const auto fits = CheckHostMemory(*ParseProblem("gemm m=4 n=4 k=4 lda=137438953472"), HostCopies::kOnce);
  ASSERT_FALSE(fits);
  EXPECT_EQ(fits.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(fits.error().message.find("a has 824633720840 bytes"), std::string::npos) << fits.error().message;
  const auto conv = CheckHostMemory(*ParseProblem("conv h=65536 w=32767 c=64 k=1 s=1"), HostCopies::kTwice);
  ASSERT_FALSE(conv);
  EXPECT_NE(conv.error().message.find("x has 274869518336 bytes"), std::string::npos) << conv.error().message;
}

}  // namespace
}  // namespace laneshift::measure
