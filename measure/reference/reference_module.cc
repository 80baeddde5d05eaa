#include "measure/reference/reference_module.h"

#include <algorithm>
#include <string>
#include <variant>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "measure/reference/host_tensor.h"
#include "measure/reference/kernel_source.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {

using base::Cat;

Result<device::Module> CompileReference(const Nvrtc& nvrtc, const device::Device& device, const Problem& problem,
                                        std::string_view kernel, CodeForm form) {
  const auto define = [&](std::string_view macro, OperandRole role) {
    return Cat("-D", macro, "=", ir::InfoOf(Stored(problem, role).type).source);
  };
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const bool saturates = std::visit([](const auto& kind) { return kind.sum == SumPrecision::kSaturate; }, problem);
  const std::string macros = Cat("#define GATED ", ir::ColumnsPerOutput(epilogue), "\n#define HALVES ",
                                 ir::HasSplitGateUp(epilogue) ? 1 : 0, "\n#define SATURATES ", saturates ? 1 : 0, "\n");
  const auto load = [&](CodeForm wanted) -> Result<device::Module> {
    LS_ASSIGN(
        const std::string code,
        nvrtc.Compile(Cat(macros, kProductViewSource, kReferenceOperandsSource, kernel), device.facts().ComputeName(),
                      {define("A_TYPE", OperandRole::kA), define("B_TYPE", OperandRole::kB),
                       define("C_TYPE", OperandRole::kC), define("OUT", OperandRole::kD),
                       define("BIAS", OperandRole::kBias), define("SCALE_TYPE", OperandRole::kScaleA)},
                      wanted));
    return wanted == CodeForm::kCubin ? device::Module::LoadCubin(device.context(), code)
                                      : device::Module::LoadPtx(device.context(), code);
  };
  auto loaded = load(form);
  if (!loaded && form == CodeForm::kCubin && loaded.error().code == ErrorCode::kUnsupported)
    return load(CodeForm::kPtx);
  return loaded;
}

static_assert(sizeof(ReferenceArguments::epilogue) == sizeof(EpilogueArguments));

ReferenceArguments ReferenceArgumentsOf(const Problem& problem, const GemmArguments& roles,
                                        const EpilogueArguments& totals) {
  ProductView view = ViewOf(problem);
  view.a_row_indices = roles.a_row_indices;
  view.d_row_indices = roles.d_row_indices;
  const auto number = [&](OperandRole role) { return static_cast<const float*>(runtime::AddressOf(roles, role)); };
  ScalePointers scales{};
  if (view.scale_run != 0 || view.scale_by_row != 0) {
    scales.a = roles.scale_a;
    scales.b = roles.scale_b;
  }
  if (const auto of_tensors = TensorScaleRolesOf(problem)) {
    scales.tensor_a = number(of_tensors->a);
    scales.tensor_b = number(of_tensors->b);
  }
  if (ir::Uses(problem, OperandRole::kScaleD)) scales.d = number(OperandRole::kScaleD);
  ReferenceArguments arguments{.at = view,
                               .a = roles.a,
                               .b = roles.b,
                               .c = roles.c,
                               .d = roles.d,
                               .bias = roles.bias,
                               .metadata = static_cast<const unsigned char*>(roles.metadata_a),
                               .scales = scales,
                               .epilogue = {},
                               .totals = {}};
  std::copy(roles.epilogue.begin(), roles.epilogue.end(), arguments.epilogue);
  for (size_t i = 0; i < totals.size(); ++i) arguments.totals[i] = static_cast<double*>(totals[i]);
  return arguments;
}

}  // namespace laneshift::measure
