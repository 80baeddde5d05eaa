#include "emulator/units/element.h"

#include <cstring>

#include "base/check.h"

namespace laneshift::emulator {
namespace {

struct ElementInfo {
  std::string_view name;
  int bits;
  base::FloatFormat format;  // unused for the integers
};
constexpr ElementInfo kElements[] = {
    {"f16", 16, base::FloatFormat::kF16},   {"bf16", 16, base::FloatFormat::kBf16},
    {"tf32", 32, base::FloatFormat::kTf32}, {"e4m3", 8, base::FloatFormat::kE4m3},
    {"e5m2", 8, base::FloatFormat::kE5m2},  {"e2m3", 6, base::FloatFormat::kE2m3},
    {"e3m2", 6, base::FloatFormat::kE3m2},  {"e2m1", 4, base::FloatFormat::kE2m1},
    {"s8", 8, base::FloatFormat::kE4m3},    {"u8", 8, base::FloatFormat::kE4m3},
};
const ElementInfo& InfoOf(ElementType type) { return kElements[static_cast<size_t>(type)]; }

template <typename Word>
void UnpackWords(const uint8_t* bytes, int count, uint32_t* codes) {
  for (int i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + static_cast<size_t>(i) * sizeof(Word), sizeof(Word));
    codes[i] = word;
  }
}

// Element i of 16 sits at bit i * bits of its 16-byte chunk.
void UnpackPadded(int bits, const uint8_t* bytes, int count, uint32_t* codes) {
  for (int i = 0; i < count; ++i) {
    const uint8_t* chunk = bytes + i / 16 * 16;
    const int bit = i % 16 * bits;
    uint32_t word = chunk[bit / 8];
    if (bit % 8 + bits > 8) word |= static_cast<uint32_t>(chunk[bit / 8 + 1]) << 8;
    codes[i] = word >> (bit % 8) & ((1u << bits) - 1);
  }
}

}  // namespace

std::string_view NameOf(ElementType type) { return InfoOf(type).name; }

std::string_view NameOf(AccumulatorType type) {
  switch (type) {
    case AccumulatorType::kF32:
      return "f32";
    case AccumulatorType::kF16:
      return "f16";
    case AccumulatorType::kS32:
      return "s32";
  }
  return "";
}

int BitsOf(ElementType type) { return InfoOf(type).bits; }

base::FloatFormat FormatOf(ElementType type) {
  LS_CHECK(!IsInteger(type), "no float format for ", NameOf(type));
  return InfoOf(type).format;
}

uint8_t ContainerOf4(uint8_t nibble) { return static_cast<uint8_t>((nibble & 15) << 2); }
uint8_t ContainerOf6(uint8_t bits, SixBitContainer place) {
  return static_cast<uint8_t>((bits & 63) << (place == SixBitContainer::kMiddle ? 1 : 0));
}

void UnpackElements(ElementType type, Packing packing, const uint8_t* bytes, int count, uint32_t* codes) {
  switch (packing) {
    case Packing::kPlain:
      if (BitsOf(type) == 32) return UnpackWords<uint32_t>(bytes, count, codes);
      if (BitsOf(type) == 16) return UnpackWords<uint16_t>(bytes, count, codes);
      return UnpackWords<uint8_t>(bytes, count, codes);
    case Packing::kPadded:
      return UnpackPadded(BitsOf(type), bytes, count, codes);
    case Packing::kContainers:
      for (int i = 0; i < count; ++i) codes[i] = BitsOf(type) == 4 ? bytes[i] >> 2 & 15 : bytes[i] & 63;
      return;
    case Packing::kMiddleContainers:
      for (int i = 0; i < count; ++i) codes[i] = BitsOf(type) == 4 ? bytes[i] >> 2 & 15 : bytes[i] >> 1 & 63;
      return;
    case Packing::kNibbles:
      for (int i = 0; i < count; ++i) codes[i] = bytes[i / 2] >> (i % 2 * 4) & 15;
      return;
  }
}

}  // namespace laneshift::emulator
