#include "measure/reference/group_offsets.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "base/read_file.h"
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
  const bool masked = problem.layout == GroupLayout::kMasked;
  const int64_t most = problem.MostOfGroup();
  std::mt19937_64 random(sizes.seed);
  std::vector<double> weights(groups, 1.0);
  switch (sizes.kind) {
    case GroupSizes::kGiven:
      return sizes.given;
    case GroupSizes::kUniform: {
      if (masked) return std::vector<int64_t>(groups, problem.m);
      std::vector<int64_t> equal(groups, most / problem.groups);
      for (size_t i = 0; i < static_cast<size_t>(most % problem.groups); ++i) ++equal[i];
      return equal;
    }
    case GroupSizes::kRandom:
      break;
    case GroupSizes::kZipf:
      for (size_t i = 0; i < groups; ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
      // Not in the order of the groups.
      for (size_t i = groups; i > 1; --i) std::swap(weights[i - 1], weights[random() % i]);
      break;
  }
  if (!masked) return Drawn(most, weights, random);
  std::vector<int64_t> own(groups);
  for (size_t i = 0; i < groups; ++i) {
    own[i] = sizes.kind == GroupSizes::kZipf ? static_cast<int64_t>(static_cast<double>(problem.m) * weights[i])
                                             : static_cast<int64_t>(random() % static_cast<uint64_t>(problem.m + 1));
  }
  return own;
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
  const auto file = base::ReadFile(std::string(text));
  if (!file)
    return Invalid(Cat("--group-sizes ", text, ": ", file.error().message,
                       "; use uniform, random:SEED, zipf:SEED, a list such as 3,0,5, or a file of sizes"));
  LS_ASSIGN(sizes.given, ParseSizes(*file, text));
  return sizes;
}

Result<HostTensor> GroupTensor(const GroupedGemmProblem& problem, const GroupSizes& sizes) {
  const bool masked = problem.layout == GroupLayout::kMasked;
  const std::vector<int64_t> rows = SizesOf(problem, sizes);
  if (static_cast<int64_t>(rows.size()) != problem.groups)
    return Invalid(Cat("--group-sizes has ", rows.size(), " sizes, but groups=", problem.groups));
  HostTensor tensor =
      HostTensor::Poisoned(Stored(problem, masked ? OperandRole::kGroupSizes : OperandRole::kGroupOffsets));
  const auto store = [&](size_t index, int64_t value) {
    StoreElement(tensor.bytes.data(), DataType::kS32, static_cast<int64_t>(index), static_cast<double>(value));
  };
  int64_t offset = 0;
  if (!masked) store(0, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    offset = masked ? rows[i] : offset + rows[i];
    if (offset > problem.MostOfGroup()) {
      return Invalid(masked ? Cat("--group-sizes: group ", i, " has ", offset, " rows, but m=", problem.m)
                            : Cat("--group-sizes: the first ", i + 1, " groups have ", offset, " rows, but ",
                                  problem.DividesK() ? "k=" : "m=", problem.MostOfGroup()));
    }
    store(masked ? i : i + 1, offset);
  }
  return tensor;
}

Status DivideRows(const Problem& problem, const std::string& text, uint64_t seed, HostOperands& operands) {
  const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
  if (grouped == nullptr) {
    if (text.empty()) return Ok();
    return Invalid(Cat("--group-sizes ", text, ": a ", ProblemKind(problem), " has no groups; use grouped_gemm"));
  }
  GroupSizes sizes{.kind = GroupSizes::kRandom, .seed = seed};
  if (!text.empty()) {
    LS_ASSIGN(sizes, ParseGroupSizes(text));
  }
  HostTensor& tensor = grouped->layout == GroupLayout::kMasked ? operands.group_sizes : operands.group_offsets;
  LS_ASSIGN(tensor, GroupTensor(*grouped, sizes));
  return Ok();
}

std::vector<RowRange> RowsOfGroups(const GroupedGemmProblem& problem, const HostOperands& operands) {
  std::vector<RowRange> groups;
  const auto stored = [](const HostTensor& tensor, int64_t i) {
    return static_cast<int64_t>(ElementAt(tensor.bytes.data(), DataType::kS32, i));
  };
  if (problem.layout == GroupLayout::kMasked) {
    for (int64_t g = 0; g < problem.groups; ++g) {
      const int64_t begin = g * problem.m;
      groups.push_back({begin, begin + std::clamp<int64_t>(stored(operands.group_sizes, g), 0, problem.m)});
    }
    return groups;
  }
  int64_t last = 0;
  for (int64_t i = 0; i <= problem.groups; ++i) {
    const int64_t begin = last;
    last = std::max(last, std::min(stored(operands.group_offsets, i), problem.MostOfGroup()));
    if (i > 0) groups.push_back({begin, last});
  }
  return groups;
}

Result<std::vector<int64_t>> SizesOfGroups(const Problem& problem, const std::string& sizes) {
  std::vector<int64_t> rows;
  if (sizes.empty()) return rows;
  HostOperands operands;
  LS_TRY(DivideRows(problem, sizes, 0, operands));
  for (const auto& [begin, end] : RowsOfGroups(std::get<GroupedGemmProblem>(problem), operands))
    rows.push_back(end - begin);
  return rows;
}

std::vector<int64_t> ScaleShiftsOfGroups(const GroupedGemmProblem& problem, const std::vector<RowRange>& groups) {
  std::vector<int64_t> shifts;
  int64_t next = 0;  // block
  for (const auto& [begin, end] : groups) {
    if (problem.scale == Scaling::kBlock) {
      shifts.push_back(problem.layout == GroupLayout::kMasked ? -begin : 0);
      continue;
    }
    shifts.push_back(next * ir::ScaleBlock::kRows - begin);
    const int64_t stored = problem.layout == GroupLayout::kMasked ? problem.m : end - begin;
    next += ir::ScaleBlock::Count(stored, ir::ScaleBlock::kRows);
  }
  return shifts;
}

int64_t GroupOf(const std::vector<RowRange>& groups, int64_t row) {
  const auto after = std::upper_bound(groups.begin(), groups.end(), row,
                                      [](int64_t own, const RowRange& group) { return own < group.begin; });
  if (after == groups.begin() || row >= std::prev(after)->end) return -1;
  return after - groups.begin() - 1;
}

std::vector<bool> StoredRows(const GroupedGemmProblem& problem, const HostOperands& operands,
                             const std::vector<RowRange>& groups) {
  std::vector<bool> stored(static_cast<size_t>(problem.RowsOfD()));
  for (const auto& [begin, end] : groups) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = problem.Scatters()
                              ? static_cast<int64_t>(ElementAt(operands.d_row_indices.bytes.data(), DataType::kS32, i))
                              : i;
      if (row >= 0 && row < problem.RowsOfD()) stored[static_cast<size_t>(row)] = true;
    }
  }
  return stored;
}

std::vector<int64_t> OverwrittenRows(const HostTensor& tensor, const std::vector<bool>& stored) {
  const int64_t bytes = DataTypeBytes(tensor.shape.type);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < tensor.shape.Rows(); ++row) {
    if (stored[static_cast<size_t>(row)]) continue;
    const auto first = tensor.bytes.begin() + tensor.shape.RowStart(row) * bytes;
    const bool untouched = std::all_of(first, first + tensor.shape.Inner() * bytes,
                                       [](std::byte byte) { return byte == std::byte{0xff}; });
    if (!untouched) rows.push_back(row);
  }
  return rows;
}

HostTensor RandomRowIndices(const GroupedGemmProblem& problem, OperandRole role, uint64_t seed) {
  const bool of_a = role == OperandRole::kRowIndicesA;
  const int64_t rows = problem.Rows(), stored = of_a ? problem.RowsOfA() : problem.RowsOfD();
  std::vector<int64_t> indices(static_cast<size_t>(std::max(rows, stored)));
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    indices[i] = index < stored ? index : of_a ? index % stored : -1;
  }
  std::mt19937_64 random(seed + static_cast<uint64_t>(role));
  for (size_t i = indices.size(); i > 1; --i) std::swap(indices[i - 1], indices[random() % i]);
  HostTensor tensor = HostTensor::Poisoned(Stored(problem, role));
  for (int64_t i = 0; i < rows; ++i) {
    StoreElement(tensor.bytes.data(), DataType::kS32, i, static_cast<double>(indices[static_cast<size_t>(i)]));
  }
  return tensor;
}

}  // namespace laneshift::measure
