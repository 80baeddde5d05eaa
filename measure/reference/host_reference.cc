#include "measure/reference/host_reference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "ir/epilogue_steps.h"
#include "measure/parallel_for.h"
#include "measure/reference/cut_sums.h"
#include "measure/reference/epilogue_reductions.h"
#include "measure/reference/group_offsets.h"
#include "measure/reference/host_epilogue.h"

namespace laneshift::measure {
namespace {

// Columns of D that one thread computes at a time: their part of B fits in the L2 cache.
constexpr int kColumns = 64;
// Rows of D per pass over that part.
constexpr int kRows = 4;

// The operands' elements, indexed by the view.
class ElementView {
 public:
  ElementView(const Problem& problem, const ProductView& view, const HostOperands& operands)
      : view_(view), operands_(operands), runs_(static_cast<unsigned>(view.k / view.run)) {
    const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
    if (grouped == nullptr) return;
    if (grouped->DividesK()) {
      parts_ = RowsOfGroups(*grouped, operands);
      return;
    }
    groups_ = RowsOfGroups(*grouped, operands);
    scale_shifts_ = ScaleShiftsOfGroups(*grouped, groups_);
  }

  // The rows of each group; none where the problem has no groups.
  const std::vector<RowRange>& groups() const { return groups_; }
  // The part of K that a product has.
  RowRange PartOf(int64_t batch) const {
    return parts_.empty() ? RowRange{0, view_.k} : parts_[static_cast<size_t>(batch)];
  }
  int64_t Depth(int64_t batch) const { return PartOf(batch).end - PartOf(batch).begin; }
  // From a row of A to that of its scale factors.
  int64_t ScaleShift(int64_t batch) const { return groups_.empty() ? 0 : scale_shifts_[static_cast<size_t>(batch)]; }

  // Below which operands are not normal; 0 if they have factors, where nobody sees it.
  double least_left() const { return view_.scale_run == 0 ? LeastNormal(operands_.a.shape.type) : 0; }
  double least_right() const { return view_.scale_run == 0 ? LeastNormal(operands_.b.shape.type) : 0; }

  // Row i of A, Depth() elements: zeros outside of an image.
  void Left(int64_t batch, int64_t i, float* to) const {
    if (!parts_.empty()) {
      const auto [begin, end] = PartOf(batch);
      const int64_t start = view_.LeftStart(batch, i, 0);
      for (int64_t q = begin; q < end; ++q) to[q - begin] = At(operands_.a, start + q * view_.a.element);
      return;
    }
    for (unsigned run = 0; run < runs_; ++run) {
      const int64_t start = view_.LeftStart(batch, i, run);
      float* const first = to + run * view_.run;
      if (start < 0) {
        std::fill_n(first, view_.run, 0.0f);
        continue;
      }
      for (int64_t q = 0; q < view_.run; ++q) {
        const int64_t index = view_.sparse_group == 0 ? q : StoredIndex(batch, i, q);
        first[q] = index < 0 ? 0.0f : At(operands_.a, start + index * view_.a.element);
      }
    }
    if (view_.scale_run == 0) return;
    if (view_.OfMatrices() && view_.RowOfA(i) < 0) return;  // of zeros
    ProductView own = view_;
    own.scale_shift = ScaleShift(batch);
    for (int64_t q = 0; q < view_.k; ++q) to[q] *= At(operands_.scale_a, own.LeftScale(batch, i, q));
  }
  // Column j of B, its elements `step` apart.
  void Right(int64_t batch, int64_t j, float* to, int64_t step) const {
    if (!parts_.empty()) {
      const auto [begin, end] = PartOf(batch);
      const int64_t start = view_.RightStart(batch, j, 0);
      for (int64_t q = begin; q < end; ++q) to[(q - begin) * step] = At(operands_.b, start + q * view_.b.element);
      return;
    }
    for (unsigned run = 0; run < runs_; ++run) {
      const int64_t start = view_.RightStart(batch, j, run);
      float* const first = to + run * view_.run * step;
      for (int64_t q = 0; q < view_.run; ++q) first[q * step] = At(operands_.b, start + q * view_.b.element);
    }
    if (view_.scale_run == 0) return;
    for (int64_t q = 0; q < view_.k; ++q) to[q * step] *= At(operands_.scale_b, view_.RightScale(batch, q, j));
  }

 private:
  // Of a sparse A: -1 for an element that is not stored.
  int64_t StoredIndex(int64_t batch, int64_t i, int64_t q) const {
    int shift = 0;
    const auto byte = static_cast<size_t>(view_.CodeByte(batch, i, q, &shift));
    return view_.StoredIndex(std::to_integer<int>(operands_.metadata_a.bytes[byte]) >> shift & 15, q);
  }
  static float At(const HostTensor& tensor, int64_t element) {
    return static_cast<float>(ElementAt(tensor.bytes.data(), tensor.shape.type, element));  // exact of operands
  }

  const ProductView& view_;
  const HostOperands& operands_;
  const unsigned runs_;  // of K
  std::vector<RowRange> groups_{}, parts_{};
  std::vector<int64_t> scale_shifts_{};  // of each group
};

// Sums of kRows x kColumns elements; `a` has kRows rows of k, `b` has k rows of kColumns.
void MultiplyBlock(int64_t k, const float* a, const float* b, double (&sums)[kRows][kColumns]) {
  for (auto& row : sums) std::fill(std::begin(row), std::end(row), 0.0);
  for (int64_t q = 0; q < k; ++q) {
    for (int r = 0; r < kRows; ++r) {
      const double left = a[r * k + q];
      for (int c = 0; c < kColumns; ++c) sums[r][c] += left * static_cast<double>(b[q * kColumns + c]);
    }
  }
}

// Rows [first_row, last_row) of columns [first, first + kColumns) of one product.
struct Piece {
  int64_t batch, first_row, last_row, first;
};

// The magnitude with which a number counts where addends are cut (LeastNormal).
double SizeOf(float value, double least) { return value == 0 ? 0 : std::max(std::abs(double{value}), least); }

// The root of the sum of squares of `count` numbers, `step` apart. The sum of the magnitudes of products is at most the
// product of both operands' norms.
double LengthOf(const float* values, int64_t count, int64_t step, double least) {
  double squares = 0;
  for (int64_t q = 0; q < count; ++q) {
    const double size = SizeOf(values[q * step], least);
    squares += size * size;
  }
  return std::sqrt(squares);
}

// One row of a product: `columns` columns from `first` on, which have whole blocks of D.
struct RowPiece {
  int64_t batch, row, first, columns;
};
void CompareRow(const HostEpilogue& epilogue, const RowPiece& piece, const ProductSums& sums, const HostTensor& d,
                FunctionValues& functions, Comparison& result) {
  const ProductView& view = epilogue.view();
  const int64_t before = view.kind == ProductView::kGroups ? 0 : piece.batch * view.m;
  std::vector<ValueRange> block;
  for (int64_t c = 0; c < piece.columns; c += epilogue.columns_per_output()) {
    const int64_t j = piece.first + c;
    const int64_t element = ((before + piece.row) * view.n + j) / epilogue.columns_per_output();
    const auto value = epilogue.Finish(piece.batch, piece.row, j, sums.From(c), d, result, functions, element);
    if (!value) continue;
    block.push_back(*value);
    const auto held = static_cast<int64_t>(block.size());
    if (held < epilogue.columns_at_once() && c + epilogue.columns_per_output() < piece.columns) continue;
    epilogue.FinishBlock(piece.batch, piece.row, j / epilogue.columns_per_output() - held + 1, block, d, result);
    block.clear();
  }
}

Comparison ComparePiece(const ElementView& elements, const HostEpilogue& epilogue, const HostTensor& d,
                        const Piece& piece, FunctionValues& functions) {
  const ProductView& view = epilogue.view();
  const int64_t columns = std::min<int64_t>(kColumns, view.n - piece.first);
  const int64_t depth = elements.Depth(piece.batch);
  std::vector<float> b(static_cast<size_t>(depth * kColumns)), a(static_cast<size_t>(depth * kRows));
  for (int64_t c = 0; c < columns; ++c) {
    elements.Right(piece.batch, epilogue.ColumnOfB(piece.first + c), b.data() + c, kColumns);
  }
  double right[kColumns];
  for (int64_t c = 0; c < columns; ++c) right[c] = LengthOf(b.data() + c, depth, kColumns, elements.least_right());
  double sums[kRows][kColumns], magnitudes[kColumns], below[kColumns], above[kColumns];
  Comparison result;
  for (int64_t row = piece.first_row; row < piece.last_row; row += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, piece.last_row - row);
    for (int64_t r = 0; r < rows; ++r) elements.Left(piece.batch, row + r, a.data() + r * depth);
    MultiplyBlock(depth, a.data(), b.data(), sums);
    for (int64_t r = 0; r < rows; ++r) {
      const double left = LengthOf(a.data() + r * depth, depth, 1, elements.least_left());
      for (int64_t c = 0; c < columns; ++c) magnitudes[c] = left * right[c];
      if (epilogue.cut())
        CutSums(*epilogue.cut(), depth, a.data() + r * depth, b.data(), kColumns, columns, below, above);
      CompareRow(epilogue, {piece.batch, row + r, piece.first, columns}, {sums[r], magnitudes, below, above}, d,
                 functions, result);
    }
  }
  return result;
}

Comparison Total(const std::vector<Comparison>& parts, std::string reference) {
  Comparison total;
  for (const Comparison& part : parts) total.Add(part);
  total.reference = std::move(reference);
  return total;
}

// The rows of products, where they are not those of matrices.
int64_t Products(const ProductView& view) { return view.kind == ProductView::kGroups ? 1 : view.batches; }

// Whatever the kernel wrote to rows that are of no group.
void CountOverwritten(const Problem& problem, const HostOperands& operands, const HostTensor& d, Comparison& into) {
  const auto* grouped = std::get_if<GroupedGemmProblem>(&problem);
  if (grouped == nullptr || grouped->DividesK()) return;  // every row belongs to a group
  const std::vector<RowRange> groups = RowsOfGroups(*grouped, operands);
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem);
  std::vector<const HostTensor*> written = {&d};
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].written) written.push_back(&operands.epilogue[i]);
  }
  const std::vector<bool> has_row = StoredRows(*grouped, operands, groups);
  for (const HostTensor* tensor : written) {
    const std::vector<int64_t> rows = OverwrittenRows(*tensor, has_row);
    into.overwritten += static_cast<int64_t>(rows.size());
    if (!rows.empty() && into.first_overwritten < 0) into.first_overwritten = rows.front();
  }
}

Result<Comparison> CompareView(const ElementView& elements, const HostEpilogue& epilogue, const HostTensor& d,
                               FunctionValues functions, const EvaluateFunction& evaluate) {
  const ProductView& view = epilogue.view();
  const std::vector<RowRange>& groups = elements.groups();
  // A convolution may have few columns and very many rows, so rows are distributed too.
  constexpr int64_t kRowsOfPiece = 1024;
  std::vector<Piece> pieces;
  for (int64_t batch = 0; batch < view.batches; ++batch) {
    const auto [begin, end] = groups.empty() ? RowRange{0, view.m} : groups[static_cast<size_t>(batch)];
    for (int64_t first = 0; first < view.n; first += kColumns) {
      for (int64_t row = begin; row < end; row += kRowsOfPiece) {
        pieces.push_back({batch, row, std::min<int64_t>(end, row + kRowsOfPiece), first});
      }
    }
  }
  std::vector<Comparison> parts(pieces.size());
  const auto pass = [&] {
    ParallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t item) {
      parts[static_cast<size_t>(item)] =
          ComparePiece(elements, epilogue, d, pieces[static_cast<size_t>(item)], functions);
    });
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    pass();
    LS_TRY(functions.EvaluateNext(evaluate));
  }
  pass();
  return Total(parts, "cpu");
}

// Strip by strip, of as many rows as memory is not tight with, each row by a thread.
Result<Comparison> CompareStrips(const ElementView& elements, const HostEpilogue& epilogue, const HostTensor& d,
                                 FunctionValues functions, const EvaluateFunction& evaluate,
                                 const SumStrip& sum_strip) {
  constexpr int64_t kMostElements = int64_t{1} << 22;
  const ProductView& view = epilogue.view();
  const std::vector<RowRange>& groups = elements.groups();
  const int64_t most_rows = std::max<int64_t>(1, kMostElements / view.n);
  Comparison total;
  const auto pass = [&]() -> Status {
    total = {};
    for (int64_t batch = 0; batch < view.batches; ++batch) {
      const auto [begin, end] = groups.empty() ? RowRange{0, view.m} : groups[static_cast<size_t>(batch)];
      for (int64_t row = begin; row < end; row += most_rows) {
        const Strip strip{batch,
                          row,
                          std::min<int64_t>(most_rows, end - row),
                          elements.ScaleShift(batch),
                          elements.PartOf(batch).begin,
                          elements.Depth(batch)};
        LS_ASSIGN(const StripSums sums, sum_strip(strip));
        std::vector<Comparison> parts(static_cast<size_t>(strip.rows));
        ParallelFor(strip.rows, [&](int64_t i) {
          const auto first = static_cast<size_t>(i * view.n);
          CompareRow(epilogue, {batch, row + i, 0, view.n}, {&sums.sums[first], &sums.magnitudes[first]}, d, functions,
                     parts[static_cast<size_t>(i)]);
        });
        for (const Comparison& part : parts) total.Add(part);
      }
    }
    return Ok();
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    LS_TRY(pass());
    LS_TRY(functions.EvaluateNext(evaluate));
  }
  LS_TRY(pass());
  total.reference = "nvrtc sums, cpu";
  return total;
}

Result<Comparison> SampleView(const ElementView& elements, const HostEpilogue& epilogue, const HostTensor& d,
                              int64_t samples, uint64_t seed, FunctionValues functions,
                              const EvaluateFunction& evaluate) {
  const ProductView& view = epilogue.view();
  const std::vector<RowRange>& groups = elements.groups();
  std::mt19937_64 random(seed);
  const int64_t columns = view.n / epilogue.columns_per_output();  // of D
  const int64_t at_once = epilogue.columns_at_once();
  std::uniform_int_distribution<int64_t> element(0, Products(view) * view.m * columns - 1);
  std::vector<int64_t> chosen(static_cast<size_t>(samples));
  for (int64_t& index : chosen) index = element(random);
  std::vector<Comparison> parts(chosen.size());
  const auto compare = [&](int64_t item) {
    const int64_t index = chosen[static_cast<size_t>(item)];
    const int64_t first = index % columns / at_once * at_once, i = index / columns % view.m;
    const int64_t batch = groups.empty() ? index / columns / view.m : GroupOf(groups, i);
    Comparison& part = parts[static_cast<size_t>(item)];
    part = {};
    if (batch < 0) return;  // a row that belongs to no group
    std::vector<float> left(static_cast<size_t>(elements.Depth(batch))), right(left.size());
    elements.Left(batch, i, left.data());
    std::vector<ValueRange> block;
    for (int64_t column = first; column < std::min(columns, first + at_once); ++column) {
      const int64_t j = column * epilogue.columns_per_output();
      double sums[2] = {}, magnitudes[2] = {}, below[2] = {}, above[2] = {};
      for (int64_t c = 0; c < epilogue.columns_per_output(); ++c) {
        elements.Right(batch, epilogue.ColumnOfB(j + c), right.data(), 1);
        for (size_t q = 0; q < left.size(); ++q) {
          sums[c] += static_cast<double>(left[q]) * static_cast<double>(right[q]);
          magnitudes[c] += SizeOf(left[q], elements.least_left()) * SizeOf(right[q], elements.least_right());
        }
        if (epilogue.cut()) {
          CutSums(*epilogue.cut(), static_cast<int64_t>(left.size()), left.data(), right.data(), 1, 1, below + c,
                  above + c);
        }
      }
      const int64_t number = item * at_once + column - first;
      const auto value = epilogue.Finish(batch, i, j, {sums, magnitudes, below, above}, d, part, functions, number);
      if (value) block.push_back(*value);
    }
    if (!block.empty()) epilogue.FinishBlock(batch, i, first, block, d, part);
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    ParallelFor(samples, compare);
    LS_TRY(functions.EvaluateNext(evaluate));
  }
  ParallelFor(samples, compare);
  return Total(parts, base::Cat("cpu, ", samples * at_once, " elements"));
}

}  // namespace

std::vector<HostTensor> HostOperands::RandomEpilogue(const Problem& problem, uint64_t seed) {
  std::vector<HostTensor> operands;
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) {
    // Each has its own seed: no other tensor of the shape has the role of C.
    const uint64_t own = seed + 1 + operands.size();
    operands.push_back(operand.written || operand.reduction ? HostTensor::Poisoned(operand.tensor)
                                                            : HostTensor::Random(operand.tensor, OperandRole::kC, own));
    if (operand.reduction) std::fill(operands.back().bytes.begin(), operands.back().bytes.end(), std::byte{0});
  }
  return operands;
}

HostOperands HostOperands::Random(const Problem& problem, uint64_t seed) {
  HostOperands operands;
  for (const OperandRole role : ir::kAllRoles) {
    HostTensor* const operand = operands.Of(role);
    if (operand == nullptr || !ir::Uses(problem, role)) continue;
    *operand = ir::IsWritten(role)      ? HostTensor::Poisoned(Stored(problem, role))
               : ir::IsRowIndices(role) ? RandomRowIndices(std::get<GroupedGemmProblem>(problem), role, seed)
                                        : RandomOperand(problem, role, seed);
  }
  const Status divided = DivideRows(problem, "", seed, operands);
  LS_CHECK(divided.has_value(), "random sizes of groups do not fit");
  operands.epilogue = RandomEpilogue(problem, seed);
  return operands;
}

const HostTensor* HostOperands::Of(OperandRole role) const {
  const HostTensor* const tensors[] = {&a,
                                       &b,
                                       &c,
                                       nullptr,
                                       &bias,
                                       &scale_a,
                                       &scale_b,
                                       &scale_d,
                                       &tensor_scale_a,
                                       &tensor_scale_b,
                                       &group_offsets,
                                       &group_sizes,
                                       &block_scale_d,
                                       &metadata_a,
                                       &a_row_indices,
                                       &d_row_indices};
  static_assert(std::size(tensors) == ir::kRoles);
  return tensors[static_cast<size_t>(role)];
}

namespace {

// What all elements together tell, after `compare` has compared each.
template <typename Compare>
Result<Comparison> CompareWhole(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                                SumsFrom from, const Compare& compare) {
  EpilogueReductions totals(problem);
  const HostEpilogue epilogue(problem, operands, d.shape.type, &totals, from);
  const ProductView& view = epilogue.view();
  const int64_t elements = Products(view) * view.m * view.n / epilogue.columns_per_output();
  LS_ASSIGN(Comparison comparison, compare(epilogue, FunctionValues(ir::EpilogueOf(problem), elements)));
  CountOverwritten(problem, operands, d, comparison);
  epilogue.CountPadding(comparison);
  totals.Compare(operands.epilogue, 0, comparison);
  return comparison;
}

}  // namespace

Result<Comparison> CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                              const EvaluateFunction& evaluate) {
  const auto compare = [&](const HostEpilogue& epilogue, FunctionValues functions) {
    return CompareView(ElementView(problem, epilogue.view(), operands), epilogue, d, std::move(functions), evaluate);
  };
  return CompareWhole(problem, operands, d, SumsFrom::kProducts, compare);
}

Result<Comparison> CompareSums(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                               const EvaluateFunction& evaluate, const SumStrip& sum_strip) {
  const auto compare = [&](const HostEpilogue& epilogue, FunctionValues functions) {
    return CompareStrips(ElementView(problem, epilogue.view(), operands), epilogue, d, std::move(functions), evaluate,
                         sum_strip);
  };
  return CompareWhole(problem, operands, d, SumsFrom::kDevice, compare);
}

Comparison CompareAll(const Problem& problem, const HostOperands& operands, const HostTensor& d) {
  return CompareAll(problem, operands, d, {}).value();
}

Result<Comparison> CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d,
                                 int64_t samples, uint64_t seed, const EvaluateFunction& evaluate) {
  const HostEpilogue epilogue(problem, operands, d.shape.type, nullptr, SumsFrom::kProducts);
  LS_ASSIGN(Comparison comparison,
            SampleView(ElementView(problem, epilogue.view(), operands), epilogue, d, samples, seed,
                       FunctionValues(ir::EpilogueOf(problem), samples * epilogue.columns_at_once()), evaluate));
  CountOverwritten(problem, operands, d, comparison);
  epilogue.CountPadding(comparison);
  return comparison;
}

Comparison CompareSample(const Problem& problem, const HostOperands& operands, const HostTensor& d, int64_t samples,
                         uint64_t seed) {
  return CompareSample(problem, operands, d, samples, seed, {}).value();
}

}  // namespace laneshift::measure
