// `doctor --first-contact` as its users call it, on emulated devices.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/called_program.h"
#include "tools/first_contact/recorded_words.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::json;

class FirstContactVerb : public CalledProgram {
 protected:
  Json Contact(std::vector<std::string> more, int exit_code = 0) const {
    more.insert(more.begin(), {"doctor", "--first-contact", "--device", "emulator", "--out", File("report.md")});
    const auto objects = CallJson(more, exit_code);
    return objects.size() == 1 ? objects[0] : Json();
  }
  std::string Report() const {
    std::ifstream file(File("report.md"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// A device that differs from what is assumed is news, and no failure; an illegal instruction in one part loses nothing
// of the others.
TEST_F(FirstContactVerb, SettlesPoliciesAndWords) {
  const Json report = Contact(
      {"--target", "sm_100a", "--section", "policies", "--section", "words", "--policy", "mask_order=odd-first"});
  ASSERT_EQ(report["sections"].size(), 2u);
  const Json &policies = report["sections"][0], &words = report["sections"][1];
  EXPECT_EQ(policies["state"], "news") << policies["summary"];
  EXPECT_EQ(policies["rows"].size(), 41u);
  int otherwise = 0, settled = 0;
  for (const Json& row : policies["rows"]) {
    EXPECT_NE(row["outcome"], "failed") << row.dump();
    settled += row["outcome"] != "not settled";
    if (row["outcome"] != "otherwise") continue;
    ++otherwise;
    EXPECT_EQ(row["policy"], "mask_order");
    EXPECT_EQ(row["answer"], "odd-first");
    EXPECT_EQ(row["assumed"], "even-first");
  }
  EXPECT_EQ(otherwise, 1);
  EXPECT_EQ(settled, 29);
  EXPECT_EQ(words["state"], "ok") << words["summary"];
  EXPECT_EQ(words["rows"].size(), 44u);
  const std::string text = Report();
  EXPECT_NE(text.find("| mask_order | otherwise | odd-first | even-first |"), std::string::npos);
  const size_t json = text.find("```json\n");
  ASSERT_NE(json, std::string::npos);
  EXPECT_EQ(Json::parse(text.substr(json + 8, text.rfind("```") - json - 8), nullptr, false), report);
}

TEST_F(FirstContactVerb, RunsWhatAppliesToAnH200) {
  const Json report = Contact({"--target", "sm_90a", "--sweep", "2", "--section", "policies", "--section", "words",
                               "--section", "probes", "--section", "sweep"});
  ASSERT_EQ(report["sections"].size(), 4u);
  EXPECT_EQ(report["sections"][0]["state"], "not applicable");
  EXPECT_EQ(report["sections"][1]["state"], "not applicable");
  EXPECT_EQ(report["sections"][2]["state"], "ok") << report["sections"][2]["summary"];
  EXPECT_GT(report["sections"][2]["rows"].size(), 80u);
  EXPECT_EQ(report["sections"][3]["state"], "ok") << report["sections"][3]["summary"];
  EXPECT_EQ(report["sections"][3]["rows"].size(), 2u);
  EXPECT_NE(Report().find("| wgmma.f16.ss.n256 |"), std::string::npos);
}

// A section that fails is the exit code's business.
TEST_F(FirstContactVerb, FailsIfTheStoreIsBroken) {
  std::ofstream(File("store")) << "no directory";
  const Json report = Contact({"--section", "environment"}, 1);
  ASSERT_EQ(report["sections"].size(), 1u);
  EXPECT_EQ(report["sections"][0]["state"], "failed");
  EXPECT_NE(report["sections"][0]["summary"].get<std::string>().find("1 broken"), std::string::npos)
      << report["sections"][0]["summary"];
}

TEST_F(FirstContactVerb, BeginsNothingAfterItsBudget) {
  const Json report = Contact({"--target", "sm_100a", "--section", "policies", "--section", "sweep", "--budget", "1s"});
  ASSERT_EQ(report["sections"].size(), 2u);
  EXPECT_EQ(report["sections"][1]["state"], "left out");
}

TEST(RecordedWords, ALineThatIsNoneIsNamed) {
  EXPECT_EQ(ParseRecordedWords(RecordedWordsText())->size(), 44u);
  for (const char* text : {"x f16 f16 f32 kind=f16 | 1 | 2 | 3", "x f16 f17 f32 kind=f16 | 1 | 2 | 3 | 4",
                           "x f16 f16 f32 kind=f16 | 1 | 2z | 3 | 4"}) {
    const auto words = ParseRecordedWords(text);
    ASSERT_FALSE(words.has_value()) << text;
    EXPECT_NE(words.error().message.find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace laneshift::tools
