#include "emulator/ptx/fat_binary.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

#ifdef LANESHIFT_HAVE_ZSTD
#include <zstd.h>
#endif

namespace laneshift::emulator {
namespace {

// What the linker's section .nvFatBinSegment holds: fatbinary_section.h of the toolkit.
struct Wrapper {
  uint32_t magic, version;
  const void* image;
  const void* names;
};
constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kImageMagic = 0xba55ed50;
constexpr uint64_t kMaxImageBytes = uint64_t{1} << 32;

struct ImageHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // after the header
};

// As found in the images that nvcc 12 and 13 write; what is not named is not needed.
struct EntryHeader {
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t padded_bytes;
  uint32_t compressed_bytes;  // 0: not compressed
  uint32_t names_at;
  uint16_t minor, major;
  uint32_t compute_capability;
  uint32_t object_at, object_bytes;
  uint64_t flags;
  uint64_t unnamed;
  uint64_t decompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr uint16_t kPtxKind = 1;
constexpr uint32_t kZstdMagic = 0xfd2fb528;

uint32_t WordAt(const void* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

Error Damaged(std::string_view what) {
  return MakeError(ErrorCode::kCorrupt, base::Cat("the fat binary is damaged: ", what));
}

// One block of LZ4: runs of literals and references to what was written before.
Result<std::string> DecompressLz4(const uint8_t* in, uint64_t size, uint64_t expected) {
  std::string out;
  out.reserve(expected);
  const uint8_t* const end = in + size;
  const auto length = [&](uint64_t nibble) {
    uint64_t total = nibble;
    for (uint8_t more = 255; nibble == 15 && more == 255 && in < end; total += more) more = *in++;
    return total;
  };
  while (in < end) {
    const uint8_t token = *in++;
    const uint64_t literals = length(token >> 4);
    if (literals > static_cast<uint64_t>(end - in) || literals > expected - out.size())
      return Damaged("an LZ4 run passes the end");
    out.append(reinterpret_cast<const char*>(in), literals);
    in += literals;
    if (in == end) break;
    if (end - in < 2) return Damaged("an LZ4 block ends early");
    const uint64_t distance = in[0] | in[1] << 8;
    in += 2;
    const uint64_t match = length(token & 15) + 4;
    if (distance == 0 || distance > out.size() || match > expected - out.size())
      return Damaged("an LZ4 reference points outside");
    for (uint64_t i = 0; i < match; ++i) out.push_back(out[out.size() - distance]);
  }
  if (out.size() != expected) return Damaged("LZ4 data of another length than stated");
  return out;
}

Result<std::string> DecompressZstd(const FatEntry& entry) {
#ifdef LANESHIFT_HAVE_ZSTD
  std::string out(entry.decompressed, '\0');
  const size_t written = ZSTD_decompress(out.data(), out.size(), entry.bytes, entry.size);
  if (ZSTD_isError(written) != 0 || written != out.size()) return Damaged("zstd data that cannot be decompressed");
  return out;
#else
  (void)entry;
  return MakeError(ErrorCode::kUnsupported,
                   "this build has no libzstd for the fat binary's compressed PTX; compile with nvcc "
                   "-compress-mode=none, or build laneshift where libzstd's headers are");
#endif
}

}  // namespace

bool IsFatBinary(const void* image) {
  const uint32_t magic = WordAt(image);
  return magic == kWrapperMagic || magic == kImageMagic;
}

Result<std::vector<FatEntry>> ReadFatBinary(const void* image) {
  if (WordAt(image) == kWrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    image = wrapper.image;
    if (image == nullptr || WordAt(image) != kImageMagic) return Damaged("its record names no image");
  }
  ImageHeader header;
  std::memcpy(&header, image, sizeof header);
  if (header.header_bytes < sizeof header || header.bytes > kMaxImageBytes) return Damaged("its header");
  const auto* at = static_cast<const uint8_t*>(image) + header.header_bytes;
  const uint8_t* const end = at + header.bytes;
  std::vector<FatEntry> entries;
  while (static_cast<uint64_t>(end - at) >= sizeof(EntryHeader)) {
    EntryHeader entry;
    std::memcpy(&entry, at, sizeof entry);
    const auto room = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > room ||
        entry.padded_bytes > room - entry.header_bytes || entry.compressed_bytes > entry.padded_bytes) {
      return Damaged("an entry passes its end");
    }
    FatEntry made;
    made.kind = entry.kind == kPtxKind ? FatEntry::Kind::kPtx : FatEntry::Kind::kMachineCode;
    made.compute_capability = entry.compute_capability;
    made.bytes = at + entry.header_bytes;
    made.size = entry.compressed_bytes != 0 ? entry.compressed_bytes : entry.padded_bytes;
    made.decompressed = entry.compressed_bytes != 0 ? entry.decompressed_bytes : 0;
    entries.push_back(made);
    at += entry.header_bytes + entry.padded_bytes;
  }
  return entries;
}

Result<std::string> PtxOf(const FatEntry& entry) {
  std::string text;
  if (entry.decompressed == 0) {
    text.assign(reinterpret_cast<const char*>(entry.bytes), entry.size);
  } else if (entry.decompressed > kMaxPtxBytes) {
    return MakeError(ErrorCode::kResourceExhausted,
                     base::Cat("the fat binary's PTX has ", entry.decompressed, " bytes; ", kMaxPtxBytes, " are read"));
  } else if (entry.size >= 4 && WordAt(entry.bytes) == kZstdMagic) {
    LS_ASSIGN(text, DecompressZstd(entry));
  } else {
    LS_ASSIGN(text, DecompressLz4(entry.bytes, entry.size, entry.decompressed));
  }
  // Padding after the text, and the terminator that is part of it.
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

}  // namespace laneshift::emulator
