#include "ir/epilogue_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/stored_tensor.h"

namespace laneshift::ir {
namespace {

TEST(Epilogue, PrintsAsItIsWritten) {
  for (const char* text : {"bias_n+gelu_tanh", "scale:0.5+scale_m+scale_n:f32", "residual+clamp:-1:6+aux:f32",
                           "leaky_relu:0.25+dsilu", "dleaky_relu+dclamp:0:6:f32+dtanh", "scale:1e-20+clamp:-1e30:1e30",
                           "scale_block:f32+rint+amax", "sum_n+swiglu+amax_m+toward_zero"}) {
    const auto epilogue = ParseEpilogue(text, kGemmLetters);
    ASSERT_TRUE(epilogue.has_value()) << epilogue.error().message;
    EXPECT_EQ(PrintEpilogue(*epilogue, kGemmLetters), text);
  }
  EXPECT_EQ(PrintEpilogue(*ParseEpilogue("leaky_relu:0.01", kGemmLetters), kGemmLetters), "leaky_relu");
  EXPECT_TRUE(ParseEpilogue("none", kGemmLetters)->empty());
}

TEST(Epilogue, IsPartOfTheProblem) {
  const std::string line = "gemm m=16 n=32 k=64 a=bf16 b=bf16 d=bf16 epilogue=bias_n:f32+gelu_tanh";
  EXPECT_EQ(PrintProblem(*ParseProblem(line)), line);
  const std::string conv = "conv n=1 h=8 w=8 c=8 k=8 r=3 s=3 x=bf16 w=bf16 y=bf16 epilogue=bias_k+residual+relu";
  EXPECT_EQ(PrintProblem(*ParseProblem(conv)), conv);
  // The type of D need not be said.
  EXPECT_EQ(*ParseProblem("gemm m=16 n=32 k=64 epilogue=bias_n:bf16"),
            *ParseProblem("gemm m=16 n=32 k=64 epilogue=bias_n"));
}

TEST(Epilogue, ErrorsNameTheStep) {
  const auto message = [](const char* text, AxisLetters letters) {
    const auto epilogue = ParseEpilogue(text, letters);
    const auto complete =
        epilogue ? CompleteEpilogue(*epilogue, DataType::kBf16, Numerics::kDefault, letters) : epilogue;
    EXPECT_FALSE(complete.has_value()) << text;
    return complete ? std::string() : complete.error().message;
  };
  EXPECT_NE(message("bias_n+gellu", kGemmLetters).find("did you mean 'gelu'?"), std::string::npos);
  EXPECT_NE(message("bias_m", {0, 'k'}).find("unknown step 'bias_m'"), std::string::npos);
  EXPECT_NE(message("scale", kGemmLetters).find("lacks numbers"), std::string::npos);
  EXPECT_NE(message("relu:1", kGemmLetters).find("too many fields"), std::string::npos);
  EXPECT_NE(message("relu:f32", kGemmLetters).find("has no operand"), std::string::npos);
  EXPECT_NE(message("clamp:2:1", kGemmLetters).find("lower bound above"), std::string::npos);
  EXPECT_NE(message("amax:bf16", kGemmLetters).find("is always f32"), std::string::npos);
  EXPECT_NE(message("toward_zero+relu", kGemmLetters).find("comes last"), std::string::npos);
  EXPECT_NE(message("swiglu+geglu", kGemmLetters).find("'geglu' is the second gated step"), std::string::npos);
  EXPECT_NE(message("residual+swiglu", kGemmLetters).find("write it after 'swiglu'"), std::string::npos);
  EXPECT_NE(message("scale_block", {0, 'k'}).find("no blocks of rows"), std::string::npos);
  EXPECT_NE(message("sum_m", {0, 'k'}).find("unknown step 'sum_m'"), std::string::npos);
  EXPECT_NE(message("relu+relu+relu+relu+relu+relu+relu+relu+relu+relu+relu+relu+relu", kGemmLetters).find("12 steps"),
            std::string::npos);
  EXPECT_NE(message("aux+aux+aux+aux+aux+aux+aux+aux+aux", kGemmLetters).find("9 operands"), std::string::npos);
}

TEST(Epilogue, OperandsLieAsTheyAreSaidTo) {
  const Problem problem = *ParseProblem("gemm m=6 n=10 k=8 batch=2 ldd=12 epilogue=bias_m+relu+scale_n:f32+aux:f32");
  const auto tensors = EpilogueTensors(problem);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].tensor.Elements(), 6);
  EXPECT_EQ(tensors[1].tensor.Elements(), 10);
  EXPECT_EQ(tensors[1].tensor.type, DataType::kF32);
  EXPECT_EQ(tensors[2].tensor.RowStart(6), 6 * 12);
  EXPECT_TRUE(tensors[2].written);
  EXPECT_EQ(tensors[2].name, "epilogue[2] (aux:f32)");
}

TEST(Epilogue, RefusesWhatTheProblemForbids) {
  const auto message = [](const char* line) {
    const auto problem = ParseProblem(line);
    EXPECT_FALSE(problem.has_value()) << line;
    return problem ? std::string() : problem.error().message;
  };
  EXPECT_NE(message("gemm m=8 n=8 k=8 d=f32 epilogue=toward_zero").find("nothing is rounded to f32"),
            std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=8 d=e4m3 epilogue=toward_zero").find("only to the nearest"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=9 k=8 epilogue=swiglu").find("n=9 is odd"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=8 numerics=batch_invariant epilogue=sum_m").find("use numerics=deterministic"),
            std::string::npos);
  EXPECT_NE(message("conv w=9 c=8 k=8 s=1 numerics=batch_invariant epilogue=sum_k").find("'sum_k' is summed in parts"),
            std::string::npos);
  EXPECT_TRUE(ParseProblem("gemm m=8 n=8 k=8 numerics=deterministic epilogue=sum_n").has_value());
  EXPECT_TRUE(ParseProblem("gemm m=8 n=8 k=8 numerics=deterministic epilogue=amax").has_value());
}

TEST(Epilogue, GatesPairsOfColumns) {
  const Problem problem =
      *ParseProblem("gemm m=300 n=600 k=8 epilogue=bias_n+swiglu+scale_n+scale_block+residual+amax");
  EXPECT_EQ(std::get<GemmProblem>(problem).ldd, 300);
  EXPECT_EQ(Stored(problem, OperandRole::kD).Inner(), 300);
  const auto tensors = EpilogueTensors(problem);
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[0].tensor.Elements(), 600);
  EXPECT_EQ(tensors[1].tensor.Elements(), 300);
  EXPECT_EQ(tensors[2].tensor.Elements(), 3 * 3);
  EXPECT_EQ(tensors[3].tensor.Elements(), 300 * 300);
  EXPECT_EQ(tensors[4].tensor.Elements(), 1);
  EXPECT_TRUE(tensors[4].reduction);
}

TEST(Epilogue, HasSplitGateUp) {
  const std::string line = "gemm m=8 n=12 k=8 a=bf16 b=bf16 d=bf16 epilogue=bias_n+swiglu:halves+relu";
  const Problem problem = *ParseProblem(line);
  EXPECT_EQ(PrintProblem(problem), line);
  const Epilogue& epilogue = std::get<GemmProblem>(problem).epilogue;
  EXPECT_TRUE(HasSplitGateUp(epilogue));
  for (int64_t j = 0; j < 6; ++j) {
    EXPECT_EQ(ColumnOfB(epilogue, 2 * j, 12), j);
    EXPECT_EQ(ColumnOfB(epilogue, 2 * j + 1, 12), 6 + j);
  }
  EXPECT_FALSE(HasSplitGateUp(std::get<GemmProblem>(*ParseProblem("gemm m=8 n=12 k=8 epilogue=swiglu")).epilogue));
  const auto message = [](const char* text) {
    const auto refused = ParseProblem(text);
    EXPECT_FALSE(refused.has_value()) << text;
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_NE(message("gemm m=8 n=8 k=8 epilogue=silu:halves").find("too many fields"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=8 beta=1 epilogue=swiglu:halves").find("use beta=0"), std::string::npos);
  EXPECT_NE(message("gemm m=8 n=8 k=8 epilogue=scale_block+swiglu:halves").find("write it after"), std::string::npos);
  EXPECT_NE(
      message("gemm m=8 n=128 k=128 a=e4m3 scale=block epilogue=swiglu:halves").find("factors of different blocks"),
      std::string::npos);
}

TEST(Epilogue, FunctionsMayGatePairs) {
  const std::string digest(32, 'a'), function = "Gate@" + digest + "/pair,element,number:1.5";
  const std::string gemm = "gemm m=8 n=12 k=8 a=bf16 b=bf16 d=bf16 epilogue=";
  for (const std::string& step : {function, function + ":halves"}) {
    const std::string line = gemm + "bias_n+" + step + "+residual";
    const auto problem = ParseProblem(line);
    ASSERT_TRUE(problem) << problem.error().message;
    EXPECT_EQ(PrintProblem(*problem), line);
    const Epilogue& epilogue = std::get<GemmProblem>(*problem).epilogue;
    EXPECT_EQ(GateOf(epilogue), 1u);
    EXPECT_EQ(HasSplitGateUp(epilogue), step != function);
    EXPECT_EQ(EpilogueTensors(*problem)[0].tensor.Inner(), 12);
    EXPECT_EQ(EpilogueTensors(*problem)[1].tensor.Inner(), 6);
  }
  const auto message = [&](const std::string& epilogue) { return ParseProblem(gemm + epilogue).error().message; };
  const std::string plain = "Scale@" + digest + "/element";
  EXPECT_TRUE(ParseProblem(gemm + "swiglu+" + plain));
  EXPECT_NE(message(plain + "+swiglu").find("layout of D; write it after 'swiglu'"), std::string::npos);
  EXPECT_NE(message(plain + "+" + function).find("write it after 'Gate"), std::string::npos);
  EXPECT_NE(message("swiglu+" + function).find("is the second gated step"), std::string::npos);
  EXPECT_NE(message(plain + ":halves").find("Scale does not combine columns"), std::string::npos);
  EXPECT_NE(message("Gate@" + digest + "/element,pair").find("'pair'"), std::string::npos);
  EXPECT_NE(ParseProblem("gemm m=8 n=9 k=8 epilogue=" + function).error().message.find("n=9 is odd"),
            std::string::npos);
}

TEST(Epilogue, GatesPairsOfFilters) {
  const Problem problem = *ParseProblem("conv n=2 h=5 w=6 c=8 k=24 r=3 s=3 pad=1 epilogue=bias_k+swiglu+amax_k+aux");
  EXPECT_EQ(std::get<ConvProblem>(problem).y_pitch.pixel, 12);
  EXPECT_EQ(Stored(problem, OperandRole::kD).Inner(), 12);
  EXPECT_EQ(Stored(problem, OperandRole::kC).Inner(), 24);
  const auto tensors = EpilogueTensors(problem);
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].tensor.Elements(), 24);
  EXPECT_EQ(tensors[1].tensor.Elements(), 12);
  EXPECT_EQ(tensors[2].tensor.Elements(), 2 * 5 * 6 * 12);
  const auto odd = ParseProblem("conv n=1 w=6 c=8 k=12 groups=4 s=3 epilogue=swiglu");
  ASSERT_FALSE(odd.has_value());
  EXPECT_NE(odd.error().message.find("makes 3 of a group, which is odd"), std::string::npos);
}

TEST(Epilogue, CutsTowardZero) {
  EXPECT_EQ(Evaluate(Function::kCutBf16, {}, 1 + std::ldexp(255, -15)), 1);
  EXPECT_EQ(Evaluate(Function::kCutF16, {}, -1.9999), -1.9990234375);
  EXPECT_EQ(Evaluate(Function::kCutF16, {}, std::ldexp(1.75, -24)), std::ldexp(1, -24));
  EXPECT_EQ(Evaluate(Function::kCutF16, {}, 1e6), 65504);
}

// The derivatives that steps take are those of the functions.
TEST(Epilogue, DerivativesAreSlopes) {
  constexpr double kStep = 1e-5;
  for (const Function f : {Function::kRelu, Function::kGelu, Function::kGeluTanh, Function::kSilu, Function::kSigmoid,
                           Function::kTanh, Function::kLeakyRelu}) {
    for (const double x : {-3.0, -0.7, -0.01, 0.02, 0.9, 4.0}) {
      const double slope = (Evaluate(f, {0.1, 0}, x + kStep) - Evaluate(f, {0.1, 0}, x - kStep)) / (2 * kStep);
      EXPECT_NEAR(EvaluateDerivative(f, {0.1, 0}, x), slope, 1e-8) << FunctionName(f) << " at " << x;
    }
  }
  EXPECT_NEAR(Evaluate(Function::kGelu, {}, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(Evaluate(Function::kGeluTanh, {}, 1), 0.8411919906082768, 1e-12);
}

TEST(EpilogueFunctions, FallUpToTheirLowestPoint) {
  for (const Function function : {Function::kLeakyRelu, Function::kGelu, Function::kGeluTanh, Function::kSilu}) {
    const std::array<double, 2> numbers = {-0.5, 0};
    const auto lowest = LowestPoint(function, numbers);
    ASSERT_TRUE(lowest);
    const double least = Evaluate(function, numbers, *lowest);
    for (const double step : {1e-3, 1e-2, 0.5}) {
      EXPECT_GT(Evaluate(function, numbers, *lowest - step), least) << static_cast<int>(function);
      EXPECT_GT(Evaluate(function, numbers, *lowest + step), least) << static_cast<int>(function);
    }
  }
  EXPECT_FALSE(LowestPoint(Function::kLeakyRelu, {0.1, 0}));
}

}  // namespace
}  // namespace laneshift::ir
