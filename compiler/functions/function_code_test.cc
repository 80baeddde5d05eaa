// Users' functions as statements of a kernel: which PTX is kept, inlined or called.
#include "compiler/functions/function_code.h"

#include <gtest/gtest.h>

#include <string>

namespace laneshift::compiler {
namespace {

// A module as NVRTC writes it, with the body of F(v, k) and any other items.
std::string ModuleOf(const std::string& body, const std::string& others = "") {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n\n"
         ".visible .global .align 4 .b8 laneshift_signature[28] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, "
         "0, "
         "0, 0, 255, 255, 255, 255};\n"
         ".visible .global .align 8 .u64 laneshift_entry = _Z3RunNff;\n" +
         others +
         "\t// .globl\t_Z3RunNff\n"
         ".weak .func  (.param .align 4 .b8 func_retval0[4]) _Z3RunNff(\n"
         "\t.param .b32 _Z3RunNff_param_0,\n\t.param .b32 _Z3RunNff_param_1\n)\n{\n"
         "\t.reg .pred %p<3>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<2>;\n"
         "\tld.param.b32 \t%r1, [_Z3RunNff_param_0];\n\tld.param.b32 \t%r2, [_Z3RunNff_param_1];\n" +
         body + "\tst.param.b32 \t[func_retval0], %r3;\n\tret;\n\n}\n";
}

FunctionModule Parsed(const std::string& text) {
  auto module = FunctionModule::Parse(text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? *module : FunctionModule();
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(FunctionModule, KeepsWhatIsNeededAndReadsItselfBack) {
  const FunctionModule module =
      Parsed(ModuleOf("mov.u64 %rd1, table;\n",
                      ".visible .const .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 0, 64};\n"
                      ".visible .global .align 4 .u32 nobody = 7;\n.visible .func unused(\n.param .b32 "
                      "unused_param_0\n)\n{\nret;\n}\n"));
  ASSERT_EQ(module.items().size(), 2u);
  EXPECT_EQ(module.items()[0].name, "table");
  EXPECT_EQ(module.entry().name, "_Z3RunNff");
  EXPECT_EQ(module.version(), 90);
  EXPECT_EQ(module.signature(), (std::vector<int>{1, 1, 1, 1, 6, -1, 0}));
  const FunctionModule again = Parsed(module.Text());
  EXPECT_EQ(again.Text(), module.Text());
  EXPECT_EQ(again.signature(), module.signature());
}

TEST(FunctionModule, DropsLinkageInAnyOrder) {
  const FunctionModule module =
      Parsed(ModuleOf("mov.u64 %rd1, table;\n", ".weak .visible .const .align 4 .b8 table[4] = {0, 0, 128, 63};\n"));
  ASSERT_EQ(module.items().size(), 2u);
  EXPECT_EQ(module.items()[0].text, ".const .align 4 .b8 table[4] = {0, 0, 128, 63};");
  EXPECT_EQ(Parsed(module.Text()).Text(), module.Text());
}

TEST(FunctionModule, RefusesOtherTexts) {
  for (const char* text : {"", "hello", ".version 9.0\n", ".version 9.0\n.func f(){", ".version\n"}) {
    EXPECT_FALSE(FunctionModule::Parse(text)) << text;
  }
}

TEST(FunctionModule, RefusesWhatItsOwnTextCouldNotSay) {
  const std::string refers = ModuleOf("mov.u64 %rd1, laneshift_signature;\n");
  const auto module = FunctionModule::Parse(refers);
  ASSERT_FALSE(module);
  EXPECT_TRUE(Has(module.error().message, "refers to laneshift_signature")) << module.error().message;
  for (const char* version : {"99999999999999999999.0", "9", "9.10", "0.0"}) {
    std::string text = ModuleOf("");
    text.replace(text.find("9.0"), 3, version);
    EXPECT_FALSE(FunctionModule::Parse(text)) << version;
  }
  EXPECT_FALSE(FunctionModule::Parse("\v"));
  std::string untargeted = ModuleOf("");
  untargeted.erase(untargeted.find(".target"), std::string(".target sm_90a\n").size());
  EXPECT_FALSE(FunctionModule::Parse(untargeted));
}

TEST(FunctionCode, PureBodiesAreInlinedWithoutAGuard) {
  const FunctionModule module =
      Parsed(ModuleOf("setp.gt.f32 %p1, %r1, %r2;\n@%p1 bra $L__BB0_2;\nadd.f32 %r3, %r1, %r2;\n"
                      "bra.uni $L__BB0_3;\n$L__BB0_2:\nmov.b32 %r3, %r1;\n$L__BB0_3:\n"));
  const FunctionCode code = MakeFunctionCode(module, "f0", 64);
  EXPECT_TRUE(code.inlined && code.pure);
  EXPECT_FALSE(code.guarded);
  EXPECT_EQ(code.results, 1);
  EXPECT_EQ(code.wide, (std::vector<bool>{false, false}));
  EXPECT_TRUE(Has(code.statement, "f0:\n")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "mov.b32 %user_r1, $1;\nmov.b32 %user_r2, $2;")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "$$L__BB0_2:\n")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "mov.b32 $0, %user_r3;\n")) << code.statement;
  EXPECT_FALSE(Has(code.statement, "ret")) << code.statement;
  EXPECT_TRUE(Has(code.statement, ".reg .b32 %user_r<9>;")) << code.statement;
  EXPECT_EQ(code.declarations, "");
}

TEST(FunctionCode, MemoryAndLoopsAreGuardedAndTablesRenamed) {
  const FunctionModule module =
      Parsed(ModuleOf("mov.u64 %rd1, table;\nld.const.b32 %r3, [%rd1+4];\n@%p1 ret;\n",
                      ".visible .const .align 4 .b8 table[8] = {0, 0, 128, 63, 0, 0, 0, 64};\n"));
  const FunctionCode code = MakeFunctionCode(module, "f1", 1);
  EXPECT_TRUE(code.inlined && code.guarded && !code.pure);
  EXPECT_TRUE(Has(code.statement, "mov.b32 $0, 0;\n@!$1 bra f1_end;")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "mov.b32 %user_r1, $2;")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "mov.u64 %user_rd1, f1_table;")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "@%user_p1 bra f1_end;")) << code.statement;
  EXPECT_TRUE(Has(code.statement, "f1_end:\n")) << code.statement;
  EXPECT_EQ(code.declarations, ".const .align 4 .b8 f1_table[8] = {0, 0, 128, 63, 0, 0, 0, 64};\n");
  const FunctionModule loop = Parsed(ModuleOf("$top:\nsub.f32 %r1, %r1, %r2;\n@%p1 bra $top;\n"));
  EXPECT_TRUE(MakeFunctionCode(loop, "f", 1).guarded);
}

TEST(FunctionCode, WhatCannotBeInlinedIsCalled) {
  const std::string helper =
      ".visible .func (.param .b32 r) helper(\n.param .b32 helper_param_0\n)\n;\n"
      ".visible .func (.param .b32 r) helper(\n.param .b32 helper_param_0\n)\n{\nret;\n}\n";
  const char* calls =
      "{ // callseq 0, 0\n.param .b32 param0;\nst.param.f32 [param0+0], %r1;\n.param .b32 retval0;\n"
      "call.uni (retval0), \nhelper, \n(\nparam0\n);\nld.param.f32 %r3, [retval0+0];\n} // callseq 0\n";
  for (const auto& [body, others] :
       {std::pair<std::string, std::string>{calls, helper}, {".local .align 4 .b8 depot[28];\n", ""}}) {
    const FunctionCode code = MakeFunctionCode(Parsed(ModuleOf(body, others)), "f2", 1);
    EXPECT_FALSE(code.inlined || code.pure);
    EXPECT_TRUE(code.guarded);
    EXPECT_TRUE(Has(code.statement, "call (out), f2_call, (in0, in1);")) << code.statement;
    EXPECT_TRUE(Has(code.statement, "st.param.b32 [in0], $2;")) << code.statement;
    EXPECT_TRUE(Has(code.statement, "ld.param.b32 $0, [out+0];")) << code.statement;
    EXPECT_TRUE(Has(code.declarations, ") f2_call(")) << code.declarations;
    EXPECT_EQ(Has(code.declarations, "f2_helper"), !others.empty()) << code.declarations;
    EXPECT_FALSE(Has(code.declarations, ".visible") || Has(code.declarations, ".weak")) << code.declarations;
  }
  // For this many copies even a short body is too long.
  EXPECT_FALSE(MakeFunctionCode(Parsed(ModuleOf("")), "f", 1 << 20).inlined);
}

}  // namespace
}  // namespace laneshift::compiler
