#include "tools/emulation/launch_recorder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/fingerprint.h"
#include "base/output_file.h"
#include "base/text.h"
#include "emulator/driver/driver.h"
#include "tools/emulation/launch_file.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string BufferName(size_t index) { return Cat("m", index); }

Json LaunchOf(const emulator::ObservedLaunch& launch) {
  const emulator::GridShape& shape = launch.shape;
  Json json = {{"kernel", launch.kernel}, {"grid", shape.grid}, {"block", shape.block}};
  if (shape.explicit_cluster || shape.cluster != std::array<uint32_t, 3>{1, 1, 1}) json["cluster"] = shape.cluster;
  if (shape.dynamic_shared != 0) json["dynamic_shared"] = shape.dynamic_shared;
  if (launch.may_overlap) json["programmatic"] = true;
  Json arguments = Json::array();
  for (const auto& argument : launch.arguments) arguments.push_back({{"bytes", base::HexOf(TextOf(argument))}});
  json["arguments"] = std::move(arguments);
  return json;
}

// Why no launch file can say what ran.
Status CheckRun(const emulator::ObservedRun& run) {
  const auto no = [](const std::string& why) { return MakeError(ErrorCode::kUnsupported, why); };
  if (run.ptx.empty()) return no("kernels of several modules run together");
  if (!run.changed_variables.empty()) return no(Cat("variable '", run.changed_variables[0], "' was written"));
  if (run.memory.size() > kMaxBuffers)
    return no(Cat(run.memory.size(), " allocations are more than the ", kMaxBuffers, " of a launch file"));
  uint64_t bytes = 0;
  for (const emulator::ObservedMemory& memory : run.memory) bytes += memory.bytes.size();
  if (bytes > kMaxBufferBytes)
    return no(Cat(bytes, " bytes of memory are more than the ", kMaxBufferBytes, " of a launch file"));
  return Ok();
}

}  // namespace

LaunchRecorder::LaunchRecorder(std::string directory, std::string kernels, void (*notice)(const std::string& line))
    : directory_(std::move(directory)), kernels_(std::move(kernels)), notice_(notice) {}

bool LaunchRecorder::Wants(const std::string& kernel) { return emulator::NamesKernel(kernels_, kernel); }

void LaunchRecorder::Before(const emulator::ObservedRun& run) {
  file_ = nullptr;
  const Status written = WriteBefore(run);
  if (written.has_value()) return;
  file_ = nullptr;
  if (notice_ != nullptr) notice_(Cat("not recorded: ", run.launches[0].kernel, ": ", written.error().message));
}

void LaunchRecorder::After(const emulator::ObservedRun& run, bool faulted) {
  // After a fault nothing is right; the file as it is repeats the launch.
  if (file_.is_null() || faulted) return;
  const Status written = WriteAfter(run);
  if (!written.has_value() && notice_ != nullptr) notice_(Cat("not recorded: ", written.error().message));
}

Status LaunchRecorder::ChooseName() {
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  if (failed) return MakeError(ErrorCode::kInvalidArgument, Cat(directory_, ": cannot be made: ", failed.message()));
  do {
    ++number_;
  } while (std::filesystem::exists(Cat(directory_, "/launch-", number_, ".json"), failed));
  return Ok();
}

Result<std::string> LaunchRecorder::Keep(std::string_view kind, std::string_view end, std::string_view bytes) const {
  const std::string name = Cat(kind, "-", base::SipHash128(bytes, 0, 0).Hex(), end);
  const std::string path = Cat(directory_, "/", name);
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) LS_TRY(base::WriteFile(path, bytes));
  return name;
}

Result<Json> LaunchRecorder::FillOf(const emulator::ObservedMemory& memory) const {
  if (std::all_of(memory.bytes.begin(), memory.bytes.end(), [](uint8_t byte) { return byte == 0; }))
    return Json{{"zero", true}};
  LS_ASSIGN(const std::string name, Keep("memory", ".raw", TextOf(memory.bytes)));
  return Json{{"raw", name}};
}

Status LaunchRecorder::WriteLaunchFile() const {
  return base::WriteFile(Cat(directory_, "/launch-", number_, ".json"), file_.dump(1) + "\n");
}

Status LaunchRecorder::WriteBefore(const emulator::ObservedRun& run) {
  LS_TRY(CheckRun(run));
  LS_TRY(ChooseName());
  LS_ASSIGN(const std::string module, Keep("module", ".ptx", run.ptx));
  before_.clear();
  Json buffers = Json::object();
  for (const emulator::ObservedMemory& memory : run.memory) {
    Json buffer = {{"type", "u8"}, {"shape", {memory.bytes.size()}}, {"address", memory.address}};
    Json fill;
    if (memory.written) {
      LS_ASSIGN(fill, FillOf(memory));
      buffer["fill"] = fill;
    }
    buffers[BufferName(before_.size())] = std::move(buffer);
    before_.push_back(std::move(fill));
  }
  Json launches = Json::array();
  std::string kernels;
  for (const emulator::ObservedLaunch& launch : run.launches) {
    launches.push_back(LaunchOf(launch));
    kernels += Cat(kernels.empty() ? "" : ", ", emulator::ReadableName(launch.kernel));
  }
  file_ = {{"buffers", std::move(buffers)}, {"launches", std::move(launches)}};
  LS_TRY(WriteLaunchFile());
  std::ofstream list(directory_ + "/launches.txt", std::ios::app);
  list << "laneshift emulate " << module << " --launch launch-" << number_ << ".json  # " << kernels << '\n';
  list.close();
  if (!list) return MakeError(ErrorCode::kDriver, Cat(directory_, "/launches.txt: cannot be written"));
  return Ok();
}

Status LaunchRecorder::WriteAfter(const emulator::ObservedRun& run) {
  Json expect = Json::array();
  for (size_t m = 0; m < run.memory.size(); ++m) {
    if (!run.memory[m].written) continue;
    LS_ASSIGN(Json fill, FillOf(run.memory[m]));
    if (fill != before_[m]) expect.push_back({{"buffer", BufferName(m)}, {"fill", std::move(fill)}});
  }
  file_["expect"] = std::move(expect);
  return WriteLaunchFile();
}

}  // namespace laneshift::tools
