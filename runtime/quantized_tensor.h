// What Quantize and Dequantize refuse, on the host and on a device.
//
// Thread-safety: pure functions.
#pragma once

#include "laneshift/quantize.h"

namespace laneshift::runtime {

// BytesOf the tensor, if its numbers may have this type. kInvalidArgument names what is wrong.
Result<QuantizedBytes> CheckedBytesOf(const QuantizedTensor& tensor, DataType numbers);

}  // namespace laneshift::runtime
