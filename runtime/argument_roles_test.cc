#include "runtime/argument_roles.h"

#include <gtest/gtest.h>

namespace laneshift::runtime {
namespace {

void* At(uintptr_t address) { return reinterpret_cast<void*>(address); }

TEST(ArgumentRoles, OfAConvolutionAreThoseOfAGemm) {
  const Problem conv = *ParseProblem("conv w=9 c=8 k=8 s=3 beta=1 bias=k");
  const ConvArguments given{.x = At(16), .w = At(32), .z = At(48), .y = At(64), .bias = At(80)};
  const auto roles = RolesOf(conv, given);
  ASSERT_TRUE(roles.has_value()) << roles.error().message;
  EXPECT_EQ(roles->a, At(16));
  EXPECT_EQ(roles->b, At(32));
  EXPECT_EQ(roles->c, At(48));
  EXPECT_EQ(roles->d, At(64));
  EXPECT_EQ(roles->bias, At(80));
  const auto back = std::get<ConvArguments>(ArgumentsOf(conv, *roles));
  EXPECT_EQ(back.x, given.x);
  EXPECT_EQ(back.w, given.w);
  EXPECT_EQ(back.z, given.z);
  EXPECT_EQ(back.y, given.y);
  EXPECT_EQ(back.bias, given.bias);
  EXPECT_TRUE(PointerRules(conv).CheckPointers(*RolesOf(conv, given)).has_value());
}

TEST(ArgumentRoles, OfGradientsAreThoseOfTheirProducts) {
  const Problem dgrad = *ParseProblem("conv_dgrad w=9 c=8 k=8 s=3 beta=1");
  const Problem wgrad = *ParseProblem("conv_wgrad w=9 c=8 k=8 s=3 beta=1");
  const auto of_x = RolesOf(dgrad, ConvDgradArguments{.y = At(16), .w = At(32), .z = At(48), .x = At(64)});
  const auto of_w = RolesOf(wgrad, ConvWgradArguments{.y = At(16), .x = At(32), .z = At(48), .w = At(64)});
  for (const auto& roles : {of_x, of_w}) {
    ASSERT_TRUE(roles.has_value()) << roles.error().message;
    EXPECT_EQ(roles->a, At(16));
    EXPECT_EQ(roles->b, At(32));
    EXPECT_EQ(roles->c, At(48));
    EXPECT_EQ(roles->d, At(64));
  }
  EXPECT_EQ(std::get<ConvDgradArguments>(ArgumentsOf(dgrad, *of_x)).x, At(64));
  EXPECT_EQ(std::get<ConvWgradArguments>(ArgumentsOf(wgrad, *of_w)).w, At(64));
  const auto refused = RolesOf(dgrad, ConvArguments{});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "the problem is a conv_dgrad, but the arguments are ConvArguments; pass ConvDgradArguments");
}

TEST(ArgumentRoles, OfAnotherKindAreRefused) {
  const auto roles = RolesOf(*ParseProblem("conv w=9 c=8 k=8 s=3"), GemmArguments{});
  ASSERT_FALSE(roles.has_value());
  EXPECT_EQ(roles.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(roles.error().message, "the problem is a conv, but the arguments are GemmArguments; pass ConvArguments");
}

TEST(ConvPointers, AreCheckedByTheirOwnNames) {
  const Problem conv = *ParseProblem("conv w=9 c=8 k=8 s=3 beta=1 bias=k align_y=4");
  const auto refusal = [&](ConvArguments arguments) {
    const Status status = PointerRules(conv).CheckPointers(*RolesOf(conv, arguments));
    return status ? std::string() : status.error().message;
  };
  ConvArguments arguments{.x = At(16), .w = At(32), .z = At(48), .y = At(68), .bias = At(82)};
  EXPECT_EQ(refusal(arguments), "");
  arguments.w = At(40);
  EXPECT_NE(refusal(arguments).find("pointer w"), std::string::npos) << refusal(arguments);
  EXPECT_NE(refusal(arguments).find("align_w=8"), std::string::npos) << refusal(arguments);
  arguments.w = At(32);
  arguments.z = nullptr;
  EXPECT_NE(refusal(arguments).find("pointer z is null"), std::string::npos) << refusal(arguments);
}

TEST(EpiloguePointers, AreCheckedByTheirSteps) {
  const Problem gemm = *ParseProblem("gemm m=8 n=8 k=8 epilogue=bias_n+residual+scale_block:f32");
  const auto refusal = [&](const EpilogueArguments& epilogue) {
    const Status status =
        PointerRules(gemm).CheckPointers({.a = At(16), .b = At(32), .d = At(48), .epilogue = epilogue});
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(refusal({At(2), At(16), At(4)}), "");
  EXPECT_NE(refusal({At(2), nullptr, At(4)}).find("pointer epilogue[1] (residual) is null"), std::string::npos);
  EXPECT_NE(refusal({At(2), At(24), At(4)}).find("the plan needs 16; align it"), std::string::npos);
  EXPECT_NE(refusal({At(1), At(16), At(4)}).find("epilogue[0] (bias_n)"), std::string::npos);
  EXPECT_NE(refusal({At(2), At(16), At(2)}).find("pass whole elements"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::runtime
