#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace laneshift::base {
namespace {

TEST(HostMemory, ALackOfItIsAnError) {
  const auto made = WithinHostMemory([]() -> Result<size_t> {
    // volatile, so that the compiler does not know that it cannot work.
    volatile size_t bytes = std::numeric_limits<ptrdiff_t>::max() / 2;
    return std::vector<char>(bytes).size();
  });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(made.error().message, "no host memory");
}

TEST(HostMemory, OtherResultsPass) {
  EXPECT_EQ(*WithinHostMemory([]() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(WithinHostMemory([]() -> Status { return MakeError(ErrorCode::kTimeout, "late"); }).error().message,
            "late");
}

TEST(HostMemory, ItsErrorNeedsNone) { EXPECT_LE(NoHostMemory().message.size(), std::string().capacity()); }

}  // namespace
}  // namespace laneshift::base
