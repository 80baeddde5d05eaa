// Moment: a point in time and its critical path: how much of it each kind of work took.
//
// Thread-safety: values.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace laneshift::autotune {

// What a kernel can spend its time on.
// BOUND(Name, text, doc)
#define LS_BOUNDS(BOUND)                                                                          \
  BOUND(TensorCore, "tensor core", "the tensor core multiplies at its full rate")                 \
  BOUND(SharedMemory, "shared memory", "the tensor core waits for operands from shared memory")   \
  BOUND(L2, "L2", "operands come from L2 at its full rate")                                       \
  BOUND(Memory, "memory", "operands are read from or results written to memory at its full rate") \
  BOUND(LoadLatency, "load latency", "too few loads are in flight to hide the latency of one")    \
  BOUND(ProductLatency, "product latency", "an MMA has to end before the next step")              \
  BOUND(Issue, "issue", "threads issue instructions and pass barriers")                           \
  BOUND(Outside, "zero fill", "bulk copies fill rows outside the tensor with zeros")              \
  BOUND(Gather, "gather", "threads load an operand, by elements or by pieces of a few bytes")     \
  BOUND(Epilogue, "epilogue", "accumulators are read and converted")                              \
  BOUND(Store, "store", "the output is stored")                                                   \
  BOUND(Pack, "pack", "a kernel packs operands to make them TMA-addressable")                     \
  BOUND(Reductions, "totals", "kernels add the partial rows of deterministic reductions")         \
  BOUND(Launch, "launch", "the kernel starts and ends")

enum class Bound {
#define LS_BOUND_ENUM(Name, text, doc) k##Name,
  LS_BOUNDS(LS_BOUND_ENUM)
#undef LS_BOUND_ENUM
};
inline constexpr size_t kBoundCount = 0
#define LS_BOUND_COUNT(...) +1
    LS_BOUNDS(LS_BOUND_COUNT);
#undef LS_BOUND_COUNT

// "tensor core", …
std::string_view BoundName(Bound bound);
// "the tensor core multiplies at its full rate", …
std::string_view BoundDoc(Bound bound);

struct Moment {
  double clocks = 0;
  std::array<double, kBoundCount> by{};  // sums to `clocks`

  void Spend(Bound bound, double more) {
    clocks += more;
    by[static_cast<size_t>(bound)] += more;
  }
  Moment After(Bound bound, double more) const {
    Moment later = *this;
    later.Spend(bound, more);
    return later;
  }
  // All of it takes `times` as long.
  void Stretch(double factor) {
    clocks *= factor;
    for (double& spent : by) spent *= factor;
  }
  // Not before `other`.
  void Await(const Moment& other) {
    if (other.clocks > clocks) *this = other;
  }
  // The same as Await(other.After(bound, more)), without a copy where `other` is early.
  void Await(const Moment& other, Bound bound, double more) {
    if (other.clocks + more <= clocks) return;
    *this = other;
    Spend(bound, more);
  }
};

}  // namespace laneshift::autotune
