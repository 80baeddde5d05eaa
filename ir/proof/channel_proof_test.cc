#include "ir/proof/channel_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"

namespace laneshift::ir {
namespace {

constexpr std::string_view kLowered = "_lowered.tir";

// Lowered golden programs, without that ending.
std::vector<std::string> Goldens() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(LANESHIFT_SOURCE_DIR "/tests/golden/ir")) {
    const std::string name = file.path().filename();
    if (name.ends_with(kLowered)) names.push_back(name.substr(0, name.size() - kLowered.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string TextOf(std::string_view golden) {
  std::ifstream in(base::Cat(LANESHIFT_SOURCE_DIR "/tests/golden/ir/", golden, kLowered));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IsProved) {
  const auto program = ParseProgram(TextOf(GetParam()));
  ASSERT_TRUE(program) << program.error().message;
  const Status proof = ProveChannels(*program);
  EXPECT_TRUE(proof) << proof.error().message;
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(Goldens()), [](const auto& golden) { return golden.param; });

TEST(ChannelProof, HasManyGoldenPrograms) { EXPECT_GE(Goldens().size(), 24u); }

// A golden program with one line changed, and what the counterexample must say.
struct Mistake {
  const char* name;
  const char* golden;
  const char* line;    // regex
  int occurrence;      // of the lines that match
  const char* edited;  // instead of what matches; empty: the line goes
  std::vector<std::string> says;
  friend void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }
};
const Mistake kMistakes[] = {
#include "ir/proof/channel_mistakes.def"
};

std::string Edited(const std::string& text, const Mistake& mistake) {
  const std::regex pattern(mistake.line);
  std::string edited;
  int seen = 0;
  for (const std::string_view part : base::Split(text, '\n')) {
    const std::string line(part);
    const bool found = std::regex_search(line, pattern) && seen++ == mistake.occurrence;
    if (found && *mistake.edited == '\0') continue;
    edited += (found ? std::regex_replace(line, pattern, mistake.edited) : line) + "\n";
  }
  return edited;
}

class MistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsRefusedByName) {
  const std::string text = TextOf(GetParam().golden), edited = Edited(text, GetParam());
  ASSERT_NE(edited, text + "\n") << "no such line: " << GetParam().line;
  const auto program = ParseProgram(edited);
  ASSERT_TRUE(program) << program.error().message;
  const Status proof = ProveChannels(*program);
  ASSERT_FALSE(proof) << "is proved";
  for (const std::string& words : GetParam().says) {
    EXPECT_NE(proof.error().message.find(words), std::string::npos)
        << "not '" << words << "': " << proof.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MistakeTest, testing::ValuesIn(kMistakes),
                         [](const auto& mistake) { return std::string(mistake.param.name); });

// Two rings that are sent in another order than they are taken, with a stage too few to make up for it.
constexpr std::string_view kSwapped =
    R"(program gemm target=sm_90a stage=lowered threads=256 tile=64x64x64 operands=bf16 {
  channel p order stages=PSTAGES arrivals=1/4
  channel q order stages=1 arrivals=1/4
  role first kind=load warps=0+1 elected {
    work %0, %1, %2 = %3, %3, %3 raster=8 {
      %4 = cursor p
      barrier.wait %4 side=empty inverted
      barrier.arrive %4 side=full
      advance %4
      %5 = cursor p
      barrier.wait %5 side=empty inverted
      barrier.arrive %5 side=full
      advance %5
      %6 = cursor q
      barrier.wait %6 side=empty inverted
      barrier.arrive %6 side=full
      advance %6
    }
  }
  role second kind=math warps=4+4 {
    work %7, %8, %9 = %3, %3, %3 raster=8 {
      %10 = cursor q
      barrier.wait %10 side=full
      %11 = cursor p
      barrier.wait %11 side=full
      barrier.arrive %11 side=empty by=warp
      advance %11
      %12 = cursor p
      barrier.wait %12 side=full
      barrier.arrive %12 side=empty by=warp
      advance %12
      barrier.arrive %10 side=empty by=warp
      advance %10
    }
  }
}
)";

TEST(ChannelProof, SendsInAnotherOrderThanTakesNeedStages) {
  for (const int stages : {1, 2, 3}) {
    const std::string text = std::regex_replace(std::string(kSwapped), std::regex("PSTAGES"), base::Cat(stages));
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program) << program.error().message;
    const Status proof = ProveChannels(*program);
    ASSERT_EQ(proof.has_value(), stages > 1) << stages << " stages: " << (proof ? "proved" : proof.error().message);
    if (proof) continue;
    EXPECT_EQ(
        proof.error().message,
        "with 1 tile of 1 block of K: deadlock: role first waits at barrier.wait on slot 0 of p side=empty "
        "inverted in lap 1, whose barrier has 0 of 4 arrivals in phase 0: role second would have to continue; role "
        "second waits at barrier.wait on slot 0 of q side=full in lap 0, whose barrier has 0 of 1 arrivals in "
        "phase 0: role first would have to continue");
  }
}

// A role that looks at a ring without releasing its slots: nothing keeps the others from going on.
constexpr std::string_view kObserved =
    R"(program gemm target=sm_90a stage=lowered threads=256 tile=64x64x64 operands=bf16 {
  channel p order stages=1 arrivals=1/4
  role first kind=load warps=0+1 elected {
    work %0, %1, %2 = %3, %3, %3 raster=8 {
      %4 = cursor p
      barrier.wait %4 side=empty inverted
      barrier.arrive %4 side=full
      advance %4
    }
  }
  role second kind=math warps=4+4 {
    work %5, %6, %7 = %3, %3, %3 raster=8 {
      %8 = cursor p
      barrier.wait %8 side=full
      barrier.arrive %8 side=empty by=warp
      advance %8
    }
  }
  role observer kind=copy warps=1+1 {
    work %9, %10, %11 = %3, %3, %3 raster=8 {
      %12 = cursor p
      WAIT
      advance %12
    }
  }
}
)";

TEST(ChannelProof, AWaitMustNotBeMissedNorPassedEarly) {
  const auto proof_with = [](const char* wait) {
    const auto program = ParseProgram(std::regex_replace(std::string(kObserved), std::regex("WAIT"), wait));
    EXPECT_TRUE(program) << program.error().message;
    const Status proof = ProveChannels(*program, {.tiles = 5});
    return proof ? "proved" : proof.error().message;
  };
  EXPECT_EQ(proof_with(""), "proved");
  EXPECT_EQ(
      proof_with("barrier.wait %12 side=full"),
      "with 5 tiles of 1 block of K: role observer: barrier.wait on slot 0 of p side=full in lap 0 may be missed: "
      "nothing keeps the full barrier of slot 0 of p from completing phase 1 too before it is passed");
  EXPECT_EQ(
      proof_with("advance %12\n%13 = cursor p\nbarrier.wait %13 side=full\nadvance %13"),
      "with 5 tiles of 1 block of K: role observer: barrier.wait on slot 0 of p side=full in lap 1 may be passed "
      "early: nothing orders it after phase 0 of the full barrier of slot 0 of p, which has the same parity as the "
      "one before");
}

// The claim that a few trip counts decide: with any depth of each ring, more of them find nothing else.
TEST(ChannelProof, FewTripCountsDecideAsManyDo) {
  constexpr int kMostStages = 4, kMostTiles = 7, kMostBlocks = 19;
  int refused = 0;
  for (const std::string& golden : Goldens()) {
    for (int stages = 1; stages <= kMostStages; ++stages) {
      auto program = ParseProgram(TextOf(golden));
      ASSERT_TRUE(program) << golden;
      for (Channel& channel : program->channels) {
        if (channel.resident == 0 && channel.space != Space::kOrder) channel.stages = stages;
      }
      const bool proved = ProveChannels(*program).has_value();
      refused += proved ? 0 : 1;
      bool all = true;
      const auto least = LeastTrips(*program);
      ASSERT_TRUE(least) << golden;
      for (int tiles = 1; tiles <= kMostTiles; ++tiles) {
        for (int blocks = 1; blocks <= kMostBlocks; ++blocks) {
          const Trips trips{.tiles = tiles, .blocks = blocks, .columns = least->columns};
          all = all && ProveChannels(*program, trips).has_value();
        }
      }
      EXPECT_EQ(proved, all) << golden << " with " << stages << " stages";
    }
  }
  EXPECT_GT(refused, 3) << "no ring was too short";
}

}  // namespace
}  // namespace laneshift::ir
