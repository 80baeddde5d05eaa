// mma.sync: tensor core operations of one warp, with operands in registers; and movmatrix.
//
// The sums are those that an H200 gave (docs/emulator.md, "mma.sync"): 16-bit floats, tf32 and integers are one fused
// sum as in wgmma; 8-bit floats go through f16 in two steps, and the accumulator is added at the end by an ordinary
// rounded addition.

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/cluster.h"
#include "emulator/units/fused_sum.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

// The arithmetic of a form's sums.
enum class Sum : uint8_t { kFused, kEightBitFloat, kInteger, kFourBitInteger, kBits, kDouble };

struct OperandType {
  Type type;
  Sum sum;
  ElementType element;  // kDouble, kBits: unused
  int bits;
  std::string_view shapes;
};
constexpr OperandType kOperandTypes[] = {
    {Type::kF16, Sum::kFused, ElementType::kF16, 16, "m16n8k8 m16n8k16"},
    {Type::kBf16, Sum::kFused, ElementType::kBf16, 16, "m16n8k8 m16n8k16"},
    {Type::kTf32, Sum::kFused, ElementType::kTf32, 32, "m16n8k4 m16n8k8"},
    {Type::kE4m3, Sum::kEightBitFloat, ElementType::kE4m3, 8, "m16n8k16 m16n8k32"},
    {Type::kE5m2, Sum::kEightBitFloat, ElementType::kE5m2, 8, "m16n8k16 m16n8k32"},
    {Type::kS8, Sum::kInteger, ElementType::kS8, 8, "m8n8k16 m16n8k16 m16n8k32"},
    {Type::kU8, Sum::kInteger, ElementType::kU8, 8, "m8n8k16 m16n8k16 m16n8k32"},
    {Type::kS4, Sum::kFourBitInteger, ElementType::kS8, 4, "m8n8k32 m16n8k32 m16n8k64"},
    {Type::kU4, Sum::kFourBitInteger, ElementType::kU8, 4, "m8n8k32 m16n8k32 m16n8k64"},
    {Type::kB1, Sum::kBits, ElementType::kU8, 1, "m8n8k128 m16n8k128 m16n8k256"},
    {Type::kF64, Sum::kDouble, ElementType::kF16, 64, "m8n8k4 m16n8k4 m16n8k8 m16n8k16"},
};

const OperandType* FindOperandType(std::optional<Type> type) {
  for (const OperandType& known : kOperandTypes) {
    if (known.type == type) return &known;
  }
  return nullptr;
}

constexpr int kN = 8;
constexpr size_t kMaxM = 16;

// The contents of Instruction::modifiers.
struct Form {
  int m = 16, k = 16;
  const OperandType *a = nullptr, *b = nullptr;
  AccumulatorType d = AccumulatorType::kF32;
  bool saturate = false, exclusive = false;  // exclusive: b1 with xor

  size_t RowBytes() const { return static_cast<size_t>(k * a->bits / 8); }
  uint32_t RegistersA() const { return static_cast<uint32_t>(m / 8) * RegistersB(); }
  uint32_t RegistersB() const { return static_cast<uint32_t>(RowBytes() / 16); }
  uint32_t RegistersD() const { return static_cast<uint32_t>(m / 8) * (d == AccumulatorType::kF16 ? 1 : 2); }

  uint64_t Encode() const {
    return static_cast<uint64_t>(m) | static_cast<uint64_t>(k) << 8 | static_cast<uint64_t>(a - kOperandTypes) << 20 |
           static_cast<uint64_t>(b - kOperandTypes) << 28 | static_cast<uint64_t>(d) << 36 | uint64_t{saturate} << 40 |
           uint64_t{exclusive} << 41;
  }
  static Form Decode(uint64_t bits) {
    Form form;
    form.m = static_cast<int>(bits & 0xff);
    form.k = static_cast<int>(bits >> 8 & 0xfff);
    form.a = &kOperandTypes[bits >> 20 & 0xff];
    form.b = &kOperandTypes[bits >> 28 & 0xff];
    form.d = static_cast<AccumulatorType>(bits >> 36 & 0xf);
    form.saturate = bits >> 40 & 1;
    form.exclusive = bits >> 41 & 1;
    return form;
  }
};

// The rows of A (columns of B), K packed bytes each. In bytes all types have one layout: a register holds four
// consecutive bytes of K, the lanes of a quad sixteen; with 16 rows every other register is eight rows below.
using Bytes = std::vector<uint8_t>;
void Gather(Warp& w, const DecodedOperand& registers, size_t rows, size_t row_bytes, Bytes& bytes) {
  bytes.resize(rows * row_bytes);
  const uint32_t halves = rows == kMaxM ? 2 : 1;
  for (uint32_t r = 0; r < registers.count; ++r) {
    const auto* words = w.At<uint32_t>(registers.elements[r]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t row = lane / 4 + 8 * (r % halves), column = 16 * (r / halves) + 4 * (lane % 4);
      std::memcpy(bytes.data() + row * row_bytes + column, &words[lane], 4);
    }
  }
}

// Row and column of element `index` of a lane's accumulator.
size_t CellOf(size_t lane, size_t index) { return (lane / 4 + 8 * (index >> 1)) * kN + 2 * (lane % 4) + (index & 1); }

using Cells = std::array<uint32_t, kMaxM * kN>;

Cells ReadAccumulator(Warp& w, const DecodedOperand& c, AccumulatorType type) {
  Cells cells{};
  for (uint32_t r = 0; r < c.count; ++r) {
    const auto* words = w.At<uint32_t>(c.elements[r]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      if (type == AccumulatorType::kF16) {
        cells[CellOf(lane, 2 * r)] = words[lane] & 0xffff;
        cells[CellOf(lane, 2 * r + 1)] = words[lane] >> 16;
      } else {
        cells[CellOf(lane, r)] = words[lane];
      }
    }
  }
  return cells;
}

void WriteAccumulator(Warp& w, const DecodedOperand& d, AccumulatorType type, const Cells& cells) {
  for (uint32_t r = 0; r < d.count; ++r) {
    auto* words = w.At<uint32_t>(d.elements[r]);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      words[lane] = type == AccumulatorType::kF16 ? cells[CellOf(lane, 2 * r)] | cells[CellOf(lane, 2 * r + 1)] << 16
                                                  : cells[CellOf(lane, r)];
    }
  }
}

SumOptions OptionsOf(Warp& w, const Form& form) {
  SumOptions options;
  options.d = form.d;
  options.adder = WgmmaAdder(ElementType::kF16, form.d);
  options.arithmetic = w.cta().cluster().machine().arithmetic;
  options.saturate = form.saturate;
  return options;
}

void FusedSums(Warp& w, const Form& form, const Bytes& a, const Bytes& b, Cells& cells) {
  OperandBuffers& buffers = w.cta().cluster().host().operands;
  OperandRows &rows_a = buffers.a, &rows_b = buffers.b;
  for (OperandRows* rows : {&rows_a, &rows_b}) rows->set_detail(OperandRows::Detail::kValuesAndExponents);
  rows_a.Load(OperandRows::Side::kA, form.a->element, Packing::kPlain, form.m, form.k, a.data(), form.RowBytes(),
              false);
  rows_b.Load(OperandRows::Side::kB, form.b->element, Packing::kPlain, kN, form.k, b.data(), form.RowBytes(), false);
  MultiplyAccumulate(rows_a, rows_b, OptionsOf(w, form), {cells.data(), kN});
}

// The elements of one half of each group of four along K, as f16: the operands of one step.
std::vector<uint32_t> HalvesAsF16(const OperandType& type, const Bytes& bytes, size_t half) {
  std::vector<uint32_t> codes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 4 / 2 == half) codes.push_back(base::FloatToF16(base::ToFloat(FormatOf(type.element), bytes[i])));
  }
  return codes;
}

void EightBitFloatSums(Warp& w, const Form& form, const Bytes& a, const Bytes& b, Cells& cells) {
  Cells products{};
  SumOptions options = OptionsOf(w, form);
  for (size_t half = 0; half < 2; ++half) {
    OperandRows rows_a, rows_b;
    rows_a.LoadCodes(OperandRows::Side::kA, ElementType::kF16, form.m, form.k / 2, HalvesAsF16(*form.a, a, half).data(),
                     false);
    rows_b.LoadCodes(OperandRows::Side::kB, ElementType::kF16, kN, form.k / 2, HalvesAsF16(*form.b, b, half).data(),
                     false);
    options.accumulate = half != 0;
    MultiplyAccumulate(rows_a, rows_b, options, {products.data(), kN});
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    if (form.d == AccumulatorType::kF16) {
      cells[i] = base::FloatToF16(base::F16ToFloat(static_cast<uint16_t>(cells[i])) +
                                  base::F16ToFloat(static_cast<uint16_t>(products[i])));
    } else {
      const float sum = std::bit_cast<float>(cells[i]) + std::bit_cast<float>(products[i]);
      cells[i] = std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
    }
  }
}

// Two elements per byte, the first in its low half.
std::vector<uint32_t> Nibbles(const OperandType& type, const Bytes& bytes) {
  std::vector<uint32_t> codes;
  for (const uint8_t byte : bytes) {
    for (const uint32_t nibble : {byte & 15u, byte >> 4 & 15u}) {
      codes.push_back(type.type == Type::kS4 && (nibble & 8) != 0 ? nibble | 0xf0 : nibble);
    }
  }
  return codes;
}

void FourBitIntegerSums(Warp& w, const Form& form, const Bytes& a, const Bytes& b, Cells& cells) {
  OperandRows rows_a, rows_b;
  rows_a.LoadCodes(OperandRows::Side::kA, form.a->element, form.m, form.k, Nibbles(*form.a, a).data(), false);
  rows_b.LoadCodes(OperandRows::Side::kB, form.b->element, kN, form.k, Nibbles(*form.b, b).data(), false);
  MultiplyAccumulate(rows_a, rows_b, OptionsOf(w, form), {cells.data(), kN});
}

void BitSums(const Form& form, const Bytes& a, const Bytes& b, Cells& cells) {
  const size_t bytes = form.RowBytes();
  for (size_t row = 0; row < static_cast<size_t>(form.m); ++row) {
    for (size_t column = 0; column < kN; ++column) {
      for (size_t i = 0; i < bytes; ++i) {
        const uint32_t x = a[row * bytes + i], y = b[column * bytes + i];
        cells[row * kN + column] += static_cast<uint32_t>(std::popcount(form.exclusive ? x ^ y : x & y));
      }
    }
  }
}

// All lanes of a warp execute an .aligned instruction together. False: blocked, or a fault.
bool WholeWarp(Warp& w, uint32_t& mask, Outcome& outcome) {
  outcome = Outcome::kBlocked;
  if (w.live() != kFullMask) {
    outcome = w.Fault(FaultKind::kIllegalInstruction, std::countr_zero(mask),
                      "a matrix instruction is executed by a warp of which threads are missing");
    return false;
  }
  return w.SyncLanes(kFullMask, mask);
}

// operands: d, a, b, c
Outcome Mma(Warp& w, const Instruction& i, uint32_t mask) {
  Outcome outcome;
  if (!WholeWarp(w, mask, outcome)) return outcome;
  const Form form = Form::Decode(i.modifiers);
  OperandBuffers& buffers = w.cta().cluster().host().operands;
  Bytes &a = buffers.bytes_a, &b = buffers.bytes_b;
  Gather(w, i[1], static_cast<size_t>(form.m), form.RowBytes(), a);
  Gather(w, i[2], kN, form.RowBytes(), b);
  Cells cells = ReadAccumulator(w, i[3], form.d);
  switch (form.a->sum) {
    case Sum::kFused:
    case Sum::kInteger:
      FusedSums(w, form, a, b, cells);
      break;
    case Sum::kEightBitFloat:
      EightBitFloatSums(w, form, a, b, cells);
      break;
    case Sum::kFourBitInteger:
      FourBitIntegerSums(w, form, a, b, cells);
      break;
    case Sum::kBits:
      BitSums(form, a, b, cells);
      break;
    case Sum::kDouble:
      break;
  }
  WriteAccumulator(w, i[0], form.d, cells);
  Counters& counters = w.cta().cluster().counters();
  ++counters.mma_instructions;
  counters.mma_multiplies += static_cast<uint64_t>(form.m) * kN * static_cast<uint64_t>(form.k);
  return Outcome::kNext;
}

// f64: a chain of fused multiply-adds along K. Register r of A holds row lane / 4 + 8 (r % 2), column lane % 4 + 4 (r /
// 2).
Outcome MmaDouble(Warp& w, const Instruction& i, uint32_t mask) {
  Outcome outcome;
  if (!WholeWarp(w, mask, outcome)) return outcome;
  const Form form = Form::Decode(i.modifiers);
  const size_t halves = static_cast<size_t>(form.m) / 8;
  const auto at = [&](const DecodedOperand& registers, size_t r, size_t lane) {
    return std::bit_cast<double>(w.At<uint64_t>(registers.elements[r])[lane]);
  };
  std::array<double, kMaxM * kN> cells{};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t r = 0; r < i[3].count; ++r) cells[CellOf(lane, r)] = at(i[3], r, lane);
  }
  for (size_t row = 0; row < static_cast<size_t>(form.m); ++row) {
    for (size_t column = 0; column < kN; ++column) {
      double& sum = cells[row * kN + column];
      for (size_t k = 0; k < static_cast<size_t>(form.k); ++k) {
        const double x = at(i[1], k / 4 * halves + row / 8, row % 8 * 4 + k % 4);
        const double y = at(i[2], k / 4, column * 4 + k % 4);
        sum = std::fma(x, y, sum);
      }
    }
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t r = 0; r < i[0].count; ++r)
      w.At<uint64_t>(i[0].elements[r])[lane] = std::bit_cast<uint64_t>(cells[CellOf(lane, r)]);
  }
  return Outcome::kNext;
}

std::optional<AccumulatorType> AccumulatorOf(Type type) {
  if (type == Type::kF32) return AccumulatorType::kF32;
  if (type == Type::kF16) return AccumulatorType::kF16;
  if (type == Type::kS32) return AccumulatorType::kS32;
  return std::nullopt;
}

Result<Form> ReadShape(const Match& match, const OperandType& type) {
  Form form;
  int n = 0;
  const std::string shape(match("Shape"));
  bool known = false;
  for (const std::string_view word : base::Words(type.shapes)) known = known || word == shape;
  if (!known || std::sscanf(shape.c_str(), "m%dn%dk%d", &form.m, &n, &form.k) != 3)
    return Wrong(Cat(".", shape, " is not a shape of .", FactsOf(type.type).suffix, ", which has ", type.shapes));
  return form;
}

Status CheckRegisters(const Instruction& i, uint32_t d, uint32_t a, uint32_t b) {
  const uint32_t wanted[] = {d, a, b, d};
  for (size_t v = 0; v < 4; ++v) {
    if (i[v].count != wanted[v])
      return Wrong(Cat("operand ", v + 1, " has ", i[v].count, " registers, not ", wanted[v]));
  }
  return Ok();
}

// movmatrix: an 8 x 8 matrix of 16-bit elements, row lane / 4, columns 2 (lane % 4) and the next, transposed.
Outcome Movmatrix(Warp& w, const Instruction& i, uint32_t mask) {
  Outcome outcome;
  if (!WholeWarp(w, mask, outcome)) return outcome;
  std::array<uint16_t, 64> elements;
  const auto* from = w.At<uint32_t>(i[1]);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    elements[2 * lane] = static_cast<uint16_t>(from[lane]);
    elements[2 * lane + 1] = static_cast<uint16_t>(from[lane] >> 16);
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t row = lane / 4, column = lane % 4 * 2;
    w.At<uint32_t>(i[0])[lane] = elements[column * 8 + row] | uint32_t{elements[(column + 1) * 8 + row]} << 16;
  }
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindWarpMma(const Match& match, Instruction& i) {
  const OperandType *a = FindOperandType(match.TypeAt(1)), *b = FindOperandType(match.TypeAt(2));
  if (a == nullptr || a->sum == Sum::kDouble) return WrongType(match, 1);
  if (b == nullptr || b->sum != a->sum) return WrongType(match, 2);
  if (a->sum == Sum::kFused && a != b) return Wrong("both operands have the same type");
  LS_ASSIGN(Form form, ReadShape(match, *a));
  form.a = a;
  form.b = b;
  const auto d = AccumulatorOf(match.TypeAt(0).value_or(Type::kPred));
  if (!d || match.TypeAt(3) != match.TypeAt(0)) return WrongType(match, 0);
  form.d = *d;
  const bool integers = a->sum == Sum::kInteger || a->sum == Sum::kFourBitInteger || a->sum == Sum::kBits;
  const bool f16_result = a->sum == Sum::kEightBitFloat || a->type == Type::kF16;
  if (integers != (form.d == AccumulatorType::kS32) || (form.d == AccumulatorType::kF16 && !f16_result))
    return Wrong(Cat(".", FactsOf(*match.TypeAt(0)).suffix, " is not a result type of .", FactsOf(a->type).suffix));
  form.saturate = match.Has("Sat");
  if (form.saturate && (!integers || a->sum == Sum::kBits)) return Wrong(".satfinite is for integers");
  if ((a->sum == Sum::kBits) != match.Has("BitOp")) return Wrong(".b1 has .xor.popc or .and.popc, others have not");
  form.exclusive = match("BitOp") == "xor";
  LS_TRY(CheckRegisters(i, form.RegistersD(), form.RegistersA(), form.RegistersB()));
  i.modifiers = form.Encode();
  return Handler(Mma);
}

Result<Handler> BindWarpMmaDouble(const Match& match, Instruction& i) {
  const OperandType* type = FindOperandType(Type::kF64);
  LS_ASSIGN(Form form, ReadShape(match, *type));
  form.a = form.b = type;
  const auto m = static_cast<uint32_t>(form.m), k = static_cast<uint32_t>(form.k);
  LS_TRY(CheckRegisters(i, m / 4, m / 8 * k / 4, k / 4));
  i.modifiers = form.Encode();
  return Handler(MmaDouble);
}

Result<Handler> BindMovmatrix(const Match&, Instruction&) { return Handler(Movmatrix); }

}  // namespace laneshift::emulator
