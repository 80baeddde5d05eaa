#include "ir/operand_rings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace laneshift::ir {
namespace {

std::string NameOf(const Program& program, int ring) {
  return ring < 0 ? "none" : program.channels[static_cast<size_t>(ring)].name;
}

// Through one ring together; through one each; or B is resident, and comes through none.
TEST(RingsOf, FindsWhatTheLoadsFill) {
  const struct {
    const char *golden, *a, *b;
  } cases[] = {
      {"gemm_sm_90a_scheduled", "ab", "ab"},           {"gemm_sm_90a_lowered", "ab", "ab"},
      {"gemm_resident_sm_90a_scheduled", "a", "none"}, {"conv_row_offset_sm_90a_scheduled", "x", "w"},
      {"conv_lane_shift_sm_100a_lowered", "x", "w"},   {"conv_gather_sm_90a_scheduled", "x", "none"},
  };
  for (const auto& [golden, a, b] : cases) {
    std::ifstream file(std::string(LANESHIFT_SOURCE_DIR) + "/tests/golden/ir/" + golden + ".tir");
    const auto program = ParseProgram(std::string((std::istreambuf_iterator<char>(file)), {}));
    ASSERT_TRUE(program) << golden << ": " << program.error().message;
    const OperandRings rings = RingsOf(*program);
    EXPECT_EQ(NameOf(*program, rings.a), a) << golden;
    EXPECT_EQ(NameOf(*program, rings.b), b) << golden;
  }
}

}  // namespace
}  // namespace laneshift::ir
