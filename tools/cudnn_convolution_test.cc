// What cuDNN itself says of our descriptors; it checks attributes, types and the shape of y without a GPU.
#include "measure/peers/cudnn_convolution.h"

#include <gtest/gtest.h>

#include "tools/settings.h"

namespace laneshift::measure::cudnn {
namespace {

class CudnnConvolution : public testing::TestWithParam<const char*> {
 protected:
  static Result<CudnnLibrary> OpenLibrary() {
    return CudnnLibrary::Open(tools::Settings::FromEnvironment().library_directories);
  }
};

TEST_P(CudnnConvolution, IsTaken) {
  const auto library = OpenLibrary();
  if (!library) GTEST_SKIP() << library.error().message;
  const auto problem = ParseProblem(GetParam());
  ASSERT_TRUE(problem.has_value()) << problem.error().message;
  const auto described = DescribeConvolution(library->functions, std::get<ConvProblem>(*problem), GraphScope::kWhole);
  EXPECT_TRUE(described.has_value()) << described.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    All, CudnnConvolution,
    testing::Values("conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1",
                    "conv n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2",
                    "conv n=2 w=99 c=16 k=8 s=5 pad=2 dilation=2 x=f16 y=f32",
                    "conv n=2 h=9 w=8 c=16 k=8 r=3 s=2 pad=1:0,0:2 stride=2,1 groups=2 x=f16",
                    "conv n=1 d=5 h=6 w=7 c=8 k=8 t=3 r=3 s=3 pad=1,0,1 stride=1,2,1 alpha=0.5",
                    "conv n=2 h=5 w=6 c=8 k=8 r=3 s=3 pad=1 x_pixel=16 x_image=600 y_pixel=24 align_x=4",
                    "conv_dgrad n=32 h=56 w=56 c=128 k=128 r=3 s=3 pad=1 stride=2",
                    "conv_dgrad n=1 d=5 h=6 w=7 c=8 k=8 t=3 r=3 s=3 pad=1,0,1 stride=1,2,1 x=f16 y=f16 w=f16",
                    "conv_wgrad n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2",
                    "conv_wgrad n=2 w=99 c=16 k=8 s=5 pad=2 dilation=2 w=f32",
                    "conv_wgrad n=2 h=9 w=9 c=16 k=8 r=3 s=3 beta=1 w=f32",
                    "conv n=2 h=9 w=9 c=16 k=8 r=3 s=3 pad=1 bias=k beta=0.5 epilogue=relu",
                    "conv n=2 h=9 w=9 c=16 k=8 r=3 s=3 pad=1 epilogue=scale_k:f32+bias_k:f32+residual+silu",
                    "conv n=2 h=9 w=9 c=16 k=8 r=3 s=3 pad=1 epilogue=bias_k+clamp:0:6",
                    "conv n=2 w=99 c=16 k=8 s=5 pad=2 epilogue=multiply+leaky_relu:0.1+gelu_tanh+gelu+tanh+sigmoid",
                    "conv_dgrad n=2 h=9 w=9 c=16 k=8 r=3 s=3 pad=1 epilogue=residual+drelu",
                    "conv_dgrad n=2 h=9 w=9 c=16 k=8 r=3 s=3 epilogue=dgelu+dgelu_tanh+dsilu+dsigmoid+dtanh"));

// Each step is an operation, and each of its operands a tensor in memory.
TEST_F(CudnnConvolution, DescribesTheEpilogue) {
  const auto library = OpenLibrary();
  if (!library) GTEST_SKIP() << library.error().message;
  const auto problem = std::get<ConvProblem>(
      *ParseProblem("conv n=2 h=8 w=8 c=8 k=8 r=3 s=3 bias=k beta=1 epilogue=scale_k+relu+residual"));
  const auto whole = DescribeConvolution(library->functions, problem, GraphScope::kWhole);
  ASSERT_TRUE(whole.has_value()) << whole.error().message;
  EXPECT_EQ(whole->operations.size(), 6u);
  const std::vector<int64_t> ids = {kIdX, kIdW, kIdZ, kIdBias, kIdOperand, kIdOperand + 1, kIdY};
  EXPECT_EQ(whole->ids, ids);
  const auto product = DescribeConvolution(library->functions, problem, GraphScope::kProduct);
  ASSERT_TRUE(product.has_value()) << product.error().message;
  EXPECT_EQ(product->operations.size(), 1u);
}

TEST_F(CudnnConvolution, NamesAStepThatCudnnLacks) {
  const auto library = OpenLibrary();
  if (!library) GTEST_SKIP() << library.error().message;
  const auto problem = std::get<ConvProblem>(*ParseProblem("conv n=2 h=8 w=8 c=8 k=8 r=3 s=3 epilogue=relu+amax_k"));
  const auto refused = DescribeConvolution(library->functions, problem, GraphScope::kWhole);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("amax_k"), std::string::npos) << refused.error().message;
}

// A y of another size would be refused: what is taken above is the extent that problem.h defines.
TEST_F(CudnnConvolution, RefusesAnotherOutput) {
  const auto library = OpenLibrary();
  if (!library) GTEST_SKIP() << library.error().message;
  auto problem = std::get<ConvProblem>(*ParseProblem("conv n=2 h=8 w=8 c=8 k=8 r=3 s=3 pad=1"));
  const auto right = DescribeConvolution(library->functions, problem, GraphScope::kProduct);
  ASSERT_TRUE(right.has_value()) << right.error().message;
  const auto wide = DescribeConvolution(library->functions,
                                        std::get<ConvProblem>(*ParseProblem("conv n=2 h=8 w=9 c=8 k=8 r=3 s=3 pad=1")),
                                        GraphScope::kProduct);
  ASSERT_TRUE(wide.has_value()) << wide.error().message;
  enum Part : size_t { kConvolutionPart, kX, kW, kY };  // the order in which parts are described
  const auto set = [&](const CudnnDescriptor& operation, Attribute name, const CudnnDescriptor& part) {
    const Status done = operation.SetDescriptor(name, part);
    ASSERT_TRUE(done.has_value()) << done.error().message;
  };
  const auto mixed = CudnnDescriptor::Create(library->functions, kForwardOperation);
  ASSERT_TRUE(mixed.has_value());
  set(*mixed, kForwardConvolution, right->parts[kConvolutionPart]);
  set(*mixed, kForwardX, right->parts[kX]);
  set(*mixed, kForwardW, right->parts[kW]);
  set(*mixed, kForwardY, wide->parts[kY]);
  ASSERT_TRUE(mixed->SetFloat(kForwardAlpha, 1).has_value());
  ASSERT_TRUE(mixed->SetFloat(kForwardBeta, 0).has_value());
  const Status refused = mixed->Finalize();
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("cudnnBackendFinalize: cuDNN status"), std::string::npos);
}

}  // namespace
}  // namespace laneshift::measure::cudnn
