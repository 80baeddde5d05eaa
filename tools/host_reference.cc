#include "tools/host_reference.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "base/text.h"
#include "tools/parallel_for.h"

namespace laneshift::tools {
namespace {

// Columns of D that one thread computes at a time: their part of B stays in the second-level cache.
constexpr int kColumns = 64;
// Rows of D that share one pass over that part.
constexpr int kRows = 4;

float A(const GemmProblem& p, const HostMatrix& a, int64_t batch, int64_t i, int64_t q) {
  return p.a_major == Major::kK ? a.At(batch, i, q) : a.At(batch, q, i);
}

float B(const GemmProblem& p, const HostMatrix& b, int64_t batch, int64_t q, int64_t j) {
  return p.b_major == Major::kK ? b.At(batch, j, q) : b.At(batch, q, j);
}

double Finish(const GemmProblem& p, const HostOperands& operands, int64_t batch, int64_t i, int64_t j, double sum) {
  double value = p.alpha * sum;
  if (p.beta != 0) value += p.beta * operands.c.At(batch, i, j);
  if (p.bias != BiasAxis::kNone) value += operands.bias.At(0, 0, p.bias == BiasAxis::kM ? i : j);
  return value;
}

void Count(const GemmProblem& p, const HostMatrix& d, int64_t batch, int64_t i, int64_t j, double reference,
           Comparison& into) {
  const double out = d.At(batch, i, j);
  ++into.compared;
  if (!std::isfinite(out) && std::isfinite(reference)) {
    ++into.not_finite;
    const int64_t index = (batch * p.m + i) * p.n + j;
    if (into.first_not_finite < 0 || index < into.first_not_finite) into.first_not_finite = index;
    return;
  }
  if (!std::isfinite(reference)) return;  // the inputs overflow; nothing to compare
  into.error_squares += (out - reference) * (out - reference);
  into.reference_squares += reference * reference;
  std::byte rounded[4];
  StoreElement(rounded, p.d, 0, static_cast<float>(reference));
  const double unavoidable = ElementAt(rounded, p.d, 0) - reference;
  into.rounding_squares += unavoidable * unavoidable;
}

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

// All rows of columns [first, first + kColumns) of one matrix of the batch.
Comparison CompareColumns(const GemmProblem& p, const HostOperands& operands, const HostMatrix& d, int64_t batch,
                          int64_t first) {
  const int64_t columns = std::min<int64_t>(kColumns, p.n - first);
  std::vector<float> b(static_cast<size_t>(p.k * kColumns));
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t q = 0; q < p.k; ++q) b[static_cast<size_t>(q * kColumns + c)] = B(p, operands.b, batch, q, first + c);
  }
  std::vector<float> a(static_cast<size_t>(p.k * kRows));
  double sums[kRows][kColumns];
  Comparison result;
  for (int64_t row = 0; row < p.m; row += kRows) {
    const int64_t rows = std::min<int64_t>(kRows, p.m - row);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t q = 0; q < p.k; ++q) a[static_cast<size_t>(r * p.k + q)] = A(p, operands.a, batch, row + r, q);
    }
    MultiplyBlock(p.k, a.data(), b.data(), sums);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        Count(p, d, batch, row + r, first + c, Finish(p, operands, batch, row + r, first + c, sums[r][c]), result);
      }
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

}  // namespace

Comparison CompareAll(const GemmProblem& problem, const HostOperands& operands, const HostMatrix& d) {
  const int64_t blocks = (problem.n + kColumns - 1) / kColumns;
  std::vector<Comparison> parts(static_cast<size_t>(blocks * problem.batch));
  ParallelFor(blocks * problem.batch, [&](int64_t item) {
    parts[static_cast<size_t>(item)] = CompareColumns(problem, operands, d, item / blocks, item % blocks * kColumns);
  });
  return Total(parts, "cpu");
}

Comparison CompareSample(const GemmProblem& problem, const HostOperands& operands, const HostMatrix& d, int64_t samples,
                         uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> element(0, problem.batch * problem.m * problem.n - 1);
  std::vector<int64_t> chosen(static_cast<size_t>(samples));
  for (int64_t& index : chosen) index = element(random);
  std::vector<Comparison> parts(chosen.size());
  ParallelFor(samples, [&](int64_t item) {
    const int64_t index = chosen[static_cast<size_t>(item)];
    const int64_t j = index % problem.n, i = index / problem.n % problem.m, batch = index / problem.n / problem.m;
    double sum = 0;
    for (int64_t q = 0; q < problem.k; ++q) {
      sum += static_cast<double>(A(problem, operands.a, batch, i, q)) * B(problem, operands.b, batch, q, j);
    }
    Count(problem, d, batch, i, j, Finish(problem, operands, batch, i, j, sum), parts[static_cast<size_t>(item)]);
  });
  return Total(parts, base::Cat("cpu, ", samples, " elements"));
}

}  // namespace laneshift::tools
