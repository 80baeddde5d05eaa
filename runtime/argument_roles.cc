#include "runtime/argument_roles.h"

#include <iterator>
#include <string_view>

#include "base/text.h"

namespace laneshift::runtime {

Result<GemmArguments> RolesOf(const Problem& problem, const Arguments& arguments) {
  if (problem.index() != arguments.index()) {
    constexpr std::string_view kNames[] = {"GemmArguments", "ConvArguments"};
    static_assert(std::size(kNames) == std::variant_size_v<Arguments>);
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the problem is a ", ProblemKind(problem), ", but the arguments are ",
                               kNames[arguments.index()], "; pass ", kNames[problem.index()]));
  }
  if (const GemmArguments* gemm = std::get_if<GemmArguments>(&arguments)) return *gemm;
  const ConvArguments& conv = std::get<ConvArguments>(arguments);
  return GemmArguments{
      .a = conv.x, .b = conv.w, .c = conv.z, .d = conv.y, .bias = conv.bias, .epilogue = conv.epilogue};
}

Arguments ArgumentsOf(const Problem& problem, const GemmArguments& roles) {
  if (std::holds_alternative<GemmProblem>(problem)) return roles;
  return ConvArguments{
      .x = roles.a, .w = roles.b, .z = roles.c, .y = roles.d, .bias = roles.bias, .epilogue = roles.epilogue};
}

}  // namespace laneshift::runtime
