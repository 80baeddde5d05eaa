#include "tools/emulation/report_json.h"

#include <nlohmann/json.hpp>

namespace laneshift::tools {
namespace {

using Json = nlohmann::ordered_json;

Json SourceJson(const emulator::SourcePosition& source) {
  return source.line != 0 ? Json{{"file", source.file}, {"line", source.line}} : Json(nullptr);
}

Json PlaceJson(const emulator::SourcePlace& place) {
  return {{"kernel", place.kernel},
          {"name", emulator::ReadableName(place.kernel)},
          {"line", place.line},
          {"ptx", place.ptx},
          {"source", SourceJson(place.source)},
          {"inlined_at", SourceJson(place.inlined_at)},
          {"cta", {place.cta[0], place.cta[1], place.cta[2]}},
          {"warp", place.warp},
          {"lane", place.lane >= 0 ? Json(place.lane) : Json(nullptr)}};
}

const char* NameOf(emulator::Completion completion) {
  switch (completion) {
    case emulator::Completion::kEager:
      return "eager";
    case emulator::Completion::kLate:
      return "late";
    case emulator::Completion::kRandom:
      return "random";
  }
  return "";
}

Json CountersJson(const emulator::Counters& counters) {
  return {{"warp_instructions", counters.warp_instructions},
          {"thread_instructions", counters.thread_instructions},
          {"mma_instructions", counters.mma_instructions},
          {"mma_flops", 2 * counters.mma_multiplies},
          {"bytes",
           {{"global_to_shared", counters.bytes_global_to_shared},
            {"shared_to_global", counters.bytes_shared_to_global},
            {"shared_to_mma", counters.mma_shared_bytes},
            {"shared_to_tensor", counters.tensor_copy_bytes}}},
          {"tensor_copies", counters.tensor_copies},
          {"tensor_shifts", counters.tensor_shifts},
          {"barrier_waits", counters.barrier_waits},
          {"opcodes", counters.opcodes}};
}

Json KernelsJson(const emulator::Report& report) {
  Json kernels = Json::array();
  for (const auto& [name, use] : report.kernels) {
    const auto instructions = static_cast<double>(use.thread_instructions);
    kernels.push_back({{"kernel", name},
                       {"name", emulator::ReadableName(name)},
                       {"launches", use.launches},
                       {"warp_instructions", use.warp_instructions},
                       {"thread_instructions", use.thread_instructions},
                       {"seconds", use.seconds},
                       {"instructions_per_second", use.seconds > 0 ? instructions / use.seconds : 0}});
  }
  return kernels;
}

// The open questions on which the results depend, with the answers that they were given.
Json PoliciesJson(const emulator::Report& report) {
  Json policies = Json::array();
  for (size_t p = 0; p < emulator::kPolicies; ++p) {
    if (report.counters.policies[p] == 0) continue;
    const emulator::PolicyRow& row = emulator::PolicyTable()[p];
    policies.push_back({{"policy", row.name},
                        {"answer", emulator::AnswerOf(report.policies, static_cast<emulator::Policy>(p))},
                        {"uses", report.counters.policies[p]},
                        {"open", row.open}});
  }
  return policies;
}

}  // namespace

Json ReportJson(const emulator::Report& report, const emulator::Options& options) {
  Json hazards = Json::array(), faults = Json::array();
  for (const emulator::Hazard& hazard : report.hazards) {
    hazards.push_back({{"kind", emulator::NameOf(hazard.kind)},
                       {"level", emulator::NameOf(hazard.level)},
                       {"message", hazard.message},
                       {"count", hazard.count},
                       {"place", PlaceJson(hazard.place)}});
  }
  for (const emulator::Fault& fault : report.faults) {
    Json waits = Json::array();
    for (const emulator::WaitingPath& wait : fault.waits)
      waits.push_back({{"who", PlaceJson(wait.who)}, {"what", wait.what}, {"could_end", wait.could_end}});
    faults.push_back({{"kind", emulator::NameOf(fault.kind)},
                      {"message", fault.message},
                      {"place", PlaceJson(fault.place)},
                      {"waits", std::move(waits)},
                      {"cycle", fault.cycle}});
  }
  return {{"device", emulator::ProfileName(options.profile)},
          {"policy",
           {{"async", NameOf(options.completion)},
            {"seed", options.seed},
            {"arithmetic", options.arithmetic == emulator::SumArithmetic::kHardware ? "hardware" : "fast"},
            {"hazards", options.hazards == emulator::HazardChecks::kOn}}},
          {"launches", report.launches},
          {"kernels", KernelsJson(report)},
          {"counters", CountersJson(report.counters)},
          {"policies", PoliciesJson(report)},
          {"hazards", std::move(hazards)},
          {"unused_suppressions", report.unused_suppressions},
          {"faults", std::move(faults)}};
}

}  // namespace laneshift::tools
