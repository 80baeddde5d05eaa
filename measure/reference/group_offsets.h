// The offsets and index vectors of a grouped GEMM: how rows are divided among groups, and where they lie, if the caller
// has no data, and which rows a group has by the rules of laneshift/problem.h, found independently of the compiler.
//
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/reference/host_reference.h"

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

// Of layout=k rows are those of A and B: elements of K. With layout=masked each group has its own m rows: uniform is
// all of them, random any number of them, and zipf m / i. "uniform", "random:SEED", "zipf:SEED", sizes as "3,0,5", or a
// file of them. kInvalidArgument names what is wrong.
Result<GroupSizes> ParseGroupSizes(std::string_view text);

// What is in memory: where groups begin, and the last one ends; or the sizes. kInvalidArgument: other than `groups`
// sizes, or more than m rows.
Result<HostTensor> GroupTensor(const GroupedGemmProblem& problem, const GroupSizes& sizes);

// Sets those of a problem by the text of ParseGroupSizes, or random ones of `seed` if it is empty; nothing if there are
// no groups. kInvalidArgument also if there are none but the text is not empty.
Status DivideRows(const Problem& problem, const std::string& sizes, uint64_t seed, HostOperands& operands);

// The rows of each group by the text of ParseGroupSizes, or of layout=k the elements of K; none if it is empty.
// Errors: as DivideRows.
Result<std::vector<int64_t>> SizesOfGroups(const Problem& problem, const std::string& sizes);

struct RowRange {
  int64_t begin = 0, end = 0;

  bool operator==(const RowRange&) const = default;
};
// The rows of each group as kernels take them, whatever is in memory: ascending, without overlap, inside of D; with
// layout=k of A and B.
std::vector<RowRange> RowsOfGroups(const GroupedGemmProblem& problem, const HostOperands& operands);
// From each group's rows of A to the rows of their scale factors. Of scale=mx and nv the factors of all groups are
// those of one matrix, in which each group begins a block of 128 rows; of scale=block there is one for each row of A,
// and masked groups have a matrix each.
std::vector<int64_t> ScaleShiftsOfGroups(const GroupedGemmProblem& problem, const std::vector<RowRange>& groups);
// The group that has the row; -1: none.
int64_t GroupOf(const std::vector<RowRange>& groups, int64_t row);

// Which rows of C and D rows of groups are.
std::vector<bool> StoredRows(const GroupedGemmProblem& problem, const HostOperands& operands,
                             const std::vector<RowRange>& groups);
// Rows of a tensor with the rows of D that are not `stored` and are not 0xff in every byte any more.
std::vector<int64_t> OverwrittenRows(const HostTensor& tensor, const std::vector<bool>& stored);

// An index vector of rows=gather or scatter, by `role`: a random permutation. Where A has fewer rows than the product
// each occurs nearly equally often, as tokens that are routed to several experts do; where D has fewer, the rows of the
// product that it has none for have the index -1.
HostTensor RandomRowIndices(const GroupedGemmProblem& problem, OperandRole role, uint64_t seed);

}  // namespace laneshift::measure
