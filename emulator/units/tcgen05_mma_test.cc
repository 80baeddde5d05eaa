#include "emulator/units/tcgen05_mma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "emulator/units/sparse_metadata.h"

namespace laneshift::emulator {
namespace {

constexpr uint32_t kBase = 0x400;
constexpr uint32_t kStartA = 0x4000, kStartB = 0x10000;
constexpr uint16_t kColumnA = 300, kColumnScaleA = 320, kColumnScaleB = 328, kColumnMetadata = 340;

// One instruction to try: shapes and types, and where A comes from.
struct Form {
  MmaKind kind = MmaKind::kF16;
  ElementType a = ElementType::kF16, b = ElementType::kF16;
  AccumulatorType d = AccumulatorType::kF32;
  int m = 128, n = 64;
  int ctas = 1;
  bool tensor_a = false, ws = false, sparse = false;
  bool transpose_a = false, transpose_b = false, negate_a = false, negate_b = false;
  int factors = 0;
  ScaleType scale = ScaleType::kUe8m0;
  int lane = 0;  // of D, for half-lane layouts
  Swizzle swizzle = Swizzle::k128B;
};

uint32_t CodeOf(const Form& f, ElementType type) {
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
      return f.kind == MmaKind::kMxf4 || f.kind == MmaKind::kMxf4nvf4 ? 1 : 5;
    case ElementType::kS8:
      return 1;
    case ElementType::kU8:
      return 0;
  }
  return 0;
}

uint32_t InstructionOf(const Form& f) {
  uint32_t bits = CodeOf(f, f.a) << 7 | CodeOf(f, f.b) << 10 | static_cast<uint32_t>(f.n / 8) << 17;
  bits |= static_cast<uint32_t>(f.sparse) << 2 | static_cast<uint32_t>(f.negate_a) << 13 |
          static_cast<uint32_t>(f.negate_b) << 14;
  bits |= static_cast<uint32_t>(f.transpose_a) << 15 | static_cast<uint32_t>(f.transpose_b) << 16;
  bits |= static_cast<uint32_t>(f.m / 16) << 24;
  if (f.factors != 0) return bits | (f.scale == ScaleType::kUe8m0 ? 1u << 23 : 0);
  return bits | (f.d == AccumulatorType::kF32 ? 1u : f.d == AccumulatorType::kS32 ? 2u : 0u) << 4;
}

uint64_t DescriptorOf(uint32_t start, uint32_t leading, uint32_t stride, Swizzle swizzle) {
  constexpr uint64_t kCodes[] = {0, 6, 4, 2, 1};
  return start >> 4 | uint64_t{leading >> 4} << 16 | uint64_t{stride >> 4} << 32 | uint64_t{1} << 46 |
         kCodes[static_cast<size_t>(swizzle)] << 61;
}

// Where the manual's layouts put D's element (m, n): CTA, lane, column from D's.
struct Place {
  int cta, lane, column;
};
Place PlaceOf(const Form& f, int m, int n) {
  if (f.ws && f.m == 32) return {0, m + 32 * (n / (f.n / 4)), n % (f.n / 4)};
  if (f.ws && f.m == 64) return {0, m + 64 * (n / (f.n / 2)), n % (f.n / 2)};
  if (f.m == 64) return {0, f.lane + 32 * (m / 16) + m % 16, n};
  if (f.m == 256) return {m / 128, m % 128, n};
  if (f.ctas == 2 && f.sparse) return {m / 64, f.lane + 32 * (m % 64 / 16) + m % 16, n};
  if (f.ctas == 2) return {m / 64, m % 64 + 64 * (n / (f.n / 2)), n % (f.n / 2)};
  return {0, m, n};
}

class World {
 public:
  World(const Form& form, uint32_t seed) : form_(form), random_(seed) {
    for (int cta = 0; cta < form.ctas; ++cta) {
      shared_.emplace_back(200 * 1024);
      tensors_.push_back(std::make_unique<TensorMemory>());
    }
    const bool four_bit = form.kind == MmaKind::kMxf4 || form.kind == MmaKind::kMxf4nvf4;
    k_ = form.kind == MmaKind::kF16 ? 16 : form.kind == MmaKind::kTf32 ? 8 : four_bit ? 64 : 32;
    if (form.sparse) k_ *= 2;
    Draw();
    PlaceB();
    form.tensor_a ? PlaceTensorA() : PlaceSharedA();
    if (form.sparse) PlaceMetadata();
    if (form.factors != 0) PlaceScales();
  }

  MmaRequest Request() const {
    MmaRequest r;
    r.qualifiers = {form_.kind, form_.ctas, form_.sparse ? Sparsity::kSparse : Sparsity::kDense,
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
    return ExecuteMma(plan, Arithmetic::kHardware, states);
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
    const int groups = (form_.m == 32                                        ? 4
                        : form_.m == 64 && form_.ws                          ? 2
                        : form_.m == 128 && form_.ctas == 2 && !form_.sparse ? 2
                                                                             : 1);
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
    const int chunk = ChunkOf(form_.kind), run = chunk == 8 ? 2 : 1;
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
    const int chunk = form_.sparse ? ChunkOf(form_.kind) : 1, run = chunk == 8 ? 2 : 1;
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
    const bool nibbles = form_.kind == MmaKind::kMxf4 || form_.kind == MmaKind::kMxf4nvf4;
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
    if (!transposed) return form_.swizzle == Swizzle::kNone ? std::pair(16384u, 128u) : std::pair(0u, 8 * span);
    if (form_.swizzle == Swizzle::k128BAtom32B) return {4096, 512};
    if (form_.swizzle == Swizzle::kNone) return {8192, 128};
    return {span * (type == ElementType::kF16 || type == ElementType::kBf16 ? 16u : 32u), 8 * span};
  }

  void PlaceShared(int cta, uint32_t start, ElementType type, bool transposed, int rows, int k_bytes, int row,
                   const std::vector<uint8_t>& bytes) {
    const auto [leading, stride] = Strides(type, transposed);
    const MatrixDescriptor d{start, leading, stride, 0, form_.swizzle};
    const OperandTile tile{transposed ? Major::kMn : Major::kK, rows, k_bytes, std::max(1, BitsOf(type) / 8)};
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
    const int chunks = k_ / ChunkOf(form_.kind), rows = form_.m / form_.ctas;
    const DataPathLayout layout = LayoutOf(Request().qualifiers, form_.m);
    for (int cta = 0; cta < form_.ctas; ++cta) {
      for (int lane = 0; lane < 128; ++lane) {
        for (int c = 0; c < 2; ++c) tensor(cta).Write(lane, kColumnMetadata + c, 0);
      }
    }
    for (int m = 0; m < form_.m; ++m) {
      for (int c = 0; c < chunks; ++c) {
        for (int group = 0; group < GroupsOf(layout); ++group) {
          const MetadataPosition at =
              PositionOf(form_.kind, 0, {0, kColumnMetadata}, layout, form_.lane, m % rows, group, c);
          *(tensor(m / rows).Row(at.cell.lane) + at.cell.column) |=
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
            if (form_.ctas == 2 && form_.m == 128) {  // the halves of N side by side
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

std::string Describe(const Form& f) {
  return "kind::" + std::string(NameOf(f.kind)) + " m" + std::to_string(f.m) + " n" + std::to_string(f.n) + " cg" +
         std::to_string(f.ctas) + (f.tensor_a ? " TS" : " SS") + (f.ws ? " ws" : "") + (f.sparse ? " sp" : "") + " " +
         std::string(NameOf(f.a)) + "x" + std::string(NameOf(f.b)) + " swizzle " + std::string(NameOf(f.swizzle));
}

// The instruction once without and once with accumulation: D = AB, then 2AB.
void ExpectProduct(const Form& form) {
  World world(form, 77);
  MmaRequest request = world.Request();
  for (int pass = 1; pass <= 2; ++pass) {
    request.accumulate = pass == 2;
    const auto report = world.Run(request);
    ASSERT_TRUE(report) << Describe(form) << ": " << report.error().message;
    EXPECT_FALSE(report->unwritten) << Describe(form) << " " << report->unwritten->role;
    for (int m = 0; m < form.m; ++m) {
      for (int n = 0; n < form.n; ++n) {
        ASSERT_EQ(world.D(m, n), pass * world.Product(m, n)) << Describe(form) << " at " << m << "," << n;
      }
    }
  }
}

std::vector<Form> Types() {
  using E = ElementType;
  Form f16, f16_f16, bf16, tf32, f8, mixed, i8;
  f16_f16.d = AccumulatorType::kF16;
  bf16.a = bf16.b = E::kBf16;
  tf32.kind = MmaKind::kTf32;
  tf32.a = tf32.b = E::kTf32;
  f8.kind = MmaKind::kF8f6f4;
  f8.a = E::kE4m3;
  f8.b = E::kE5m2;
  mixed.kind = MmaKind::kF8f6f4;
  mixed.a = E::kE2m1;
  mixed.b = E::kE3m2;
  i8.kind = MmaKind::kI8;
  i8.a = E::kS8;
  i8.b = E::kU8;
  i8.d = AccumulatorType::kS32;
  return {f16, f16_f16, bf16, tf32, f8, mixed, i8};
}

TEST(Tcgen05Mma, EveryTypeShapeAndDataPath) {
  struct Shape {
    int m, n, ctas;
    bool ws;
    int lane;
  };
  const Shape shapes[] = {{128, 64, 1, false, 0}, {128, 256, 1, false, 0}, {64, 32, 1, false, 0},
                          {64, 32, 1, false, 16}, {256, 64, 2, false, 0},  {128, 64, 2, false, 0},
                          {128, 64, 1, true, 0},  {64, 64, 1, true, 0},    {32, 128, 1, true, 0}};
  for (Form form : Types()) {
    for (const Shape& s : shapes) {
      for (bool tensor_a : {false, true}) {
        form.m = s.m;
        form.n = s.n;
        form.ctas = s.ctas;
        form.ws = s.ws;
        form.lane = s.lane;
        form.tensor_a = tensor_a;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, EverySwizzleAndMajor) {
  for (Form form : Types()) {
    for (Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B, Swizzle::k128BAtom32B}) {
      for (int majors = 0; majors < 4; ++majors) {
        form.swizzle = swizzle;
        form.transpose_a = majors & 1;
        form.transpose_b = majors & 2;
        const bool atoms = swizzle == Swizzle::k128BAtom32B;
        if (majors != 0 && (form.kind == MmaKind::kTf32) != atoms) continue;
        if (majors != 0 && BitsOf(form.a) < 8) continue;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, SparseA) {
  for (Form form : Types()) {
    form.sparse = true;
    for (bool tensor_a : {false, true}) {
      form.tensor_a = tensor_a;
      for (const auto& [m, ctas, ws] : {std::tuple(128, 1, false), std::tuple(256, 2, false), std::tuple(128, 2, false),
                                        std::tuple(64, 1, false), std::tuple(64, 1, true)}) {
        form.m = m;
        form.ctas = ctas;
        form.ws = ws;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, BlockScaledKinds) {
  using E = ElementType;
  Form mx8, mx4, nv4;
  mx8.kind = MmaKind::kMxf8f6f4;
  mx8.a = E::kE4m3;
  mx8.b = E::kE2m1;
  mx8.factors = 1;
  mx4.kind = MmaKind::kMxf4;
  mx4.a = mx4.b = E::kE2m1;
  mx4.factors = 2;
  nv4 = mx4;
  nv4.kind = MmaKind::kMxf4nvf4;
  nv4.factors = 4;
  nv4.scale = ScaleType::kUe4m3;
  for (Form form : {mx8, mx4, nv4}) {
    for (const auto& [m, ctas] : {std::pair(128, 1), std::pair(256, 2), std::pair(128, 2)}) {
      form.m = m;
      form.ctas = ctas;
      for (bool tensor_a : {false, true}) {
        form.tensor_a = tensor_a;
        form.sparse = false;
        ExpectProduct(form);
        if (HasFatalFailure()) return;
        form.sparse = !(ctas == 2 && m == 128);
        if (form.sparse) ExpectProduct(form);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Tcgen05Mma, ScaleFactorIdsPickTheirByte) {
  Form form;
  form.kind = MmaKind::kMxf8f6f4;
  form.a = form.b = ElementType::kE5m2;
  form.factors = 1;
  World world(form, 21);
  for (int lane = 0; lane < 128; ++lane) {
    for (int column = 0; column < 8; ++column) {
      world.tensor().Row(lane)[kColumnScaleA + column] <<= 24;
      world.tensor().Row(lane)[kColumnScaleB + column] <<= 16;
    }
  }
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 3u << 29 | 2u << 4;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < form.m; ++m) {
    for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(m, n), world.Product(m, n));
  }
}

TEST(Tcgen05Mma, TheSelectorPicksTheMetadataColumn) {
  Form form;
  form.sparse = true;
  World world(form, 22);
  for (int lane = 0; lane < 128; ++lane) {
    world.tensor().Write(lane, kColumnMetadata + 1, world.tensor().Read(lane, kColumnMetadata));
    world.tensor().Write(lane, kColumnMetadata, 0);
  }
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 1;
  const auto report = world.Run(request);
  ASSERT_TRUE(report) << report.error().message;
  for (int m = 0; m < form.m; ++m) ASSERT_EQ(world.D(m, 7), world.Product(m, 7));
}

TEST(Tcgen05Mma, NegateAndScaleOfD) {
  Form form;
  form.negate_a = true;
  ExpectProduct(form);
  form.negate_b = true;
  ExpectProduct(form);
  form.negate_a = form.negate_b = false;
  World world(form, 5);
  MmaRequest request = world.Request();
  request.accumulate = false;
  ASSERT_TRUE(world.Run(request));
  request.accumulate = true;
  request.scale_d = 3;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < form.m; ++m) {
    for (int n = 0; n < form.n; ++n) ASSERT_EQ(world.D(m, n), world.Product(m, n) * 1.125);
  }
}

TEST(Tcgen05Mma, DisabledLanesKeepTheirContents) {
  Form form;
  form.ctas = 2;
  form.m = 256;
  World world(form, 6);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.disabled_lanes = {0xc0000000, 0, 0xffffffff, 1, 0x80000000, 0, 0, 0};
  for (int cta = 0; cta < 2; ++cta) {
    for (int lane = 0; lane < 128; ++lane) {
      for (int n = 0; n < form.n; ++n) world.tensor(cta).Write(lane, n, 0x42424242);
    }
  }
  const auto windows = world.Windows();
  const auto plan = PlanMma(request, windows);
  ASSERT_TRUE(plan);
  for (const TensorRange& r : plan->touched[0].tensor_writes) EXPECT_NE(r.lane, 64);  // a whole group is off
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 256; ++m) {
    const uint32_t word = request.disabled_lanes[static_cast<size_t>(m / 32)];
    for (int n = 0; n < form.n; ++n) {
      const double want = word >> (m % 32) & 1 ? std::bit_cast<float>(0x42424242) : world.Product(m, n);
      ASSERT_EQ(world.D(m, n), want) << m;
    }
  }
}

TEST(Tcgen05Mma, ShiftAMovesRowsBeforeTheProductByPolicy) {
  Form form;
  form.tensor_a = true;
  World world(form, 8);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.shift_a = true;
  Policies policies;
  policies.ashift_time = AshiftTime::kBefore;
  ASSERT_TRUE(world.Run(request, policies));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
  request.shift_a = false;
  policies.shift_scope = ShiftScope::kCta;
  ASSERT_TRUE(world.Run(request, policies));  // the rows moved in place, once
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
}

TEST(Tcgen05Mma, ShiftAMovesRowsAfterTheProduct) {
  Form form;
  form.tensor_a = true;
  World world(form, 8);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.shift_a = true;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m, 3));
  request.shift_a = false;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 128; ++m) ASSERT_EQ(world.D(m, 3), world.Product(m % 32 == 31 ? m : m + 1, 3)) << m;
}

TEST(Tcgen05Mma, GroupsReadTheirOwnCopyOfA) {
  Form form;
  form.m = 64;
  form.ws = form.tensor_a = true;
  World world(form, 9);
  for (int lane = 64; lane < 128; ++lane) std::fill_n(world.tensor().Row(lane) + kColumnA, 8, 0u);
  MmaRequest request = world.Request();
  request.accumulate = false;
  ASSERT_TRUE(world.Run(request));
  for (int m = 0; m < 64; ++m) {
    for (int n = 0; n < 64; ++n) ASSERT_EQ(world.D(m, n), n < 32 ? world.Product(m, n) : 0);
  }
}

TEST(Tcgen05Mma, ReportsCellsThatWereNeverWritten) {
  Form form;
  form.tensor_a = true;
  World world(form, 10);
  world.tensor().Poison({70, 1, kColumnA + 3, 1});
  MmaRequest request = world.Request();
  const auto d = world.Run(request);
  ASSERT_TRUE(d && d->unwritten);
  EXPECT_EQ(std::string(d->unwritten->role), "D");
  request.accumulate = false;
  const auto a = world.Run(request);
  ASSERT_TRUE(a && a->unwritten);
  EXPECT_EQ(std::string(a->unwritten->role), "A");
  EXPECT_EQ(a->unwritten->cell, (TensorAddress{70, kColumnA + 3}));
}

TEST(Tcgen05Mma, UnequalScaleCopiesAndIllegalMetadataAreErrors) {
  Form scaled;
  scaled.kind = MmaKind::kMxf4;
  scaled.a = scaled.b = ElementType::kE2m1;
  scaled.factors = 2;
  World world(scaled, 11);
  for (const auto& [column, name] :
       {std::pair(kColumnScaleA, "of A differ"), std::pair(kColumnScaleB, "of B differ")}) {
    for (int copy = 1; copy < 4; ++copy) {
      const uint32_t good = world.tensor().Read(32 * copy, column);
      world.tensor().Write(32 * copy, column, 0);
      const auto differ = world.Run(world.Request());
      ASSERT_FALSE(differ);
      EXPECT_NE(differ.error().message.find(name), std::string::npos) << differ.error().message;
      world.tensor().Write(32 * copy, column, good);
    }
  }
  Form sparse;
  sparse.sparse = true;
  World bad(sparse, 12);
  bad.tensor().Write(0, kColumnMetadata, 0);
  const auto illegal = bad.Run(bad.Request());
  ASSERT_FALSE(illegal);
  EXPECT_NE(illegal.error().message.find("metadata code 0"), std::string::npos);
}

TEST(Tcgen05Mma, TouchedRangesOfATile) {
  Form form;
  form.n = 128;
  World world(form, 13);
  const auto windows = world.Windows();
  const auto plan = PlanMma(world.Request(), windows);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->multiplies, 128 * 128 * 16);
  // 128 rows of 32 bytes at a pitch of 128 under the 128B swizzle: the granules of a row stay in its row.
  uint32_t bytes = 0;
  for (const SharedRange& r : plan->touched[0].shared_reads) bytes += r.end - r.begin;
  EXPECT_EQ(bytes, (128u + 128u) * 32);
  ASSERT_EQ(plan->touched[0].tensor_writes.size(), 4u);
  EXPECT_EQ(plan->touched[0].tensor_reads, (std::vector<TensorRange>{{0, 128, 0, 128}}));
}

TEST(Tcgen05Mma, RefusesWhatIsWrongByName) {
  const auto message = [](const Form& form, const std::function<void(MmaRequest&)>& change) {
    World world(form, 14);
    MmaRequest request = world.Request();
    change(request);
    const auto windows = world.Windows();
    const auto plan = PlanMma(request, windows);
    return plan ? std::string("accepted") : plan.error().message;
  };
  Form ss, ts, m64;
  ts.tensor_a = true;
  m64.m = 64;
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.shift_a = true; }).find(".ashift needs A in Tensor Memory"),
            std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.d.lane = 16; }).find("lane 16"), std::string::npos);
  EXPECT_NE(message(ts, [](MmaRequest& r) { r.a = TensorAddress{0, 508}; }).find("outside"), std::string::npos);
  EXPECT_NE(message(ts, [](MmaRequest& r) { r.a = TensorAddress{16, 0}; }).find("same lane"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.d.column = 460; }).find("outside"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.scale_d = 16; }).find("scale-input-d"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.zero_columns = 0; }).find(".ws"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.metadata = TensorAddress{}; }).find(".sp"), std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.b = 0x4000404000003fff; }).find("outside the CTA's window"),
            std::string::npos);
  EXPECT_NE(message(ss, [](MmaRequest& r) { r.b = 0; }).find("bits 48:46"), std::string::npos);
}

TEST(Tcgen05Mma, ZeroColumnsAndColumnShift) {
  Form form;
  form.ws = true;
  form.n = 64;
  World world(form, 15);
  MmaRequest request = world.Request();
  request.accumulate = false;
  request.instruction |= 1u << 30;                               // shifts up to 8
  request.zero_columns = uint64_t{1} << 39 | uint64_t{2} << 48;  // every fourth column is zero
  ASSERT_TRUE(world.Run(request));
  for (int n = 0; n < 64; ++n) EXPECT_EQ(world.D(5, n), n % 4 == 3 ? 0 : world.Product(5, n)) << n;
  request.zero_columns = uint64_t{4} << 56;
  ASSERT_TRUE(world.Run(request));
  for (int n = 0; n < 60; ++n) EXPECT_EQ(world.D(5, n), world.Product(5, n + 4)) << n;
}

}  // namespace
}  // namespace laneshift::emulator
