#include "tools/reports/assembler_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

// Of one assembler, over all kernels.
struct AssemblerCounts {
  int assembled = 0, too_old = 0, refused = 0, spilled = 0, advised = 0, equal = 0, wrong = 0, most_registers = 0;
};

AssemblerCounts CountsOf(const AssemblerCheck& check, size_t assembler) {
  AssemblerCounts counts;
  for (const auto& row : check.made) {
    const AssembledKernel& made = row[assembler];
    const device::AssembleResult& result = made.result;
    counts.assembled += made.status == AssembledAs::kCubin;
    counts.too_old += made.status == AssembledAs::kTooOld;
    counts.refused += made.status == AssembledAs::kRefused;
    counts.spilled += result.spill_store_bytes + result.spill_load_bytes + result.stack_bytes > 0;
    counts.advised += !result.advisories.empty();
    counts.equal += made.words == WordsAs::kEqual;
    counts.wrong += made.words == WordsAs::kDifferent || made.words == WordsAs::kFault;
    counts.most_registers = std::max(counts.most_registers, result.registers);
  }
  return counts;
}

Cell CountCell(int count, Tint tint) { return {Cat(count), count == 0 ? Tint::kPlain : tint}; }

Json FiguresJson(const device::AssembleResult& result) {
  return {{"registers", result.registers},
          {"stack_bytes", result.stack_bytes},
          {"spill_store_bytes", result.spill_store_bytes},
          {"spill_load_bytes", result.spill_load_bytes},
          {"static_smem_bytes", result.static_smem_bytes},
          {"advisories", result.advisories}};
}

bool AnyTook(const std::vector<AssembledKernel>& row) {
  return std::any_of(row.begin(), row.end(), [](const auto& made) { return made.status == AssembledAs::kCubin; });
}

}  // namespace

bool AssemblerCheck::Right() const {
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!AnyTook(made[k])) return false;
    for (const AssembledKernel& one : made[k]) {
      if (!one.FailureOf(kernels[k]).empty()) return false;
    }
  }
  return true;
}

std::string AssemblerText(const AssemblerCheck& check, const Screen& screen) {
  TextTable table({{"assembler"},
                   {"assembled", Align::kRight},
                   {"too old", Align::kRight},
                   {"refused", Align::kRight},
                   {"spill", Align::kRight},
                   {"advised", Align::kRight},
                   {"registers", Align::kRight},
                   {"words equal", Align::kRight},
                   {"words wrong", Align::kRight},
                   {"path", Align::kLeft, Room::kLong}});
  for (size_t a = 0; a < check.assemblers.size(); ++a) {
    const AssemblerCounts counts = CountsOf(check, a);
    table.Add({{check.assemblers[a].id()},
               {Cat(counts.assembled)},
               CountCell(counts.too_old, Tint::kFaint),
               CountCell(counts.refused, Tint::kBad),
               CountCell(counts.spilled, Tint::kPlain),
               CountCell(counts.advised, Tint::kPlain),
               {Cat(counts.most_registers)},
               {check.device.empty() ? "-" : Cat(counts.equal)},
               check.device.empty() ? Cell{"-"} : CountCell(counts.wrong, Tint::kBad),
               {check.assemblers[a].path(), Tint::kFaint}});
  }
  std::string text = table.Print(screen);
  for (size_t k = 0; k < check.kernels.size(); ++k) {
    const CheckedKernel& kernel = check.kernels[k];
    for (const std::string& difference : DifferencesOf(check.made[k], check.assemblers))
      text += Cat("differs: ", kernel.name, " (", kernel.target, "): ", difference, "\n");
    for (size_t a = 0; a < check.assemblers.size(); ++a) {
      const std::string failure = check.made[k][a].FailureOf(kernel);
      if (!failure.empty())
        text += Cat("failed: ", kernel.name, " (", kernel.target, "), ", check.assemblers[a].id(), ": ", failure, "\n");
    }
    if (!AnyTook(check.made[k]))
      text += Cat("failed: ", kernel.name, " (", kernel.target, "): no assembler takes it\n");
  }
  return text;
}

Json KernelJson(const AssemblerCheck& check, size_t kernel) {
  Json results = Json::array();
  for (size_t a = 0; a < check.assemblers.size(); ++a) {
    const AssembledKernel& made = check.made[kernel][a];
    const std::string failure = made.FailureOf(check.kernels[kernel]);
    Json result = {{"assembler", check.assemblers[a].id()},
                   {"path", check.assemblers[a].path()},
                   {"status", NameOf(made.status)},
                   {"message", made.message}};
    result.update(FiguresJson(made.result));
    result.update({{"words", NameOf(made.words)},
                   {"words_message", made.words_message},
                   {"failure", failure.empty() ? Json() : Json(failure)}});
    results.push_back(std::move(result));
  }
  return {{"kernel", check.kernels[kernel].name},
          {"target", check.kernels[kernel].target},
          {"results", std::move(results)},
          {"differences", DifferencesOf(check.made[kernel], check.assemblers)}};
}

Json AssemblersJson(const AssemblerCheck& check) {
  Json assemblers = Json::array();
  for (size_t a = 0; a < check.assemblers.size(); ++a) {
    const AssemblerCounts counts = CountsOf(check, a);
    assemblers.push_back({{"assembler", check.assemblers[a].id()},
                          {"path", check.assemblers[a].path()},
                          {"assembled", counts.assembled},
                          {"too_old", counts.too_old},
                          {"refused", counts.refused},
                          {"spilled", counts.spilled},
                          {"advised", counts.advised},
                          {"most_registers", counts.most_registers},
                          {"words_equal", counts.equal},
                          {"words_wrong", counts.wrong}});
  }
  return {{"ok", check.Right()},
          {"kernels", check.kernels.size()},
          {"device", check.device.empty() ? Json() : Json(check.device)},
          {"ended_early", check.ended_early.empty() ? Json() : Json(check.ended_early)},
          {"assemblers", std::move(assemblers)}};
}

}  // namespace laneshift::tools
