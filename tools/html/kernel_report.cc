#include "tools/html/kernel_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "autotune/ranking.h"
#include "base/text.h"
#include "compiler/line_table.h"
#include "device/assembler.h"
#include "device/disassembler.h"
#include "ir/program_lines.h"
#include "store/store.h"
#include "tools/html/filter_taps.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using ir::OpKind;
using Json = nlohmann::ordered_json;

constexpr size_t kShownCandidates = 150;

// The first two words of an opcode, and those after them that also say what it does: "tcgen05.mma",
// "cp.async.bulk.tensor".
std::string FamilyOf(std::string_view opcode) {
  constexpr std::string_view kMore[] = {"async",      "bulk",      "tensor", "commit_group",
                                        "wait_group", "expect_tx", "sp",     "ws"};
  const std::vector<std::string_view> words = base::Split(opcode, '.');
  std::string family;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i >= 2 && std::find(std::begin(kMore), std::end(kMore), words[i]) == std::end(kMore)) break;
    family += base::Cat(i > 0 ? "." : "", words[i]);
  }
  return family;
}

void NoteLines(const std::vector<ir::Op>& body, const std::map<const ir::Op*, int>& lines, ReportedRole& role) {
  for (const ir::Op& op : body) {
    const int line = lines.at(&op);
    role.first_line = role.first_line == 0 ? line : std::min(role.first_line, line);
    role.last_line = std::max(role.last_line, line);
    NoteLines(op.body, lines, role);
  }
}

// With the instructions that each role's lines became.
std::vector<ReportedRole> RolesOf(const ir::Program& program, const ReportedCode& code) {
  const std::map<const ir::Op*, int> lines = ir::LinesOf(program);
  std::vector<ReportedRole> roles;
  for (const ir::Role& role : program.roles) {
    roles.push_back({.name = role.name,
                     .first_warp = role.first_warp,
                     .warps = role.warps,
                     .registers = role.registers,
                     .elected = role.elected,
                     .leader = role.leader,
                     .opcodes = {}});
    NoteLines(role.body, lines, roles.back());
  }
  // A role's part of the PTX, line by line.
  std::vector<std::string> parts(roles.size());
  const std::vector<std::string_view> ptx = base::Split(code.ptx, '\n');
  for (size_t i = 0; i < std::min(ptx.size(), code.ptx_lines.size()); ++i) {
    const int line = code.ptx_lines[i];
    for (size_t role = 0; line > 0 && role < roles.size(); ++role) {
      if (line >= roles[role].first_line && line <= roles[role].last_line) parts[role].append(ptx[i]).append("\n");
    }
  }
  for (size_t role = 0; role < roles.size(); ++role) {
    for (const OpcodeCount& row : Census(parts[role])) roles[role].opcodes[FamilyOf(row.opcode)] += row.count;
  }
  return roles;
}

void NoteUsers(const std::vector<ir::Op>& body, size_t role, std::vector<ReportedChannel>& channels) {
  const auto add = [&](std::vector<size_t>& users) {
    if (std::find(users.begin(), users.end(), role) == users.end()) users.push_back(role);
  };
  for (const ir::Op& op : body) {
    if (const auto* attrs = std::get_if<ir::ChannelAttrs>(&op.attrs)) {
      ReportedChannel& channel = channels[static_cast<size_t>(attrs->channel)];
      if (op.kind == OpKind::kPut || op.kind == OpKind::kReserve) add(channel.producers);
      if (op.kind == OpKind::kTake || op.kind == OpKind::kAwait || op.kind == OpKind::kReserve) add(channel.consumers);
    }
    NoteUsers(op.body, role, channels);
  }
}

std::string SlotText(const ir::Channel& channel) {
  if (channel.space == ir::Space::kTensor) return Cat(channel.rows, " lanes x ", channel.columns, " columns");
  if (channel.space == ir::Space::kClcResponses) return "a response of cluster launch control";
  if (channel.space == ir::Space::kOrder) return "a turn to multiply";
  if (channel.space == ir::Space::kSums) return Cat("partial sums, ", PrintBytes(channel.StageBytes()));
  std::vector<std::string> tiles;
  for (const ir::TileSlot& tile : channel.tiles) tiles.push_back(tile.name);
  return Cat(base::Join(tiles, " + "), ", ", PrintBytes(channel.StageBytes()));
}

constexpr const char* kSpaceNames[] = {"shared memory", "Tensor Memory", "shared memory", "its barriers",
                                       "shared memory"};

// `scheduled`: before its channels were lowered, which shows who uses them.
std::vector<ReportedChannel> ChannelsOf(const ir::Program& program, const ir::Program& scheduled) {
  std::vector<ReportedChannel> channels;
  for (const ir::Channel& channel : program.channels) {
    channels.push_back({.name = channel.name,
                        .space = kSpaceNames[static_cast<size_t>(channel.space)],
                        .slot = SlotText(channel),
                        .stages = channel.stages,
                        .full_arrivals = channel.full_arrivals,
                        .empty_arrivals = channel.empty_arrivals,
                        .resident = channel.resident,
                        .is_private = channel.is_private,
                        .producers = {},
                        .consumers = {}});
  }
  for (size_t role = 0; role < scheduled.roles.size(); ++role) NoteUsers(scheduled.roles[role].body, role, channels);
  return channels;
}

std::string LayoutText(const ir::SharedLayout& layout) {
  return Cat(
      ir::AxisLetter(layout.outer_axis), ":", layout.outer, " ", ir::AxisLetter(layout.inner_axis), ":", layout.inner,
      ", ", layout.ElementBits(), " bits an element, ",
      layout.swizzle == ir::Swizzle::kNone ? std::string("no swizzle") : Cat("swizzle of ", layout.Span(), " bytes"));
}

std::vector<ReportedTile> TilesOf(const ir::Program& program) {
  std::vector<ReportedTile> tiles;
  const auto add = [&](const std::string& name, const ir::SharedLayout& layout) {
    tiles.push_back({name, LayoutText(layout), layout.Span(), layout.SwizzleMask(), layout.Bytes(), layout.outer});
  };
  for (const ir::Channel& channel : program.channels) {
    for (const ir::TileSlot& tile : channel.tiles) add(Cat(channel.name, ".", tile.name), tile.layout);
  }
  for (const ir::Buffer& buffer : program.buffers) add(buffer.name, buffer.layout);
  return tiles;
}

void AddTrials(const std::vector<store::TrialRecord>& trials, std::vector<ReportedCandidate>& candidates) {
  for (const store::TrialRecord& trial : trials) {
    auto known = std::find_if(candidates.begin(), candidates.end(),
                              [&](const ReportedCandidate& c) { return c.schedule == trial.schedule; });
    if (known == candidates.end()) {
      candidates.push_back({.schedule = trial.schedule,
                            .shown = ShowSchedule(trial.schedule, ScheduleView::kShort),
                            .predicted_us = trial.predicted_us,
                            .measured_us = {},
                            .bound = {},
                            .verdict = {}});
      known = candidates.end() - 1;
    }
    known->verdict = trial.verdict == store::Verdict::kPassed ? "passed" : "failed";
    if (trial.time_us > 0) known->measured_us = trial.time_us;
  }
}

void GatherCandidates(const Compilation& c, KernelReport& report) {
  const autotune::Ranking ranking = autotune::RankSchedules(c.problem, {}, *c.target, c.device.machine);
  const std::string taken = PrintSchedule(c.schedule);
  for (const autotune::RankedSchedule& ranked : ranking.schedules) {
    const bool is_taken = ranked.schedule == c.schedule;
    if (report.candidates.size() >= kShownCandidates && !is_taken) {
      ++report.candidates_left_out;
      continue;
    }
    const std::string text = PrintSchedule(ranked.schedule);
    report.candidates.push_back({.schedule = text,
                                 .shown = ShowSchedule(text, ScheduleView::kShort),
                                 .predicted_us = ranked.predicted_us,
                                 .measured_us = {},
                                 .bound = std::string(autotune::BoundName(ranked.bound)),
                                 .verdict = {}});
  }
  AddTrials(c.trials, report.candidates);
  const auto find = [&] {
    return std::find_if(report.candidates.begin(), report.candidates.end(),
                        [&](const ReportedCandidate& candidate) { return candidate.schedule == taken; });
  };
  if (find() == report.candidates.end()) {
    const autotune::Prediction& p = report.facts.advised.advice.prediction;
    report.candidates.push_back({.schedule = taken,
                                 .shown = ShowSchedule(taken, ScheduleView::kShort),
                                 .predicted_us = p.us,
                                 .measured_us = {},
                                 .bound = std::string(autotune::BoundName(p.bound)),
                                 .verdict = {}});
  }
  find()->taken = true;
}

void GatherMachineCode(const Compilation& c, const std::string& ptxas, const std::string& located_ptx,
                       KernelReport& report) {
  const auto assembler = device::PtxAssembler::Find({.path = ptxas});
  if (!assembler) {
    report.code.no_sass = assembler.error().message;
    return;
  }
  // With the lines of the tile program where they are known.
  const bool lined = !report.code.ptx_lines.empty();
  const auto assembled = assembler->Assemble(lined ? located_ptx : c.Product().module.ptx, c.target->name,
                                             lined ? device::Lines::kKept : device::Lines::kNone);
  if (!assembled) {
    report.code.no_sass = assembled.error().message;
    return;
  }
  report.registers = assembled->registers;
  const auto disassembler = device::Disassembler::Find();
  auto sass = disassembler ? disassembler->Disassemble(assembled->cubin) : Result<device::Sass>(disassembler.error());
  if (sass) {
    report.code.sass = std::move(*sass);
    // What belongs to no op has the first line of all.
    for (int& line : report.code.sass.lines) line = line > 1 ? line : 0;
  } else {
    report.code.no_sass = sass.error().message;
  }
}

Status GatherCode(const Compilation& c, ProblemReader& reader, const std::string& ptxas, KernelReport& report) {
  const CompiledKernel& product = c.Product();
  report.code.program = ir::PrintProgram(product.program);
  report.code.ptx = product.module.ptx;
  report.code.llvm_ir = product.module.llvm_ir;
  LS_ASSIGN(const compiler::FunctionTexts functions, reader.TextsOf(product.program));
  LS_ASSIGN(const compiler::LinedCode lined,
            compiler::EmitLinedCode(product.program, *c.target, {.with_llvm_ir = true, .functions = functions}));
  // Only lines of the very same text can be linked.
  if (lined.ptx == report.code.ptx) {
    report.code.ptx_lines = lined.ptx_lines;
    report.code.llvm_ir = lined.llvm_ir;
    report.code.llvm_lines = lined.llvm_lines;
  }
  GatherMachineCode(c, ptxas, lined.located_ptx, report);
  return Ok();
}

}  // namespace

Status AddMeasuredTimeline(Timeline measured, KernelReport& report) {
  const Compilation& c = report.compilation;
  LS_ASSIGN(report.timeline, ModelTimeline(c.problem, c.schedule, *c.target, c.device.machine, autotune::kTracedPart));
  TimelineComparison comparison = CompareTimelines(report.timeline, measured);
  report.measured_timeline = ReportedTimeline{std::move(measured), std::move(comparison)};
  return Ok();
}

Result<KernelReport> GatherReport(const Compilation& c, ProblemReader& reader, const std::string& ptxas) {
  KernelReport report(c);
  LS_ASSIGN(report.facts, AnalyseKernel(c));
  LS_ASSIGN(report.timeline, ModelTimeline(c));
  LS_TRY(GatherCode(c, reader, ptxas, report));
  const ir::Program& program = c.Product().program;
  LS_ASSIGN(const compiler::Sketch sketch, compiler::SketchSchedule(c.problem, c.schedule, *c.target));
  report.roles = RolesOf(program, report.code);
  report.channels = ChannelsOf(program, sketch.program);
  report.cells = TensorCellsOf(program);
  report.tiles = TilesOf(program);
  report.shared = SharedRegions(program);
  report.taps = TapsOf(c.problem, c.schedule);
  report.no_taps = WhyNoTaps(c.problem, c.schedule);
  GatherCandidates(c, report);
  report.measured.ours = MeasurementOf(c.schedule, c.trials);
  return report;
}

namespace {

template <typename T>
Json OrNothing(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json TimelineJson(const ReportedTimeline& measured) {
  Json phases = Json::array();
  for (const RolePhase& phase : measured.comparison.phases) {
    phases.push_back(
        {{"role", phase.role}, {"phase", phase.what}, {"modelled", phase.modelled}, {"measured", phase.measured}});
  }
  return {{"modelled_us", measured.comparison.modelled_us},
          {"measured_us", measured.comparison.measured_us},
          {"phases", std::move(phases)}};
}

Json RolesJson(const KernelReport& report) {
  Json roles = Json::array();
  for (const ReportedRole& role : report.roles) {
    roles.push_back({{"name", role.name},
                     {"first_warp", role.first_warp},
                     {"warps", role.warps},
                     {"registers", role.registers},
                     {"elected", role.elected},
                     {"leader", role.leader},
                     {"lines", {role.first_line, role.last_line}},
                     {"opcodes", role.opcodes}});
  }
  return roles;
}

Json ChannelsJson(const KernelReport& report) {
  const auto names = [&](const std::vector<size_t>& roles) {
    Json list = Json::array();
    for (const size_t role : roles) list.push_back(report.roles[role].name);
    return list;
  };
  Json channels = Json::array();
  for (const ReportedChannel& channel : report.channels) {
    channels.push_back({{"name", channel.name},
                        {"space", channel.space},
                        {"slot", channel.slot},
                        {"stages", channel.stages},
                        {"full_arrivals", channel.full_arrivals},
                        {"empty_arrivals", channel.empty_arrivals},
                        {"resident", channel.resident},
                        {"producers", names(channel.producers)},
                        {"consumers", names(channel.consumers)}});
  }
  return channels;
}

Json MemoryJson(const KernelReport& report) {
  Json tensor = Json::array(), shared = Json::array(), tiles = Json::array();
  for (const TensorCells& cells : report.cells) {
    tensor.push_back({{"name", cells.name},
                      {"column", cells.column},
                      {"columns", cells.columns},
                      {"rows", cells.rows},
                      {"contents", cells.contents},
                      {"layout", cells.layout}});
  }
  for (const Region& region : report.shared)
    shared.push_back({{"begin", region.begin}, {"size", region.size}, {"what", region.what}});
  for (const ReportedTile& tile : report.tiles)
    tiles.push_back({{"name", tile.name}, {"layout", tile.layout}, {"span", tile.span}, {"bytes", tile.bytes}});
  return {{"tensor", std::move(tensor)}, {"shared", std::move(shared)}, {"tiles", std::move(tiles)}};
}

}  // namespace

Json KernelReportJson(const KernelReport& report) {
  const Compilation& c = report.compilation;
  Json candidates = Json::array();
  for (const ReportedCandidate& candidate : report.candidates) {
    candidates.push_back({{"schedule", candidate.schedule},
                          {"predicted_us", OrNothing(candidate.predicted_us)},
                          {"measured_us", OrNothing(candidate.measured_us)},
                          {"bound", candidate.bound},
                          {"verdict", candidate.verdict},
                          {"taken", candidate.taken}});
  }
  Json json = {{"problem", PrintProblem(c.problem)},
               {"target", c.target->name},
               {"schedule", PrintSchedule(c.schedule)},
               {"choice", ChoiceOriginName(c.choice)},
               {"key", compiler::KernelKey(c.Product().program)}};
  json.update(KernelAnalysisJson(report.facts, c));
  json.update(MeasuredTimesJson(report.measured, c.problem));
  json["measured_timeline"] = report.measured_timeline ? TimelineJson(*report.measured_timeline) : Json();
  json["registers"] = OrNothing(report.registers);
  json["roles"] = RolesJson(report);
  json["channels"] = ChannelsJson(report);
  json["memory"] = MemoryJson(report);
  json["candidates"] = std::move(candidates);
  json["candidates_left_out"] = report.candidates_left_out;
  return json;
}

}  // namespace laneshift::tools
