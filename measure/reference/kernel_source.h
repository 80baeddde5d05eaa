// The device's reference as source text (measure/CMakeLists.txt embeds it).
//
// Thread-safety: constants.
#pragma once

#include <string_view>

namespace laneshift::measure {

// measure/reference/product_view.cuh, then measure/reference/reference_operands.cuh, then one of the kernels
// measure/reference/check_kernel.cuh and measure/reference/sums_kernel.cuh.
extern const std::string_view kProductViewSource;
extern const std::string_view kReferenceOperandsSource;
extern const std::string_view kSumsKernelSource;
extern const std::string_view kCheckKernelSource;

}  // namespace laneshift::measure
