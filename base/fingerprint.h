// Fingerprint: a 128-bit hash of typed, named fields; the key of everything that is stored.
//
// The function is SipHash-2-4 with 128-bit output (Aumasson and Bernstein) under a fixed key, over the fields in the
// order in which they are added, each as type, length of name, name, length of value, value. Field boundaries and types
// are part of the hash: Text("a", "bc") and Text("ab", "c") differ, and so do Integer("n", 1) and Flag("n", true).
// Values are little-endian. The result is the same in every process, on every host and in every version: stored
// databases depend on it, and fingerprint_test.cc holds recorded values. It guards against accidents, not attackers.
//
// Thread-safety: values; no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace laneshift::base {

struct Fingerprint {
  uint64_t low = 0;
  uint64_t high = 0;

  // 32 lower-case hex digits, in the byte order in which SipHash writes its result.
  std::string Hex() const;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

class Fingerprinter {
 public:
  Fingerprinter& Text(std::string_view name, std::string_view value) { return Field('t', name, value); }
  Fingerprinter& Bytes(std::string_view name, std::string_view value) { return Field('b', name, value); }
  Fingerprinter& Integer(std::string_view name, int64_t value);
  Fingerprinter& Flag(std::string_view name, bool value);
  // By bit pattern: 0.0 and -0.0 differ, and equal NaNs agree.
  Fingerprinter& Real(std::string_view name, double value);

  Fingerprint Finish() const;

 private:
  Fingerprinter& Field(char type, std::string_view name, std::string_view value);

  std::string message_;
};

// SipHash-2-4-128 of plain bytes under the 128-bit key (k0, k1): the primitive, as its specification defines it.
Fingerprint SipHash128(std::string_view bytes, uint64_t k0, uint64_t k1);

}  // namespace laneshift::base
