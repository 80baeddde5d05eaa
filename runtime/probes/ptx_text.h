// PtxText: the text of a probe's kernel, instruction by instruction, with registers that are declared as they are used.
//
// Probes measure single instructions, in an order that nothing may change: they are written as text and not compiled
// (docs/adr/0040-rate-probes-are-ptx-text.md). Every kernel has the entry kProbeEntry and the parameters
//
//   clocks   .u64   one 64-bit word for each CTA: the clocks that its loop took
//   out      .u64   the words that prove the kernel right
//   in       .u64   what it reads
//   repeats  .u32   iterations of the loop, at least 1
//   p0, p1…  .u32   as many as it asks for
//   map      128 bytes aligned to 64: a tensor map, if it asks for one
//
// Thread-safety: none.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "target/target.h"

namespace laneshift::runtime {

inline constexpr const char* kProbeEntry = "laneshift_rate_probe";

// Of a register: its letter, and its type in the declaration.
enum class RegisterKind : uint8_t { kWord, kWide, kPredicate, kHalf };

class PtxText {
 public:
  // `words`: parameters p0 and up. REQUIRES: ptx_version (86 is 8.6) has the instructions.
  PtxText(const target::Target& target, int ptx_version, unsigned threads, unsigned cluster, int words, bool map);

  // A variable in shared memory: `.shared .align 8 .b64 NAME[COUNT];`
  void Shared(std::string_view type, std::string_view name, int count, int align);
  // `op a, b, c;` and the same under a predicate.
  template <typename... Operands>
  void Do(std::string_view op, const Operands&... operands) {
    Line(base::Cat(op, " ", Listed(operands...)));
  }
  template <typename... Operands>
  void DoIf(const std::string& predicate, std::string_view op, const Operands&... operands) {
    Line(base::Cat("@", predicate, " ", op, " ", Listed(operands...)));
  }
  // The same with a new register as the first operand, which is returned.
  template <typename... Operands>
  std::string Let(RegisterKind kind, std::string_view op, const Operands&... operands) {
    const std::string made = New(kind);
    Do(op, made, operands...);
    return made;
  }
  template <typename... Operands>
  std::string Word(std::string_view op, const Operands&... operands) {
    return Let(RegisterKind::kWord, op, operands...);
  }
  template <typename... Operands>
  std::string Wide(std::string_view op, const Operands&... operands) {
    return Let(RegisterKind::kWide, op, operands...);
  }
  template <typename... Operands>
  std::string Predicate(std::string_view op, const Operands&... operands) {
    return Let(RegisterKind::kPredicate, op, operands...);
  }
  std::string New(RegisterKind kind);
  std::vector<std::string> NewWords(int count);

  // A label that is not taken.
  std::string NewLabel();
  void Place(const std::string& label) { text_ += label + ":\n"; }
  void Branch(const std::string& label) { Do("bra", label); }
  void BranchIf(const std::string& predicate, const std::string& label) { DoIf(predicate, "bra", label); }
  // Executes `body(index)` for index = 0, 1, … before `count`, a register that is at least 1.
  void Repeat(const std::string& count, const std::function<void(const std::string& index)>& body);
  // The same for `first`, `first` + `step`, … before `end`, each a register or a number; at least once.
  void ForEach(std::string_view first, std::string_view end, std::string_view step,
               const std::function<void(const std::string& index)>& body);
  // `body` is left out by threads for which the predicate holds.
  void Unless(const std::string& predicate, const std::function<void()>& body);

  // `body` is executed by one thread of the CTA, thread 0, in a way in which ptxas knows that it is one: otherwise it
  // puts a loop over the active threads around each instruction that a thread issues for all (tcgen05.mma, cp, shift,
  // bulk copies), which would be measured too.
  void Elected(const std::function<void()>& body);

  // What every probe reads first: parameters as registers, thread and CTA.
  const std::string& clocks() const { return clocks_; }
  const std::string& out() const { return out_; }
  const std::string& in() const { return in_; }
  const std::string& repeats() const { return repeats_; }
  const std::string& parameter(int index) const { return words_[static_cast<size_t>(index)]; }
  const std::string& thread() const { return thread_; }
  const std::string& cta() const { return cta_; }
  const std::string& rank() const { return rank_; }                // in the cluster
  const std::string& other_threads() const { return not_first_; }  // predicate: not thread 0
  // The generic address of the tensor map.
  std::string MapAddress();

  // Dynamic shared memory, as an address aligned to 1024. The launch has 1024 bytes more than is used.
  std::string SharedStart();
  // Executed by thread 0 of each CTA: the clock, ordered after what precedes it.
  std::string Clock() { return Wide("mov.u64", "%clock64"); }
  void StoreClocks(const std::string& begin, const std::string& end);

  // mbarriers, by the address in a register or the name of a variable.
  void WaitFor(const std::string& barrier, const std::string& parity);
  void SyncCta() { Line("bar.sync 0"); }
  // Every thread of the cluster.
  void SyncCluster();

  // Copies `words` words (a multiple of 4 for each of the threads) from `in` + offset to shared memory.
  void FillShared(const std::string& shared, const std::string& source, int words);
  // The reverse of FillShared; `count` is a number or a register with a number of bytes, a multiple of 16.
  void DumpShared(const std::string& shared, const std::string& target, std::string_view bytes);
  // `out` of this CTA, each with `words` words.
  std::string OutOfCta(int words);

  void Line(std::string_view text) { text_ += base::Cat("  ", text, ";\n"); }
  // The module.
  std::string Finish() const;

 private:
  template <typename... Operands>
  static std::string Listed(const Operands&... operands) {
    std::string list;
    ((list += base::Cat(list.empty() ? "" : ", ", operands)), ...);
    return list;
  }

  std::string header_, text_, shared_;
  std::array<int, 4> registers_{};
  int labels_ = 0;
  const unsigned threads_;
  std::string clocks_, out_, in_, repeats_, thread_, cta_, rank_, not_first_;
  std::vector<std::string> words_;
};

// "{a, b, c}".
std::string Braced(const std::vector<std::string>& registers);

}  // namespace laneshift::runtime
