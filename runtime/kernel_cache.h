// KernelCache: from a tile program to a loaded kernel, by the cheapest source: this engine's memory, the store, the
// compiler.
//
// Threads that ask for the same kernel at the same time wait for one compilation. A failure is not remembered.
// Thread-safety: all members may be called from any thread. Everything handed out must be gone before the device.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "device/assembler.h"
#include "device/device.h"
#include "device/module.h"
#include "ir/program.h"
#include "laneshift/engine.h"
#include "nvrtc/function_library.h"
#include "store/store.h"
#include "target/target.h"

namespace laneshift::runtime {

struct LoadedKernel {
  device::Module module;
  device::Kernel kernel;
};

// A kernel and what it cost to get it.
struct FoundKernel {
  std::shared_ptr<const LoadedKernel> loaded;
  CacheState cache = CacheState::kCompiled;
  double ptx_ms = 0, assemble_ms = 0;
};

// Text for people, stored next to a kernel.
struct KernelLabel {
  std::string problem, schedule;
};

// The assemblers that can turn PTX into a module.
struct AssemblerChoice {
  enum Kind {
    kPtxasOrDriver,
    kPtxas,
    kDriver,
  } kind = kPtxasOrDriver;
  std::string ptxas;  // path; empty: searched
};

// An amount of dynamic shared memory of which no two CTAs fit on an SM. Every kernel is allowed this much.
constexpr int OneCtaPerSmBytes(const target::Target& target) { return target.smem_bytes / 2; }
// The most of which two fit: the hardware takes 1 KiB for itself from each.
constexpr int TwoCtasPerSmBytes(const target::Target& target) { return target.smem_bytes / 2 - 1024; }

class KernelCache {
 public:
  // REQUIRES: `device`, `target`, `store` and `functions` outlive the cache.
  KernelCache(const device::Device& device, const target::Target& target, store::Store& store,
              nvrtc::FunctionLibrary& functions, AssemblerChoice assembler);

  // REQUIRES: `program` is lowered and has its storage.
  Result<FoundKernel> Get(const ir::Program& program, const KernelLabel& label);

  // Assembles PTX here. kUnsupported: ptxas was requested and there is none, or it is not a ptxas.
  Result<store::AssemblerRecord> FindAssembler();

 private:
  using Outcome = Result<FoundKernel>;
  using Flight = std::shared_future<Outcome>;

  Outcome Fetch(const std::string& key, const ir::Program& program, const KernelLabel& label);
  Outcome FromStore(const store::KernelRecord& record, unsigned smem_bytes);
  Outcome Compile(const std::string& key, const ir::Program& program, const KernelLabel& label);
  // Whether the driver compiles the PTX, by choice or because it takes nothing else.
  bool DriverCompiles() const { return choice_.kind == AssemblerChoice::kDriver || !takes_cubins_; }
  // The cubin of `ptx`; nothing where the driver is to compile it.
  // Null: the driver compiles PTX. Errors as FindAssembler.
  Result<const device::PtxAssembler*> Ptxas();
  Result<std::optional<store::CubinRecord>> Assemble(const std::string& ptx);
  // If the driver refuses the cubin it is given the PTX, and from then on no other cubin, unless ptxas was requested.
  Result<device::Module> LoadModule(const std::string& ptx, const std::optional<store::CubinRecord>& cubin);
  Result<std::shared_ptr<const LoadedKernel>> Load(const std::string& ptx,
                                                   const std::optional<store::CubinRecord>& cubin, int smem_bytes);

  const device::Device& device_;
  const target::Target& target_;
  store::Store& store_;
  nvrtc::FunctionLibrary& functions_;
  const AssemblerChoice choice_;

  std::mutex mutex_;
  std::unordered_map<std::string, Flight> flights_;  // guarded by mutex_

  std::atomic<bool> takes_cubins_ = true;  // the driver, as far as is known
  std::once_flag searched_;
  std::optional<Result<device::PtxAssembler>> assembler_;  // set once, when first needed: finding it starts a process
};

}  // namespace laneshift::runtime
