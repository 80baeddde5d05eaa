// TensorKernel: what kernels of probes have in common that use Tensor Memory: its allocation, its contents before, who
// waits for whom, and its contents after.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/probes/ptx_text.h"

namespace laneshift::runtime {

inline constexpr unsigned kTensorThreads = 128;  // one for each lane
inline constexpr int kTensorColumns = 512;       // all are allocated

class TensorKernel {
 public:
  // `ctas`: that execute every instruction together, 1 or 2; so large is the cluster. Emits the allocation and the
  // barrier that `Commit` signals.
  TensorKernel(PtxText& text, int ctas);

  // "tcgen05.mma.cta_group::1", …
  std::string Grouped(std::string_view instruction) const;
  // The address of this warp's lanes, and that of lane 0.
  const std::string& lanes() const { return lanes_; }
  const std::string& tensor() const { return tensor_; }
  std::string Column(const std::string& address, int column) { return text_.Word("add.u32", address, column); }

  // This thread's lane of `count` columns (a multiple of 16) from `column` on becomes what the words say: one register
  // for each of 16 columns.
  void Fill(int column, int count, const std::function<std::vector<std::string>(int first)>& words);
  // After all fills: everybody sees them. Before that, the barrier may be initialised by anybody.
  void Begin();
  // Thread 0 of CTA 0 executes `body` between two readings of the clock, commits, and waits; then everybody does.
  void Measure(const std::function<void()>& body);
  // Within `body`: the end of all instructions so far is waited for. `parity` alternates, 0 first.
  void CommitAndWait(const std::string& parity);
  // Lane by lane `columns` words (a register or a number; a multiple of 16) to `out`, each lane with `pitch` words.
  void Dump(const std::string& columns, int pitch);
  void End();

 private:
  // The same is signalled in every CTA.
  void CommitForAll();

  PtxText& text_;
  const int ctas_;
  std::string tensor_, lanes_, done_, each_;
};

}  // namespace laneshift::runtime
