// A tcgen05.mma with operands in memory and its result by definition, for the tests of the unit.
//
// The locations of A, B, D, metadata and scale factors are the manual's formulas, written here again: nothing of the
// unit's own addressing, except that of matrix descriptors, which matrix_descriptor_test.cc compares with formulas.
// Thread-safety: none.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "emulator/units/tcgen05_mma.h"

namespace laneshift::emulator {

inline constexpr uint32_t kBase = 0x400;
inline constexpr uint32_t kStartA = 0x4000, kStartB = 0x10000;
inline constexpr uint16_t kColumnA = 300, kColumnScaleA = 320, kColumnScaleB = 328, kColumnMetadata = 340;

// One instruction to try: shapes and types, and where A comes from.
struct Form {
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  ElementType a = ElementType::kF16, b = ElementType::kF16;
  AccumulatorType d = AccumulatorType::kF32;
  int m = 128, n = 64;
  int ctas = 1;
  bool tensor_a = false, ws = false, sparse = false;
  bool transpose_a = false, transpose_b = false, negate_a = false, negate_b = false;
  int factors = 0;
  ScaleType scale = ScaleType::kUe8m0;
  int lane = 0;             // of D, for half-lane layouts
  bool two_by_two = false;  // the other data path of sparse M = 128 of a pair
  MatrixSwizzle swizzle = MatrixSwizzle::k128B;
};

inline uint32_t CodeOf(const Form& f, ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return 0;
    case ElementType::kBf16:
      return 1;
    case ElementType::kTf32:
      return 2;
    case ElementType::kE4m3:
      return 0;
    case ElementType::kE5m2:
      return 1;
    case ElementType::kE2m3:
      return 3;
    case ElementType::kE3m2:
      return 4;
    case ElementType::kE2m1:
      return f.kind == Tcgen05Kind::kMxf4 || f.kind == Tcgen05Kind::kMxf4nvf4 ? 1 : 5;
    case ElementType::kS8:
      return 1;
    case ElementType::kU8:
      return 0;
  }
  return 0;
}

inline uint32_t InstructionOf(const Form& f) {
  uint32_t bits = CodeOf(f, f.a) << 7 | CodeOf(f, f.b) << 10 | static_cast<uint32_t>(f.n / 8) << 17;
  bits |= static_cast<uint32_t>(f.sparse) << 2 | static_cast<uint32_t>(f.negate_a) << 13 |
          static_cast<uint32_t>(f.negate_b) << 14;
  bits |= static_cast<uint32_t>(f.transpose_a) << 15 | static_cast<uint32_t>(f.transpose_b) << 16;
  bits |= static_cast<uint32_t>(f.m / 16) << 24;
  if (f.factors != 0) return bits | (f.scale == ScaleType::kUe8m0 ? 1u << 23 : 0);
  return bits | (f.d == AccumulatorType::kF32 ? 1u : f.d == AccumulatorType::kS32 ? 2u : 0u) << 4;
}

inline uint64_t DescriptorOf(uint32_t start, uint32_t leading, uint32_t stride, MatrixSwizzle swizzle) {
  constexpr uint64_t kCodes[] = {0, 6, 4, 2, 1};
  return start >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 | uint64_t{1} << 46 |
         kCodes[static_cast<size_t>(swizzle)] << 61;
}

// Where the manual's layouts put D's element (m, n): CTA, lane, column from D's.
struct Place {
  int cta, lane, column;
};
inline Place PlaceOf(const Form& f, int m, int n) {
  if (f.ws && f.m == 32) return {0, m + 32 * (n / (f.n / 4)), n % (f.n / 4)};
  if (f.ws && f.m == 64) return {0, m + 64 * (n / (f.n / 2)), n % (f.n / 2)};
  if (f.m == 64) return {0, f.lane + 32 * (m / 16) + m % 16, n};
  if (f.m == 256) return {m / 128, m % 128, n};
  if (f.ctas == 2 && f.sparse && !f.two_by_two) return {m / 64, f.lane + 32 * (m % 64 / 16) + m % 16, n};
  if (f.ctas == 2) return {m / 64, m % 64 + 64 * (n / (f.n / 2)), n % (f.n / 2)};
  return {0, m, n};
}

// How many groups of lanes hold the rows: each multiplies its part of N with its own copy of A and metadata.
inline int CopiesOf(const Form& f) {
  if (f.ws) return f.m == 32 ? 4 : f.m == 64 ? 2 : 1;
  return f.ctas == 2 && f.m == 128 && (!f.sparse || f.two_by_two) ? 2 : 1;
}

// Dense elements that one code of the metadata describes.
inline int CodeSpan(Tcgen05Kind kind) {
  return kind == Tcgen05Kind::kTf32 ? 2 : kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4 ? 8 : 4;
}

// Where the code of dense element k of row m is: of the lanes' rows, column from the first, bit.
struct CodePlace {
  int row, column, bit;
};
inline CodePlace CodePlaceOf(Tcgen05Kind kind, int m, int k) {
  // 16-bit kinds: a lane has one half of K of two rows, 8 apart.
  if (kind == Tcgen05Kind::kF16) return {m / 16 * 16 + k / 16 * 8 + m % 8, 0, m % 16 / 8 * 16 + k % 16 / 4 * 4};
  if (kind == Tcgen05Kind::kTf32) return {m / 16 * 16 + k / 8 * 8 + m % 8, 0, m % 16 / 8 * 16 + k % 8 / 2 * 4};
  // The others: a lane has its row, eight codes to a column.
  const int code = k / CodeSpan(kind);
  return {m, code / 8, code % 8 * 4};
}

class World {
 public:
  World(const Form& form, uint32_t seed) : form_(form), random_(seed) {
    for (int cta = 0; cta < form.ctas; ++cta) {
      shared_.emplace_back(200 * 1024);
      tensors_.push_back(std::make_unique<TensorMemory>());
    }
    const bool four_bit = form.kind == Tcgen05Kind::kMxf4 || form.kind == Tcgen05Kind::kMxf4nvf4;
    k_ = form.kind == Tcgen05Kind::kF16 ? 16 : form.kind == Tcgen05Kind::kTf32 ? 8 : four_bit ? 64 : 32;
    if (form.sparse) k_ *= 2;
    Draw();
    PlaceB();
    form.tensor_a ? PlaceTensorA() : PlaceSharedA();
    if (form.sparse) PlaceMetadata();
    if (form.factors != 0) PlaceScales();
  }

  MmaRequest Request() const {
    MmaRequest r;
    r.qualifiers = {form_.kind, form_.ctas, form_.sparse ? SparseForm::kSparse : SparseForm::kDense,
                    form_.ws ? WeightMode::kWeightStationary : WeightMode::kOrdinary, form_.factors};
    r.d = {static_cast<uint16_t>(form_.lane), 0};
    const auto [leading_a, stride_a] = Strides(form_.a, form_.transpose_a);
    const auto [leading_b, stride_b] = Strides(form_.b, form_.transpose_b);
    if (form_.tensor_a) {
      r.a = TensorAddress{static_cast<uint16_t>(form_.lane), kColumnA};
    } else {
      r.a = DescriptorOf(kStartA, leading_a, stride_a, form_.swizzle);
    }
    r.b = DescriptorOf(kStartB, leading_b, stride_b, form_.swizzle);
    r.instruction = InstructionOf(form_);
    r.scales_a = {0, kColumnScaleA};
    r.scales_b = {0, kColumnScaleB};
    if (form_.sparse) r.metadata = TensorAddress{0, kColumnMetadata};
    return r;
  }

  std::vector<SharedWindow> Windows() {
    std::vector<SharedWindow> windows;
    for (auto& bytes : shared_) windows.push_back({bytes, kBase});
    return windows;
  }

  Result<MmaReport> Run(const MmaRequest& request, const Policies& policies = {}) {
    const std::vector<SharedWindow> windows = Windows();
    LS_ASSIGN(const PlannedMma plan, PlanMma(request, windows, policies));
    std::vector<CtaState> states;
    for (int cta = 0; cta < form_.ctas; ++cta) {
      states.push_back({windows[static_cast<size_t>(cta)], tensors_[static_cast<size_t>(cta)].get()});
    }
    return ExecuteMma(plan, SumArithmetic::kHardware, states);
  }

  // The product by its definition.
  double Product(int m, int n) const {
    double sum = 0;
    for (int k = 0; k < k_; ++k) {
      double term = a(m, k) * b(n, k);
      if (form_.factors != 0) term *= ScaleA(m, k * form_.factors / k_) * ScaleB(n, k * form_.factors / k_);
      sum += term;
    }
    return (form_.negate_a != form_.negate_b) ? -sum : sum;
  }

  double D(int m, int n) const {
    const Place p = PlaceOf(form_, m, n);
    const uint32_t cell = tensors_[static_cast<size_t>(p.cta)]->Read(p.lane, p.column);
    if (form_.d == AccumulatorType::kS32) return static_cast<int32_t>(cell);
    if (form_.d == AccumulatorType::kF16) return base::F16ToFloat(static_cast<uint16_t>(cell));
    return std::bit_cast<float>(cell);
  }
  TensorMemory& tensor(int cta = 0) { return *tensors_[static_cast<size_t>(cta)]; }
  double& a(int m, int k) { return a_[static_cast<size_t>(m * k_ + k)]; }
  double a(int m, int k) const { return a_[static_cast<size_t>(m * k_ + k)]; }
  double b(int n, int k) const { return b_[static_cast<size_t>(n * k_ + k)]; }
  int k() const { return k_; }
  void PlaceTensorA() {
    const int groups = CopiesOf(form_);
    for (int m = 0; m < form_.m; ++m) {
      const std::vector<uint8_t> row = PackRow(form_.a, StoredRow(m), true);
      for (int group = 0; group < groups; ++group) {
        const Place p = PlaceOf(form_, m, group * form_.n / groups);
        for (int byte = 0; byte < 32; ++byte) {
          uint32_t* cell = tensor(p.cta).Row(p.lane) + kColumnA + byte / 4;
          *cell = (*cell & ~(255u << byte % 4 * 8)) | static_cast<uint32_t>(row[static_cast<size_t>(byte)])
                                                          << byte % 4 * 8;
        }
      }
    }
    for (auto& t : tensors_) t->MarkWritten({0, 128, kColumnA, 8});
  }

 private:
  void Draw() {
    const auto draw = [this](ElementType type) {
      constexpr double kValues[] = {0, 1, 2, 3, -1, -2, -3, 0.5};
      const size_t i = random_() % 8;
      return IsInteger(type) ? (type == ElementType::kU8 ? static_cast<double>(i) : std::trunc(kValues[i]))
                             : kValues[i];
    };
    a_.resize(static_cast<size_t>(form_.m * k_));
    b_.resize(static_cast<size_t>(form_.n * k_));
    for (double& v : a_) v = draw(form_.a);
    for (double& v : b_) v = draw(form_.b);
    if (!form_.sparse) return;
    // Keep two of every four (tf32: one of two; 4-bit: two pairs of eight) and remember which.
    const int chunk = CodeSpan(form_.kind), run = chunk == 8 ? 2 : 1;
    constexpr uint8_t kCodes[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    for (int m = 0; m < form_.m; ++m) {
      for (int c = 0; c < k_ / chunk; ++c) {
        const uint8_t code = chunk == 2 ? (random_() % 2 ? 0xe : 0x4) : kCodes[random_() % 6];
        codes_.push_back(code);
        for (int i = 0; i < chunk; ++i) {
          const bool keep = chunk == 2 ? i == (code == 0xe) : i / run == (code & 3) || i / run == code >> 2;
          if (!keep) a(m, c * chunk + i) = 0;
        }
      }
    }
  }

  // The elements of A that are stored: all, or the kept half.
  std::vector<double> StoredRow(int m) const {
    std::vector<double> row;
    const int chunk = form_.sparse ? CodeSpan(form_.kind) : 1, run = chunk == 8 ? 2 : 1;
    for (int k = 0; k < k_; ++k) {
      if (form_.sparse) {
        const uint8_t code = codes_[static_cast<size_t>(m * (k_ / chunk) + k / chunk)];
        const int i = k % chunk;
        if (chunk == 2 ? i != (code == 0xe) : i / run != (code & 3) && i / run != code >> 2) continue;
      }
      row.push_back(a(m, k));
    }
    return row;
  }

  std::vector<uint8_t> PackRow(ElementType type, const std::vector<double>& values, bool tensor) const {
    const bool nibbles = form_.kind == Tcgen05Kind::kMxf4 || form_.kind == Tcgen05Kind::kMxf4nvf4;
    std::vector<uint8_t> row(64);
    const int bits = BitsOf(type);
    for (size_t k = 0; k < values.size(); ++k) {
      const auto v = static_cast<float>(values[k]);
      const uint32_t code =
          IsInteger(type) ? static_cast<uint32_t>(static_cast<int>(v)) & 255 : base::FromFloat(FormatOf(type), v);
      size_t bit = k * static_cast<size_t>(bits);
      uint32_t word = code;
      if (bits < 8 && !nibbles) {
        bit = tensor ? 8 * k : k / 16 * 128 + k % 16 * static_cast<size_t>(bits);
        if (tensor && bits == 4) word <<= 2;
      }
      for (size_t i = 0; i < 32 && bit + i < row.size() * 8; ++i) {
        if (word >> i & 1) row[(bit + i) / 8] |= static_cast<uint8_t>(1 << (bit + i) % 8);
      }
    }
    return row;
  }

  std::pair<uint32_t, uint32_t> Strides(ElementType type, bool transposed) const {
    const uint32_t span = SpanOf(form_.swizzle);
    if (!transposed) return form_.swizzle == MatrixSwizzle::kNone ? std::pair(16384u, 128u) : std::pair(0u, 8 * span);
    if (form_.swizzle == MatrixSwizzle::k128BAtom32B) return {4096, 512};
    if (form_.swizzle == MatrixSwizzle::kNone) return {8192, 128};
    return {span * (type == ElementType::kF16 || type == ElementType::kBf16 ? 16u : 32u), 8 * span};
  }

  void PlaceShared(int cta, uint32_t start, ElementType type, bool transposed, int rows, int k_bytes, int row,
                   const std::vector<uint8_t>& bytes) {
    const auto [leading, stride] = Strides(type, transposed);
    const MatrixDescriptor d{start, leading, stride, 0, form_.swizzle};
    const OperandTile tile{transposed ? OperandMajor::kMn : OperandMajor::kK, rows, k_bytes,
                           std::max(1, BitsOf(type) / 8)};
    for (int byte = 0; byte < k_bytes; ++byte) {
      shared_[static_cast<size_t>(cta)][ByteAddress(d, tile, row, byte) - kBase] = bytes[static_cast<size_t>(byte)];
    }
  }
  void PlaceSharedA() {
    const int rows = form_.m / form_.ctas;
    for (int m = 0; m < form_.m; ++m) {
      PlaceShared(m / rows, kStartA, form_.a, form_.transpose_a, rows, 32, m % rows,
                  PackRow(form_.a, StoredRow(m), false));
    }
  }
  void PlaceB() {
    const int rows = form_.n / form_.ctas;
    for (int n = 0; n < form_.n; ++n) {
      const std::vector<double> values(b_.begin() + n * k_, b_.begin() + (n + 1) * k_);
      PlaceShared(n / rows, kStartB, form_.b, form_.transpose_b, rows, form_.sparse ? 64 : 32, n % rows,
                  PackRow(form_.b, values, false));
    }
  }
  void PlaceMetadata() {
    const int span = CodeSpan(form_.kind), chunks = k_ / span, rows = form_.m / form_.ctas, copies = CopiesOf(form_);
    for (int cta = 0; cta < form_.ctas; ++cta) {
      for (int lane = 0; lane < 128; ++lane) {
        for (int c = 0; c < 2; ++c) tensor(cta).Write(lane, kColumnMetadata + c, 0);
      }
    }
    for (int m = 0; m < form_.m; ++m) {
      for (int c = 0; c < chunks; ++c) {
        const CodePlace at = CodePlaceOf(form_.kind, m % rows, c * span);
        for (int copy = 0; copy < copies; ++copy) {
          const Place p = PlaceOf(form_, m / rows * rows + at.row, copy * form_.n / copies);
          tensor(p.cta).Row(p.lane)[kColumnMetadata + at.column] |=
              static_cast<uint32_t>(codes_[static_cast<size_t>(m * chunks + c)]) << at.bit;
        }
      }
    }
  }

  uint8_t ScaleCode(int row, int factor) const {
    const int step = (row * 5 + factor * 3) % 5 - 2;
    if (form_.scale == ScaleType::kUe8m0) return static_cast<uint8_t>(127 + step);
    return static_cast<uint8_t>((7 + step) << 3 | (row % 2 ? 4 : 0));  // 1 or 1.5 times a power of two
  }
  double ScaleValue(int row, int factor) const {
    return base::ToFloat(form_.scale == ScaleType::kUe8m0 ? base::FloatFormat::kUe8m0 : base::FloatFormat::kUe4m3,
                         ScaleCode(row, factor));
  }
  double ScaleA(int m, int factor) const { return ScaleValue(m, factor); }
  double ScaleB(int n, int factor) const { return ScaleValue(n + 3, factor); }
  void PlaceScales() {
    const int rows = form_.m / form_.ctas;
    for (int cta = 0; cta < form_.ctas; ++cta) {
      tensor(cta).MarkWritten({0, 128, kColumnScaleA, 16});
      for (int lane = 0; lane < 128; ++lane) std::fill_n(tensor(cta).Row(lane) + kColumnScaleA, 16, 0u);
      for (int s = 0; s < form_.factors; ++s) {
        for (int partition = 0; partition < 4; ++partition) {
          for (int m = 0; m < rows; ++m) {
            *(tensor(cta).Row(m % 32 + 32 * partition) + kColumnScaleA + m / 32) |=
                static_cast<uint32_t>(ScaleCode(cta * rows + m, s)) << 8 * s;
          }
          for (int n = 0; n < form_.n; ++n) {
            int column = n / 32;
            if (form_.ctas == 2 && form_.m == 128) {  // the halves of N next to each other
              if (partition / 2 != n / (form_.n / 2)) continue;
              column = n % (form_.n / 2) / 32;
            }
            const int lane = (form_.ctas == 2 && form_.m == 128 ? n % (form_.n / 2) : n) % 32 + 32 * partition;
            *(tensor(cta).Row(lane) + kColumnScaleB + column) |= static_cast<uint32_t>(ScaleCode(n + 3, s)) << 8 * s;
          }
        }
      }
    }
  }

  Form form_;
  std::mt19937 random_;
  int k_ = 0;
  std::vector<std::vector<uint8_t>> shared_;
  std::vector<std::unique_ptr<TensorMemory>> tensors_;
  std::vector<double> a_, b_;
  std::vector<uint8_t> codes_;
};

inline std::string Describe(const Form& f) {
  return "kind::" + std::string(NameOf(f.kind)) + " m" + std::to_string(f.m) + " n" + std::to_string(f.n) + " cg" +
         std::to_string(f.ctas) + (f.tensor_a ? " TS" : " SS") + (f.ws ? " ws" : "") + (f.sparse ? " sp" : "") + " " +
         std::string(NameOf(f.a)) + "x" + std::string(NameOf(f.b)) + " swizzle " + std::string(NameOf(f.swizzle));
}

// The instruction once without and once with accumulation: D = AB, then 2AB.
inline void ExpectProduct(const Form& form, const Policies& policies = {}) {
  World world(form, 77);
  MmaRequest request = world.Request();
  for (int pass = 1; pass <= 2; ++pass) {
    request.accumulate = pass == 2;
    const auto report = world.Run(request, policies);
    ASSERT_TRUE(report) << Describe(form) << ": " << report.error().message;
    EXPECT_FALSE(report->unwritten) << Describe(form) << " " << report->unwritten->role;
    for (int m = 0; m < form.m; ++m) {
      for (int n = 0; n < form.n; ++n) {
        ASSERT_EQ(world.D(m, n), pass * world.Product(m, n)) << Describe(form) << " at " << m << "," << n;
      }
    }
  }
}

}  // namespace laneshift::emulator
