// The device's reference as source text (measure/CMakeLists.txt embeds it).
//
// Thread-safety: constants.
#pragma once

#include <string_view>

namespace laneshift::measure {

// measure/reference/product_view.cuh and measure/reference/check_kernel.cuh.
extern const std::string_view kProductViewSource;
extern const std::string_view kCheckKernelSource;

}  // namespace laneshift::measure
