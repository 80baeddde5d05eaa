// The element types of tensor-core operands and how their bits are packed in memory.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/small_float.h"
#include "emulator/units/policies.h"

namespace laneshift::emulator {

enum class ElementType : uint8_t { kF16, kBf16, kTf32, kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kS8, kU8 };
enum class AccumulatorType : uint8_t { kF32, kF16, kS32 };
enum class ScaleType : uint8_t { kUe8m0, kUe4m3 };

// How a row of K elements lies in the bytes that were fetched for it.
enum class Packing : uint8_t {
  kPlain,             // f16, bf16: 2 bytes; tf32: 4; 8-bit types: 1
  kPadded,            // 4 and 6-bit types in shared memory: 16 elements per 16 bytes, the rest of the 16 bytes unused
  kContainers,        // 4 and 6-bit types in Tensor Memory: one byte each, e2m1 in bits 5:2, e3m2 and e2m3 in bits 5:0
  kMiddleContainers,  // the same with 6-bit values in bits 6:1
  kNibbles,           // e2m1, two per byte, the first in bits 3:0
};

std::string_view NameOf(ElementType type);
std::string_view NameOf(AccumulatorType type);
inline bool IsInteger(ElementType type) { return type == ElementType::kS8 || type == ElementType::kU8; }
// Bits of one element as a value: 4, 6, 8, 16 or 32 (tf32's container).
int BitsOf(ElementType type);
// REQUIRES: !IsInteger(type).
base::FloatFormat FormatOf(ElementType type);

// The byte in which tcgen05.cp's decompression puts a 4- or 6-bit value (Packing::kContainers).
uint8_t ContainerOf4(uint8_t nibble);
uint8_t ContainerOf6(uint8_t bits, SixBitContainer place = SixBitContainer::kLow);

// The bits of `count` elements, one per 32-bit word, right-aligned (tf32: container bits).
void UnpackElements(ElementType type, Packing packing, const uint8_t* bytes, int count, uint32_t* codes);

}  // namespace laneshift::emulator
