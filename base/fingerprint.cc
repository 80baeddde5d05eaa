#include "base/fingerprint.h"

#include <bit>
#include <cstring>

#include "base/text.h"

namespace laneshift::base {
namespace {

// "laneshift kernel" in ASCII. Changing it invalidates every stored key.
constexpr uint64_t kKey0 = 0x66696873656e616cULL;
constexpr uint64_t kKey1 = 0x6c656e72656b2074ULL;

void AppendLittleEndian(std::string& to, uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) to.push_back(static_cast<char>(value >> (8 * byte)));
}

uint64_t LoadLittleEndian(const char* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Compress(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
  uint64_t Squeeze() {
    for (int round = 0; round < 4; ++round) Round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

Fingerprint SipHash128(std::string_view bytes, uint64_t k0, uint64_t k1) {
  // The four initial words spell "somepseudorandomlygeneratedbytes"; 0xee and 0xdd mark the two output halves.
  SipState state{k0 ^ 0x736f6d6570736575ULL, k1 ^ 0x646f72616e646f6dULL ^ 0xee, k0 ^ 0x6c7967656e657261ULL,
                 k1 ^ 0x7465646279746573ULL};
  size_t whole = bytes.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) state.Compress(LoadLittleEndian(bytes.data() + at, 8));
  uint64_t tail = LoadLittleEndian(bytes.data() + whole, bytes.size() - whole);
  state.Compress(tail | (uint64_t{bytes.size()} << 56));
  state.v2 ^= 0xee;
  Fingerprint result;
  result.low = state.Squeeze();
  state.v1 ^= 0xdd;
  result.high = state.Squeeze();
  return result;
}

std::string Fingerprint::Hex() const {
  std::string bytes;
  AppendLittleEndian(bytes, low);
  AppendLittleEndian(bytes, high);
  return HexOf(bytes);
}

Fingerprinter& Fingerprinter::Integer(std::string_view name, int64_t value) {
  std::string bytes;
  AppendLittleEndian(bytes, static_cast<uint64_t>(value));
  return Field('i', name, bytes);
}

Fingerprinter& Fingerprinter::Flag(std::string_view name, bool value) { return Field('f', name, value ? "1" : "0"); }

Fingerprinter& Fingerprinter::Real(std::string_view name, double value) {
  std::string bytes;
  AppendLittleEndian(bytes, std::bit_cast<uint64_t>(value));
  return Field('r', name, bytes);
}

Fingerprinter& Fingerprinter::Field(char type, std::string_view name, std::string_view value) {
  message_.push_back(type);
  AppendLittleEndian(message_, name.size());
  message_.append(name);
  AppendLittleEndian(message_, value.size());
  message_.append(value);
  return *this;
}

Fingerprint Fingerprinter::Finish() const { return SipHash128(message_, kKey0, kKey1); }

}  // namespace laneshift::base
