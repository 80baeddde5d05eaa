// What the references on a GPU share: their text compiled for one problem, and its parameters.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/device.h"
#include "device/module.h"
#include "laneshift/engine.h"
#include "measure/reference/product_view.h"
#include "nvrtc/nvrtc.h"

namespace laneshift::measure {

using nvrtc::CodeForm;
using nvrtc::Nvrtc;

// Of SumTile in reference_operands.cuh: elements of D per CTA, in both directions, and its threads.
inline constexpr int64_t kReferenceTile = 64;
inline constexpr unsigned kReferenceThreads = 256;

// `kernel`, one of measure/reference/kernel_source.h and what belongs to it, after the text that declares the operands
// of the problem. Where there is no assembler for a cubin it is PTX.
Result<device::Module> CompileReference(const Nvrtc& nvrtc, const device::Device& device, const Problem& problem,
                                        std::string_view kernel, CodeForm form);

using ReferenceArguments = CheckArguments<void, void, void, void, void>;
// `totals`: of the reductions of the epilogue, null where there are none.
ReferenceArguments ReferenceArgumentsOf(const Problem& problem, const GemmArguments& roles,
                                        const EpilogueArguments& totals);

}  // namespace laneshift::measure
