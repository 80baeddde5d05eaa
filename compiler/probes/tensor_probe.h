// Tensor probe: a small kernel that measures target::TensorFacts.
//
// It fills operand tiles in Tensor Memory with rows that encode their number, moves them once each way - one
// tcgen05.shift, one tcgen05.cp.4x256b to lane 31, one tcgen05.mma with .ashift, all at lane 0 and waited for one by
// one, so that the result depends on nothing else in flight - and stores what each lane holds then.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "compiler/compile.h"
#include "laneshift/result.h"
#include "target/target.h"
#include "target/tensor_facts.h"

namespace laneshift::compiler {

// The kernel takes one parameter, a device pointer to kProbeWords words, and runs as one CTA of kProbeThreads threads
// with kProbeSharedBytes of dynamic shared memory.
inline constexpr unsigned kProbeThreads = 128;
inline constexpr int kProbeSharedBytes = 5120;
inline constexpr int kProbeColumns = 8;  // that each experiment moves: 32 bytes of a row

// What the kernel tries, in the order in which it stores results: for each lane its kProbeColumns words.
enum class ProbeExperiment : uint8_t { kShift, kRefresh, kAshift };
inline constexpr int kProbeExperiments = 3;
inline constexpr size_t kProbeWords = size_t{kProbeExperiments} * kProbeThreads * kProbeColumns;

// kUnsupported: the target has no Tensor Memory.
Result<PtxModule> EmitTensorProbe(const target::Target& target);

// Decodes the words. REQUIRES: kProbeWords of them.
target::TensorFacts ReadTensorFacts(std::span<const uint32_t> words);

}  // namespace laneshift::compiler
