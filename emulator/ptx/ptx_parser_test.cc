// The PTX front end: what it understands, where its messages point, and that bad text cannot hurt it.

#include <gtest/gtest.h>

#include <random>

#include "emulator/decode/decode_kernel.h"
#include "emulator/emulated_test_device.h"
#include "emulator/ptx/ptx_syntax.h"

namespace laneshift::emulator {
namespace {

std::string LoadedModule(const std::string& body) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n";
}

// The error of parsing and decoding, or "".
std::string ErrorOf(const std::string& text) {
  auto module = ParsePtx(text);
  if (!module.has_value()) return module.error().message;
  for (const FunctionSyntax& function : module->functions) {
    if (!function.is_entry) continue;
    auto kernel = BuildKernel(*module, function, {}, Chip::kSm100a);
    if (!kernel.has_value()) return kernel.error().message;
  }
  return "";
}

TEST(PtxParser, ScopesShadowRegistersAndLabels) {
  EXPECT_EQ(
      ErrorOf(LoadedModule(".reg .b32 %r<3>; mov.b32 %r1, 1;\n{ .reg .pred p; setp.eq.b32 p, %r1, 0;\nL: @p bra L; }\n"
                           "{ .reg .pred p; setp.eq.b32 p, %r1, 1;\nL: @!p bra L; }\nret;")),
      "");
}

TEST(PtxParser, VectorsOfRegisters) {
  const std::string declared = ".reg .v2 .f32 v; .reg .v4 .b32 %w<3>; .reg .b64 %d;\nld.param.u64 %d, [p];\n";
  EXPECT_EQ(ErrorOf(LoadedModule(declared + "mov.f32 v.x, 1.0; max.f32 v.y, v.x, v.x; ld.global.v4.b32 %w2, [%d];\n"
                                            "mov.b32 %w1.r, %w2.w; st.global.v2.f32 [%d], v; ret;")),
            "");
  EXPECT_EQ(ErrorOf(LoadedModule(declared + "mov.f32 v.z, 1.0;")),
            "8:10: expected an element of the vector, found '.z'");
  EXPECT_EQ(ErrorOf(LoadedModule(declared + "add.f32 v, v.x, v.x;")), "8:9: a register is expected");
  EXPECT_EQ(ErrorOf(LoadedModule(".reg .v3 .f32 v;")), "6:6: '.v3' is not the type of a register");
}

TEST(PtxParser, MessagesCarryLineAndColumn) {
  EXPECT_EQ(ErrorOf(LoadedModule("bra nowhere;")), "6:5: unknown label 'nowhere'");
  EXPECT_EQ(ErrorOf(LoadedModule(".reg .b32 %r<3>;\nadd.sideways.s32 %r1, %r2, 1;")),
            "7:1: instruction 'add.sideways.s32' is not supported: suffix '.sideways' has no meaning here");
  EXPECT_EQ(ErrorOf(LoadedModule(".reg .b64 %d; .reg .b32 %r;\nadd.s32 %r, %d, 1;")),
            "7:13: register '%d' has 64 bits, this operand needs 32");
  EXPECT_EQ(ErrorOf(LoadedModule("mov.b32 %r1, 0;")), "6:9: a register is expected");
  EXPECT_EQ(ErrorOf(".target sm_100a\n"), "2:1: no .version directive");
}

TEST(PtxParser, CallsAreCheckedAgainstWhatTheyCall) {
  const auto text = [](const std::string& call) {
    return ".version 9.0\n.target sm_100a\n.address_size 64\n.extern .func g();\n.func f(.param .b32 x) { ret; }\n"
           ".alias h, f;\n.entry k()\n{\n.reg .b64 %d; .reg .b32 %r; .param .b32 a;\n" +
           call + "\nret;\n}\n";
  };
  EXPECT_EQ(ErrorOf(text("call.uni f, (a);")), "");
  EXPECT_EQ(ErrorOf(text("call h, (a);")), "");
  EXPECT_EQ(ErrorOf(text("call f;")), "10:1: 'f' takes 1 values here, not 0");
  EXPECT_EQ(ErrorOf(text("call nobody, (a);")), "10:6: unknown function 'nobody'");
  EXPECT_EQ(ErrorOf(text("call g;")), "10:1: the external function 'g' has no body in this module");
  EXPECT_EQ(ErrorOf(text("call f, (%r);")), "10:10: values are passed to functions in .param variables only");
  EXPECT_EQ(ErrorOf(text("call %d, (a);")), "10:1: an indirect call needs a .callprototype or a list of .calltargets");
  EXPECT_EQ(ErrorOf(text("brx.idx %r, f;")), "10:13: 'f' is no list of .branchtargets");
  EXPECT_EQ(ErrorOf(text("l: .branchtargets nowhere;\nbrx.idx %r, l;")), "10:1: unknown label 'nowhere'");
}

// Cut, repeated and overwritten text gives an error or a module, never a crash.
TEST(PtxParser, SurvivesDamagedText) {
  std::mt19937 random(1);
  for (const char* file : {"gemm_sm100a.ptx", "nvcc_sm100a.ptx"}) {
    const std::string good = ReadTestFile(file);
    ASSERT_FALSE(good.empty());
    for (int round = 0; round < 150; ++round) {
      std::string bad = good;
      const size_t at = random() % bad.size();
      switch (round % 3) {
        case 0:
          bad.resize(at);
          break;
        case 1:
          bad.erase(at, random() % 40);
          break;
        default:
          for (int k = 0; k < 5; ++k)
            bad[random() % bad.size()] = static_cast<char>("{}[]().,;%@!|<>0x\"/-+ \n"[random() % 24]);
      }
      auto module = ParsePtx(bad);
      if (!module.has_value()) {
        EXPECT_NE(module.error().message.find(":"), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace laneshift::emulator
