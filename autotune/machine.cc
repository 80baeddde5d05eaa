#include "autotune/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace laneshift::autotune {
namespace {

constexpr std::string_view kStoredPrefix = "machine.";

// What is plausible of a measured fact, in parts of the published figure.
struct Plausible {
  double Machine::*field;
  double least, most;
};
constexpr Plausible kUsual = {nullptr, 1 / 1.5, 1.5};
constexpr Plausible kPlausible[] = {
    {&Machine::clock_ghz, 0.4, 1.1},             // a clock may be locked
    {&Machine::busy_clock_ghz, 0.4, 1.35},       // and is at most clock_ghz
    {&Machine::shared_read, 1 / 1.5, 1.02},      // the ports of shared memory
    {&Machine::product_columns, 1 / 1.5, 1.02},  // and the tensor core have that rate, and no more
    {&Machine::memory_rate, 0.4, 1.15},          // pins of the memory: 4.8 TB/s of an H200, 8 of a B200
    {&Machine::l2_rate, 0.4, 1.5},               // half of it without neighbours that share
    {&Machine::load_latency, 0.25, 1.5},         // an isolated load waits a third of what one of a GEMM does
    {&Machine::memory_latency, 1 / 1.5, 2.5},    // and more than twice as long for memory
    {&Machine::launch_us, 0.5, 2},
    {&Machine::outside_row, 0.1, 1.5},  // rows outside by themselves take a sixth of what they add to those inside
    {&Machine::outside_rate, 1 / 1.5, 2.5},
    {&Machine::tensor_move, 0.05, 20},  // an estimate, which nothing supports
    {&Machine::sums_read, 0.25, 4},     // published, and not measured on a B200 here
};
const Plausible& PlausibleOf(double Machine::*field) {
  for (const Plausible& row : kPlausible) {
    if (row.field == field) return row;
  }
  return kUsual;
}

// What the probe says of the H200 to which the figures of that product are fitted, mean of two to seven runs. A probe
// by itself sees less of a latency than a kernel under load does, and other rates; how much is in the figures, so that
// a device is to the fitted one as its answers are to these. No B200 was probed.
struct ProbedWhereFitted {
  double Machine::*field;
  double h200;
  bool shifts;  // the figure differs from what is probed, and is used only with this answer
};
constexpr ProbedWhereFitted kProbedWhereFitted[] = {
    {&Machine::port, 107, false},
    {&Machine::memory_latency, 637, true},
    {&Machine::launch_us, 5, false},
    {&Machine::l2_rate, 66, false},
    {&Machine::load_latency, 298, true},
    {&Machine::memory_rate, 4.31, false},
    {&Machine::product_columns, 1.822, true},
    {&Machine::shared_read, 93.6, true},
    {&Machine::busy_clock_ghz, 1.762, true},
    {&Machine::outside_row, 1.24, true},
    {&Machine::outside_rate, 19.3, true},
};

// Of products that have no column in machine_facts.def and share the B200's, what is published and differs: a Jetson
// Thor has 20 SMs at up to 1.575 GHz with an L2 cache of 32 MiB before LPDDR5X memory of 273 GB/s (NVIDIA's data sheet
// of the T5000, and what its driver reports), of which kernels reach nine tenths, as on a B200. The figures of a B300
// that the model uses are those of a B200: the rate of e2m1 that exceeds it needs MMAs of K = 96.
struct OwnFigure {
  target::Product product;
  double Machine::*field;
  double value;
};
constexpr OwnFigure kOwnFigures[] = {
    {target::Product::kThor, &Machine::clock_ghz, 1.575},
    {target::Product::kThor, &Machine::busy_clock_ghz, 1.575},
    {target::Product::kThor, &Machine::l2_bytes, 33.5},
    {target::Product::kThor, &Machine::memory_rate, 0.246},
};

// What the model uses for a device that has answered `value`.
Result<double> Fitted(const target::Target& target, const MachineRow& row, double value) {
  for (const ProbedWhereFitted& there : kProbedWhereFitted) {
    if (there.field != row.field) continue;
    if (target.product == target::Product::kH200) return row.h200 * value / there.h200;
    if (there.shifts) {
      return MakeError(ErrorCode::kUnsupported,
                       base::Cat(row.name, " = ", value, " ", row.unit, " is only reported: nothing for ", target.name,
                                 " is fitted to a device that was probed"));
    }
  }
  return value;
}

Error UnknownFact(std::string_view name) {
  std::vector<std::string_view> names;
  for (const MachineRow& row : kMachineRows) names.push_back(row.name);
  return MakeError(ErrorCode::kInvalidArgument, base::UnknownName("fact", name, names));
}

Result<const MachineRow*> FindRow(std::string_view name) {
  for (const MachineRow& row : kMachineRows) {
    if (row.name == name) return &row;
  }
  return UnknownFact(name);
}

struct ParsedFact {
  const MachineRow* row;
  double value;
};
Result<ParsedFact> ParseFact(std::string_view name, std::string_view answer) {
  LS_ASSIGN(const MachineRow* row, FindRow(name));
  double value = 0;
  const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), value);
  if (error != std::errc{} || end != answer.data() + answer.size() || !std::isfinite(value) || value <= 0) {
    return MakeError(ErrorCode::kInvalidArgument,
                     base::Cat("the fact ", name, " is a positive number of ", row->unit, ", not '", answer, "'"));
  }
  return ParsedFact{row, value};
}

}  // namespace

std::vector<MachineFact> FactsOf(const Machine& machine) {
  std::vector<MachineFact> facts;
  for (const MachineRow& row : kMachineRows)
    facts.push_back({row.name, row.unit, row.doc, row.source, machine.*row.field});
  return facts;
}

Status SetFact(Machine& machine, std::string_view name, std::string_view answer) {
  LS_ASSIGN(const ParsedFact fact, ParseFact(name, answer));
  machine.*fact.row->field = fact.value;
  return Ok();
}

std::string PrintFact(double value) { return base::PrintDouble(value); }

Result<double> FittedFact(const target::Target& target, std::string_view name, double value) {
  LS_ASSIGN(const MachineRow* row, FindRow(name));
  const double usual = PublishedMachine(target).*row->field;
  const auto [field, least, most] = PlausibleOf(row->field);
  if (value >= least * usual && value <= most * usual && value > 0) {
    LS_ASSIGN(const double fitted, Fitted(target, *row, value));
    return std::min(fitted, most * usual);
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat(name, " = ", value, " ", row->unit, " is not plausible: published are ", usual,
                             ", believed ", least * usual, " to ", most * usual));
}

Machine PublishedMachine(const target::Target& target, int sm_count) {
  Machine machine{.sm_count = sm_count > 0 ? sm_count : target.default_sm_count};
  for (const MachineRow& row : kMachineRows)
    machine.*row.field = target.product == target::Product::kH200 ? row.h200 : row.b200;
  for (const OwnFigure& own : kOwnFigures) {
    if (own.product == target.product) machine.*own.field = own.value;
  }
  return machine;
}

std::string StoredName(std::string_view fact) { return base::Cat(kStoredPrefix, fact); }

Machine MachineOf(const target::Target& target, int sm_count, const std::string& device_key, store::Store& store) {
  Machine machine = PublishedMachine(target, sm_count);
  const auto facts = store.GetFacts(device_key);
  if (!facts) return machine;
  for (const store::FactRecord& fact : *facts) {
    // Facts of other kinds do not belong to the machine.
    if (!fact.name.starts_with(kStoredPrefix)) continue;
    const std::string_view name = std::string_view(fact.name).substr(kStoredPrefix.size());
    const auto measured = ParseFact(name, fact.answer);
    if (!measured) continue;
    const auto fitted = FittedFact(target, name, measured->value);
    if (fitted) machine.*measured->row->field = *fitted;
  }
  return machine;
}

}  // namespace laneshift::autotune
