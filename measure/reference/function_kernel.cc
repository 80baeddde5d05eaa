#include "measure/reference/function_kernel.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/text.h"
#include "compiler/functions/function_code.h"

namespace laneshift::measure {
namespace {

using base::Cat;

// The statement with registers in place of its operands: "$2" and "$$".
std::string WithOperands(const std::string& statement, const std::vector<std::string>& operands) {
  std::string text;
  for (size_t i = 0; i < statement.size(); ++i) {
    if (statement[i] != '$') {
      text += statement[i];
    } else if (statement[i + 1] == '$') {
      text += statement[i++];
    } else {
      size_t index = 0;
      while (i + 1 < statement.size() && statement[i + 1] >= '0' && statement[i + 1] <= '9') {
        index = 10 * index + static_cast<size_t>(statement[++i] - '0');
      }
      text += operands[index];
    }
  }
  return text;
}

}  // namespace

std::string FunctionKernel(const compiler::FunctionModule& module, const target::Target& target) {
  // Enough copies to exceed the inlining limit: the function itself, as NVRTC made it, is called.
  const compiler::FunctionCode code =
      compiler::MakeFunctionCode(module, "user", std::numeric_limits<int>::max() / 4096);
  const int version = std::max(module.version(), target.ptx_version);
  std::string text = Cat(".version ", version / 10, ".", version % 10, "\n.target ", target.name,
                         "\n.address_size 64\n", code.declarations, ".visible .entry ", kFunctionKernel,
                         "(\n.param .u64 inputs,\n.param .u64 outputs,\n.param .u32 count");
  std::vector<std::string> operands;
  for (int i = 0; i < code.results; ++i) operands.push_back(Cat("%out", i));
  if (code.guarded) operands.emplace_back("%inside");
  std::string loads;
  int inputs = 0, addresses = 0;
  for (const bool wide : code.wide) {
    if (wide) {
      text += Cat(",\n.param .u64 address", addresses);
      loads += Cat("ld.param.u64 %address", addresses, ", [address", addresses, "];\n");
      operands.push_back(Cat("%address", addresses++));
    } else {
      loads += Cat("ld.global.f32 %in", inputs, ", [%from];\nadd.s64 %from, %from, %pitch;\n");
      operands.push_back(Cat("%in", inputs++));
    }
  }
  text += Cat(")\n{\n.reg .pred %inside;\n.reg .b32 %i, %n, %block;\n.reg .b64 %from, %to, %at, %pitch;\n",
              ".reg .f32 %in<", inputs, ">;\n.reg .f32 %out<", code.results, ">;\n");
  if (addresses > 0) text += Cat(".reg .b64 %address<", addresses, ">;\n");
  text +=
      "mov.u32 %i, %ctaid.x;\nmov.u32 %block, %ntid.x;\nmul.lo.u32 %i, %i, %block;\nmov.u32 %block, %tid.x;\n"
      "add.u32 %i, %i, %block;\nld.param.u32 %n, [count];\nsetp.lt.u32 %inside, %i, %n;\n@!%inside ret;\n"
      "mul.wide.u32 %at, %i, 4;\nmul.wide.u32 %pitch, %n, 4;\nld.param.u64 %from, [inputs];\n"
      "add.s64 %from, %from, %at;\nld.param.u64 %to, [outputs];\nadd.s64 %to, %to, %at;\n";
  text += loads + WithOperands(code.statement, operands) + "\n";
  for (int i = 0; i < code.results; ++i) {
    text += Cat("st.global.f32 [%to], %out", i, ";\nadd.s64 %to, %to, %pitch;\n");
  }
  return text + "ret;\n}\n";
}

}  // namespace laneshift::measure
