#include "tools/assembler_check/assembled_kernel.h"

#include <algorithm>

#include "base/text.h"
#include "measure/parallel_for.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr std::string_view kStatusNames[] = {"assembled", "too old", "refused"};
constexpr std::string_view kWordsNames[] = {"not compared", "equal", "different", "fault"};

// ptxas's messages for a version or a target that is newer than it.
bool SaysTooOld(std::string_view message) {
  constexpr std::string_view kWords[] = {"Unsupported .version", "is not defined for option 'gpu-name'",
                                         "SM version specified by .target is higher", "Unsupported .target"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view words) { return message.find(words) != std::string_view::npos; });
}

AssembledKernel AssembleOne(const CheckedKernel& kernel, const device::PtxAssembler& assembler) {
  AssembledKernel made;
  auto result = assembler.Assemble(kernel.ptx, kernel.target);
  if (result) {
    made.status = AssembledAs::kCubin;
    made.result = std::move(*result);
    return made;
  }
  made.message = result.error().message;
  made.status = SaysTooOld(made.message) ? AssembledAs::kTooOld : AssembledAs::kRefused;
  return made;
}

// C7510 and the like: the texts name lines and functions, which are the same for all.
std::string NumbersOf(const std::vector<std::string>& advisories) {
  std::vector<std::string> numbers;
  for (const std::string& line : advisories) {
    const size_t at = line.find("(C75");
    const std::string number = line.substr(at + 1, line.find(')', at) - at - 1);
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
  }
  return numbers.empty() ? "none" : base::Join(numbers, " ");
}

struct Figure {
  const char* name;
  std::string (*of)(const device::AssembleResult&);
};
constexpr Figure kFigures[] = {
    {"registers", [](const device::AssembleResult& r) { return Cat(r.registers); }},
    {"bytes of spills", [](const device::AssembleResult& r) { return Cat(r.spill_store_bytes + r.spill_load_bytes); }},
    {"bytes of stack", [](const device::AssembleResult& r) { return Cat(r.stack_bytes); }},
    {"bytes of static shared memory", [](const device::AssembleResult& r) { return Cat(r.static_smem_bytes); }},
    {"advisories", [](const device::AssembleResult& r) { return NumbersOf(r.advisories); }},
};

}  // namespace

std::string_view NameOf(AssembledAs status) { return kStatusNames[static_cast<size_t>(status)]; }
std::string_view NameOf(WordsAs words) { return kWordsNames[static_cast<size_t>(words)]; }

std::string AssembledKernel::FailureOf(const CheckedKernel& kernel) const {
  if (status == AssembledAs::kTooOld) return {};
  if (status == AssembledAs::kRefused) return message;
  if (words == WordsAs::kDifferent || words == WordsAs::kFault) return words_message;
  if (!kernel.MustBeTidy()) return {};
  const int spills = result.spill_store_bytes + result.spill_load_bytes;
  if (spills + result.stack_bytes > 0)
    return Cat(spills, " bytes of spills and ", result.stack_bytes, " of stack, where there should be none");
  return result.advisories.empty() ? std::string() : result.advisories.front();
}

std::vector<std::vector<AssembledKernel>> AssembleAll(const std::vector<CheckedKernel>& kernels,
                                                      const std::vector<device::PtxAssembler>& assemblers) {
  std::vector<std::vector<AssembledKernel>> made(kernels.size(), std::vector<AssembledKernel>(assemblers.size()));
  measure::ParallelFor(std::ssize(kernels) * std::ssize(assemblers), [&](int64_t index) {
    const auto [kernel, assembler] = std::div(index, static_cast<int64_t>(assemblers.size()));
    made[static_cast<size_t>(kernel)][static_cast<size_t>(assembler)] =
        AssembleOne(kernels[static_cast<size_t>(kernel)], assemblers[static_cast<size_t>(assembler)]);
  });
  return made;
}

std::vector<std::string> DifferencesOf(const std::vector<AssembledKernel>& made,
                                       const std::vector<device::PtxAssembler>& assemblers) {
  std::vector<std::string> lines;
  for (const Figure& figure : kFigures) {
    std::vector<std::string> values, texts;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].status != AssembledAs::kCubin) continue;
      values.push_back(figure.of(made[i].result));
      texts.push_back(Cat(values.back(), " (", assemblers[i].id(), ")"));
    }
    const bool same = std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values.front(); });
    if (!same) lines.push_back(Cat(figure.name, ": ", base::Join(texts, ", ")));
  }
  return lines;
}

}  // namespace laneshift::tools
