#include "device/disassembler.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "device/assembler.h"

namespace laneshift::device {
namespace {

TEST(Disassembler, TakesTheLinesOutOfTheText) {
  const Sass sass = SplitLineRemarks(
      ".text.k:\n"
      "\t//## File \"kernel.tir\", line 12\n"
      "        /*0000*/                   LDC R1, c[0x0][0x37c] ;\n"
      "        /*0010*/                   S2R R0, SR_TID.X ;\n"
      "\t//## File \"kernel.tir\", line 7 inlined at \"kernel.tir\", line 3\n"
      "        /*0020*/                   EXIT ;\n"
      ".L_x_0:\n");
  EXPECT_EQ(sass.text.find("//##"), std::string::npos);
  EXPECT_EQ(sass.lines, (std::vector<int>{0, 12, 12, 7, 0, 0})) << sass.text;
}

// cuobjdump prints no lines.
TEST(Disassembler, KeepsTheLinesOfAnAssembledKernel) {
  const auto assembler = PtxAssembler::Find();
  const auto disassembler = Disassembler::Find();
  if (!assembler || !disassembler) GTEST_SKIP() << "no ptxas, or no nvdisasm and no cuobjdump";
  constexpr std::string_view kTwoLines =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.file 1 \"/kernel.tir\"\n.visible .entry k(.param .u64 "
      "p)\n{\n.reg .b64 %rd<2>;\n"
      ".loc 1 5 0\nld.param.u64 %rd1, [p];\n.loc 1 9 0\nst.global.u64 [%rd1], "
      "%rd1;\nret;\n}\n";
  const auto assembled = assembler->Assemble(kTwoLines, "sm_90a", Lines::kKept);
  ASSERT_TRUE(assembled.has_value()) << assembled.error().message;
  const auto sass = disassembler->Disassemble(assembled->cubin);
  ASSERT_TRUE(sass.has_value()) << sass.error().message;
  const std::vector<std::string_view> text = base::Split(sass->text, '\n');
  ASSERT_GE(text.size(), sass->lines.size());
  int stores = 0;
  for (size_t i = 0; i < sass->lines.size(); ++i) {
    if (text[i].find("ST") == std::string_view::npos || text[i].find(';') == std::string_view::npos) continue;
    ++stores;
    EXPECT_EQ(sass->lines[i], disassembler->path().ends_with("nvdisasm") ? 9 : 0) << text[i];
  }
  EXPECT_GT(stores, 0) << sass->text;
}

}  // namespace
}  // namespace laneshift::device
