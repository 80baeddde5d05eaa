#include "emulator/units/tensor_map_words.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

struct ElementRule {
  std::string_view name;
  uint8_t bits, shared_bits;  // per element in global and in shared memory
  bool is_float;
};
const ElementRule& RuleOf(TensorElement element) {
  static constexpr ElementRule kRules[] = {
      {"UINT8", 8, 8, false},         {"UINT16", 16, 16, false},     {"UINT32", 32, 32, false},
      {"INT32", 32, 32, false},       {"UINT64", 64, 64, false},     {"INT64", 64, 64, false},
      {"FLOAT16", 16, 16, true},      {"FLOAT32", 32, 32, true},     {"FLOAT64", 64, 64, true},
      {"BFLOAT16", 16, 16, true},     {"FLOAT32_FTZ", 32, 32, true}, {"TFLOAT32", 32, 32, true},
      {"TFLOAT32_FTZ", 32, 32, true}, {"16U4_ALIGN8B", 4, 4, false}, {"16U4_ALIGN16B", 4, 8, false},
      {"16U6_ALIGN16B", 6, 8, false},
  };
  return kRules[static_cast<size_t>(element)];
}

Error Bad(std::string_view parameter, const std::string& rule) {
  return MakeError(ErrorCode::kInvalidArgument, base::Cat("tensor map: ", parameter, " ", rule));
}

bool IsPadded(TensorElement e) { return e == TensorElement::k16U4Align16B || e == TensorElement::k16U6Align16B; }

// The alignment of addresses and strides in bytes.
uint64_t AlignmentOf(const TensorMap& map) {
  return map.interleave == TensorInterleave::k32B || IsPadded(map.element) ? 32 : 16;
}

Status CheckTensor(const TensorMap& map) {
  const uint64_t alignment = AlignmentOf(map);
  if (map.address % alignment != 0) return Bad("globalAddress", base::Cat("must be aligned to ", alignment, " bytes"));
  for (int i = 0; i < map.rank; ++i) {
    const uint64_t dim = map.dims[static_cast<size_t>(i)], stride = map.strides[static_cast<size_t>(i)];
    if (dim < 1 || dim > uint64_t{1} << 32) {
      return Bad(base::Cat("globalDim[", i, "]"), base::Cat("is ", dim, ", must be 1 to 2^32"));
    }
    if (i > 0 && (stride % alignment != 0 || stride >= uint64_t{1} << 40)) {
      return Bad(base::Cat("globalStrides[", i - 1, "]"),
                 base::Cat("is ", stride, ", must be a multiple of ", alignment, " below 2^40"));
    }
    const uint32_t step = map.element_strides[static_cast<size_t>(i)];
    if (step < 1 || step > 8)
      return Bad(base::Cat("elementStrides[", i, "]"), base::Cat("is ", step, ", must be 1 to 8"));
  }
  return Ok();
}

// Bytes of one row of the copy in shared memory.
uint32_t InnerBytes(const TensorMap& map) {
  const uint32_t elements = map.mode == TensorMapMode::kTiled ? map.box[0] : map.channels;
  return elements * RuleOf(map.element).shared_bits / 8;
}

uint32_t SpanOf(TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return 0;
    case TensorSwizzle::k32B:
      return 32;
    case TensorSwizzle::k64B:
      return 64;
    case TensorSwizzle::k128B:
    case TensorSwizzle::k128BAtom32B:
    case TensorSwizzle::k128BAtom32BFlip8B:
    case TensorSwizzle::k128BAtom64B:
      return 128;
  }
  return 0;
}

Status CheckInnerRow(const TensorMap& map) {
  const uint32_t bytes = InnerBytes(map);
  const char* name = map.mode == TensorMapMode::kTiled ? "boxDim[0]" : "channelsPerPixel";
  if (bytes % 16 != 0) return Bad(name, base::Cat("is ", bytes, " bytes wide, must be a multiple of 16"));
  if (map.swizzle != TensorSwizzle::kNone && bytes > SpanOf(map.swizzle)) {
    return Bad(name, base::Cat("is ", bytes, " bytes wide, more than the swizzle's ", SpanOf(map.swizzle)));
  }
  return Ok();
}

Status CheckPacked(const TensorMap& map) {
  if (map.element == TensorElement::k16U4Align8B && map.dims[0] % 2 != 0) {
    return Bad("globalDim[0]", "must be even for 16U4_ALIGN8B");
  }
  if (!IsPadded(map.element)) return Ok();
  if (map.dims[0] % 128 != 0) return Bad("globalDim[0]", "must be a multiple of 128 for this element type");
  if (map.mode == TensorMapMode::kTiled && map.box[0] != 128)
    return Bad("boxDim[0]", "must be 128 for this element type");
  const bool swizzle_ok = map.swizzle == TensorSwizzle::kNone || map.swizzle == TensorSwizzle::k128B ||
                          map.swizzle == TensorSwizzle::k128BAtom32B ||
                          (map.swizzle == TensorSwizzle::k128BAtom64B && map.element == TensorElement::k16U6Align16B);
  if (!swizzle_ok) return Bad("swizzle", "does not go with this element type");
  return Ok();
}

Status CheckIm2col(const TensorMap& map) {
  const bool wide = map.mode != TensorMapMode::kIm2col;
  if (map.channels < 1 || map.channels > 256) {
    return Bad("channelsPerPixel", base::Cat("is ", map.channels, ", must be 1 to 256"));
  }
  const bool pixels_count = map.mode != TensorMapMode::kIm2colWide128;  // fixed at 128 there
  if (pixels_count && (map.pixels < 1 || map.pixels > 1024)) {
    return Bad("pixelsPerColumn", base::Cat("is ", map.pixels, ", must be 1 to 1024"));
  }
  const int low = wide || map.rank == 3 ? -32768 : map.rank == 4 ? -128 : -16;
  const int corners = wide ? 1 : map.rank - 2;
  for (int i = 0; i < corners; ++i) {
    for (const auto& [name, corner] : {std::pair("LowerCorner", map.lower_corner[static_cast<size_t>(i)]),
                                       std::pair("UpperCorner", map.upper_corner[static_cast<size_t>(i)])}) {
      if (corner >= low && corner < -low) continue;
      return Bad(base::Cat("pixelBox", name, "[", i, "]"),
                 base::Cat("is ", corner, ", must be ", low, " to ", -low - 1, " for rank ", map.rank));
    }
  }
  if (wide && map.swizzle != TensorSwizzle::k64B && map.swizzle != TensorSwizzle::k128B &&
      map.swizzle != TensorSwizzle::k128BAtom32B) {
    return Bad("swizzle", "must be 64B, 128B or 128B_ATOM_32B for the wide im2col modes");
  }
  return Ok();
}

}  // namespace

int ElementBits(TensorElement element) { return RuleOf(element).bits; }

Status ValidateTensorMap(const TensorMap& map, TensorMapDialect dialect) {
  const bool tiled = map.mode == TensorMapMode::kTiled, blackwell = dialect == TensorMapDialect::kBlackwell;
  const int least = tiled && map.interleave == TensorInterleave::kNone ? 1 : 3;
  if (map.rank < least || map.rank > 5) {
    return Bad("tensorRank", base::Cat("is ", map.rank, ", must be ", least, " to 5"));
  }
  if (!blackwell) {
    if (map.element >= TensorElement::k16U4Align8B) return Bad("tensorDataType", "of packed elements needs sm_100");
    if (map.swizzle > TensorSwizzle::k128B) return Bad("swizzle", "modes beyond 128B need sm_100");
    if (map.mode >= TensorMapMode::kIm2colWide) return Bad("mode", "im2col wide needs sm_100");
  }
  LS_TRY(CheckTensor(map));
  if (tiled) {
    for (int i = 0; i < map.rank; ++i) {
      const uint32_t box = map.box[static_cast<size_t>(i)];
      if (box < 1 || box > 256) return Bad(base::Cat("boxDim[", i, "]"), base::Cat("is ", box, ", must be 1 to 256"));
    }
  } else {
    LS_TRY(CheckIm2col(map));
  }
  if (map.interleave == TensorInterleave::k32B && map.swizzle != TensorSwizzle::k32B) {
    return Bad("swizzle", "must be 32B with the 32-byte interleave");
  }
  if (map.interleave == TensorInterleave::kNone) LS_TRY(CheckInnerRow(map));
  LS_TRY(CheckPacked(map));
  if (map.fill == TensorFill::kNan && !RuleOf(map.element).is_float) {
    return Bad("oobFill", base::Cat("NaN needs a floating-point type, not ", RuleOf(map.element).name));
  }
  if (map.l2_promotion > 3) return Bad("l2Promotion", "must be 0 to 3");
  if (map.interleave != TensorInterleave::kNone) {
    return MakeError(ErrorCode::kUnsupported, "tensor map: interleaved layouts are not emulated; use interleave NONE");
  }
  return Ok();
}

// ---- the 128 bytes ----

namespace {

constexpr uint32_t kMagic = 0x4d54534c;  // "LSTM"
constexpr size_t kChecksumAt = 120;

uint64_t ChecksumOf(std::span<const uint8_t> bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3;
  return hash;
}

// Visits the fields in order; the same visitor order writes and reads.
class Writer {
 public:
  explicit Writer(TensorMapBytes& bytes) : bytes_(bytes) {}
  template <typename Stored, typename T>
  void Field(const T& value) {
    const auto stored = static_cast<Stored>(value);
    std::memcpy(bytes_.data() + at_, &stored, sizeof(stored));
    at_ += sizeof(stored);
  }
  size_t at() const { return at_; }

 private:
  TensorMapBytes& bytes_;
  size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t, 128> bytes) : bytes_(bytes) {}
  template <typename Stored, typename T>
  void Field(T& value) {
    Stored stored;
    std::memcpy(&stored, bytes_.data() + at_, sizeof(stored));
    at_ += sizeof(stored);
    value = static_cast<T>(stored);
  }

 private:
  std::span<const uint8_t, 128> bytes_;
  size_t at_ = 0;
};

template <typename Cursor, typename Map>
void WalkFields(Cursor& cursor, Map& map, std::array<uint32_t, 5>& dims_less_one) {
  cursor.template Field<uint8_t>(map.mode);
  cursor.template Field<uint8_t>(map.element);
  cursor.template Field<uint8_t>(map.interleave);
  cursor.template Field<uint8_t>(map.swizzle);
  cursor.template Field<uint8_t>(map.fill);
  cursor.template Field<uint8_t>(map.l2_promotion);
  cursor.template Field<uint8_t>(map.rank);
  cursor.template Field<uint64_t>(map.address);
  for (size_t i = 0; i < 5; ++i) cursor.template Field<uint32_t>(dims_less_one[i]);
  for (size_t i = 1; i < 5; ++i) cursor.template Field<uint64_t>(map.strides[i]);
  for (size_t i = 0; i < 5; ++i) cursor.template Field<uint16_t>(map.box[i]);
  for (size_t i = 0; i < 5; ++i) cursor.template Field<uint8_t>(map.element_strides[i]);
  for (size_t i = 0; i < 3; ++i) cursor.template Field<int16_t>(map.lower_corner[i]);
  for (size_t i = 0; i < 3; ++i) cursor.template Field<int16_t>(map.upper_corner[i]);
  cursor.template Field<uint16_t>(map.channels);
  cursor.template Field<uint16_t>(map.pixels);
}

}  // namespace

TensorMapBytes EncodeTensorMap(const TensorMap& map) {
  TensorMapBytes bytes{};
  Writer writer(bytes);
  writer.Field<uint32_t>(kMagic);
  std::array<uint32_t, 5> dims_less_one{};  // 2^32 must fit
  for (size_t i = 0; i < 5; ++i) dims_less_one[i] = static_cast<uint32_t>(map.dims[i] - 1);
  WalkFields(writer, map, dims_less_one);
  const uint64_t checksum = ChecksumOf(std::span(bytes).first(kChecksumAt));
  std::memcpy(bytes.data() + kChecksumAt, &checksum, sizeof(checksum));
  return bytes;
}

Result<TensorMap> DecodeTensorMap(std::span<const uint8_t, 128> bytes) {
  Reader reader(bytes);
  uint32_t magic = 0;
  reader.Field<uint32_t>(magic);
  if (magic != kMagic) return MakeError(ErrorCode::kCorrupt, "not a tensor map: it was not made by cuTensorMapEncode*");
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + kChecksumAt, sizeof(checksum));
  if (checksum != ChecksumOf(bytes.first(kChecksumAt))) {
    return MakeError(ErrorCode::kCorrupt, "the tensor map's bytes were changed after it was encoded");
  }
  TensorMap map;
  std::array<uint32_t, 5> dims_less_one{};
  WalkFields(reader, map, dims_less_one);
  // A kernel may set a dimension before the rank that includes it; all ones past the rank is one that was never set.
  for (size_t i = 0; i < 5; ++i) {
    if (i < static_cast<size_t>(map.rank) || dims_less_one[i] != ~0u) map.dims[i] = uint64_t{dims_less_one[i]} + 1;
  }
  return map;
}

uint32_t SwizzleTensorAddress(TensorSwizzle swizzle, uint32_t a) {
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return a;
    case TensorSwizzle::k32B:
      return a ^ (a >> 7 & 1) << 4;
    case TensorSwizzle::k64B:
      return a ^ (a >> 7 & 3) << 4;
    case TensorSwizzle::k128B:
      return a ^ (a >> 7 & 7) << 4;
    case TensorSwizzle::k128BAtom32B:
      return a ^ (a >> 7 & 3) << 5;
    case TensorSwizzle::k128BAtom32BFlip8B:
      return a ^ (a >> 7 & 3) << 5 ^ (a >> 7 & 1) << 3;
    case TensorSwizzle::k128BAtom64B:
      return a ^ (a >> 7 & 1) << 6;
  }
  return a;
}

}  // namespace laneshift::emulator
