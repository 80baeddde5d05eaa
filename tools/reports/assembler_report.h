// The output of verify-assembler.
//
// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/assembler_check/assembled_kernel.h"
#include "tools/table.h"

namespace laneshift::tools {

struct AssemblerCheck {
  std::vector<CheckedKernel> kernels;
  std::vector<device::PtxAssembler> assemblers;
  std::vector<std::vector<AssembledKernel>> made;  // [kernel][assembler]
  std::string device;                              // that words were compared on; empty: none
  std::string ended_early;                         // why not everything was compared; empty: it was

  // Whether nothing has failed and at least one assembler accepted each kernel.
  bool Right() const;
};

// One row per assembler, then the differences and the failures, one line each.
std::string AssemblerText(const AssemblerCheck& check, const Screen& screen);

// One kernel: {"kernel", "target", "results": [{"assembler", "path", "status", …}], "differences"}.
nlohmann::ordered_json KernelJson(const AssemblerCheck& check, size_t kernel);
// The summary: {"ok", "device", "assemblers": [{"assembler", "path", "assembled", …}]}.
nlohmann::ordered_json AssemblersJson(const AssemblerCheck& check);

}  // namespace laneshift::tools
