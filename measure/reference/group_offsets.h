// The offsets of a grouped GEMM: how rows are divided among groups where the caller has no data, and which rows a group
// has by the rules of laneshift/problem.h, found by a text of its own.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/reference/host_tensor.h"

namespace laneshift::measure {

struct GroupSizes {
  enum Kind : uint8_t {
    kUniform,  // as equal as they can be
    kRandom,   // each row draws its group
    kZipf,     // as kRandom, the i-th most frequent group with a probability proportional to 1 / i
    kGiven,
  } kind = kRandom;
  uint64_t seed = 0;
  std::vector<int64_t> given{};
};

// "uniform", "random:SEED", "zipf:SEED", sizes as "3,0,5", or a file of them. kInvalidArgument names what is wrong.
Result<GroupSizes> ParseGroupSizes(std::string_view text);

// Where groups begin, and the last one ends. kInvalidArgument: other than `groups` sizes, or more than m rows.
Result<HostTensor> OffsetsOf(const GroupedGemmProblem& problem, const GroupSizes& sizes);

// Those of any problem for the text of ParseGroupSizes, or random ones of `seed` if it is empty; nothing if there are no
// groups. kInvalidArgument also if there are none but the text is not empty.
Result<HostTensor> GroupOffsetsFor(const Problem& problem, const std::string& sizes, uint64_t seed);

// The same as kernels take them, whatever they are: groups + 1 of them, ascending, from 0 to m.
std::vector<int64_t> GroupBounds(const HostTensor& offsets, int64_t m);
// The group that has the row; -1: none.
int64_t GroupOf(const std::vector<int64_t>& bounds, int64_t row);

// Rows of a tensor with the rows of D that belong to no group and are not 0xff in every byte any more.
std::vector<int64_t> OverwrittenRows(const HostTensor& tensor, const std::vector<int64_t>& bounds);

}  // namespace laneshift::measure
