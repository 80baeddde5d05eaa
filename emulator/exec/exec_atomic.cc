// atom and red.

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>

#include "base/text.h"
#include "emulator/decode/type_dispatch.h"
#include "emulator/exec/lanes.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

enum class AtomOp : uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };
AtomOp AtomOpOf(std::string_view word) {
  static constexpr std::string_view kWords[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
  for (size_t k = 0; k < std::size(kWords); ++k) {
    if (word == kWords[k]) return static_cast<AtomOp>(k);
  }
  return AtomOp::kAdd;
}

template <typename T>
T CombineInteger(AtomOp op, T old, T b, T c) {
  switch (op) {
    case AtomOp::kAdd:
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
    case AtomOp::kMin:
      return old < b ? old : b;
    case AtomOp::kMax:
      return old > b ? old : b;
    case AtomOp::kInc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case AtomOp::kDec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case AtomOp::kAnd:
      return static_cast<T>(old & b);
    case AtomOp::kOr:
      return static_cast<T>(old | b);
    case AtomOp::kXor:
      return static_cast<T>(old ^ b);
    case AtomOp::kExch:
      return b;
    case AtomOp::kCas:
      return old == b ? c : old;
  }
  return old;
}

template <typename H>
uint16_t CombineSmall(AtomOp op, uint16_t old, uint16_t b) {
  const float x = H{old}.Float(), y = H{b}.Float();
  return H::From(op == AtomOp::kAdd ? x + y : op == AtomOp::kMin ? std::fmin(x, y) : std::fmax(x, y)).bits;
}

// One element as bits: old, operand, second operand -> new.
using CombineBits = uint64_t (*)(AtomOp, uint64_t, uint64_t, uint64_t);
template <typename T>
uint64_t CombineAs(AtomOp op, uint64_t old, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(
      CombineInteger<T>(op, static_cast<T>(old), static_cast<T>(b), static_cast<T>(c))));
}
uint64_t CombineF32(AtomOp, uint64_t old, uint64_t b, uint64_t) {
  return std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(old)) +
                                 std::bit_cast<float>(static_cast<uint32_t>(b)));
}
float Flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
uint64_t CombineFlushedF32(AtomOp, uint64_t old, uint64_t b, uint64_t) {
  return std::bit_cast<uint32_t>(Flush(Flush(std::bit_cast<float>(static_cast<uint32_t>(old))) +
                                       Flush(std::bit_cast<float>(static_cast<uint32_t>(b)))));
}
uint64_t CombineF64(AtomOp, uint64_t old, uint64_t b, uint64_t) {
  return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
}
template <typename H>
uint64_t CombineH(AtomOp op, uint64_t old, uint64_t b, uint64_t) {
  return CombineSmall<H>(op, static_cast<uint16_t>(old), static_cast<uint16_t>(b));
}
template <typename H>
uint64_t CombineH2(AtomOp op, uint64_t old, uint64_t b, uint64_t) {
  return uint64_t{CombineSmall<H>(op, static_cast<uint16_t>(old), static_cast<uint16_t>(b))} |
         uint64_t{CombineSmall<H>(op, static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16))} << 16;
}

template <typename W, CombineBits kCombine>
uint64_t Exchange(uint8_t* host, AtomOp op, uint64_t b, uint64_t c) {
  auto* word = reinterpret_cast<W*>(host);
  W old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, static_cast<W>(kCombine(op, old, b, c)), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

// A cluster of another host thread may have released since Synchronise what this value makes visible.
void ObserveAgain(Warp& w, const Instruction& i, const Located& at, int lane) {
  if (at.space == StateSpace::kGlobal) Synchronise(w, i, at, lane, AccessKind::kStrongRead);
}

// One lane's element. False after a fault.
template <typename W, CombineBits kCombine>
bool Update(Warp& w, const Instruction& i, uint64_t address, int lane, uint64_t b, uint64_t c, uint64_t& old) {
  Located at;
  if (!Locate(w, i.space, address, sizeof(W), lane, AccessKind::kAtomic, at)) return false;
  // Nobody waits for a floating-point sum, and there are many of them.
  constexpr bool kIsFloat = kCombine == CombineF32 || kCombine == CombineF64 || kCombine == CombineH<Half> ||
                            kCombine == CombineH<Brain> || kCombine == CombineH2<Half> || kCombine == CombineH2<Brain>;
  if (!kIsFloat || at.space != StateSpace::kGlobal) Synchronise(w, i, at, lane, AccessKind::kAtomic);
  const auto op = static_cast<AtomOp>(i.modifiers & 0xff);
  // Sums of f32 in global memory flush subnormal numbers, in shared memory they do not (PTX ISA, atom).
  if constexpr (kCombine == CombineF32) {
    if (at.space == StateSpace::kGlobal) {
      old = Exchange<W, CombineFlushedF32>(at.host, op, b, c);
      w.cta().cluster().NoteChange();
      return true;
    }
  }
  old = Exchange<W, kCombine>(at.host, op, b, c);
  if (!kIsFloat || at.space != StateSpace::kGlobal) ObserveAgain(w, i, at, lane);
  // Without a change: a lock that is taken, or a word that is only read.
  if (static_cast<W>(kCombine(op, old, b, c)) != static_cast<W>(old)) w.cta().cluster().NoteChange();
  return true;
}

// atom: d, [a], b, c   red: [a], b
template <typename W, CombineBits kCombine, bool kReturns>
Outcome Atomic(Warp& w, const Instruction& i, uint32_t mask) {
  constexpr size_t kAddress = kReturns ? 1 : 0;
  const bool compares = static_cast<AtomOp>(i.modifiers & 0xff) == AtomOp::kCas;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    uint64_t old;
    if (!Update<W, kCombine>(w, i, w.AddressOf(i[kAddress], lane), lane, w.Value(i[kAddress + 1], lane),
                             compares ? w.Value(i[kAddress + 2], lane) : 0, old))
      return Outcome::kFault;
    if constexpr (kReturns) w.At<Cell<W>>(i[0])[lane] = static_cast<Cell<W>>(old);
  }
  return Outcome::kNext;
}

// The same for the elements of a vector, each of which is atomic by itself.
template <typename W, CombineBits kCombine, bool kReturns>
Outcome AtomicVector(Warp& w, const Instruction& i, uint32_t mask) {
  constexpr size_t kAddress = kReturns ? 1 : 0;
  const DecodedOperand& values = i[kAddress + 1];
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t address = w.AddressOf(i[kAddress], lane);
    if (address % (sizeof(W) * values.count) != 0)
      return w.Fault(FaultKind::kMisalignedAddress, lane, Cat("vector atomic at address ", HexAddress(address)));
    for (uint32_t e = 0; e < values.count; ++e) {
      uint64_t old;
      if (!Update<W, kCombine>(w, i, address + e * sizeof(W), lane, w.Value(values.elements[e], lane), 0, old))
        return Outcome::kFault;
      if constexpr (kReturns) w.At<Cell<W>>(i[0].elements[e])[lane] = static_cast<Cell<W>>(old);
    }
  }
  return Outcome::kNext;
}

// .b128: exch and cas. Sixteen bytes at once need a lock, which all launches share.
Outcome Atomic128(Warp& w, const Instruction& i, uint32_t mask) {
  static std::mutex mutex;
  const bool compares = static_cast<AtomOp>(i.modifiers & 0xff) == AtomOp::kCas;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located at;
    if (!Locate(w, i.space, w.AddressOf(i[1], lane), 16, lane, AccessKind::kAtomic, at)) return Outcome::kFault;
    Synchronise(w, i, at, lane, AccessKind::kAtomic);
    uint64_t old[2];
    {
      const std::lock_guard lock(mutex);
      std::memcpy(old, at.host, 16);
      const uint64_t* wanted = w.At<uint64_t>(i[2]) + 2 * lane;
      const uint64_t* value = w.At<uint64_t>(i[compares ? 3 : 2]) + 2 * lane;
      if (!compares || std::memcmp(old, wanted, 16) == 0) {
        if (std::memcmp(old, value, 16) != 0) w.cta().cluster().NoteChange();
        std::memcpy(at.host, value, 16);
      }
    }
    ObserveAgain(w, i, at, lane);
    std::memcpy(w.At<uint64_t>(i[0]) + 2 * lane, old, 16);
  }
  return Outcome::kNext;
}

// Make<word in memory, combination>::Get() for the type.
template <template <typename, CombineBits> class Make>
Result<Handler> ForCombination(const Match& match, AtomOp op) {
  const auto type = match.TypeAt(0);
  if (!type) return WrongType(match);
  const bool is_float = FactsOf(*type).kind == TypeKind::kFloat;
  if (is_float && op > AtomOp::kMax) return WrongType(match);
  switch (*type) {
    case Type::kB16:
      if (op != AtomOp::kCas && op != AtomOp::kExch) return WrongType(match);
      return Make<uint16_t, CombineAs<uint16_t>>::Get();
    case Type::kB32:
    case Type::kU32:
      return Make<uint32_t, CombineAs<uint32_t>>::Get();
    case Type::kS32:
      return Make<uint32_t, CombineAs<int32_t>>::Get();
    case Type::kB64:
    case Type::kU64:
      return Make<uint64_t, CombineAs<uint64_t>>::Get();
    case Type::kS64:
      return Make<uint64_t, CombineAs<int64_t>>::Get();
    case Type::kF16:
      return Make<uint16_t, CombineH<Half>>::Get();
    case Type::kBf16:
      return Make<uint16_t, CombineH<Brain>>::Get();
    case Type::kF16x2:
      return Make<uint32_t, CombineH2<Half>>::Get();
    case Type::kBf16x2:
      return Make<uint32_t, CombineH2<Brain>>::Get();
    case Type::kF32:
      if (op != AtomOp::kAdd) return WrongType(match);
      return Make<uint32_t, CombineF32>::Get();
    case Type::kF64:
      if (op != AtomOp::kAdd) return WrongType(match);
      return Make<uint64_t, CombineF64>::Get();
    default:
      return WrongType(match);
  }
}

template <typename W, CombineBits kCombine>
struct Returning {
  static Handler Get() { return Atomic<W, kCombine, true>; }
};
template <typename W, CombineBits kCombine>
struct Silent {
  static Handler Get() { return Atomic<W, kCombine, false>; }
};
template <typename W, CombineBits kCombine>
struct ReturningVector {
  static Handler Get() { return AtomicVector<W, kCombine, true>; }
};
template <typename W, CombineBits kCombine>
struct SilentVector {
  static Handler Get() { return AtomicVector<W, kCombine, false>; }
};

Result<AtomOp> Prepare(const Match& match, Instruction& i, std::string_view word) {
  const AtomOp op = AtomOpOf(word);
  i.modifiers = static_cast<uint64_t>(op) | OrderOf(match);
  if (i.space == StateSpace::kConst || i.space == StateSpace::kLocal || i.space == StateSpace::kParam)
    return Wrong("atomics are for global and shared memory");
  return op;
}

// v2, v4 of .f32; v2, v4, v8 of 16-bit floats; v2, v4 of their pairs; in global memory.
Status CheckVector(const Match& match, const Instruction& i, const DecodedOperand& values) {
  const auto type = match.TypeAt(0);
  if (!type || FactsOf(*type).kind != TypeKind::kFloat || BitsOf(*type) > 32) return WrongType(match);
  const auto count = static_cast<uint32_t>(match("Vec")[1] - '0');
  if (values.count != count) return Wrong(Cat("the vector has ", values.count, " elements, not ", count));
  if (count * static_cast<uint32_t>(BytesOf(*type)) > 16) return Wrong("a vector atomic is at most 16 bytes wide");
  if (i.space != StateSpace::kGlobal && i.space != StateSpace::kGeneric)
    return Wrong("vector atomics are for global memory");
  return Ok();
}

}  // namespace

Result<Handler> BindAtom(const Match& match, Instruction& i) {
  LS_ASSIGN(const AtomOp op, Prepare(match, i, match("AtomOp")));
  if (match.TypeAt(0) == Type::kB128) {
    if (op != AtomOp::kExch) return WrongType(match);
    return Handler(Atomic128);
  }
  return ForCombination<Returning>(match, op);
}
Result<Handler> BindCompareAndSwap(const Match& match, Instruction& i) {
  LS_ASSIGN(const AtomOp op, Prepare(match, i, "cas"));
  if (match.TypeAt(0) == Type::kB128) return Handler(Atomic128);
  return ForCombination<Returning>(match, op);
}
Result<Handler> BindRed(const Match& match, Instruction& i) {
  LS_ASSIGN(const AtomOp op, Prepare(match, i, match("AtomOp")));
  if (op == AtomOp::kExch) return Wrong("red has no exch");
  return ForCombination<Silent>(match, op);
}
Result<Handler> BindAtomVector(const Match& match, Instruction& i) {
  LS_ASSIGN(const AtomOp op, Prepare(match, i, match("VecOp")));
  LS_TRY(CheckVector(match, i, i[2]));
  if (i[0].count != i[2].count) return Wrong("the vectors differ in length");
  return ForCombination<ReturningVector>(match, op);
}
Result<Handler> BindRedVector(const Match& match, Instruction& i) {
  LS_ASSIGN(const AtomOp op, Prepare(match, i, match("VecOp")));
  LS_TRY(CheckVector(match, i, i[1]));
  return ForCombination<SilentVector>(match, op);
}

}  // namespace laneshift::emulator
