// BlockKernels: the kernels of Engine::Quantize and Dequantize that an engine has loaded, one for each combination of
// types.
//
// Thread-safety: all members may be called from any thread. What is handed out must be gone before the device.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "compiler/plan/block_conversion.h"
#include "ir/program.h"
#include "runtime/kernel_cache.h"
#include "target/target.h"

namespace laneshift::runtime {

struct BlockKernel {
  ir::Program program;
  std::shared_ptr<const LoadedKernel> loaded;
};

class BlockKernels {
 public:
  // REQUIRES: `target` and `kernels` outlive it.
  BlockKernels(const target::Target& target, KernelCache& kernels) : target_(target), kernels_(kernels) {}

  // Null: it is not loaded yet.
  std::shared_ptr<const BlockKernel> Find(const compiler::BlockConversion& conversion) const;
  // Loads it unless it is.
  Result<std::shared_ptr<const BlockKernel>> Get(const compiler::BlockConversion& conversion);

 private:
  const target::Target& target_;
  KernelCache& kernels_;
  mutable std::mutex mutex_;
  std::map<compiler::BlockConversion, std::shared_ptr<const BlockKernel>> loaded_;  // guarded by mutex_
};

}  // namespace laneshift::runtime
