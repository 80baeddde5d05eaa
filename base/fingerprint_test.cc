#include "base/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

namespace laneshift::base {
namespace {

std::string Counting(size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

// The vectors that the authors of SipHash publish for key 00 01 … 0f and messages 00 01 ….
TEST(Fingerprint, MatchesThePublishedVectorsOfSipHash128) {
  auto hex = [](size_t size) { return SipHash128(Counting(size), 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL).Hex(); };
  EXPECT_EQ(hex(0), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hex(1), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(hex(8), "3b62a9ba6258f5610f83e264f31497b4");
  EXPECT_EQ(hex(15), "5493e99933b0a8117e08ec0f97cfc3d9");
}

// Stored databases hold these keys: a change of any of them is a change of format.
TEST(Fingerprint, RecordedValuesStay) {
  EXPECT_EQ(Fingerprinter().Finish().Hex(), "34f6a9be8d6e4943a4e238b924e8d817");
  EXPECT_EQ(Fingerprinter()
                .Text("op", "gemm")
                .Integer("m", 4096)
                .Integer("n", -1)
                .Flag("fast", true)
                .Real("alpha", 0.5)
                .Bytes("ptx", std::string("a\0b", 3))
                .Finish()
                .Hex(),
            "5b72cf517d83c80e5bd3512d6205379e");
}

TEST(Fingerprint, FieldBoundariesTypesNamesAndOrderCount) {
  std::set<std::string> seen;
  int made = 0;
  auto add = [&](const Fingerprinter& f) { seen.insert(f.Finish().Hex()), ++made; };
  add(Fingerprinter().Text("a", "bc"));
  add(Fingerprinter().Text("ab", "c"));
  add(Fingerprinter().Text("a", "b").Text("c", ""));
  add(Fingerprinter().Text("c", "").Text("a", "b"));
  add(Fingerprinter().Bytes("a", "bc"));
  add(Fingerprinter().Integer("n", 1));
  add(Fingerprinter().Flag("n", true));
  add(Fingerprinter().Text("n", "1"));
  add(Fingerprinter().Real("n", 1));
  add(Fingerprinter().Real("n", 0.0));
  add(Fingerprinter().Real("n", -0.0));
  EXPECT_EQ(seen.size(), static_cast<size_t>(made));
}

TEST(Fingerprint, EveryBitOfTheMessageCounts) {
  std::string message = Counting(67);
  std::set<std::string> seen{SipHash128(message, 1, 2).Hex()};
  for (size_t bit = 0; bit < message.size() * 8; ++bit) {
    std::string flipped = message;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    seen.insert(SipHash128(flipped, 1, 2).Hex());
  }
  EXPECT_EQ(seen.size(), message.size() * 8 + 1);
}

}  // namespace
}  // namespace laneshift::base
