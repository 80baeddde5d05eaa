#include "tools/assembler_check/word_check.h"

#include <filesystem>
#include <utility>

#include "base/read_file.h"
#include "base/text.h"
#include "runtime/engine_parts.h"
#include "store/location.h"
#include "tools/assembler_check/device_run.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kDependsOnOrder =
    "the emulator's words depend on the order in which asynchronous operations complete";

// D of the drawn problem on the engine's device.
Result<std::vector<uint8_t>> OutputOf(const Engine& engine, const DrawnProblem& drawn) {
  RunSettings settings;
  settings.keep_output = true;
  settings.repeat = 0;
  LS_ASSIGN(settings.constraint, ParseSchedule(PrintSchedule(drawn.schedule)));
  LS_ASSIGN(const RunOutcome outcome, RunProblem(engine, drawn.problem, settings));
  const auto* bytes = reinterpret_cast<const uint8_t*>(outcome.output.data());
  return std::vector<uint8_t>(bytes, bytes + outcome.output.size());
}

}  // namespace

std::string DifferenceOf(const std::vector<std::pair<std::string, std::vector<uint8_t>>>& got,
                         const std::vector<std::pair<std::string, std::vector<uint8_t>>>& wanted,
                         const std::string& whose) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<uint8_t>&is = got[i].second, &should = wanted[i].second;
    size_t wrong = 0, first = 0;
    for (size_t at = 0; at < should.size(); ++at) {
      if (is[at] != should[at] && wrong++ == 0) first = at;
    }
    if (wrong != 0)
      return Cat(wrong, " of ", should.size(), " bytes of ", wanted[i].first, " differ from ", whose, ", first byte ",
                 first, ": ", static_cast<int>(is[first]), ", not ", static_cast<int>(should[first]));
  }
  return {};
}

Result<WordCheck> WordCheck::Open(const std::string& device) {
  LS_ASSIGN(const Engine engine, Engine::Open({.device = device, .store_directory = std::string(store::kInMemory)}));
  return WordCheck(device, std::string(engine.device_name()), std::string(engine.target()));
}

Result<WordCheck::Words> WordCheck::EmulateDrawn(const DrawnProblem& drawn, const AsyncOrder& order) const {
  LS_ASSIGN(const Engine engine, Engine::Open({.device = "emulator",
                                               .target = target_,
                                               .store_directory = std::string(store::kInMemory),
                                               .assembler = Assembler::kDriver,
                                               .async_order = order}));
  LS_ASSIGN(std::vector<uint8_t> bytes, OutputOf(engine, drawn));
  Words words;
  words.emplace_back("D", std::move(bytes));
  return words;
}

Result<WordCheck::Words> WordCheck::EmulateLaunches(const CheckedKernel& kernel, emulator::Completion order,
                                                    Replay& replay) const {
  LS_ASSIGN(std::string text, base::ReadFile(kernel.launch_path, JsonTree::kMaxText, base::Readable::kRegularFile));
  LS_ASSIGN(replay.file, ParseLaunchFile(kernel.launch_path, std::move(text)));
  replay.file.outputs.clear();  // nothing is written
  replay.file.expectations.clear();
  emulator::Options options;
  LS_ASSIGN(options.profile, emulator::ParseProfile(target_ == "sm_90a" ? "h200" : "b200"));
  options.completion = order;
  options.limits.seconds = 600;
  const LaunchDirectory directory{std::filesystem::path(kernel.launch_path).parent_path().string(), false};
  replay.trace = {};
  LS_ASSIGN(const EmulationOutcome outcome,
            RunEmulation(kernel.name, kernel.ptx, replay.file, directory, options, &replay.trace));
  if (!outcome.report.faults.empty())
    return MakeError(ErrorCode::kWrongResult, Cat("on the emulator: ", outcome.report.faults.front().Print()));
  Words words;
  for (size_t i = 0; i < replay.file.buffers.size(); ++i)
    words.emplace_back(replay.file.buffers[i].name, replay.trace.after[i]);
  return words;
}

Result<WordCheck::Reference> WordCheck::Emulate(const CheckedKernel& kernel) const {
  Reference reference;
  Words late;
  if (kernel.drawn) {
    LS_ASSIGN(reference.words, EmulateDrawn(*kernel.drawn, {AsyncOrder::kEager, 0}));
    LS_ASSIGN(late, EmulateDrawn(*kernel.drawn, {AsyncOrder::kLate, 0}));
  } else {
    reference.replay.emplace();
    LS_ASSIGN(late, EmulateLaunches(kernel, emulator::Completion::kLate, *reference.replay));
    LS_ASSIGN(reference.words, EmulateLaunches(kernel, emulator::Completion::kEager, *reference.replay));
  }
  if (late != reference.words) reference.not_compared = kDependsOnOrder;
  // Where the manual gives only a bound, an assembler cannot be wrong in the last bits.
  if (kernel.ptx.find(".approx") != std::string::npos) reference.words.clear();
  return reference;
}

Result<WordCheck::Words> WordCheck::OnDevice(const CheckedKernel& kernel, const Reference& reference,
                                             const device::PtxAssembler& assembler, const AssembledKernel& made) const {
  EngineOptions options{.device = device_, .store_directory = std::string(store::kInMemory)};
  options.assembler = Assembler::kPtxas;
  options.ptxas = assembler.path();
  LS_ASSIGN(const Engine engine, Engine::Open(options));
  Words words;
  if (kernel.drawn) {
    LS_ASSIGN(std::vector<uint8_t> bytes, OutputOf(engine, *kernel.drawn));
    words.emplace_back("D", std::move(bytes));
    return words;
  }
  const Replay& replay = *reference.replay;
  const device::Device& device = engine.parts().device;
  const auto module = device::Module::LoadCubin(device.context(), made.result.cubin);
  // Nothing has been launched: other kernels can still be compared.
  if (!module) return MakeError(ErrorCode::kUnsupported, module.error().message);
  LS_ASSIGN(auto after, RunOnDevice(device, *module, replay.file, replay.trace));
  for (size_t i = 0; i < after.size(); ++i) words.emplace_back(replay.file.buffers[i].name, std::move(after[i]));
  return words;
}

bool WordCheck::Compare(const CheckedKernel& kernel, const std::vector<device::PtxAssembler>& assemblers,
                        std::vector<AssembledKernel>& made) {
  const auto pass_over = [&](const std::string& why) {
    for (AssembledKernel& one : made) one.words_message = why;
    return true;
  };
  if (kernel.target != target_) return pass_over(Cat("the GPU is no ", kernel.target));
  if (!kernel.drawn && kernel.launch_path.empty()) return pass_over("no launch file follows it");
  auto reference = Emulate(kernel);
  if (!reference) return pass_over(reference.error().message);
  if (!reference->not_compared.empty()) return pass_over(reference->not_compared);
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].status == AssembledAs::kCubin && !CompareOne(kernel, assemblers[i], *reference, made[i])) return false;
  }
  return true;
}

bool WordCheck::CompareOne(const CheckedKernel& kernel, const device::PtxAssembler& assembler, Reference& reference,
                           AssembledKernel& made) const {
  auto words = OnDevice(kernel, reference, assembler, made);
  if (!words) {
    made.words_message = words.error().message;
    const ErrorCode code = words.error().code;
    if (code == ErrorCode::kUnsupported || code == ErrorCode::kResourceExhausted) return true;
    made.words = WordsAs::kFault;
    return false;
  }
  if (reference.words.empty()) {
    made.words_message = "approximate functions: the other assemblers' words are compared with these";
    reference.words = std::move(*words);
    reference.whose = Cat("those of ", assembler.id());
    return true;
  }
  made.words_message = DifferenceOf(*words, reference.words, reference.whose);
  made.words = made.words_message.empty() ? WordsAs::kEqual : WordsAs::kDifferent;
  return true;
}

}  // namespace laneshift::tools
