#include "tools/reports/kernel_analysis.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <variant>

#include "autotune/pipeline.h"
#include "autotune/ranking.h"
#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/contraction/contraction.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

double BytesOfSource(const compiler::OperandSource& source) {
  return static_cast<double>(source.BytesOf(source.memory.Elements()));
}

// What the best other schedule is: the model's without a constraint, if the kernel has another one.
std::optional<RivalSchedule> BestOther(const Compilation& c) {
  const auto best = autotune::ChooseSchedule(c.problem, {}, *c.target, c.device.machine);
  if (!best || *best == c.schedule) return std::nullopt;
  const auto prediction = autotune::PredictTime(c.problem, *best, *c.target, c.device.machine);
  if (!prediction) return std::nullopt;
  return RivalSchedule{"The model's best schedule", *best, *prediction};
}

// Bytes of all steps of a kind, by all tiles.
double BytesOfSteps(const autotune::Pipeline& pipeline, autotune::StepKind kind) {
  double bytes = 0;
  for (const autotune::PipelineRole& role : pipeline.roles) {
    for (size_t i = 0; i < role.tile.kinds(); ++i) {
      const autotune::Step& step = role.tile.kind(i);
      if (step.kind == kind) bytes += step.bytes * role.tile.times(i) / role.pingpong_roles;
    }
  }
  return bytes * pipeline.tiles * pipeline.work;
}

// The way of D: staged in shared memory and stored from there in bulk, or stored by threads.
Status AddOutputLevels(const Compilation& c, double least, std::vector<LevelBytes>& levels) {
  using autotune::StepKind;
  LS_ASSIGN(const compiler::Sketch sketch, compiler::SketchSchedule(c.problem, c.schedule, *c.target));
  const autotune::Pipeline pipeline =
      autotune::PipelineOf(c.problem, c.schedule, sketch.program, *c.target, autotune::kTracedPart);
  const auto add = [&](std::string_view level, double bytes) {
    if (bytes > 0) levels.push_back({level, bytes, least});
  };
  add("D, registers to shared memory", BytesOfSteps(pipeline, StepKind::kStage));
  add("D, bulk stores from shared memory", BytesOfSteps(pipeline, StepKind::kStore));
  add("D, stores by threads", BytesOfSteps(pipeline, StepKind::kStoreThreads));
  return Ok();
}

}  // namespace

std::string LevelBytes::Least() const { return least > 0 ? PrintBytes(least) : "-"; }
std::string LevelBytes::Times() const { return least > 0 ? PrintFixed(moved / least, 2) : "-"; }

Result<KernelAnalysis> AnalyseKernel(const Compilation& c) {
  const CompiledKernel& product = c.Product();
  KernelAnalysis facts{.geometry = product.geometry, .sm_count = c.device.machine.sm_count};
  for (size_t i = 0; i < compiler::ContractionsOf(c.problem, c.schedule); ++i)
    facts.tiles += compiler::PlanWork(compiler::ContractionOf(c.problem, c.schedule, i), c.schedule).Tiles();
  const compiler::WorkPlan work = compiler::PlanWork(c.problem, c.schedule);
  facts.division = compiler::DivideWork(work, std::max(1, facts.sm_count / work.ClusterSize()));
  facts.ctas_per_sm = product.program.smem_bytes > 0 ? c.target->smem_bytes / product.program.smem_bytes : 1;
  if (product.program.tmem_columns > 0)
    facts.ctas_per_sm = std::min(facts.ctas_per_sm, c.target->tmem_columns / product.program.tmem_columns);
  facts.ctas_per_sm = std::max(1, facts.ctas_per_sm);
  facts.traffic = compiler::CountTraffic(c.problem, c.schedule, product.program, *c.target, facts.sm_count);
  LS_ASSIGN(facts.advised.advice, autotune::Advise(c.problem, c.schedule, *c.target, c.device.machine));
  facts.advised.schedule = c.schedule;
  facts.advised.target = c.target;
  facts.advised.rival = BestOther(c);
  const compiler::Contraction contraction = compiler::ContractionOf(c.problem);
  const double operands = BytesOfSource(contraction.a) + BytesOfSource(contraction.b), least = ProblemBytes(c.problem);
  // What the model does not follow, scale factors for one, passes memory once.
  const double others = std::max(0.0, least - operands - BytesOfSource(contraction.d));
  facts.levels = {
      {"memory", facts.advised.advice.prediction.memory_bytes + others, least},
      {"L2 to shared memory", static_cast<double>(facts.traffic.all.GlobalToSharedBytes()), operands},
      {"shared memory to tensor cores", static_cast<double>(facts.traffic.all.SharedReadBytes()), operands}};
  if (facts.traffic.all.tensor_copy_bytes > 0)
    facts.levels.push_back(
        {"of these, copies to Tensor Memory", static_cast<double>(facts.traffic.all.tensor_copy_bytes), 0});
  LS_TRY(AddOutputLevels(c, BytesOfSource(contraction.d), facts.levels));
  return facts;
}

Json KernelAnalysisJson(const KernelAnalysis& facts, const Compilation& c) {
  const autotune::Prediction& p = facts.advised.advice.prediction;
  Json levels = Json::array();
  for (const LevelBytes& level : facts.levels)
    levels.push_back(
        {{"level", level.level}, {"moved", level.moved}, {"least", level.least > 0 ? Json(level.least) : Json()}});
  return {{"device", c.device.description},
          {"launch",
           {{"grid", facts.geometry.grid},
            {"cluster", facts.geometry.cluster},
            {"threads", facts.geometry.threads},
            {"tiles", facts.tiles},
            {"sms", facts.sm_count},
            {"resident_clusters", facts.division.resident},
            {"waves", facts.division.waves},
            {"cut_units", facts.division.cut},
            {"last_wave_idle_sms", facts.advised.advice.last_wave.idle_sms},
            {"ctas_per_sm", facts.ctas_per_sm}}},
          {"prediction",
           {{"us", p.us},
            {"bound", autotune::BoundName(p.bound)},
            {"tflops", ProblemFlops(c.problem) / p.us * 1e-6},
            {"clock_ghz", p.clock_ghz},
            {"tensor_share", p.tensor_share},
            {"breakdown_us", BreakdownJson(p)}}},
          {"bytes", std::move(levels)},
          {"advice", AdviceJson(facts.advised)}};
}

std::string LaunchText(const KernelAnalysis& facts, const Compilation& c) {
  const compiler::LaunchGeometry& g = facts.geometry;
  std::string text = Cat(g.grid, " CTAs of ", g.threads, " threads");
  if (g.cluster > 1) text += Cat(" in clusters of ", g.cluster);
  text += Cat(" for ", facts.tiles, facts.tiles == 1 ? " tile, " : " tiles, ", facts.division.waves,
              facts.division.waves == 1 ? " wave" : " waves", " on ", facts.sm_count, " SMs");
  if (c.schedule.scheduler == Scheduler::kClc) text += " by work stealing";
  if (std::holds_alternative<GroupedGemmProblem>(c.problem))
    text += ", if each group ends in an incomplete tile (group sizes are known at the launch only)";
  if (facts.division.cut > 0) {
    text += Cat("; ", facts.division.cut, " of the last wave cut along K");
  } else if (const int64_t idle = facts.advised.advice.last_wave.idle_sms; idle > 0) {
    text += Cat("; in the last one ", idle, " SMs are idle");
  }
  return text;
}

std::string PredictionText(const KernelAnalysis& facts, const Compilation& c) {
  const autotune::Prediction& p = facts.advised.advice.prediction;
  return Cat(PrintFixed(p.us, 2), " us, ", PrintFixed(ProblemFlops(c.problem) / p.us * 1e-6, 0), " TFLOP/s at ",
             PrintFixed(p.clock_ghz, 2), " GHz: ", BreakdownText(p));
}

}  // namespace laneshift::tools
