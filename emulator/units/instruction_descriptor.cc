#include "emulator/units/instruction_descriptor.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

uint32_t Field(uint32_t bits, int low, int width) { return bits >> low & ((1u << width) - 1); }

Error Bad(const MmaQualifiers& q, uint32_t bits, const std::string& why) {
  std::ostringstream hex;
  hex << std::hex << bits;
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("instruction descriptor 0x", hex.str(), " for kind::", NameOf(q.kind), ": ", why));
}

std::optional<ElementType> TypeOf(Tcgen05Kind kind, uint32_t code) {
  switch (kind) {
    case Tcgen05Kind::kF16:
      if (code == 0) return ElementType::kF16;
      if (code == 1) return ElementType::kBf16;
      return std::nullopt;
    case Tcgen05Kind::kTf32:
      if (code == 2) return ElementType::kTf32;
      return std::nullopt;
    case Tcgen05Kind::kF8f6f4:
    case Tcgen05Kind::kMxf8f6f4:
      if (code == 0) return ElementType::kE4m3;
      if (code == 1) return ElementType::kE5m2;
      if (code == 3) return ElementType::kE2m3;
      if (code == 4) return ElementType::kE3m2;
      if (code == 5) return ElementType::kE2m1;
      return std::nullopt;
    case Tcgen05Kind::kI8:
      if (code == 0) return ElementType::kU8;
      if (code == 1) return ElementType::kS8;
      return std::nullopt;
    case Tcgen05Kind::kMxf4:
    case Tcgen05Kind::kMxf4nvf4:
      if (code == 1) return ElementType::kE2m1;
      return std::nullopt;
  }
  return std::nullopt;
}

constexpr int kMxf4LongK = 96;  // of the 4-bit kinds on sm_103a

int DenseK(Tcgen05Kind kind) {
  switch (kind) {
    case Tcgen05Kind::kF16:
      return 16;
    case Tcgen05Kind::kTf32:
      return 8;
    case Tcgen05Kind::kF8f6f4:
    case Tcgen05Kind::kI8:
    case Tcgen05Kind::kMxf8f6f4:
      return 32;
    case Tcgen05Kind::kMxf4:
    case Tcgen05Kind::kMxf4nvf4:
      return 64;
  }
  return 0;
}

// Bits that must be zero, by kind.
uint32_t ReservedBits(const MmaQualifiers& q) {
  if (q.kind == Tcgen05Kind::kMxf8f6f4) return 0x3u | 1u << 3 | 1u << 6 | 0x7u << 24 | 1u << 31;
  if (IsBlockScaled(q.kind)) return 0x3u | 1u << 3 | 1u << 6 | 1u << 12 | 0x3u << 15 | 0x7u << 24;
  uint32_t reserved = 1u << 6 | 1u << 23 | 1u << 29;
  if (q.kind != Tcgen05Kind::kI8) reserved |= 1u << 3;
  if (q.kind == Tcgen05Kind::kI8) reserved |= 0x3u << 13;
  if (q.kind == Tcgen05Kind::kF8f6f4 || q.kind == Tcgen05Kind::kI8 || q.sparsity == SparseForm::kDense)
    reserved |= 0x3u;
  if (q.weight_mode == WeightMode::kOrdinary) reserved |= 0x3u << 30;
  return reserved;
}

// The rows of the shape table (PTX ISA, tcgen05 matrix shapes) for M.
std::vector<int> LegalM(const MmaQualifiers& q) {
  if (q.weight_mode == WeightMode::kWeightStationary) return {32, 64, 128};
  if (IsBlockScaled(q.kind)) {
    if (q.cta_group == 1) return {128};
    if (q.sparsity == SparseForm::kSparse) return {256};
    return {128, 256};
  }
  if (q.cta_group == 1) return {64, 128};
  return {128, 256};
}

// Editions of the manual differ in the step of N here.
bool StepIsOpen(const MmaQualifiers& q, const Tcgen05Descriptor& d) {
  return q.cta_group == 1 && d.m == 128 && q.weight_mode == WeightMode::kOrdinary && q.kind != Tcgen05Kind::kI8;
}

// Why N is not legal, or nothing.
std::optional<std::string> WrongN(const MmaQualifiers& q, const Tcgen05Descriptor& d, const Policies& policies) {
  if (q.weight_mode == WeightMode::kWeightStationary) {
    const bool ok = d.n == 64 || d.n == 128 || (d.n == 256 && q.sparsity == SparseForm::kDense);
    if (ok) return std::nullopt;
    return base::Cat("N ", d.n, " with .ws must be 64", q.sparsity == SparseForm::kDense ? ", 128 or 256" : " or 128");
  }
  int step = q.cta_group == 1 ? 8 : 16;
  if (StepIsOpen(q, d) && policies.smallest_n == SmallestN::kSixteen) step = 16;
  if (q.kind == Tcgen05Kind::kI8 && q.cta_group == 2) step = 32;
  if (q.kind == Tcgen05Kind::kI8 && q.cta_group == 1 && d.n > 32) step = 16;
  // 8-bit elements contiguous along N come sixteen at a time.
  if (d.transpose_b && BitsOf(d.b) == 8) step = q.cta_group == 1 ? 16 : 32;
  if (d.n >= step && d.n <= 256 && d.n % step == 0) return std::nullopt;
  return base::Cat("N ", d.n, " must be a multiple of ", step, " from ", step, " to 256");
}

std::optional<std::string> WrongTypes(const MmaQualifiers& q, const Tcgen05Descriptor& d, const Policies& policies) {
  if (q.kind == Tcgen05Kind::kF16) {
    if (d.a != d.b && policies.mixed_halves == MixedHalves::kRefused) {
      return base::Cat("A ", NameOf(d.a), " with B ", NameOf(d.b), ": both must be f16 or both bf16");
    }
    const bool f16 = d.a == ElementType::kF16 && d.b == ElementType::kF16;
    if (d.d == AccumulatorType::kF16 && !f16) return "D f16 needs f16 operands";
  }
  const auto transposed = [](std::string_view name, ElementType type) {
    return base::Cat(name, " of type ", NameOf(type), " cannot be transposed");
  };
  if (d.transpose_a && BitsOf(d.a) < 8) return transposed("A", d.a);
  if (d.transpose_b && BitsOf(d.b) < 8) return transposed("B", d.b);
  return std::nullopt;
}

// D type by kind: the two-bit field at bit 4 of the kinds without scale factors.
std::optional<AccumulatorType> AccumulatorOf(Tcgen05Kind kind, uint32_t code) {
  switch (kind) {
    case Tcgen05Kind::kF16:
    case Tcgen05Kind::kF8f6f4:
      if (code == 0) return AccumulatorType::kF16;
      if (code == 1) return AccumulatorType::kF32;
      return std::nullopt;
    case Tcgen05Kind::kTf32:
      if (code == 1) return AccumulatorType::kF32;
      return std::nullopt;
    case Tcgen05Kind::kI8:
      if (code == 2) return AccumulatorType::kS32;
      return std::nullopt;
    case Tcgen05Kind::kMxf8f6f4:
    case Tcgen05Kind::kMxf4:
    case Tcgen05Kind::kMxf4nvf4:
      return AccumulatorType::kF32;
  }
  return std::nullopt;
}

// Scale factors per row and the id fields of the block-scaled kinds.
std::optional<std::string> DecodeScales(const MmaQualifiers& q, uint32_t bits, Tcgen05Descriptor& d) {
  d.scale = Field(bits, 23, 1) ? ScaleType::kUe8m0 : ScaleType::kUe4m3;
  d.scale_b_id = static_cast<int>(Field(bits, 4, 2));
  d.scale_a_id = static_cast<int>(Field(bits, 29, 2));
  d.scale_factors = q.scale_vector;
  if (q.kind == Tcgen05Kind::kMxf8f6f4) {
    if (d.scale_factors == 0) d.scale_factors = 1;
    if (d.scale_factors != 1) return base::Cat("scale vectors of ", d.scale_factors, " scale factors; must be 1");
  } else if (q.kind == Tcgen05Kind::kMxf4) {
    if (d.scale_factors == 0) d.scale_factors = 2;
    if (d.scale_factors != 2) return base::Cat("scale vectors of ", d.scale_factors, " scale factors; must be 2");
  } else if (d.scale_factors != 2 && d.scale_factors != 4) {
    return std::string("needs a scale vector size of 2 or 4");
  }
  if (d.scale == ScaleType::kUe4m3 && (q.kind != Tcgen05Kind::kMxf4nvf4 || d.scale_factors != 4)) {
    return std::string("scale type ue4m3 (bit 23 clear) exists only for mxf4nvf4 with 4 scale factors");
  }
  // K = 96 has half as many factors again, which continue in the next cell.
  int step = d.scale_factors;
  if (q.kind != Tcgen05Kind::kMxf8f6f4 && Field(bits, 31, 1)) {
    if (!q.long_rows) return std::string("K=96 (bit 31) exists on sm_103a only");
    if (q.sparsity == SparseForm::kSparse) return std::string("K=96 (bit 31) is for dense A only");
    step = d.scale_factors / 2;
    d.scale_factors += step;
    d.k = kMxf4LongK;
  }
  for (int id : {d.scale_a_id, d.scale_b_id}) {
    if (id % step != 0) return base::Cat("scale factor id ", id, " with ", d.scale_factors, " factors");
  }
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(Tcgen05Kind kind) {
  switch (kind) {
    case Tcgen05Kind::kF16:
      return "f16";
    case Tcgen05Kind::kTf32:
      return "tf32";
    case Tcgen05Kind::kF8f6f4:
      return "f8f6f4";
    case Tcgen05Kind::kI8:
      return "i8";
    case Tcgen05Kind::kMxf8f6f4:
      return "mxf8f6f4";
    case Tcgen05Kind::kMxf4:
      return "mxf4";
    case Tcgen05Kind::kMxf4nvf4:
      return "mxf4nvf4";
  }
  return "";
}

Result<Tcgen05Descriptor> DecodeInstructionDescriptor(const MmaQualifiers& q, uint32_t bits, const Policies& policies) {
  if ((bits & ReservedBits(q)) != 0) return Bad(q, bits, "reserved bits are set");
  const bool sparse = q.sparsity == SparseForm::kSparse;
  if (Field(bits, 2, 1) != static_cast<uint32_t>(sparse)) {
    return Bad(q, bits, sparse ? "the instruction is .sp but bit 2 is clear" : "bit 2 (sparse) is set without .sp");
  }
  Tcgen05Descriptor d;
  const bool four_bit = q.kind == Tcgen05Kind::kMxf4 || q.kind == Tcgen05Kind::kMxf4nvf4;
  const auto a = TypeOf(q.kind, Field(bits, 7, 3)), b = TypeOf(q.kind, Field(bits, 10, four_bit ? 2 : 3));
  if (!a) return Bad(q, bits, base::Cat("A type code ", Field(bits, 7, 3)));
  if (!b) return Bad(q, bits, base::Cat("B type code ", Field(bits, 10, 3)));
  const auto accumulator = AccumulatorOf(q.kind, Field(bits, 4, 2));
  if (!accumulator) return Bad(q, bits, base::Cat("D type code ", Field(bits, 4, 2)));
  d.a = *a;
  d.b = *b;
  d.d = *accumulator;
  d.negate_a = Field(bits, 13, 1);
  d.negate_b = Field(bits, 14, 1);
  d.transpose_a = Field(bits, 15, 1);
  d.transpose_b = Field(bits, 16, 1);
  d.n = static_cast<int>(Field(bits, 17, 6)) * 8;
  d.k = DenseK(q.kind) * (sparse ? 2 : 1);
  if (IsBlockScaled(q.kind)) {
    d.m = static_cast<int>(Field(bits, 27, 2)) * 128;
    if (const auto why = DecodeScales(q, bits, d)) return Bad(q, bits, *why);
  } else {
    d.m = static_cast<int>(Field(bits, 24, 5)) * 16;
    d.saturate = Field(bits, 3, 1);
    d.sparsity_selector = static_cast<int>(Field(bits, 0, 2));
    const uint32_t shift = Field(bits, 30, 2);
    d.max_column_shift = shift == 0 ? 0 : 4 << shift;
  }
  const std::vector<int> legal = LegalM(q);
  if (std::find(legal.begin(), legal.end(), d.m) == legal.end()) {
    std::vector<std::string> names;
    for (int m : legal) names.push_back(std::to_string(m));
    return Bad(q, bits, base::Cat("M ", d.m, " must be one of ", base::Join(names, ", ")));
  }
  if (const auto why = WrongTypes(q, d, policies)) return Bad(q, bits, *why);
  if (const auto why = WrongN(q, d, policies)) return Bad(q, bits, *why);
  return d;
}

PolicySet PoliciesOf(const MmaQualifiers& q, const Tcgen05Descriptor& d) {
  PolicySet used;
  if (StepIsOpen(q, d) && d.n % 16 != 0) used.Add(Policy::kSmallestN);
  if (q.kind == Tcgen05Kind::kF16 && d.a != d.b) used.Add(Policy::kMixedHalves);
  if (d.d == AccumulatorType::kF16) used.Add(Policy::kUpperHalf);
  if (d.sparsity_selector >= 2) used.Add(Policy::kHighSelector);
  if (q.sparsity == SparseForm::kSparse && q.kind == Tcgen05Kind::kTf32) used.Add(Policy::kTf32Nibble);
  if (q.sparsity == SparseForm::kSparse && IsBlockScaled(q.kind)) used.Add(Policy::kSparseScales);
  if (q.sparsity == SparseForm::kSparse && q.cta_group == 2 && d.m == 128) used.Add(Policy::kSparsePairLayout);
  return used;
}

}  // namespace laneshift::emulator
