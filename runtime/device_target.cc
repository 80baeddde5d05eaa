#include "runtime/device_target.h"

#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "compiler/probes/tensor_probe.h"
#include "device/buffer.h"
#include "device/launch.h"
#include "device/module.h"
#include "device/stream.h"

namespace laneshift::runtime {
namespace {

Result<std::vector<uint32_t>> RunProbe(const device::Device& device, const target::Target& target) {
  LS_ASSIGN(const compiler::PtxModule probe, compiler::EmitTensorProbe(target));
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  const device::Context context = device.context();
  LS_ASSIGN(const device::Module module, device::Module::LoadPtx(context, probe.ptx));
  LS_ASSIGN(const device::Kernel kernel, module.GetKernel(probe.entry));
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(context));
  std::vector<uint32_t> words(compiler::kProbeWords);
  LS_ASSIGN(const device::DeviceBuffer result,
            device::DeviceBuffer::Allocate(context, words.size() * sizeof(uint32_t)));
  // Not a row number: shows which lanes the kernel did not write.
  LS_TRY(result.FillWords(stream, ~0u));
  device::CuDevicePtr address = result.pointer();
  void* const parameters[] = {&address};
  LS_TRY(device::Launch(kernel,
                        {.grid = {},
                         .block = {compiler::kProbeThreads, 1, 1},
                         .cluster = {},
                         .dynamic_smem_bytes = compiler::kProbeSharedBytes},
                        stream, parameters));
  LS_TRY(result.CopyToHost(stream, words.data(), result.size()));
  LS_TRY(stream.Synchronize());
  return words;
}

}  // namespace

DeviceTarget::DeviceTarget(const OpenedDevice& opened, store::Store& store)
    : opened_(opened), store_(store), key_(opened.Key()), measured_(*opened.target) {}

const target::Target& DeviceTarget::Get() {
  if (!documented().mma.moves_lanes) return documented();
  std::call_once(asked_, [this] {
    if (ReadStored(measured_.tensor_facts)) return;
    const auto facts = Measure();
    if (facts) {
      measured_.tensor_facts = *facts;
    } else {
      LS_LOG(kRuntime, warn, "the tensor probe failed (", facts.error().message, "); using the documented answers");
    }
  });
  return measured_;
}

Result<target::TensorFacts> DeviceTarget::Measure() const {
  auto words = RunProbe(opened_.device, documented());
  if (!words) return words.error().Within("the tensor probe");
  const target::TensorFacts facts = compiler::ReadTensorFacts(*words);
  for (const target::FactAnswer& fact : target::AnswersOf(facts)) {
    (void)store_.PutFact({.device = key_, .name = fact.name, .answer = fact.answer});
  }
  return facts;
}

// Whether the store has them all.
bool DeviceTarget::ReadStored(target::TensorFacts& facts) const {
  target::TensorFacts stored;
  for (const target::FactAnswer& fact : target::AnswersOf(stored)) {
    const auto record = store_.GetFact(key_, fact.name);
    if (!record || !record->has_value() || !target::SetFact(stored, fact.name, (*record)->answer)) return false;
  }
  facts = stored;
  return true;
}

}  // namespace laneshift::runtime
