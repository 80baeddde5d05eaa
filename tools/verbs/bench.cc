#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "autotune/statistics.h"
#include "base/text.h"
#include "measure/nvml.h"
#include "measure/operand_memory.h"
#include "measure/peers/peer.h"
#include "measure/reference/group_offsets.h"
#include "measure/runnable.h"
#include "runtime/engine_parts.h"
#include "runtime/schedule_choice.h"
#include "tools/chain_bench.h"
#include "tools/compilation.h"
#include "tools/device_options.h"
#include "tools/error_json.h"
#include "tools/exit_code.h"
#include "tools/html/bench_page.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"
#include "tools/number_option.h"
#include "tools/optional_json.h"
#include "tools/reports/bench_result.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using autotune::Estimate;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr const char* kBenchExamples = R"(
Examples:
  laneshift bench --file bench/gemm.txt --vs cublas
  laneshift bench --file bench/conv.txt --vs cudnn --json
  laneshift bench --file bench/gemm.txt --vs cublas --html bench.html
  laneshift bench --chain bench/llama3_8b_m1.txt --layers 16 --vs cublas
  laneshift bench gemm m=16 n=8192 k=8192 "conv n=32 h=56 w=56 c=64 k=64 r=3 s=3 pad=1" --vs cublas,cudnn --rounds 100

Everything runs in one process, in turns, on random operands that leave the L2 cache between two calls; times are medians,
with the interval that holds the true median with 95 %. A problem that was tuned runs as it was tuned. The ratio is the
peer's time over ours: above 1 we are faster.

--chain times problems as a decoder runs them: one after the other, for --layers layers whose operands are their own, in
one CUDA graph, against the same graph of the peer's calls. The time is that of a layer.

Exit codes: 0 ok, 1 a problem failed, 2 usage or an invalid problem, 3 unsupported, 4 no such device.)";

constexpr int kMostLayers = 1000;  // of a chain

struct BenchOptions {
  DeviceOptions device;
  std::vector<std::string> words;
  std::string file, chain, schedule, vs, group_sizes, html;
  int rounds = 50, layers = 16;
  uint64_t seed = 12;
  ScheduleView view = ScheduleView::kShort;
  bool json = false;
};

Result<BenchedProblem> Bench(const Engine& engine, const Problem& problem, const std::vector<measure::Peer>& peers,
                             const ScheduleConstraint& constraint, const BenchOptions& options,
                             const Settings& settings) {
  const Engine::Parts& parts = engine.parts();
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(parts.device.context()));
  LS_TRY(measure::CheckHostMemory(problem, measure::HostCopies::kOnce));
  auto host = measure::HostOperands::Random(problem, options.seed);
  LS_TRY(measure::DivideRows(problem, options.group_sizes, options.seed, host));
  LS_ASSIGN(const auto operands, measure::DeviceOperands::Upload(parts.device.context(), stream, problem, host));
  LS_TRY(stream.Synchronize());
  BenchedProblem benched{.problem = PrintProblem(problem), .choice = {}, .flops = ProblemFlops(problem), .timed = {}};
  LS_ASSIGN(const runtime::ChosenSchedule chosen, runtime::ChooseFor(engine.parts(), problem, constraint));
  benched.choice = std::string(ChoiceOriginName(chosen.origin));
  LS_ASSIGN(const auto ours, measure::Runnable::Make(engine, stream, problem, constraint, 0));
  std::vector<measure::Contender> contenders = {
      [&](const Arguments& arguments) { return ours->Execute(stream, arguments); }};
  benched.timed.push_back({.name = "laneshift", .schedule = ours->report().schedule});
  for (const measure::Peer peer : peers) {
    // A peer of another kind of problem is not missing.
    const bool of_kind = peer == measure::Peer::kCublas ? std::holds_alternative<GemmProblem>(problem)
                                                        : std::holds_alternative<ConvProblem>(problem);
    if (!of_kind) continue;
    auto calls =
        measure::OpenPeer(peer, settings.library_directories, parts.device, stream, problem, operands.arguments());
    if (!calls) {
      benched.missing.push_back(calls.error().message);
      continue;
    }
    for (measure::PeerCall& call : *calls) {
      contenders.push_back(std::move(call.call));
      benched.timed.push_back({.name = call.name, .notes = std::move(call.notes)});
    }
  }
  const auto nvml = measure::Nvml::Open(parts.device);
  measure::ReadConditions read;
  if (nvml) read = [&] { return nvml->Read(); };
  LS_ASSIGN(auto rotating, measure::RotatingOperands::Make(parts.device, stream, operands));
  LS_ASSIGN(const auto samples, measure::TimeInterleaved(parts.device, stream, rotating, contenders, options.rounds,
                                                         measure::CallsOfSample(problem), read));
  for (size_t i = 0; i < samples.size(); ++i) benched.timed[i].us = autotune::EstimateOf(samples[i]);
  benched.conditions = samples.front().back().conditions;
  return benched;
}

Json JsonOf(const Engine& engine, const std::string& problem, const Result<BenchedProblem>& benched) {
  Json json = {{"problem", problem}, {"target", engine.target()}, {"device", engine.device_name()}};
  if (!benched) {
    json["error"] = ErrorJson(benched.error());
    return json;
  }
  const ContenderTime& ours = benched->timed.front();
  json["schedule"] = ours.schedule;
  json["choice"] = benched->choice;
  json["time_us"] = ours.us.median;
  json["time_low_us"] = ours.us.low;
  json["time_high_us"] = ours.us.high;
  json["tflops"] = benched->flops / ours.us.median * 1e-6;
  Json notes = benched->missing;
  for (const ContenderTime& peer : benched->timed) {
    for (const std::string& note : peer.notes) notes.push_back(note);
    if (&peer == &ours) continue;
    json[Cat(peer.name, "_us")] = peer.us.median;
    json[Cat("vs_", peer.name)] = peer.us.median / ours.us.median;
  }
  json["sm_mhz"] = OrNull(benched->conditions.sm_mhz);
  json["memory_mhz"] = OrNull(benched->conditions.memory_mhz);
  json["temperature_c"] = OrNull(benched->conditions.temperature_c);
  json["power_w"] = OrNull(benched->conditions.power_w);
  json["throttle_reasons"] = OrNull(benched->conditions.throttle_reasons);
  json["notes"] = std::move(notes);
  json["error"] = Json();
  return json;
}

std::string PrintTable(const std::vector<BenchedProblem>& all, ScheduleView view) {
  const std::vector<std::string> names = PeersOf(all);
  std::vector<Column> columns = {{"problem", Align::kLeft, Room::kLong},
                                 {"schedule", Align::kLeft, Room::kLong},
                                 {"choice"},
                                 {"time", Align::kRight},
                                 {"TFLOP/s", Align::kRight}};
  for (const std::string& name : names) columns.push_back({Cat("vs ", name), Align::kRight});
  TextTable table(columns);
  for (const BenchedProblem& one : all) {
    const ContenderTime& ours = one.timed.front();
    std::vector<Cell> row = {{one.problem},
                             {ShowSchedule(ours.schedule, view), Tint::kFaint},
                             {one.choice},
                             {PrintDuration(ours.us.median / 1000)},
                             {PrintFixed(one.flops / ours.us.median * 1e-6, 1)}};
    for (const std::string& name : names) {
      const ContenderTime* peer = TimeOf(one, name);
      if (peer == nullptr) {
        row.push_back({"-", Tint::kFaint});
        continue;
      }
      const double ratio = one.Ratio(*peer);
      row.push_back({PrintFixed(ratio, 3), ratio >= 1 ? Tint::kGood : Tint::kPlain});
    }
    table.Add(std::move(row));
  }
  return table.Print(StdoutScreen());
}

// A chain has one line of output, about all of its problems.
Status CheckChain(const BenchOptions& options) {
  const bool other = !options.words.empty() || !options.file.empty();
  if (other || !options.group_sizes.empty() || !options.html.empty())
    return MakeError(ErrorCode::kInvalidArgument,
                     "--chain FILE has the problems; leave out other problems, --file, --group-sizes and --html");
  return Ok();
}

Result<int> RunBench(const BenchOptions& options, const Settings& settings) {
  LS_ASSIGN(const EngineOptions engine_options, options.device.ToEngineOptions(settings));
  const bool chained = !options.chain.empty();
  if (chained) LS_TRY(CheckChain(options));
  ProblemReader reader(engine_options);
  LS_ASSIGN(const std::vector<Problem> problems,
            CollectProblems(options.words, chained ? options.chain : options.file, reader));
  LS_ASSIGN(const ScheduleConstraint constraint, ConstraintOf(options.schedule));
  std::vector<measure::Peer> peers;
  for (const std::string_view name : base::Split(options.vs, ',')) {
    if (options.vs.empty()) break;
    LS_ASSIGN(const measure::Peer peer, measure::ParsePeer(name));
    peers.push_back(peer);
  }
  LS_ASSIGN(const Engine engine, reader.Take());
  if (engine.parts().emulated) {
    return MakeError(ErrorCode::kUnsupported, "an emulated device has no times; bench needs a GPU (--device cuda)");
  }
  if (chained) {
    LS_TRY(BenchChain(engine, problems,
                      {.constraint = constraint,
                       .peers = peers,
                       .library_directories = settings.library_directories,
                       .layers = options.layers,
                       .rounds = options.rounds,
                       .seed = options.seed,
                       .view = options.view,
                       .json = options.json}));
    return kExitOk;
  }
  WatchForInterrupt();
  int exit_code = kExitOk;
  std::vector<BenchedProblem> all;
  std::vector<std::string> told;
  Json json = Json::array();
  for (const Problem& problem : problems) {
    if (InterruptRequested()) return kExitInterrupted;
    const auto benched = Bench(engine, problem, peers, constraint, options, settings);
    const std::string name = PrintProblem(problem);
    if (!benched) {
      Tell("error", Cat(name, ": ", benched.error().message));
      if (exit_code == kExitOk) exit_code = ExitCodeOf(benched.error().code);
    }
    json.push_back(JsonOf(engine, name, benched));
    if (options.json) {
      std::printf("%s\n", JsonLine(json.back()).c_str());
      std::fflush(stdout);
    }
    if (!benched) continue;
    for (const std::string& missing : benched->missing) {
      if (std::find(told.begin(), told.end(), missing) != told.end()) continue;
      Tell("note", missing);
      told.push_back(missing);
    }
    all.push_back(*benched);
  }
  if (!options.json) std::fputs(PrintTable(all, options.view).c_str(), stdout);
  if (!options.html.empty()) {
    const BenchPage page{.device = engine.device_name(), .target = std::string(engine.target()), .problems = all};
    LS_TRY(WriteOutput(options.html, RenderBench(page, json)));
  }
  return exit_code;
}

}  // namespace

Verb AddBench(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("bench", "Time problems, as they were tuned, against cuBLAS and cuDNN");
  auto options = std::make_shared<BenchOptions>();
  AddProblems(*verb, options->words, options->file);
  verb->add_option("--vs", options->vs,
                   "cublas, cudnn, or both separated by a comma: each takes the problems that it supports")
      ->type_name("cublas|cudnn");
  verb->add_option("--schedule", options->schedule, "a partial schedule constrains the choice, a complete one fixes it")
      ->type_name("SCHEDULE");
  verb->add_option("--chain", options->chain, "time the problems of a file one after the other, in one CUDA graph")
      ->type_name("FILE");
  verb->add_option("--layers", options->layers, "layers of a chain, each with its own operands")
      ->type_name("N")
      ->check(WholeNumber(1, kMostLayers))
      ->capture_default_str();
  verb->add_option("--rounds", options->rounds, "how often each is timed")
      ->type_name("N")
      ->check(WholeNumber(1, kMostRepeats))
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "of the operands")
      ->type_name("N")
      ->check(WholeNumber(0, kLargestSeed))
      ->capture_default_str();
  AddGroupSizes(*verb, options->group_sizes);
  AddFull(*verb, options->view);
  verb->add_option("--html", options->html, "write a page with a picture and a table of all of them")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "one JSON object per problem, one per line, on stdout");
  options->device.AddTo(*verb, {.emulator = false});
  verb->footer(kBenchExamples);
  return [options, settings] { return RunBench(*options, settings); };
}

}  // namespace laneshift::tools
