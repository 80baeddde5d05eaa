#include "emulator/hazards/report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "emulator/ptx/source_lines.h"

namespace laneshift::emulator {
std::string_view NameOf(FaultKind kind) {
  switch (kind) {
    case FaultKind::kIllegalAddress:
      return "illegal address";
    case FaultKind::kMisalignedAddress:
      return "misaligned address";
    case FaultKind::kIllegalInstruction:
      return "illegal instruction";
    case FaultKind::kInvalidAddressSpace:
      return "invalid address space";
    case FaultKind::kLaunchFailure:
      return "launch failure";
    case FaultKind::kDeadlock:
      return "deadlock";
    case FaultKind::kLivelock:
      return "livelock";
    case FaultKind::kMemoryLimit:
      return "host memory limit";
    case FaultKind::kInstructionLimit:
      return "instruction limit";
    case FaultKind::kTimeLimit:
      return "time limit";
    case FaultKind::kPendingLimit:
      return "limit of pending operations";
    case FaultKind::kStackLimit:
      return "stack limit";
    case FaultKind::kOutputLimit:
      return "output limit";
  }
  return "unknown fault";
}

std::string SourcePosition::Print() const { return base::Cat(file, ":", line); }

std::string SourcePlace::Print() const {
  std::string text = base::Cat(ReadableName(kernel), " line ", line);
  if (source.line != 0) {
    text += base::Cat(" (", source.Print(), inlined_at.line != 0 ? base::Cat(", inlined at ", inlined_at.Print()) : "",
                      ")");
  }
  text += base::Cat(", CTA (", cta[0], ",", cta[1], ",", cta[2], "), warp ", warp);
  if (lane >= 0) text += base::Cat(", lane ", lane);
  return text;
}

std::string Hazard::Print() const {
  return base::Cat(level == HazardLevel::kNote ? "note: " : "", NameOf(kind), ": ", message, " [", place.Print(),
                   count > 1 ? base::Cat("; ", count, " times") : "", "]");
}

std::string Fault::Print() const { return base::Cat(NameOf(kind), ": ", message, " [", place.Print(), "]"); }

std::string Fault::Picture() const {
  std::string text = Print();
  if (!place.ptx.empty()) text += base::Cat("\n    ", place.ptx);
  for (const WaitingPath& wait : waits) {
    text += base::Cat("\n  ", wait.who.Print(), " ", wait.what);
    if (wait.could_end.empty()) text += "\n    nobody is known who could end that";
    for (size_t i = 0; i < wait.could_end.size(); ++i)
      text += (i == 0 ? "\n    could be ended by " : ", ") + wait.could_end[i];
  }
  for (size_t i = 0; i < cycle.size(); ++i) text += (i == 0 ? "\n  cycle: " : " -> ") + cycle[i];
  if (!cycle.empty()) text += " -> " + cycle[0];
  return text;
}

void Counters::Add(const Counters& other) {
  warp_instructions += other.warp_instructions;
  thread_instructions += other.thread_instructions;
  mma_instructions += other.mma_instructions;
  mma_multiplies += other.mma_multiplies;
  mma_shared_bytes += other.mma_shared_bytes;
  bytes_global_to_shared += other.bytes_global_to_shared;
  bytes_shared_to_global += other.bytes_shared_to_global;
  tensor_copies += other.tensor_copies;
  tensor_copy_bytes += other.tensor_copy_bytes;
  tensor_shifts += other.tensor_shifts;
  barrier_waits += other.barrier_waits;
  cancelled_clusters += other.cancelled_clusters;
  for (size_t p = 0; p < kPolicies; ++p) policies[p] += other.policies[p];
  for (const auto& [opcode, count] : other.opcodes) opcodes[opcode] += count;
  if (rows.size() < other.rows.size()) rows.resize(other.rows.size());
  for (size_t r = 0; r < other.rows.size(); ++r) rows[r] += other.rows[r];
}

void HazardLog::SetRules(HazardRules rules) {
  const std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  used_.clear();
  silent_.clear();
}

void HazardLog::SetModules(Modules modules) {
  const std::lock_guard lock(mutex_);
  modules_ = std::move(modules);
}

void HazardLog::AnnotateIfKnown(SourcePlace& place) const {
  if (const auto module = modules_.find(place.Entry()); module != modules_.end()) Annotate(*module->second, place);
}

HazardLevel HazardLog::Judge(HazardKind kind, const SourcePlace& place) {
  for (size_t s = 0; s < rules_.suppressions.size(); ++s) {
    if (!rules_.suppressions[s].Matches(kind, place)) continue;
    used_.insert(s);
    return HazardLevel::kOff;
  }
  return rules_.levels[static_cast<size_t>(kind)];
}

std::vector<std::string> HazardLog::UnusedSuppressions() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> unused;
  for (size_t s = 0; s < rules_.suppressions.size(); ++s) {
    if (!used_.contains(s)) unused.push_back(rules_.suppressions[s].text);
  }
  return unused;
}

void HazardLog::Add(HazardKind kind, const SourcePlace& place, std::string message) {
  const std::lock_guard lock(mutex_);
  const Key key(kind, std::pair(place.kernel, place.line));
  if (silent_.contains(key)) return;
  if (const auto known = entries_.find(key); known != entries_.end()) {
    Hazard& hazard = known->second;
    ++hazard.count;
    // The entry has the first CTA of the grid, whichever host thread was faster.
    const auto order = [](const SourcePlace& p) { return std::array{p.cta[2], p.cta[1], p.cta[0]}; };
    if (order(place) < order(hazard.place)) {
      hazard.place = place;
      hazard.message = std::move(message);
    }
    return;
  }
  SourcePlace annotated = place;
  if (!rules_.suppressions.empty()) AnnotateIfKnown(annotated);
  const HazardLevel level = Judge(kind, annotated);
  if (level == HazardLevel::kOff) {
    silent_.insert(key);
  } else if (entries_.size() < kMaxEntries) {
    entries_.emplace(key, Hazard{kind, place, std::move(message), 1, level});
  }
}

std::vector<Hazard> HazardLog::Take() {
  const std::lock_guard lock(mutex_);
  std::vector<Hazard> hazards;
  for (auto& [key, hazard] : entries_) {
    AnnotateIfKnown(hazard.place);
    hazards.push_back(std::move(hazard));
  }
  entries_.clear();
  return hazards;
}

void PrintLog::Allow(uint64_t most) {
  const std::lock_guard lock(mutex_);
  most_ = most;
}

bool PrintLog::Add(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (text_.size() > most_ || text.size() > most_ - text_.size()) return false;
  text_ += text;
  return true;
}

std::string PrintLog::Take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(text_, {});
}

bool Report::Clean() const {
  return faults.empty() && std::all_of(hazards.begin(), hazards.end(),
                                       [](const Hazard& hazard) { return hazard.level == HazardLevel::kNote; });
}

std::string Report::Print() const {
  std::string text;
  if (arithmetic == SumArithmetic::kFast) text += "arithmetic: fast (plain f32 sums, not the device's words)\n";
  if (!output.empty()) text += output + (output.ends_with('\n') ? "" : "\n");
  for (const Fault& fault : faults) text += fault.Picture() + "\n";
  for (const Hazard& hazard : hazards) {
    text += hazard.Print() + "\n";
    if (!hazard.place.ptx.empty()) text += base::Cat("    ", hazard.place.ptx, "\n");
  }
  for (const std::string& rule : unused_suppressions) text += base::Cat("note: suppression not used: ", rule, "\n");
  for (const std::string& use : PolicyUses()) text += base::Cat("policy ", use, "\n");
  return text;
}

std::vector<std::string> Report::PolicyUses() const {
  std::vector<std::string> uses;
  for (size_t p = 0; p < kPolicies; ++p) {
    if (counters.policies[p] == 0) continue;
    const PolicyRow& row = PolicyTable()[p];
    uses.push_back(base::Cat(row.name, "=", AnswerOf(policies, static_cast<Policy>(p)), ": ", counters.policies[p],
                             " uses (open: ", row.open, ")"));
  }
  return uses;
}

std::vector<std::string> Report::KernelUses() const {
  std::vector<std::string> uses;
  for (const auto& [name, use] : kernels) {
    const double rate = use.seconds > 0 ? static_cast<double>(use.thread_instructions) / use.seconds / 1e6 : 0;
    char times[64];
    std::snprintf(times, sizeof times, "%.3f s, %.1f million a second", use.seconds, rate);
    uses.push_back(base::Cat("kernel ", ReadableName(name), ": ", use.launches,
                             use.launches == 1 ? " launch, " : " launches, ", use.thread_instructions,
                             " thread instructions, ", times));
  }
  return uses;
}

}  // namespace laneshift::emulator
