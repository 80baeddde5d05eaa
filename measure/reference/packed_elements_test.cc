// Elements of fewer than eight bits in memory: the bytes are those that docs/narrow-types.md shows.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "ir/element_type.h"
#include "measure/reference/host_tensor.h"

namespace laneshift::measure {
namespace {

constexpr DataType kPackedTypes[] = {DataType::kE2m1, DataType::kE3m2, DataType::kE2m3};

// The cells of the rows between the markers, without the head of the table.
std::vector<std::vector<std::string>> RowsOfDocument() {
  std::ifstream in(LANESHIFT_SOURCE_DIR "/docs/narrow-types.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("<!--")) inside = line == "<!-- packed elements -->";
    if (!inside || !line.starts_with("| e")) continue;
    std::vector<std::string> cells;
    for (const std::string_view cell : base::Split(line, '|')) cells.emplace_back(base::Trim(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

double Number(std::string_view text) { return base::ParseDouble(text).value_or(NAN); }

TEST(PackedElements, LieAsDocumented) {
  const auto rows = RowsOfDocument();
  ASSERT_EQ(rows.size(), std::size(kPackedTypes));
  for (size_t i = 0; i < rows.size(); ++i) {
    const DataType type = kPackedTypes[i];
    const std::vector<std::string>& cells = rows[i];  // the first one is what stands before the first bar
    ASSERT_GE(cells.size(), 6u);
    EXPECT_EQ(cells[1], DataTypeName(type));
    const std::vector<std::string_view> numbers = base::Words(cells[2]);
    std::vector<std::byte> bytes(static_cast<size_t>(ir::BytesOf(type, static_cast<int64_t>(numbers.size()))));
    for (size_t j = 0; j < numbers.size(); ++j)
      StoreElement(bytes.data(), type, static_cast<int64_t>(j), Number(numbers[j]));
    std::string text;
    for (const std::byte byte : bytes) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto bits = std::to_integer<size_t>(byte);
      text += base::Cat(text.empty() ? "" : " ", kDigits.substr(bits >> 4, 1), kDigits.substr(bits & 15, 1));
    }
    EXPECT_EQ(text, cells[3]);
    for (size_t j = 0; j < numbers.size(); ++j)
      EXPECT_EQ(ElementAt(bytes.data(), type, static_cast<int64_t>(j)), Number(numbers[j]));
    EXPECT_EQ(ir::LargestOf(type), Number(cells[4]));
    const std::byte least[] = {std::byte{1}, std::byte{0}};
    EXPECT_EQ(ElementAt(least, type, 0), Number(cells[5]));
  }
}

// Every code survives at every place, and its neighbours keep theirs.
TEST(PackedElements, KeepTheirNeighbours) {
  for (const DataType type : kPackedTypes) {
    const int codes = 1 << ir::BitsOf(type);
    std::vector<std::byte> bytes(static_cast<size_t>(ir::BytesOf(type, codes)), std::byte{0xff});
    const auto value = [&](int code) {
      const std::byte alone[] = {static_cast<std::byte>(code), std::byte{0}};
      return ElementAt(alone, type, 0);
    };
    for (const int step : {1, 3, 7}) {
      for (int i = 0; i < codes; ++i) StoreElement(bytes.data(), type, i * 5 % codes, value(i * step % codes));
      for (int i = 0; i < codes; ++i)
        EXPECT_EQ(ElementAt(bytes.data(), type, i * 5 % codes), value(i * step % codes)) << DataTypeName(type) << i;
    }
  }
}

}  // namespace
}  // namespace laneshift::measure
