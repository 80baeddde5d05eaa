#include "measure/reference/group_offsets.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>

#include "base/text.h"

namespace laneshift::measure {
namespace {

using base::Cat;

Error Invalid(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// Numbers with blanks, line ends or commas between them.
Result<std::vector<int64_t>> ParseSizes(std::string text, std::string_view where) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ',' || c == '\n' || c == '\r' || c == '\t'; }, ' ');
  std::vector<int64_t> sizes;
  for (const std::string_view word : base::Words(text)) {
    const auto size = base::ParseInt(word);
    if (!size || *size < 0)
      return Invalid(Cat("--group-sizes: '", word, "' of ", where, " is no number of rows; use 0 or more"));
    sizes.push_back(*size);
  }
  return sizes;
}

// Rows draw their groups with these weights.
std::vector<int64_t> Drawn(int64_t rows, const std::vector<double>& weights, std::mt19937_64& random) {
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  std::vector<int64_t> sizes(weights.size());
  for (int64_t i = 0; i < rows; ++i) {
    const double point = static_cast<double>(random() >> 11) * 0x1p-53 * sums.back();
    const auto group = std::upper_bound(sums.begin(), sums.end() - 1, point) - sums.begin();
    ++sizes[static_cast<size_t>(group)];
  }
  return sizes;
}

std::vector<int64_t> SizesOf(const GroupedGemmProblem& problem, const GroupSizes& sizes) {
  const auto groups = static_cast<size_t>(problem.groups);
  std::mt19937_64 random(sizes.seed);
  std::vector<double> weights(groups, 1.0);
  switch (sizes.kind) {
    case GroupSizes::kGiven:
      return sizes.given;
    case GroupSizes::kUniform: {
      std::vector<int64_t> equal(groups, problem.m / problem.groups);
      for (size_t i = 0; i < static_cast<size_t>(problem.m % problem.groups); ++i) ++equal[i];
      return equal;
    }
    case GroupSizes::kRandom:
      return Drawn(problem.m, weights, random);
    case GroupSizes::kZipf:
      for (size_t i = 0; i < groups; ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
      // Not in the order of the groups.
      for (size_t i = groups; i > 1; --i) std::swap(weights[i - 1], weights[random() % i]);
      return Drawn(problem.m, weights, random);
  }
  return {};
}

}  // namespace

Result<GroupSizes> ParseGroupSizes(std::string_view text) {
  if (text == "uniform") return GroupSizes{.kind = GroupSizes::kUniform};
  for (const auto& [name, kind] : {std::pair{std::string_view("random"), GroupSizes::kRandom},
                                   std::pair{std::string_view("zipf"), GroupSizes::kZipf}}) {
    if (text == name) return GroupSizes{.kind = kind};
    if (!text.starts_with(Cat(name, ":"))) continue;
    const auto seed = base::ParseInt(text.substr(name.size() + 1));
    if (!seed || *seed < 0)
      return Invalid(Cat("--group-sizes ", text, ": the seed is no number; write for example ", name, ":1"));
    return GroupSizes{.kind = kind, .seed = static_cast<uint64_t>(*seed)};
  }
  GroupSizes sizes{.kind = GroupSizes::kGiven};
  if (text.find_first_not_of("0123456789,") == std::string_view::npos) {
    LS_ASSIGN(sizes.given, ParseSizes(std::string(text), "the list"));
    return sizes;
  }
  std::ifstream file{std::string(text)};
  if (!file)
    return Invalid(Cat("--group-sizes ", text,
                       ": there is no such file; use uniform, random:SEED, zipf:SEED, a list such as 3,0,5, or a file "
                       "of sizes"));
  LS_ASSIGN(sizes.given, ParseSizes({std::istreambuf_iterator<char>(file), {}}, text));
  return sizes;
}

Result<HostTensor> OffsetsOf(const GroupedGemmProblem& problem, const GroupSizes& sizes) {
  const std::vector<int64_t> rows = SizesOf(problem, sizes);
  if (static_cast<int64_t>(rows.size()) != problem.groups)
    return Invalid(Cat("--group-sizes has ", rows.size(), " sizes, but groups=", problem.groups));
  HostTensor offsets = HostTensor::Poisoned(Stored(problem, OperandRole::kGroupOffsets));
  int64_t offset = 0;
  StoreElement(offsets.bytes.data(), DataType::kS32, 0, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    offset += rows[i];
    if (offset > problem.m)
      return Invalid(Cat("--group-sizes: the first ", i + 1, " groups have ", offset, " rows, but m=", problem.m));
    StoreElement(offsets.bytes.data(), DataType::kS32, static_cast<int64_t>(i) + 1, static_cast<double>(offset));
  }
  return offsets;
}

Result<HostTensor> GroupOffsetsFor(const Problem& problem, const std::string& sizes, uint64_t seed) {
  const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
  if (grouped == nullptr) {
    if (sizes.empty()) return HostTensor{};
    return Invalid(Cat("--group-sizes ", sizes, ": a ", ProblemKind(problem), " has no groups; use grouped_gemm"));
  }
  if (sizes.empty()) return OffsetsOf(*grouped, {.kind = GroupSizes::kRandom, .seed = seed});
  LS_ASSIGN(const GroupSizes parsed, ParseGroupSizes(sizes));
  return OffsetsOf(*grouped, parsed);
}

std::vector<int64_t> GroupBounds(const HostTensor& offsets, int64_t m) {
  std::vector<int64_t> bounds;
  int64_t last = 0;
  for (int64_t i = 0; i < offsets.shape.Inner(); ++i) {
    const auto stored = static_cast<int64_t>(ElementAt(offsets.bytes.data(), DataType::kS32, i));
    last = std::max(last, std::min(stored, m));
    bounds.push_back(last);
  }
  return bounds;
}

int64_t GroupOf(const std::vector<int64_t>& bounds, int64_t row) {
  if (row < bounds.front() || row >= bounds.back()) return -1;
  return std::upper_bound(bounds.begin(), bounds.end(), row) - bounds.begin() - 1;
}

std::vector<int64_t> OverwrittenRows(const HostTensor& tensor, const std::vector<int64_t>& bounds) {
  const int64_t bytes = DataTypeBytes(tensor.shape.type);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < tensor.shape.Rows(); ++row) {
    if (GroupOf(bounds, row) >= 0) continue;
    const auto first = tensor.bytes.begin() + tensor.shape.RowStart(row) * bytes;
    const bool untouched =
        std::all_of(first, first + tensor.shape.Inner() * bytes, [](std::byte byte) { return byte == std::byte{0xff}; });
    if (!untouched) rows.push_back(row);
  }
  return rows;
}

}  // namespace laneshift::measure
