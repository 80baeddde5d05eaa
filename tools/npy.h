// NumPy's .npy files (format versions 1 to 3), for the element types of a problem.
//
// f16 is '<f2', f32 is '<f4'. NumPy has no bf16, e4m3 and e5m2: their bits are kept as '<u2' and '|u1', and '<V2' and
// '|V1' (what ml_dtypes saves) are read too. Arrays are little-endian and in C order. Shape: the stored rows and
// columns of the matrix, with the batch in front where it is above 1; a bias has one dimension; x and y of a
// convolution are (n, h, w, c), w is (k, r, s, c/groups), with one dimension more or less for one of three or of one
// spatial dimension. Thread-safety: pure functions on files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"
#include "measure/reference/host_tensor.h"

namespace laneshift::tools {

using measure::HostTensor;
using measure::OperandRole;
using measure::Stored;
using measure::StoredTensor;

// Whether files of the type hold its bits.
bool IsUnknownToNumpy(DataType type);

// Reads packed rows into the shape's pitches. `name` is what errors call the operand. kInvalidArgument: no such file,
// not an .npy file, wrong type, shape or order; says what was found and what is needed.
Result<HostTensor> ReadNpy(const std::string& path, const StoredTensor& shape, std::string_view name);

// Writes the rows without padding.
Status WriteNpy(const std::string& path, const HostTensor& tensor);

// The type and the extents of an array, in C order.
struct NpyArray {
  std::string descr;
  std::vector<int64_t> shape;
};
Result<NpyArray> DescribeNpy(const std::string& path);

// The same for arrays of any shape: `bytes` are the elements without padding, `descr` is NumPy's name of their type.
Result<std::vector<uint8_t>> ReadNpyArray(const std::string& path, std::string_view descr,
                                          const std::vector<int64_t>& shape, size_t bytes);
Status WriteNpyArray(const std::string& path, std::string_view descr, const std::vector<int64_t>& shape,
                     const std::vector<uint8_t>& bytes);

}  // namespace laneshift::tools
