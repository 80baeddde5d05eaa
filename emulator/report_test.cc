#include "emulator/report.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/text.h"

namespace laneshift::emulator {
namespace {

TEST(Report, EveryHazardStandsInTheManual) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (int kind = 0; kind < kHazardKinds; ++kind) {
    const std::string row =
        base::Cat("| `", NameOf(static_cast<HazardKind>(kind)), "` | ", MeaningOf(static_cast<HazardKind>(kind)), " |");
    EXPECT_NE(text.find(row), std::string::npos) << "docs/emulator.md lacks: " << row;
  }
}

TEST(HazardLog, CountsWhatRepeatsAtOneLine) {
  HazardLog log;
  for (int i = 0; i < 3; ++i) log.Add(HazardKind::kTensorRace, {.kernel = "k", .line = 7}, "first");
  log.Add(HazardKind::kTensorRace, {.kernel = "k", .line = 8}, "other line");
  const std::vector<Hazard> hazards = log.Take();
  ASSERT_EQ(hazards.size(), 2u);
  EXPECT_EQ(hazards[0].count, 3u);
  EXPECT_TRUE(log.Take().empty());
}

}  // namespace
}  // namespace laneshift::emulator
