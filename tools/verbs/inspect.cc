#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/read_file.h"
#include "base/text.h"
#include "device/assembler.h"
#include "tools/compilation.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/html/page.h"
#include "tools/json_line.h"
#include "tools/reports/advice_report.h"
#include "tools/reports/kernel_analysis.h"
#include "tools/reports/measured_times.h"
#include "tools/reports/memory_map.h"
#include "tools/reports/reuse_report.h"
#include "tools/reports/schedule_view.h"
#include "tools/reports/timeline.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using compiler::LaunchPurpose;
using Json = nlohmann::ordered_json;

constexpr const char* kInspectExamples = R"(
Examples:
  laneshift inspect gemm m=4096 n=4096 k=4096 --target sm_100a
  laneshift inspect gemm m=64 n=64 k=64 --target sm_90a --all-passes --no-ptx
  laneshift inspect gemm m=512 n=512 k=512 --schedule "tile=128x64" --dump-after lower_channels --no-ptx
  laneshift inspect gemm m=4096 n=4096 k=4096 --no-ptx --timeline trace.json
  laneshift inspect gemm m=4096 n=4096 k=4096 --no-ptx --html report.html
  laneshift inspect gemm m=4096 n=4096 k=4096 --no-ptx --html report.html --peers bench.json
  laneshift inspect conv n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 --schedule "reuse=lane_shift" --no-ptx)";

struct InspectOptions {
  std::vector<std::string> words, include;
  std::string target, schedule, dump_after, ptxas, timeline, html, measured, peers;
  ScheduleView view = ScheduleView::kShort;
  bool all_passes = false, no_ptx = false, json = false;
};

// The assembler's output, or why there is none.
struct Resources {
  std::optional<device::AssembleResult> assembled;
  std::string assembler, missing;
};

Resources ResourcesOf(const std::string& ptx, std::string_view target, const std::string& ptxas) {
  Resources resources;
  auto assembler = device::PtxAssembler::Find({.path = ptxas});
  if (!assembler) {
    resources.missing = assembler.error().message;
    return resources;
  }
  resources.assembler = assembler->id();
  auto assembled = assembler->Assemble(ptx, target);
  if (assembled) {
    resources.assembled = std::move(*assembled);
  } else {
    resources.missing = assembled.error().message;
  }
  return resources;
}

// The requested dumps; by default the last pass.
Result<std::vector<compiler::PassDump>> SelectPasses(const Compilation& compilation, const InspectOptions& options) {
  if (options.all_passes) return compilation.passes;
  if (options.dump_after.empty()) return std::vector{compilation.passes.back()};
  std::vector<std::string> known;
  for (const compiler::PassDump& dump : compilation.passes) {
    if (dump.pass == options.dump_after) return std::vector{dump};
    known.push_back(dump.pass);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("--dump-after ", options.dump_after, " is no pass; passes: ", base::Join(known, ", ")));
}

Json MapJson(const std::vector<Region>& regions) {
  Json json = Json::array();
  for (const Region& region : regions) {
    json.push_back({{"begin", region.begin}, {"size", region.size}, {"what", region.what}});
  }
  return json;
}

Json ResourcesJson(const Resources& resources) {
  if (!resources.assembled) return {{"assembler", nullptr}, {"why", resources.missing}};
  const device::AssembleResult& r = *resources.assembled;
  return {{"assembler", resources.assembler},       {"registers", r.registers},
          {"stack_bytes", r.stack_bytes},           {"spill_store_bytes", r.spill_store_bytes},
          {"spill_load_bytes", r.spill_load_bytes}, {"advisories", r.advisories}};
}

// A kernel of a compilation, and what the assembler says of it.
struct InspectedKernel {
  const CompiledKernel& compiled;
  Resources resources;
};
// Of all kernels, in order.
using Assembled = std::vector<InspectedKernel>;
Assembled AssembleAll(const Compilation& c, const std::string& ptxas) {
  Assembled all;
  for (const CompiledKernel& kernel : c.kernels)
    all.push_back({kernel, ResourcesOf(kernel.module.ptx, c.target->name, ptxas)});
  return all;
}
const InspectedKernel& ProductOf(const Assembled& assembled, const Compilation& c) {
  return *std::find_if(assembled.begin(), assembled.end(),
                       [&](const InspectedKernel& kernel) { return &kernel.compiled == &c.Product(); });
}

Json KernelJson(const InspectedKernel& assembled, bool with_ptx) {
  const CompiledKernel& kernel = assembled.compiled;
  Json json = {{"entry", kernel.module.entry},
               {"key", compiler::KernelKey(kernel.program)},
               {"threads", kernel.program.threads},
               {"resources", ResourcesJson(assembled.resources)},
               {"program", ir::PrintProgram(kernel.program)}};
  if (with_ptx) json["ptx"] = kernel.module.ptx;
  return json;
}

// What the verb shows of a compilation.
struct Inspection {
  const Compilation& compilation;
  const KernelAnalysis facts;
  const Assembled assembled;
  const std::vector<autotune::ReuseMode> modes;
  const std::vector<compiler::PassDump> passes;
  const MeasuredTimes measured;
};

void PrintJson(const Inspection& inspection, bool with_ptx) {
  const auto& [c, facts, assembled, modes, passes, measured] = inspection;
  const CompiledKernel& product = c.Product();
  Json pack = nullptr, totals = Json::array();
  for (const InspectedKernel& kernel : assembled) {
    if (&kernel.compiled == &product) continue;
    if (kernel.compiled.purpose == LaunchPurpose::kPack) {
      pack = KernelJson(kernel, with_ptx);
    } else {
      totals.push_back(KernelJson(kernel, with_ptx));
    }
  }
  Json json = {{"problem", PrintProblem(c.problem)},
               {"target", c.target->name},
               {"schedule", PrintSchedule(c.schedule)},
               {"choice", ChoiceOriginName(c.choice)},
               {"entry", product.module.entry},
               {"key", compiler::KernelKey(product.program)},
               {"threads", product.program.threads},
               {"smem_bytes", product.program.smem_bytes},
               {"tmem_columns", product.program.tmem_columns},
               {"smem_map", MapJson(SharedRegions(product.program))},
               {"tmem_map", MapJson(TensorRegions(product.program))},
               {"resources", ResourcesJson(ProductOf(assembled, c).resources)},
               {"pack", std::move(pack)},
               {"totals", std::move(totals)},
               {"totals_bytes", c.workspace.BytesFor(compiler::WorkspaceUse::kPartialRows)}};
  json.update(KernelAnalysisJson(facts, c));
  json.update(MeasuredTimesJson(measured, c.problem));
  Json census = Json::object();
  for (const OpcodeCount& row : Census(product.module.ptx)) census[row.opcode] = row.count;
  json["census"] = std::move(census);
  if (!modes.empty()) json["modes"] = ReuseModesJson(modes);
  json["passes"] = Json::array();
  for (const compiler::PassDump& dump : passes) json["passes"].push_back({{"pass", dump.pass}, {"text", dump.text}});
  if (with_ptx) json["ptx"] = product.module.ptx;
  std::printf("%s\n", JsonLine(json).c_str());
}

constexpr size_t kNameWidth = 10;

class Pages {
 public:
  Pages() : screen_(StdoutScreen()) {}
  void Title(const std::string& text) const {
    std::printf("\n%s\n", Tinted("── " + text + " ──", Tint::kGood, screen_.colour).c_str());
  }
  void Text(const std::string& text) const {
    std::fputs(text.c_str(), stdout);
    if (!text.ends_with('\n')) std::fputc('\n', stdout);
  }
  // A name and a text that may be long.
  void Item(std::string_view name, std::string_view text) const {
    Text(Itemized(name, text, kNameWidth, screen_.width));
  }
  // Lines that are wrapped.
  void Prose(const std::string& text) const {
    for (const std::string_view line : base::Split(text, '\n')) {
      Text(Wrapped(line, screen_.width, {.rest = 2}));
    }
  }
  // Without colours, which tables of a page leave to its titles.
  Screen Plain() const { return {.width = screen_.width}; }

 private:
  const Screen screen_;
};

std::string RolesTable(const ir::Program& program, const Screen& screen) {
  TextTable table({{"role"}, {"warps", Align::kRight}, {"threads that run"}, {"registers", Align::kRight}});
  for (const ir::Role& role : program.roles) {
    table.Add({{role.name},
               {role.warps == 1 ? Cat(role.first_warp) : Cat(role.first_warp, "-", role.first_warp + role.warps - 1)},
               {role.elected ? "one" : "all"},
               {role.registers > 0 ? Cat(role.registers) : "as launched"}});
  }
  return table.Print(screen);
}

std::string LevelsTable(const KernelAnalysis& facts, const Screen& screen) {
  TextTable table({{"bytes"}, {"moved", Align::kRight}, {"at least", Align::kRight}, {"times", Align::kRight}});
  for (const LevelBytes& level : facts.levels) {
    table.Add({{std::string(level.level)}, {PrintBytes(level.moved)}, {level.Least()}, {level.Times()}});
  }
  return table.Print(screen);
}

std::string ResourcesText(const Resources& resources) {
  if (!resources.assembled) return "unknown: " + resources.missing;
  const device::AssembleResult& r = *resources.assembled;
  std::string text =
      Cat(r.registers, " registers a thread, ", r.stack_bytes, " bytes of stack, spills: ", r.spill_store_bytes,
          " bytes stored, ", r.spill_load_bytes, " bytes loaded (", resources.assembler, ")");
  for (const std::string& advisory : r.advisories) text += "\n" + advisory;
  return text;
}

// What a kernel does next to the product's.
std::string TaskOf(const CompiledKernel& kernel, const Compilation& c) {
  switch (kernel.purpose) {
    case LaunchPurpose::kPack:
      return "first, a kernel packs operands";
    case LaunchPurpose::kMain:
      return "a kernel multiplies";
    case LaunchPurpose::kFold:
      return "afterwards, a kernel adds groups of partial rows of reductions";
    case LaunchPurpose::kReduce: {
      const auto bytes = static_cast<double>(c.workspace.BytesFor(compiler::WorkspaceUse::kPartialRows));
      return Cat("afterwards, a kernel adds the partial rows of reductions (", PrintBytes(bytes), " of workspace)");
    }
  }
  return {};
}

void PrintKernel(const Pages& pages, const InspectedKernel& assembled, const Compilation& c, bool with_ptx) {
  const CompiledKernel& kernel = assembled.compiled;
  pages.Title(Cat(TaskOf(kernel, c), ": ", kernel.program.threads, " threads a CTA"));
  pages.Item("kernel", compiler::KernelKey(kernel.program));
  pages.Prose(ResourcesText(assembled.resources));
  pages.Text(Cat("\n", ir::PrintProgram(kernel.program)));
  if (with_ptx) pages.Text(kernel.module.ptx);
}

void PrintPages(const Inspection& inspection, bool with_ptx, ScheduleView view) {
  const auto& [c, facts, assembled, modes, passes, measured] = inspection;
  const Pages pages;
  const CompiledKernel& product = c.Product();
  pages.Item("problem", PrintProblem(c.problem));
  pages.Item("target", Cat(c.target->name, " (", c.device.description, ")"));
  pages.Item("schedule", Cat(ShowSchedule(PrintSchedule(c.schedule), view), " (", ChoiceOriginName(c.choice), ")"));
  pages.Item("launch", LaunchText(facts, c));
  pages.Item("predicted", PredictionText(facts, c));
  pages.Item("measured", MeasurementText(measured.ours));
  for (const PeerTime& peer : measured.peers) pages.Item("peer", Cat(peer.name, ": ", PeerText(peer, c.problem)));
  pages.Item("kernel", compiler::KernelKey(product.program));
  for (const InspectedKernel& kernel : assembled) {
    if (&kernel.compiled != &product) PrintKernel(pages, kernel, c, with_ptx);
  }
  pages.Title(Cat("roles: ", product.program.threads, " threads a CTA"));
  pages.Text(RolesTable(product.program, pages.Plain()));
  pages.Title(Cat("shared memory: ", product.program.smem_bytes, " of ", c.target->smem_bytes, " bytes"));
  pages.Text(DrawMap(SharedRegions(product.program), product.program.smem_bytes, "byte", pages.Plain()));
  if (product.program.tmem_columns > 0) {
    pages.Title(Cat("Tensor Memory: ", product.program.tmem_columns, " of ", c.target->tmem_columns, " columns"));
    pages.Text(DrawMap(TensorRegions(product.program), product.program.tmem_columns, "column", pages.Plain()));
  }
  pages.Title("why");
  pages.Prose(AdviceText(facts.advised));
  pages.Text(LevelsTable(facts, pages.Plain()));
  if (!modes.empty()) {
    pages.Title("reuse of activations");
    pages.Text(ReuseModesText(modes, pages.Plain(), view));
  }
  pages.Title("registers");
  pages.Prose(ResourcesText(ProductOf(assembled, c).resources));
  for (const compiler::PassDump& dump : passes) {
    pages.Title(Cat("tile program after ", dump.pass));
    pages.Text(dump.text);
  }
  pages.Title("instruction census");
  TextTable census({{"count", Align::kRight}, {"opcode"}});
  for (const OpcodeCount& row : Census(product.module.ptx)) census.Add({{Cat(row.count)}, {row.opcode}});
  pages.Text(census.Print(pages.Plain()));
  if (!with_ptx) return;
  pages.Title(Cat("PTX (", PrintDuration(c.ptx_ms), ")"));
  pages.Text(product.module.ptx);
}

// The modes of a convolution, compared for the device's number of SMs.
std::vector<autotune::ReuseMode> ModesOf(const Compilation& c) {
  return autotune::CompareReuseModes(c.problem, c.schedule, *c.target, c.device.machine.sm_count);
}

// The file, and a chart for people.
Status ShowTimeline(const Compilation& c, const InspectOptions& options) {
  LS_ASSIGN(const Timeline timeline, ModelTimeline(c));
  LS_TRY(WriteOutput(options.timeline, JsonLine(TraceEventsJson(timeline)) + "\n"));
  if (options.json) return Ok();
  const Pages pages;
  pages.Title("time line");
  pages.Text(GanttText(timeline, pages.Plain()));
  return Ok();
}

// A time line that `run --timeline` has measured of the same kernel; none if there is no file of one.
Result<std::optional<Timeline>> ReadMeasured(const Compilation& c, const InspectOptions& options) {
  if (options.measured.empty()) return std::optional<Timeline>();
  if (options.html.empty())
    return MakeError(ErrorCode::kInvalidArgument, "--measured is for a report; give --html FILE, too");
  constexpr uint64_t kMostBytes = 256 << 20;
  LS_ASSIGN(const std::string text, base::ReadFile(options.measured, kMostBytes));
  auto timeline = ParseTraceEvents(text);
  if (!timeline) return timeline.error().Within(options.measured);
  if (timeline->unit != "us")
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(options.measured, " counts ", timeline->unit, ", which are no time; measure on a GPU"));
  const std::string kernel = KernelText(c.problem, c.schedule, *c.target);
  if (timeline->kernel != kernel)
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(options.measured, " is of another kernel: ", timeline->kernel, "; the report is of ", kernel));
  return std::optional<Timeline>(std::move(*timeline));
}

// What the store and a file of `bench --json` know of the problem.
Result<MeasuredTimes> TimesOf(const Compilation& c, const InspectOptions& options) {
  MeasuredTimes times{.ours = MeasurementOf(c.schedule, c.trials)};
  if (options.peers.empty()) return times;
  constexpr uint64_t kMostBytes = 64 << 20;
  LS_ASSIGN(const std::string text, base::ReadFile(options.peers, kMostBytes));
  auto peers = ReadPeers(text, c.problem, c.target->name);
  if (!peers) return peers.error().Within(options.peers);
  times.peers = std::move(*peers);
  return times;
}

Result<int> Inspect(const InspectOptions& options, const Settings& settings) {
  ProblemReader reader = ProblemReader::ForLooking(options.target, SourceOptionsOf(settings, options.include));
  LS_ASSIGN(const std::vector<Problem> problems, CollectProblems(options.words, {}, reader));
  if (problems.size() != 1) return MakeError(ErrorCode::kInvalidArgument, "inspect takes one problem at a time");
  LS_ASSIGN(
      const Compilation compilation,
      CompileProblem(problems[0], options.schedule, options.html.empty() ? Keep::kPtx : Keep::kPtxAndLlvm, reader));
  LS_ASSIGN(std::optional<Timeline> measured, ReadMeasured(compilation, options));
  LS_ASSIGN(MeasuredTimes times, TimesOf(compilation, options));
  LS_ASSIGN(const std::vector<compiler::PassDump> passes, SelectPasses(compilation, options));
  LS_ASSIGN(KernelAnalysis facts, AnalyseKernel(compilation));
  const Inspection inspection{.compilation = compilation,
                              .facts = std::move(facts),
                              .assembled = AssembleAll(compilation, options.ptxas),
                              .modes = ModesOf(compilation),
                              .passes = passes,
                              .measured = std::move(times)};
  if (options.json) {
    PrintJson(inspection, !options.no_ptx);
  } else {
    PrintPages(inspection, !options.no_ptx, options.view);
  }
  if (!options.timeline.empty()) LS_TRY(ShowTimeline(compilation, options));
  if (!options.html.empty()) {
    LS_ASSIGN(KernelReport report, GatherReport(compilation, reader, options.ptxas));
    report.measured = inspection.measured;
    if (measured) {
      LS_TRY(AddMeasuredTimeline(std::move(*measured), report));
    }
    LS_TRY(WriteOutput(options.html, RenderReport(report)));
  }
  return kExitOk;
}

}  // namespace

Verb AddInspect(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand(
      "inspect",
      "Show how a problem is computed and why it takes its time: schedule, memory maps, tile program, registers, PTX");
  auto options = std::make_shared<InspectOptions>();
  verb->add_option("problem", options->words, "one problem, as bare words")->type_name("WORD");
  AddTarget(*verb, options->target);
  AddInclude(*verb, options->include);
  verb->add_option("--schedule", options->schedule, "a complete or partial schedule")->type_name("SCHEDULE");
  verb->add_option("--dump-after", options->dump_after,
                   "show the tile program after this pass: build, lower_channels, ...")
      ->type_name("PASS");
  verb->add_flag("--all-passes", options->all_passes, "show the tile program after every pass");
  verb->add_flag("--no-ptx", options->no_ptx, "leave out the PTX");
  verb->add_option("--ptxas", options->ptxas, "path of ptxas, which reports registers and spills")->type_name("FILE");
  verb->add_option("--timeline", options->timeline,
                   "write the time line of the busiest SM, as the timing model sees it, as a trace for Perfetto; show "
                   "it as a chart")
      ->type_name("FILE");
  verb->add_option("--html", options->html,
                   "write a report with pictures: one file without references to others, for any browser")
      ->type_name("FILE");
  verb->add_option("--measured", options->measured,
                   "with --html: the time line that `run --timeline FILE` measured of this kernel on a GPU, which the "
                   "report shows below the model's")
      ->type_name("FILE");
  verb->add_option(
          "--peers", options->peers,
          "the JSON of `laneshift bench --json`: the times of cuBLAS or cuDNN for this problem, which are shown "
          "next to the kernel's and become points of the report's roofline")
      ->type_name("FILE");
  AddFull(*verb, options->view);
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kInspectExamples);
  return [options, settings] { return Inspect(*options, settings); };
}

}  // namespace laneshift::tools
