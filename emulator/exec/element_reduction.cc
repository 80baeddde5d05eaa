#include "emulator/exec/element_reduction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/small_float.h"

namespace laneshift::emulator {
namespace {

template <typename T>
T Integer(BulkReduction reduction, T old, T b) {
  switch (reduction) {
    case BulkReduction::kAdd:
      return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(b));
    case BulkReduction::kMin:
      return std::min(old, b);
    case BulkReduction::kMax:
      return std::max(old, b);
    case BulkReduction::kInc:
      return old >= b ? T{0} : static_cast<T>(old + 1);
    case BulkReduction::kDec:
      return old == 0 || old > b ? b : static_cast<T>(old - 1);
    case BulkReduction::kAnd:
      return static_cast<T>(old & b);
    case BulkReduction::kOr:
      return static_cast<T>(old | b);
    case BulkReduction::kXor:
      return static_cast<T>(old ^ b);
  }
  return old;
}

template <typename T>
T Real(BulkReduction reduction, T old, T b) {
  return reduction == BulkReduction::kAdd   ? old + b
         : reduction == BulkReduction::kMin ? std::fmin(old, b)
                                            : std::fmax(old, b);
}

// Flushes a subnormal f32 to the zero of its sign.
uint32_t Flushed(uint32_t word) { return (word & 0x7f800000) == 0 ? word & 0x80000000 : word; }

template <typename W, typename F>
void Each(uint8_t* to, const uint8_t* from, uint32_t bytes, F f) {
  for (uint32_t at = 0; at + sizeof(W) <= bytes; at += sizeof(W)) {
    W value;
    std::memcpy(&value, from + at, sizeof(W));
    auto* word = reinterpret_cast<W*>(to + at);
    W old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, f(old, value), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
}

}  // namespace

BulkReduction ReductionOf(std::string_view word) {
  static constexpr std::string_view kWords[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (size_t k = 0; k < std::size(kWords); ++k) {
    if (word == kWords[k]) return static_cast<BulkReduction>(k);
  }
  return BulkReduction::kAdd;
}

bool CanReduce(TensorElement element, BulkReduction reduction) {
  switch (element) {
    case TensorElement::kU32:
      return true;
    case TensorElement::kS32:
      return reduction <= BulkReduction::kMax;
    case TensorElement::kU64:
      return reduction != BulkReduction::kInc && reduction != BulkReduction::kDec;
    case TensorElement::kS64:
      return reduction == BulkReduction::kMin || reduction == BulkReduction::kMax;
    case TensorElement::kF32:
    case TensorElement::kF32Ftz:
      return reduction == BulkReduction::kAdd;
    case TensorElement::kF16:
    case TensorElement::kBf16:
      return reduction <= BulkReduction::kMax;
    case TensorElement::kU8:
    case TensorElement::kU16:
    case TensorElement::kF64:
    case TensorElement::kTf32:
    case TensorElement::kTf32Ftz:
    case TensorElement::k16U4Align8B:
    case TensorElement::k16U4Align16B:
    case TensorElement::k16U6Align16B:
      return false;
  }
  return false;
}

void ReduceElements(TensorElement element, BulkReduction reduction, uint8_t* to, const uint8_t* from, uint32_t bytes) {
  switch (element) {
    case TensorElement::kU32:
      return Each<uint32_t>(to, from, bytes, [&](uint32_t a, uint32_t b) { return Integer(reduction, a, b); });
    case TensorElement::kS32:
      return Each<uint32_t>(to, from, bytes, [&](uint32_t a, uint32_t b) {
        return static_cast<uint32_t>(Integer(reduction, static_cast<int32_t>(a), static_cast<int32_t>(b)));
      });
    case TensorElement::kU64:
      return Each<uint64_t>(to, from, bytes, [&](uint64_t a, uint64_t b) { return Integer(reduction, a, b); });
    case TensorElement::kS64:
      return Each<uint64_t>(to, from, bytes, [&](uint64_t a, uint64_t b) {
        return static_cast<uint64_t>(Integer(reduction, static_cast<int64_t>(a), static_cast<int64_t>(b)));
      });
    case TensorElement::kF32:
      return Each<uint32_t>(to, from, bytes, [&](uint32_t a, uint32_t b) {
        return std::bit_cast<uint32_t>(Real(reduction, std::bit_cast<float>(a), std::bit_cast<float>(b)));
      });
    case TensorElement::kF32Ftz:
      return Each<uint32_t>(to, from, bytes, [&](uint32_t a, uint32_t b) {
        const float sum = Real(reduction, std::bit_cast<float>(Flushed(a)), std::bit_cast<float>(Flushed(b)));
        return Flushed(std::bit_cast<uint32_t>(sum));
      });
    case TensorElement::kF64:
      return Each<uint64_t>(to, from, bytes, [&](uint64_t a, uint64_t b) {
        return std::bit_cast<uint64_t>(Real(reduction, std::bit_cast<double>(a), std::bit_cast<double>(b)));
      });
    case TensorElement::kF16:
      return Each<uint16_t>(to, from, bytes, [&](uint16_t a, uint16_t b) {
        return base::FloatToF16(Real(reduction, base::F16ToFloat(a), base::F16ToFloat(b)));
      });
    case TensorElement::kBf16:
      return Each<uint16_t>(to, from, bytes, [&](uint16_t a, uint16_t b) {
        return base::FloatToBf16(Real(reduction, base::Bf16ToFloat(a), base::Bf16ToFloat(b)));
      });
    case TensorElement::kU8:
    case TensorElement::kU16:
    case TensorElement::kTf32:
    case TensorElement::kTf32Ftz:
    case TensorElement::k16U4Align8B:
    case TensorElement::k16U4Align16B:
    case TensorElement::k16U6Align16B:
      break;
  }
}

}  // namespace laneshift::emulator
