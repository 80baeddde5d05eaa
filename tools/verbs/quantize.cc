#include "laneshift/quantize.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/message.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/problem_keys.h"
#include "ir/stored_tensor.h"
#include "laneshift/device_memory.h"
#include "laneshift/engine.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/npy.h"
#include "tools/number_option.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kQuantizeExamples = R"(
Examples:
  laneshift quantize x.npy --type e4m3 --scaling mx --out a.npy --factors scale_a.npy
  laneshift quantize x.npy --type e2m1 --scaling nv --scale 256 --out a.npy --factors scale_a.npy
  laneshift quantize x.npy --type e4m3 --device emulator --out a.npy --factors scale_a.npy
  laneshift run gemm m=128 n=128 k=256 a=e4m3 scale=mx --a a.npy --scale_a scale_a.npy --device emulator --check

Rows of the array are quantised along their last dimension, in blocks of 32 elements (mx) or 16 (nv). Factors have the
128x4 layout that a GEMM reads; docs/quantized-outputs.md has the formulas. With --device a kernel does it; the bits are
those of the host.)";
constexpr const char* kDequantizeExamples = R"(
Examples:
  laneshift dequantize d.npy --factors block_scale_d.npy --type e4m3 --scaling mx --out x.npy
  laneshift dequantize d.npy --factors block_scale_d.npy --type e2m1 --scaling nv --scale 256 --to bf16 --out x.npy)";

struct QuantizeOptions {
  DeviceOptions device;
  std::string in, out, factors;
  std::string type = "e4m3", scaling = "mx";
  std::string number;  // type of the numbers
  float scale = 1;
  bool json = false;
};

Error Invalid(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// A matrix, or several of them.
Result<QuantizedTensor> TensorOf(const QuantizeOptions& options, const std::vector<int64_t>& shape) {
  if (shape.size() != 2 && shape.size() != 3) {
    return Invalid(Cat(options.in, ": has ", shape.size(),
                       " dimensions; give it two, rows and columns, or three with matrices in front"));
  }
  QuantizedTensor tensor{
      .batch = shape.size() == 3 ? shape[0] : 1, .rows = shape[shape.size() - 2], .columns = shape.back()};
  LS_ASSIGN(tensor.type, ir::ParseTypeValue("--type", options.type));
  LS_ASSIGN(tensor.scaling, ir::ParseOutputScalingValue("--scaling", options.scaling));
  return tensor;
}

StoredTensor NumbersOf(const QuantizedTensor& tensor, DataType type) {
  return StoredTensor::Matrices(type, tensor.batch, tensor.rows, tensor.columns, tensor.columns,
                                tensor.rows * tensor.columns);
}
StoredTensor FactorsOf(const QuantizedTensor& tensor) {
  return ir::ScaleBlocks(*ir::BlockScalingOf(tensor.scaling), tensor.batch, tensor.rows, tensor.columns);
}

// That of the file, unless the options name one.
Result<DataType> TypeOfNumbers(const QuantizeOptions& options, const std::string& descr) {
  if (!options.number.empty()) return ir::ParseTypeValue("--from", options.number);
  for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBf16}) {
    if (ir::InfoOf(type).npy == descr) return type;
  }
  return Invalid(Cat(options.in, ": holds elements of type '", base::Escape(descr),
                     "'; numbers are '<f4', '<f2', or the bits of bf16 as '<u2'"));
}

// A tensor of the file in device memory.
struct OnDevice {
  static Result<OnDevice> Copy(const Engine& engine, const void* from, size_t bytes) {
    LS_ASSIGN(DeviceMemory memory, DeviceMemory::Allocate(engine, bytes));
    LS_TRY(memory.CopyFromHost(from, bytes));
    return OnDevice{std::move(memory)};
  }
  static Result<OnDevice> Copy(const Engine& engine, const HostTensor& from) {
    return Copy(engine, from.bytes.data(), from.bytes.size());
  }
  Status To(HostTensor& tensor) const { return memory.CopyToHost(tensor.bytes.data(), tensor.bytes.size()); }

  DeviceMemory memory;
};

// What the emulator found in a kernel's launches.
Status CheckReport(const Engine& engine) {
  const std::optional<EmulatorReport> report = engine.TakeReport();
  if (!report || report->Clean()) return Ok();
  return MakeError(ErrorCode::kInternal, report->faults.empty() ? report->hazards[0] : report->faults[0]);
}

using Move = std::function<Status(const Engine& engine, const float* scale)>;

// By a kernel on the device that the options name.
Status OnEngine(const QuantizeOptions& options, const Settings& settings, const Move& move) {
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  LS_ASSIGN(const Engine engine, Engine::Open(engine_options));
  const bool scaled = options.scaling == ir::NameOf(OutputScaling::kNv);
  LS_ASSIGN(const OnDevice scale, OnDevice::Copy(engine, &options.scale, sizeof options.scale));
  LS_TRY(move(engine, scaled ? static_cast<const float*>(scale.memory.data()) : nullptr));
  return CheckReport(engine);
}

bool IsOnHost(const QuantizeOptions& options) { return options.device.device == "host"; }

Status QuantizeTensor(const QuantizeOptions& options, const Settings& settings, const QuantizedTensor& tensor,
                      const HostTensor& numbers, HostTensor& elements, HostTensor& factors) {
  const DataType type = numbers.shape.type;
  if (IsOnHost(options))
    return Quantize(tensor, type, numbers.bytes.data(), options.scale, elements.bytes.data(), factors.bytes.data());
  return OnEngine(options, settings, [&](const Engine& engine, const float* scale) -> Status {
    LS_ASSIGN(const OnDevice from, OnDevice::Copy(engine, numbers));
    LS_ASSIGN(const OnDevice to, OnDevice::Copy(engine, elements));
    LS_ASSIGN(const OnDevice blocks, OnDevice::Copy(engine, factors));
    LS_TRY(engine.Quantize(nullptr, tensor, type, from.memory.data(), scale, to.memory.data(), blocks.memory.data()));
    LS_TRY(to.To(elements));
    return blocks.To(factors);
  });
}

Status DequantizeTensor(const QuantizeOptions& options, const Settings& settings, const QuantizedTensor& tensor,
                        const HostTensor& elements, const HostTensor& factors, HostTensor& numbers) {
  const DataType type = numbers.shape.type;
  if (IsOnHost(options))
    return Dequantize(tensor, elements.bytes.data(), factors.bytes.data(), options.scale, type, numbers.bytes.data());
  return OnEngine(options, settings, [&](const Engine& engine, const float* scale) -> Status {
    LS_ASSIGN(const OnDevice from, OnDevice::Copy(engine, elements));
    LS_ASSIGN(const OnDevice blocks, OnDevice::Copy(engine, factors));
    LS_ASSIGN(const OnDevice to, OnDevice::Copy(engine, numbers));
    LS_TRY(engine.Dequantize(nullptr, tensor, from.memory.data(), blocks.memory.data(), scale, type, to.memory.data()));
    return to.To(numbers);
  });
}

// || back - numbers || / || numbers ||, of numbers that are finite.
Result<double> ErrorOf(const QuantizedTensor& tensor, const HostTensor& numbers, const HostTensor& elements,
                       const HostTensor& factors, float scale) {
  HostTensor back{NumbersOf(tensor, DataType::kF32), {}};
  back.bytes.resize(back.shape.Bytes());
  LS_TRY(Dequantize(tensor, elements.bytes.data(), factors.bytes.data(), scale, DataType::kF32, back.bytes.data()));
  double error = 0, all = 0;
  for (int64_t row = 0; row < numbers.shape.Rows(); ++row) {
    for (int64_t i = 0; i < tensor.columns; ++i) {
      const double number = numbers.At(row, i), difference = back.At(row, i) - number;
      if (!std::isfinite(difference)) continue;
      error += difference * difference;
      all += number * number;
    }
  }
  return all == 0 ? 0 : std::sqrt(error / all);
}

void Print(const QuantizeOptions& options, const QuantizedTensor& tensor, DataType number,
           const std::optional<double>& error) {
  if (options.json) {
    Json object = {{"batch", tensor.batch},
                   {"rows", tensor.rows},
                   {"columns", tensor.columns},
                   {"numbers", DataTypeName(number)},
                   {"type", DataTypeName(tensor.type)},
                   {"scaling", ir::NameOf(tensor.scaling)},
                   {"scale", options.scale},
                   {"device", options.device.device},
                   {"out", options.out},
                   {"factors", options.factors},
                   {"rel_err", error ? Json(*error) : Json()}};
    std::printf("%s\n", JsonLine(object).c_str());
    return;
  }
  const std::string shape = Cat(tensor.batch > 1 ? Cat(tensor.batch, " x ") : "", tensor.rows, " x ", tensor.columns);
  std::printf("%s %s of %s, %s: %s", shape.c_str(), std::string(DataTypeName(number)).c_str(),
              std::string(DataTypeName(tensor.type)).c_str(), options.scaling.c_str(), options.out.c_str());
  if (error) std::printf(", relative error %.3g", *error);
  std::printf("\n");
}

Result<int> QuantizeFile(const QuantizeOptions& options, const Settings& settings) {
  LS_ASSIGN(const NpyArray array, DescribeNpy(options.in));
  LS_ASSIGN(const QuantizedTensor tensor, TensorOf(options, array.shape));
  LS_TRY(BytesOf(tensor));
  LS_ASSIGN(const DataType number, TypeOfNumbers(options, array.descr));
  LS_ASSIGN(const HostTensor numbers, ReadNpy(options.in, NumbersOf(tensor, number), "the array"));
  HostTensor elements = HostTensor::Poisoned(NumbersOf(tensor, tensor.type));
  HostTensor factors = HostTensor::Poisoned(FactorsOf(tensor));
  LS_TRY(QuantizeTensor(options, settings, tensor, numbers, elements, factors));
  LS_TRY(WriteNpy(options.out, elements));
  LS_TRY(WriteNpy(options.factors, factors));
  LS_ASSIGN(const double error, ErrorOf(tensor, numbers, elements, factors, options.scale));
  Print(options, tensor, number, error);
  return kExitOk;
}

Result<int> DequantizeFile(const QuantizeOptions& options, const Settings& settings) {
  LS_ASSIGN(NpyArray array, DescribeNpy(options.in));
  LS_ASSIGN(const DataType type, ir::ParseTypeValue("--type", options.type));
  // Two elements of four bits are in a byte.
  if (!array.shape.empty()) array.shape.back() *= ir::BitsOf(type) < 8 ? 2 : 1;
  LS_ASSIGN(const QuantizedTensor tensor, TensorOf(options, array.shape));
  LS_TRY(BytesOf(tensor));
  LS_ASSIGN(const DataType number, ir::ParseTypeValue("--to", options.number));
  LS_ASSIGN(const HostTensor elements, ReadNpy(options.in, NumbersOf(tensor, tensor.type), "the array"));
  LS_ASSIGN(const HostTensor factors, ReadNpy(options.factors, FactorsOf(tensor), "factors"));
  HostTensor numbers{NumbersOf(tensor, number), {}};
  numbers.bytes.resize(numbers.shape.Bytes());
  LS_TRY(DequantizeTensor(options, settings, tensor, elements, factors, numbers));
  LS_TRY(WriteNpy(options.out, numbers));
  Print(options, tensor, number, std::nullopt);
  return kExitOk;
}

CLI::App* AddOptions(CLI::App& app, const char* name, const char* about, QuantizeOptions& options) {
  CLI::App* verb = app.add_subcommand(name, about);
  verb->add_option("file", options.in, "the array, an .npy file: rows and columns, matrices in front")
      ->required()
      ->type_name("FILE");
  verb->add_option("--type", options.type, "of the elements")->type_name("e4m3|e5m2|e2m1")->capture_default_str();
  verb->add_option("--scaling", options.scaling, "of the blocks: ue8m0 for 32 columns, or of e2m1 ue4m3 for 16")
      ->type_name("mx|nv")
      ->capture_default_str();
  verb->add_option("--scale", options.scale, "with nv: the f32 by which numbers were multiplied")
      ->type_name("NUMBER")
      ->check(RealNumber(FLT_MIN, FLT_MAX))
      ->capture_default_str();
  verb->add_option("--out", options.out, "the .npy file to write")->required()->type_name("FILE");
  options.device.AddTo(*verb, {.plans = false, .functions = false, .host = true});
  verb->add_flag("--json", options.json, "one JSON object on stdout");
  return verb;
}

}  // namespace

Verb AddQuantize(CLI::App& app, const Settings& settings) {
  auto options = std::make_shared<QuantizeOptions>();
  CLI::App* verb = AddOptions(app, "quantize", "Quantise an array in blocks with scale factors (MX, NVFP4)", *options);
  verb->add_option("--factors", options->factors, "the .npy file to write the factors to")
      ->required()
      ->type_name("FILE");
  verb->add_option("--from", options->number, "type of the numbers, if the file does not say it")
      ->type_name("f32|f16|bf16");
  verb->footer(kQuantizeExamples);
  return [options, &settings] { return QuantizeFile(*options, settings); };
}

Verb AddDequantize(CLI::App& app, const Settings& settings) {
  auto options = std::make_shared<QuantizeOptions>();
  options->number = "f32";
  CLI::App* verb = AddOptions(app, "dequantize", "Numbers of an array in blocks with scale factors", *options);
  verb->add_option("--factors", options->factors, "the factors, an .npy file")->required()->type_name("FILE");
  verb->add_option("--to", options->number, "type of the numbers")->type_name("f32|f16|bf16")->capture_default_str();
  verb->footer(kDequantizeExamples);
  return [options, &settings] { return DequantizeFile(*options, settings); };
}

}  // namespace laneshift::tools
