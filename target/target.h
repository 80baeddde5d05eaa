// Facts about the chips that laneshift generates code for. No behaviour, no LLVM.
//
// Sources: PTX ISA 9.0 (sections 9.7.14-16), CUDA programming guide, table of technical specifications per compute
// capability. Thread-safety: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "laneshift/result.h"
#include "target/tensor_facts.h"

namespace laneshift::target {

enum class Feature : uint32_t {
  kNone = 0,
  kTma = 1u << 0,            // cp.async.bulk.tensor, mbarrier transactions
  kWgmma = 1u << 1,          // wgmma.mma_async, accumulators in registers
  kTensorMemory = 1u << 2,   // tcgen05, accumulators in Tensor Memory
  kSetMaxNReg = 1u << 3,     // registers moved between warpgroups at run time
  kTmaToCta = 1u << 4,       // the .shared::cta destination of bulk tensor copies
  kLaunchControl = 1u << 5,  // clusterlaunchcontrol: work stealing between clusters
  kFloat4 = 1u << 6,         // conversions of f32 to e2m1
  kTmaGather = 1u << 7,      // bulk tensor copies of four rows of any index
};

// Where accumulators are.
enum class AccumulatorSpace : uint8_t { kRegisters, kTensorMemory };
// How an instruction names a tile in shared memory.
enum class MatrixDescriptorFormat : uint8_t { kWgmma, kTcgen05 };

// The matrix instruction of a target.
struct MmaUnit {
  std::string_view summary;  // for people
  AccumulatorSpace accumulators;
  MatrixDescriptorFormat descriptors;
  bool one_thread_issues;           // a separate role issues MMAs; otherwise the warps that hold the accumulator do
  int most_rows;                    // of one instruction in one CTA
  int full_rate_rows;               // fewer rows take as long
  int most_ctas;                    // that multiply together
  int least_mn_major_bits;          // operands contiguous along M or N have this many bits to 16
  int mixed_integers_ptx_version;   // at least ptx_version: of instructions that multiply s8 by u8
  int block_scale_ptx_version;      // of instructions with scale factors in Tensor Memory; 0: it has none
  int sparse_ptx_version;           // at least ptx_version: of instructions with a 2:4 sparse A
  bool integers;                    // multiplies s8 and u8
  bool pads_operands;               // it multiplies types of 4 and 6 bits that the TMA pads to 8
  bool multiplies_sparse_four_bit;  // A may be 2:4 sparse also in the kinds whose elements have 4 bits in shared memory
  bool long_rows;                   // multiplies 48 bytes of a row of 4-bit elements at once, K = 96, in the time of 32
  bool moves_lanes;                 // rows of A lie in lanes that can be shifted, and MMAs can disable lanes

  bool ScalesBlocks() const { return block_scale_ptx_version > 0; }
  bool AccumulatesInTensorMemory() const { return accumulators == AccumulatorSpace::kTensorMemory; }
};

// The product that a target represents if no device is at hand, and whose figures were published or fitted.
enum class Product : uint8_t { kH200, kB200, kB300, kThor };

struct Target {
  std::string_view name;  // as ptxas and LLVM spell it
  int compute_major, compute_minor;
  int ptx_version;   // lowest PTX ISA version that has the instructions we emit: 86 is 8.6
  int smem_bytes;    // shared memory of one CTA, static and dynamic together
  int tmem_columns;  // Tensor Memory columns of an SM; 0 without Tensor Memory
  int registers_per_sm;
  int eight_bit_sum_bits;  // fraction bits that the tensor core keeps of a sum of 8-bit products; 23: an f32
  int mma_macs_per_clock;  // dense 16-bit multiply-accumulates of an SM's tensor cores in one clock
  Product product;
  int default_sm_count;  // of that product
  int max_cluster;       // CTAs of a cluster on every device of the target
  uint32_t features;
  MmaUnit mma;
  bool family = false;         // its code also runs on later chips of the major version
  TensorFacts tensor_facts{};  // the documented answers; an engine replaces them by measured ones

  // Whether a device of this compute capability runs its code.
  bool RunsOn(int major, int minor) const {
    return major == compute_major && (family ? minor >= compute_minor : minor == compute_minor);
  }
  bool Has(Feature feature) const { return (features & static_cast<uint32_t>(feature)) != 0; }
};

// In order of preference.
std::span<const Target> Targets();

// Their names: "sm_100a, sm_90a, …".
std::string TargetNames(std::string_view separator);

// kUnsupported lists the known names.
Result<const Target*> FindTarget(std::string_view name);
// The same for a name that is known to exist: for tests and programs that name a target themselves.
const Target& NamedTarget(std::string_view name);

// The target that has most of a device of this compute capability; kUnsupported names the capabilities that have one.
Result<const Target*> TargetOfDevice(int compute_major, int compute_minor);

}  // namespace laneshift::target
