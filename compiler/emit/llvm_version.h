// The LLVM that makes PTX of our LLVM IR, for code that must not include LLVM's headers.
#pragma once

#include <string_view>

namespace laneshift::compiler {

std::string_view LlvmVersion();  // "22.1.0"

}  // namespace laneshift::compiler
