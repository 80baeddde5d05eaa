#include "measure/reference/device_reference.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/integer_math.h"
#include "base/text.h"
#include "device/buffer.h"
#include "device/driver_error.h"
#include "device/launch.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "measure/reference/epilogue_reductions.h"
#include "measure/reference/host_tensor.h"
#include "measure/reference/kernel_source.h"
#include "measure/reference/reference_module.h"
#include "runtime/argument_roles.h"

namespace laneshift::measure {
namespace {

using base::Cat;

// The index of a step's element in its operand.
std::string PlaceSource(ir::StepOperand operand, bool gated) {
  const std::string_view columns = gated ? "view.at.n / GATED" : "view.at.n";  // of a group
  switch (operand) {
    case ir::StepOperand::kRowVector:
    case ir::StepOperand::kRowReduction:
      return "row";
    case ir::StepOperand::kColumnVector:
    case ir::StepOperand::kColumnReduction:
      return Cat("view.Column(batch, column, ", columns, ")");
    case ir::StepOperand::kMatrix:
    case ir::StepOperand::kOutput:
      return "view.Place(batch, row, column)";
    case ir::StepOperand::kBlocks:
      return Cat("view.Blocks(row, view.Column(batch, column, ", columns, "), ", columns, ")");
    case ir::StepOperand::kNone:
    case ir::StepOperand::kReduction:
    case ir::StepOperand::kTable:
      break;
  }
  return "0";
}

// One step as a statement on `value`; `gated`: after the one that joins columns. `totals`: the number of all totals,
// after which the sums of their magnitudes follow.
std::string StepSource(const EpilogueStep& step, size_t operand, const StoredTensor* tensor, DataType output,
                       bool gated, size_t totals) {
  const ir::StepInfo& info = ir::InfoOf(step.kind);
  std::string numbers;
  for (int i = 0; i < info.numbers; ++i) numbers += Cat(", ", base::PrintDouble(step.numbers[static_cast<size_t>(i)]));
  const std::string place = PlaceSource(info.operand, gated);
  const std::string stored = tensor == nullptr ? ""
                                               : Cat("((const ", ir::InfoOf(tensor->type).source, "*)view.epilogue[",
                                                     operand, "])[", place, "]");
  const std::string other = tensor == nullptr ? base::PrintDouble(step.numbers[0]) : Cat("(double)Widen(", stored, ")");
  const std::string total = Cat("view.totals[", operand, "] + ", place);
  const std::string_view function = ir::FunctionName(info.function);
  switch (info.action) {
    case ir::StepAction::kMultiply:
      return Cat("  value *= ", other, ";\n");
    case ir::StepAction::kAdd:
      return Cat("  value += ", other, ";\n");
    case ir::StepAction::kApply:
      return Cat("  value = ", function, "(value", numbers, ");\n");
    case ir::StepAction::kDerivative:
      return Cat("  value *= d", function, "(", other, numbers, ");\n");
    case ir::StepAction::kStore:
      return Cat("  tally.Count(", stored, ", value, view.Index(batch, row, column));\n");
    case ir::StepAction::kCut:
      return Cat("  value = ", output == DataType::kBf16 ? "cut_bf16" : "cut_f16", "(value);\n");
    case ir::StepAction::kGate:
      return Cat("  value = ", function, "(values[0]) * values[1];\n");
    case ir::StepAction::kSum:
      return Cat("  atomicAdd(", total, ", value);\n  atomicAdd(", total, " + ", totals, ", fabs(value));\n");
    case ir::StepAction::kAmax: {
      const auto raise = [](const std::string& at) {
        return Cat("  atomicMax((unsigned long long*)(", at, "), __double_as_longlong(fabs(value)));\n");
      };
      return raise(total) + raise(Cat(total, " + ", totals));
    }
    case ir::StepAction::kCall:
      break;  // DeviceReference::Compile refuses them
  }
  return "";
}

std::string StepsSource(const Problem& problem, std::string_view name, size_t first, size_t end) {
  std::string source = Cat("__device__ double ", name,
                           "(const View& view, Tally& tally, double value, long long batch, long long row, "
                           "long long column) {\n");
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem);
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const DataType output = Stored(problem, OperandRole::kD).type;
  const size_t totals = EpilogueReductions(problem).values().size();
  size_t operand = 0;
  for (size_t i = 0; i < end; ++i) {
    const bool none = ir::InfoOf(epilogue[i].kind).operand == ir::StepOperand::kNone;
    const StoredTensor* tensor = none ? nullptr : &tensors[operand].tensor;
    if (i >= first) source += StepSource(epilogue[i], operand, tensor, output, first > 0, totals);
    operand += none ? 0 : 1;
  }
  return source + "  return value;\n}\n";
}

// The steps before and after the one that joins columns, and that one.
std::string EpilogueSource(const Problem& problem) {
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const size_t gate = ir::GateOf(epilogue), end = epilogue.size();
  const bool gated = gate < end;
  const std::string join =
      gated ? StepSource(epilogue[gate], 0, nullptr, DataType::kF32, false, 0) : "  value = values[0];\n";
  return Cat(StepsSource(problem, "BeforeGate", 0, gate), "__device__ double Join(const double* values) {\n",
             "  double value;\n", join, "  return value;\n}\n",
             StepsSource(problem, "AfterGate", gated ? gate + 1 : end, end));
}

Status LaunchCheck(const device::Device& device, const device::Kernel& kernel, const device::Stream& stream,
                   ReferenceArguments arguments, device::CuDevicePtr totals) {
  void* const addresses[] = {&arguments, &totals};
  const auto tiles = [](int64_t extent) { return base::CeilDiv(extent, kReferenceTile); };
  const int64_t all = tiles(arguments.at.m) * tiles(arguments.at.n) * arguments.at.batches;
  const auto grid = static_cast<unsigned>(std::min<int64_t>(all, int64_t{32} * device.facts().sm_count));
  return device::Launch(
      kernel, {.grid = {grid, 1, 1}, .block = {kReferenceThreads, 1, 1}, .cluster = {}, .dynamic_smem_bytes = 0},
      stream, addresses);
}

}  // namespace

Result<DeviceReference> DeviceReference::Compile(const Nvrtc& nvrtc, const device::Device& device,
                                                 const Problem& problem, CodeForm form) {
  if (ir::HasJumps(ir::EpilogueOf(problem))) {
    return MakeError(ErrorCode::kUnsupported, "epilogues with rint or users' functions are compared on the host only");
  }
  if (ir::OutputScalingOf(problem) != OutputScaling::kNone) {
    return MakeError(ErrorCode::kUnsupported, "blocks of D with scale factors are compared on the host only");
  }
  if (std::holds_alternative<GroupedGemmProblem>(problem)) {
    return MakeError(ErrorCode::kUnsupported, "groups of rows are compared on the host only");
  }
  LS_ASSIGN(device::Module module,
            CompileReference(nvrtc, device, problem, Cat(kCheckKernelSource, EpilogueSource(problem)), form));
  LS_ASSIGN(device::Kernel kernel, module.GetKernel("Check"));
  return DeviceReference(device, problem, std::move(module), std::move(kernel));
}

// The reductions of the epilogue on the device, zero before the kernel: all totals, then the sums of their magnitudes.
struct DeviceReference::ReductionBuffers {
  EpilogueReductions host;
  device::DeviceBuffer buffer;
  EpilogueArguments pointers{};

  static Result<ReductionBuffers> Make(const device::Device& device, const device::Stream& stream,
                                       const Problem& problem) {
    EpilogueReductions host(problem);
    LS_ASSIGN(device::DeviceBuffer buffer,
              device::DeviceBuffer::Allocate(device.context(),
                                             std::max<size_t>(1, 2 * host.values().size()) * sizeof(double)));
    LS_TRY(buffer.FillBytes(stream, 0));
    ReductionBuffers totals{std::move(host), std::move(buffer)};
    for (size_t i = 0; i < ir::EpilogueTensors(problem).size(); ++i) {
      if (totals.host.OffsetOf(i) < 0) continue;
      totals.pointers[i] = reinterpret_cast<void*>(
          totals.buffer.pointer() + static_cast<device::CuDevicePtr>(totals.host.OffsetOf(i)) * sizeof(double));
    }
    return totals;
  }

  // Compares them with the results of the kernel under test in `arguments`.
  Status Compare(const device::Device& device, const device::Stream& stream, const Problem& problem,
                 const EpilogueArguments& arguments, Comparison& into) {
    if (host.empty()) return Ok();
    LS_ASSIGN(const device::ActiveContext active, device.Activate());
    const size_t bytes = host.values().size() * sizeof(double);
    LS_TRY(buffer.CopyToHost(stream, host.values().data(), bytes));
    LS_TRY(buffer.CopyToHost(stream, host.magnitudes().data(), bytes, bytes));
    std::vector<HostTensor> operands;
    for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
      operands.push_back(operand.reduction ? HostTensor::Poisoned(operand.tensor) : HostTensor{});
      if (!operand.reduction) continue;
      const auto from = reinterpret_cast<device::CuDevicePtr>(arguments[operands.size() - 1]);
      const device::DriverApi& api = *device.context().api;
      LS_TRY(device::DriverStatus(
          api, api.MemcpyDtoHAsync(operands.back().bytes.data(), from, operands.back().bytes.size(), stream.handle()),
          "cuMemcpyDtoHAsync"));
    }
    LS_TRY(stream.Synchronize());
    host.Compare(operands, LargestValueError(problem), into);
    return Ok();
  }
};

Result<Comparison> DeviceReference::Compare(const device::Stream& stream, const Arguments& arguments) const {
  LS_ASSIGN(const GemmArguments roles, runtime::RolesOf(problem_, arguments));
  LS_ASSIGN(const device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(device_->context(), sizeof(CheckTotals)));
  LS_ASSIGN(ReductionBuffers epilogue, ReductionBuffers::Make(*device_, stream, problem_));
  CheckTotals totals{.error_squares = 0,
                     .reference_squares = 0,
                     .rounding_squares = 0,
                     .compared = 0,
                     .not_finite = 0,
                     .first_not_finite = std::numeric_limits<long long>::max()};
  LS_TRY(buffer.CopyFromHost(stream, &totals, sizeof totals));
  LS_TRY(LaunchCheck(*device_, kernel_, stream, ReferenceArgumentsOf(problem_, roles, epilogue.pointers),
                     buffer.pointer()));
  LS_TRY(buffer.CopyToHost(stream, &totals, sizeof totals));
  LS_TRY(stream.Synchronize());
  Comparison comparison{.error_squares = totals.error_squares,
                        .reference_squares = totals.reference_squares,
                        .rounding_squares = totals.rounding_squares,
                        .compared = totals.compared,
                        .not_finite = totals.not_finite,
                        .first_not_finite = totals.not_finite > 0 ? totals.first_not_finite : -1,
                        .reference = "nvrtc"};
  LS_TRY(epilogue.Compare(*device_, stream, problem_, roles.epilogue, comparison));
  return comparison;
}

Result<Comparison> CompareOnDevice(const Nvrtc& nvrtc, const device::Device& device, const device::Stream& stream,
                                   const Problem& problem, const Arguments& arguments, CodeForm form) {
  LS_ASSIGN(const DeviceReference reference, DeviceReference::Compile(nvrtc, device, problem, form));
  return reference.Compare(stream, arguments);
}

}  // namespace laneshift::measure
