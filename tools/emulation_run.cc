#include "tools/emulation_run.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/output_file.h"
#include "base/text.h"
#include "emulator/driver/driver_functions.h"
#include "tools/npy.h"

namespace laneshift::tools {
namespace {

using base::Cat;
namespace driver = emulator::driver;
using device::CuFunction;
using device::CuResult;
using device::kCuSuccess;

std::string NameOf(CuResult result) {
  const char* name = nullptr;
  driver::GetErrorName(result, &name);
  return name != nullptr ? name : Cat("error ", static_cast<int>(result));
}

std::vector<int64_t> ShapeOf(const LaunchBuffer& buffer) { return {buffer.shape.begin(), buffer.shape.end()}; }

// A well mixed word of the seed and the index: the same everywhere, in any order.
uint64_t Mix(uint64_t seed, uint64_t index) {
  uint64_t word = seed * 0x9e3779b97f4a7c15u + index + 0x632be59bd9b4e019u;
  for (const int shift : {30, 27, 31}) word = (word ^ word >> shift) * 0xbf58476d1ce4e5b9u;
  return word;
}

class Session {
 public:
  Session(const LaunchFile& file, LaunchDirectory directory, EmulationTrace* trace)
      : file_(file), directory_(std::move(directory)), trace_(trace) {}
  ~Session() {
    if (context_ != nullptr) driver::CtxDestroy(context_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status Open();
  // Of the buffers whose address the file says: before the module's variables take it.
  Status PlaceBuffers();
  Status Load(const std::string& ptx_name, const std::string& ptx);
  Status MakeBuffers();
  // Whether all outputs may be written where they are to go.
  Status CheckOutputs() const;
  // False: a fault has ended it.
  Result<bool> Run(const LaunchStep& step);
  Result<BufferComparison> Compare(const LaunchExpectation& expectation);
  // The path of the file.
  Result<std::string> Write(const LaunchOutput& output);
  // The rest of the trace.
  Status TraceBuffers();

 private:
  Error At(const JsonNode& node, std::string_view what) const { return file_.tree->At(node, what); }
  Result<std::vector<uint8_t>> Contents(const Fill& fill, const LaunchBuffer& buffer, const JsonNode& node);
  Result<CuFunction> Find(const LaunchStep& step);
  Result<std::vector<uint8_t>> Bytes(const LaunchArgument& argument);
  Result<std::vector<uint8_t>> Encode(const MapArgument& map, const JsonNode& node);
  Result<std::vector<uint8_t>> Download(size_t buffer);

  const LaunchFile& file_;
  LaunchDirectory directory_;
  EmulationTrace* trace_;  // may be null
  device::CuContext context_ = nullptr;
  device::CuModule module_ = nullptr;
  std::vector<device::CuDevicePtr> addresses_;
};

Status Session::Open() {
  if (driver::Init(0) == kCuSuccess && driver::CtxCreate(&context_, 0, 0) == kCuSuccess) return Ok();
  return MakeError(ErrorCode::kInternal, "the emulated device does not open");
}

Status Session::PlaceBuffers() {
  for (const LaunchBuffer& buffer : file_.buffers) {
    const JsonNode* address = buffer.at->Find("address");
    if (address == nullptr) continue;
    if (const Status placed = emulator::AllocateAt(buffer.address, buffer.bytes); !placed.has_value())
      return placed.error().code == ErrorCode::kInvalidArgument ? At(*address, placed.error().message) : placed;
  }
  return Ok();
}

Status Session::Load(const std::string& ptx_name, const std::string& ptx) {
  std::array<char, 4096> log{};
  std::array<device::CuJitOption, 2> options = {device::kCuJitErrorLogBuffer, device::kCuJitErrorLogBufferSizeBytes};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
  const CuResult loaded = driver::ModuleLoadDataEx(&module_, ptx.c_str(), 2, options.data(), values.data());
  if (loaded == kCuSuccess) return Ok();
  const bool wrong_device = loaded == device::kCuErrorNoBinaryForGpu;
  return MakeError(wrong_device ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument,
                   Cat(ptx_name, ":", std::isdigit(log[0]) ? "" : " ", log.data()));
}

Result<std::vector<uint8_t>> Session::Contents(const Fill& fill, const LaunchBuffer& buffer, const JsonNode& node) {
  std::vector<uint8_t> bytes;
  if (const auto* raw = std::get_if<RawFill>(&fill)) {
    const auto readable = directory_.ToRead(raw->path);
    if (!readable.has_value()) return At(node, readable.error().message);
    const std::string& path = *readable;
    std::ifstream file(path, std::ios::binary);
    if (!file) return At(node, Cat("the file ", path, " cannot be opened"));
    bytes.resize(buffer.bytes);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const bool whole = file && file.peek() == std::ifstream::traits_type::eof();
    if (file.bad()) return At(node, Cat("the file ", path, " cannot be read: ", std::strerror(errno)));
    if (!whole)
      return At(node, Cat("the file ", path, " does not have the ", buffer.bytes, " bytes of '", buffer.name, "'"));
    return bytes;
  }
  if (const auto* npy = std::get_if<NpyFill>(&fill)) {
    const auto readable = directory_.ToRead(npy->path);
    if (!readable.has_value()) return At(node, readable.error().message);
    auto array = ReadNpyArray(*readable, buffer.type->npy, ShapeOf(buffer), buffer.bytes);
    if (!array.has_value()) return At(node, array.error().message);
    return array;
  }
  if (const auto* given = std::get_if<BytesFill>(&fill)) return given->bytes;
  bytes.resize(buffer.bytes);
  for (uint64_t i = 0; i < buffer.elements; ++i) {
    Value value;
    if (const auto* constant = std::get_if<ConstantFill>(&fill)) value = constant->value;
    if (const auto* iota = std::get_if<IotaFill>(&fill))
      value.number = iota->start + static_cast<double>(i) * iota->step;
    if (const auto* random = std::get_if<RandomFill>(&fill)) {
      const double unit = static_cast<double>(Mix(random->seed, i) >> 11) * 0x1p-53;
      value.number = random->low + unit * (random->high - random->low);
      if (!buffer.type->is_float) value.number = std::floor(value.number);
    }
    if (!Holds(*buffer.type, value)) {
      return At(node, Cat("element ", i, " would be ", base::PrintDouble(value.number), ", which is no value of type ",
                          buffer.type->name));
    }
    buffer.type->store(value, &bytes[i * buffer.type->bytes]);
  }
  return bytes;
}

Status Session::MakeBuffers() {
  for (const LaunchBuffer& buffer : file_.buffers) {
    device::CuDevicePtr address = buffer.address;
    if (address == 0 && driver::MemAlloc(&address, buffer.bytes) != kCuSuccess)
      return MakeError(ErrorCode::kResourceExhausted,
                       Cat("the device has no memory for the buffer '", buffer.name, "'"));
    addresses_.push_back(address);
    std::vector<uint8_t> bytes;
    if (std::holds_alternative<NoFill>(buffer.fill)) {
      if (trace_ != nullptr) bytes.resize(buffer.bytes);
    } else {
      LS_ASSIGN(bytes, Contents(buffer.fill, buffer, *buffer.at));
      driver::MemcpyHtoD(address, bytes.data(), bytes.size());
    }
    if (trace_ != nullptr) trace_->before.push_back(std::move(bytes));
  }
  return Ok();
}

Status Session::CheckOutputs() const {
  for (const LaunchOutput& output : file_.outputs) {
    if (const auto path = directory_.ToWrite(output.path); !path.has_value())
      return At(*output.at, path.error().message);
  }
  return Ok();
}

Result<CuFunction> Session::Find(const LaunchStep& step) {
  CuFunction function = nullptr;
  unsigned count = 0;
  driver::ModuleGetFunctionCount(&count, module_);
  if (step.kernel.empty() && count == 1) {
    driver::ModuleEnumerateFunctions(&function, 1, module_);
    return function;
  }
  if (!step.kernel.empty() && driver::ModuleGetFunction(&function, module_, step.kernel.c_str()) == kCuSuccess)
    return function;
  std::vector<CuFunction> functions(count);
  driver::ModuleEnumerateFunctions(functions.data(), count, module_);
  std::vector<std::string_view> names;
  for (const CuFunction known : functions) {
    const char* name = nullptr;
    driver::FuncGetName(&name, known);
    names.push_back(name);
  }
  if (step.kernel.empty())
    return At(*step.at, Cat("the module has ", count, " entries, so that 'kernel' must name one"));
  return At(*step.at->Find("kernel"), base::UnknownName("kernel", step.kernel.substr(0, JsonTree::kMaxKey), names));
}

Result<std::vector<uint8_t>> Session::Encode(const MapArgument& map, const JsonNode& node) {
  alignas(128) device::CuTensorMap encoded;
  auto* base = reinterpret_cast<void*>(addresses_[map.buffer] + map.offset);
  const auto type = static_cast<device::CuTensorMapDataType>(map.type);
  const auto interleave = static_cast<device::CuTensorMapInterleave>(map.interleave);
  const auto swizzle = static_cast<device::CuTensorMapSwizzle>(map.swizzle);
  const auto promotion = static_cast<device::CuTensorMapL2Promotion>(map.l2_promotion);
  const auto fill = static_cast<device::CuTensorMapOobFill>(map.oob_fill);
  const auto rank = static_cast<uint32_t>(map.dims.size());
  CuResult result = kCuSuccess;
  switch (map.mode) {
    case MapArgument::Mode::kTiled:
      result =
          driver::TensorMapEncodeTiled(&encoded, type, rank, base, map.dims.data(), map.strides.data(), map.box.data(),
                                       map.element_strides.data(), interleave, swizzle, promotion, fill);
      break;
    case MapArgument::Mode::kIm2col:
      result = driver::TensorMapEncodeIm2col(&encoded, type, rank, base, map.dims.data(), map.strides.data(),
                                             map.lower_corner.data(), map.upper_corner.data(), map.channels_per_pixel,
                                             map.pixels_per_column, map.element_strides.data(), interleave, swizzle,
                                             promotion, fill);
      break;
    case MapArgument::Mode::kIm2colWide:
    case MapArgument::Mode::kIm2colWide128:
      result = driver::TensorMapEncodeIm2colWide(
          &encoded, type, rank, base, map.dims.data(), map.strides.data(), map.lower_corner[0], map.upper_corner[0],
          map.channels_per_pixel, map.pixels_per_column, map.element_strides.data(), interleave,
          map.mode == MapArgument::Mode::kIm2colWide ? driver::kCuWideW : driver::kCuWideW128, swizzle, promotion,
          fill);
      break;
  }
  if (result != kCuSuccess) {
    const std::string why = driver::WhyTensorMapFailed();
    return At(node, Cat("the encoder refuses this map", why.empty() ? "" : ": ", why));
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(&encoded);
  return std::vector<uint8_t>(bytes, bytes + sizeof encoded);
}

Result<std::vector<uint8_t>> Session::Bytes(const LaunchArgument& argument) {
  if (const auto* bytes = std::get_if<BytesArgument>(&argument.what)) return bytes->bytes;
  if (const auto* map = std::get_if<MapArgument>(&argument.what)) return Encode(*map, *argument.at->Find("tensor_map"));
  const auto& address = std::get<AddressArgument>(argument.what);
  const uint64_t pointer = addresses_[address.buffer] + address.offset;
  std::vector<uint8_t> bytes(sizeof pointer);
  std::memcpy(bytes.data(), &pointer, sizeof pointer);
  return bytes;
}

// Whether nothing has gone wrong before this launch. One that may begin before its predecessor has ended must reach the
// driver before anybody waits for that one.
bool MayGoOn(const LaunchStep& step) {
  if (!step.programmatic) return driver::CtxSynchronize() == kCuSuccess;
  device::CuDevice device = 0;
  return driver::StreamGetDevice(nullptr, &device) == kCuSuccess;
}

Result<bool> Session::Run(const LaunchStep& step) {
  if (!MayGoOn(step)) return false;
  LS_ASSIGN(const CuFunction function, Find(step));
  if (const char* name = nullptr; trace_ != nullptr && driver::FuncGetName(&name, function) == kCuSuccess)
    trace_->kernels.emplace_back(name);
  std::vector<std::vector<uint8_t>> blocks;
  std::vector<void*> parameters;
  for (const LaunchArgument& argument : step.arguments) {
    size_t offset = 0, bytes = 0;
    const size_t index = blocks.size();
    if (driver::FuncGetParamInfo(function, index, &offset, &bytes) != kCuSuccess)
      return At(*argument.at, Cat("the entry has ", index, " parameters; this argument is one too many"));
    LS_ASSIGN(std::vector<uint8_t> block, Bytes(argument));
    if (block.size() != bytes)
      return At(*argument.at, Cat("has ", block.size(), " bytes, but parameter ", index, " of the entry has ", bytes));
    blocks.push_back(std::move(block));
  }
  if (size_t offset = 0, bytes = 0; driver::FuncGetParamInfo(function, blocks.size(), &offset, &bytes) == kCuSuccess)
    return At(*step.at, Cat("gives ", blocks.size(), " arguments, but the entry has more parameters"));
  for (auto& block : blocks) parameters.push_back(block.data());
  driver::FuncSetAttribute(function, device::kCuFuncNonPortableClusterSizeAllowed, 1);
  if (const CuResult bad = driver::FuncSetAttribute(function, device::kCuFuncMaxDynamicSharedSizeBytes,
                                                    static_cast<int>(step.dynamic_shared));
      bad != kCuSuccess)
    return At(*step.at, Cat("static and dynamic shared memory together are more than a CTA can have (232448 bytes)"));
  std::array<device::CuLaunchAttribute, 2> attributes = {};
  unsigned count = 0;
  if (step.has_cluster) {
    attributes[count].id = device::kCuLaunchClusterDimension;
    attributes[count++].value.cluster_dim = {step.cluster[0], step.cluster[1], step.cluster[2]};
  }
  if (step.programmatic) {
    attributes[count].id = device::kCuLaunchProgrammaticStreamSerialization;
    attributes[count++].value.programmatic_stream_serialization = 1;
  }
  const device::CuLaunchConfig config{step.grid[0],      step.grid[1],  step.grid[2],        step.block[0],
                                      step.block[1],     step.block[2], step.dynamic_shared, nullptr,
                                      attributes.data(), count};
  for (uint64_t launch = 0; launch < step.repeat; ++launch) {
    if (!MayGoOn(step)) return false;
    const CuResult launched = driver::LaunchKernelEx(&config, function, parameters.data(), nullptr);
    if (launched != kCuSuccess) return At(*step.at, Cat("the driver refuses this launch: ", NameOf(launched)));
  }
  return true;
}

Result<std::vector<uint8_t>> Session::Download(size_t buffer) {
  std::vector<uint8_t> bytes(file_.buffers[buffer].bytes);
  // A fault has closed the context's functions, but what the kernel wrote is still worth seeing.
  if (!emulator::ReadMemory(addresses_[buffer], bytes.data(), bytes.size()))
    return MakeError(ErrorCode::kInternal, "a buffer has gone");
  return bytes;
}

Result<BufferComparison> Session::Compare(const LaunchExpectation& expectation) {
  const LaunchBuffer& buffer = file_.buffers[expectation.buffer];
  LS_ASSIGN(const std::vector<uint8_t> wanted, Contents(expectation.fill, buffer, *expectation.at));
  LS_ASSIGN(const std::vector<uint8_t> got, Download(expectation.buffer));
  BufferComparison comparison;
  comparison.buffer = buffer.name;
  comparison.elements = buffer.elements;
  for (uint64_t i = 0; i < buffer.elements; ++i) {
    const uint64_t at = i * buffer.type->bytes;
    if (std::memcmp(&got[at], &wanted[at], buffer.type->bytes) == 0) continue;
    const double is = buffer.type->load(&got[at]), should = buffer.type->load(&wanted[at]);
    if (is == should || (std::isnan(is) && std::isnan(should))) continue;
    const double off = std::fabs(is - should);
    if (off > comparison.worst_absolute) comparison.worst_absolute = off;
    if (off <= expectation.absolute + expectation.relative * std::fabs(should)) continue;
    if (comparison.wrong++ != 0) continue;
    comparison.first_wrong = i, comparison.got = is, comparison.wanted = should;
  }
  return comparison;
}

Status Session::TraceBuffers() {
  for (size_t buffer = 0; trace_ != nullptr && buffer < file_.buffers.size(); ++buffer) {
    LS_ASSIGN(std::vector<uint8_t> bytes, Download(buffer));
    trace_->after.push_back(std::move(bytes));
  }
  return Ok();
}

Result<std::string> Session::Write(const LaunchOutput& output) {
  const LaunchBuffer& buffer = file_.buffers[output.buffer];
  auto path = directory_.ToWrite(output.path);
  if (!path.has_value()) return At(*output.at, path.error().message);
  LS_ASSIGN(const std::vector<uint8_t> bytes, Download(output.buffer));
  if (output.npy) {
    LS_TRY(WriteNpyArray(*path, buffer.type->npy, ShapeOf(buffer), bytes));
    return path;
  }
  const Status written = base::WriteFile(*path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!written) return At(*output.at, written.error().message);
  return path;
}

}  // namespace

bool EmulationOutcome::Right() const {
  for (const BufferComparison& comparison : comparisons) {
    if (comparison.wrong != 0) return false;
  }
  return report.Clean();
}

Result<EmulationOutcome> RunEmulation(const std::string& ptx_name, const std::string& ptx, const LaunchFile& file,
                                      const LaunchDirectory& directory, const emulator::Options& options,
                                      EmulationTrace* trace) {
  emulator::Configure(options);
  Session session(file, directory, trace);
  LS_TRY(session.Open());
  LS_TRY(session.PlaceBuffers());
  LS_TRY(session.Load(ptx_name, ptx));
  // Before hours of work, not after.
  LS_TRY(session.CheckOutputs());
  LS_TRY(session.MakeBuffers());
  EmulationOutcome outcome;
  const auto begin = std::chrono::steady_clock::now();
  for (const LaunchStep& step : file.launches) {
    LS_ASSIGN(const bool going, session.Run(step));
    if (!going) break;
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  outcome.report = emulator::TakeReport();
  LS_TRY(session.TraceBuffers());
  for (const LaunchExpectation& expectation : file.expectations) {
    LS_ASSIGN(BufferComparison comparison, session.Compare(expectation));
    outcome.comparisons.push_back(std::move(comparison));
  }
  for (const LaunchOutput& output : file.outputs) {
    LS_ASSIGN(std::string path, session.Write(output));
    outcome.written.push_back(std::move(path));
  }
  return outcome;
}

}  // namespace laneshift::tools
