#include "tools/html/bench_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/html/markup_flaw.h"

namespace laneshift::tools {
namespace {

BenchPage TwoProblems() {
  BenchPage page{.device = "a <GPU>", .target = "sm_90a", .problems = {}};
  page.problems.push_back(
      {.problem = "gemm m=4096 n=4096 k=4096",
       .choice = "tuned",
       .flops = 2.0 * 4096 * 4096 * 4096,
       .timed = {{.name = "laneshift", .schedule = "tile=128x256x64 stages=4", .us = {200, 198, 203}},
                 {.name = "cublas", .us = {220, 218, 224}, .notes = {"algorithm 7"}}},
       .conditions = {},
       .missing = {}});
  page.problems.push_back({.problem = "conv n=1 h=28 w=28 c=64 k=64 r=3 s=3 pad=1",
                           .choice = "rule",
                           .flops = 1e8,
                           .timed = {{.name = "laneshift", .schedule = "tile=128x64x64", .us = {5, 4.9, 5.2}}},
                           .conditions = {},
                           .missing = {"libcudnn.so was not found"}});
  return page;
}

TEST(BenchPage, ShowsEveryProblemPeerAndNote) {
  const std::string html = RenderBench(TwoProblems(), nlohmann::ordered_json::array({{{"problem", "</script>"}}}));
  EXPECT_EQ(FirstFlaw(html), "");
  for (const char* part :
       {"a &lt;GPU&gt;", "gemm m=4096 n=4096 k=4096", "conv n=1 h=28", "687.2 laneshift",
        "624.7 cublas, we are 1.100 x", "<td>cublas</td><td class=\"n\">1</td><td class=\"n\">1.100</td>",
        "cublas: algorithm 7", "libcudnn.so was not found", "\\u003c/script>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* reference : {"http:", "https:", " src=", "<link"})
    EXPECT_EQ(html.find(reference), std::string::npos) << reference;
}

TEST(BenchPage, WithoutPeersHasNoMeans) {
  BenchPage page = TwoProblems();
  page.problems.erase(page.problems.begin());
  const std::string html = RenderBench(page, nlohmann::ordered_json::array());
  EXPECT_EQ(FirstFlaw(html), "");
  EXPECT_EQ(html.find("id=\"means\""), std::string::npos);
  EXPECT_NE(html.find("id=\"rates\""), std::string::npos);
}

}  // namespace
}  // namespace laneshift::tools
