// Who may include whom: the arrows of ARCHITECTURE.md ("Codemap"), and which files may see a library at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_tree.h"

namespace laneshift::tests {
namespace {

// What the files under `from` may include of this repository in addition to their own directory: path prefixes. The
// first row whose `from` is a prefix of a file's path is the file's row; tests next to a file use its row.
struct Arrow {
  std::string_view from;
  std::vector<std::string_view> to;
};

const std::vector<Arrow>& Arrows() {
  static const std::vector<Arrow> arrows = {
      // Public headers are below everything: a user has nothing else.
      {"include/laneshift/", {"laneshift/"}},
      {"base/", {"laneshift/"}},
      {"target/", {"laneshift/", "base/"}},
      {"ir/", {"laneshift/", "base/", "target/"}},
      {"compiler/", {"laneshift/", "base/", "target/", "ir/"}},
      {"device/", {"laneshift/", "base/"}},
      // The emulator is a provider of the driver's table and knows nothing of what made the PTX: no ir/, no compiler/,
      // and only the declarations of device/, not the objects that are built on them. Its units know only words and
      // bits.
      {"emulator/units/", {"laneshift/", "base/"}},
      // The runtime calls the driver's functions as any program does, and knows nothing of their implementation; the
      // guard of an exported function guards both.
      {"emulator/cudart/",
       {"emulator/driver/driver_functions.h", "emulator/driver/driver_entries.h",
        "emulator/driver/exported_driver_types.h", "device/driver_types.h"}},
      {"emulator/",
       {"laneshift/", "base/", "target/", "emulator/units/", "device/driver_api.", "device/driver_types.h"}},
      {"store/", {"laneshift/", "base/"}},
      {"nvrtc/", {"laneshift/", "base/", "target/", "ir/", "compiler/", "store/"}},
      {"autotune/", {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "store/"}},
      // The engine uses the emulator's table and report, and nothing of its implementation.
      {"runtime/",
       {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "emulator/driver/driver.h",
        "emulator/hazards/report.h", "store/", "nvrtc/", "autotune/"}},
      {"measure/",
       {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "emulator/driver/driver.h",
        "emulator/hazards/report.h", "store/", "nvrtc/", "autotune/", "runtime/"}},
      // emulator/emulated_test_device.h: for the test of the report's JSON.
      {"tools/",
       {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "emulator/driver/driver.h",
        "emulator/driver/launch_observer.h", "emulator/hazards/report.h", "emulator/driver/driver_functions.h",
        "emulator/driver/exported_driver_types.h", "emulator/emulated_test_device.h", "store/", "nvrtc/", "autotune/",
        "runtime/", "measure/"}},
      {"bench/",
       {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "emulator/", "store/", "nvrtc/", "autotune/",
        "runtime/"}},
      // What a user could write.
      {"examples/", {"laneshift/"}},
      {"tests/package/", {"laneshift/"}},
      {"tests/",
       {"laneshift/", "base/", "target/", "ir/", "compiler/", "device/", "emulator/", "store/", "nvrtc/", "autotune/",
        "runtime/", "measure/", "tools/"}},
  };
  return arrows;
}

// Headers of a library, or calls, that only a few files may use: beginnings of paths.
struct Confinement {
  std::string_view what;
  std::string_view pattern;  // of a line
  std::vector<std::string_view> only;
};

const std::vector<Confinement>& Confinements() {
  static const std::vector<Confinement> confinements = {
      {"LLVM", "#include [<\"](llvm|llvm-c)/", {"compiler/emit/"}},
      {"SQLite", "#include [<\"]sqlite3", {"store/database.cc", "store/faulty_sqlite.h"}},
      {"spdlog", "#include [<\"]spdlog/", {"base/log.cc"}},
      {"opening a shared library",
       "#include <dlfcn\\.h>|\\bdlopen\\(",
       {"device/load_cuda_driver.cc", "base/shared_library.cc", "tests/failing_threads.cc"}},
      {"CUDA's own headers",
       "#include [<\"](cuda|cuda_runtime|nvrtc|cublas|cudnn)[A-Za-z_]*\\.h",
       {"device/driver_types_test.cc", "emulator/cudart/types_test.cc"}},
      {"CLI11", "#include [<\"]CLI/", {"tools/", "bench/", "tests/fuzz/random_kernels.cc"}},
      {"JSON", "#include [<\"]nlohmann/", {"tools/", "tests/fuzz/random_kernels.cc"}},
  };
  return confinements;
}

bool BeginsWithAny(std::string_view path, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return path.starts_with(prefix); });
}

const Arrow* ArrowOf(std::string_view path) {
  const auto& arrows = Arrows();
  const auto it =
      std::find_if(arrows.begin(), arrows.end(), [&](const Arrow& row) { return path.starts_with(row.from); });
  return it == arrows.end() ? nullptr : &*it;
}

// The path of `#include "path"`, and nothing for other lines.
std::optional<std::string> QuotedInclude(const std::string& line) {
  static const std::regex include(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::smatch match;
  return std::regex_search(line, match, include) ? std::optional<std::string>(match[1]) : std::nullopt;
}

// The rule that `path` breaks by including `included`, or nothing.
std::optional<std::string> BrokenArrow(std::string_view path, std::string_view included) {
  const Arrow* row = ArrowOf(path);
  if (row == nullptr) return "lies in a directory without a row in Arrows()";
  if (included.find('/') == std::string_view::npos) return "includes are written from the root of the repository";
  const Arrow* to = ArrowOf(included);
  const bool ours = to != nullptr || included.starts_with("laneshift/");
  if (!ours || to == row || BeginsWithAny(included, row->to)) return std::nullopt;
  return "files under " + std::string(row->from) + " may not include \"" + std::string(included) + "\"";
}

std::optional<std::string> BrokenConfinement(std::string_view path, const std::string& line) {
  for (const Confinement& rule : Confinements()) {
    if (std::regex_search(line, std::regex(std::string(rule.pattern))) && !BeginsWithAny(path, rule.only)) {
      std::string only;
      for (std::string_view prefix : rule.only) only += (only.empty() ? "" : ", ") + std::string(prefix);
      return std::string(rule.what) + " is only for " + only;
    }
  }
  return std::nullopt;
}

TEST(Layering, IncludesFollowTheArrows) {
  int includes = 0;
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.IsCpp() && !file.path.ends_with(".def")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const auto included = QuotedInclude(file.lines[i]);
      if (!included) continue;
      ++includes;
      if (const auto rule = BrokenArrow(file.path, *included)) ADD_FAILURE() << file.At(i) << ": " << *rule;
    }
  }
  EXPECT_GT(includes, 50) << "the source tree was not found";
}

TEST(Layering, LibrariesStayInTheirFiles) {
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.IsCpp() || file.path == "tests/layering_test.cc") continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      // Most lines can break no rule; the test is for speed only.
      if (file.lines[i].find("#include") == std::string::npos && file.lines[i].find("dlopen") == std::string::npos)
        continue;
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      if (const auto rule = BrokenConfinement(file.path, code)) ADD_FAILURE() << file.At(i) << ": " << *rule;
    }
  }
}

TEST(Layering, RulesSayNoWhereTheyShould) {
  EXPECT_TRUE(BrokenArrow("emulator/machine/warp.cc", "ir/program.h"));
  EXPECT_TRUE(BrokenArrow("emulator/driver/driver.cc", "device/kernel.h"));
  EXPECT_TRUE(BrokenArrow("emulator/units/wgmma.cc", "emulator/machine/warp.h"));
  EXPECT_TRUE(BrokenArrow("ir/layout.cc", "compiler/compile.h"));
  EXPECT_TRUE(BrokenArrow("runtime/engine.cc", "emulator/machine/memory.h"));
  EXPECT_TRUE(BrokenArrow("include/laneshift/engine.h", "ir/program.h"));
  EXPECT_TRUE(BrokenArrow("nowhere/file.cc", "base/text.h"));
  EXPECT_FALSE(BrokenArrow("emulator/driver/driver.cc", "device/driver_api.def"));
  EXPECT_FALSE(BrokenArrow("ir/layout_test.cc", "ir/layout.h"));
  EXPECT_TRUE(BrokenConfinement("compiler/compile.cc", "#include \"llvm/IR/Module.h\""));
  EXPECT_TRUE(BrokenConfinement("store/store.cc", "#include <sqlite3.h>"));
  EXPECT_TRUE(BrokenConfinement("tools/verbs/run.cc", "  void* h = dlopen(name, RTLD_NOW);"));
  EXPECT_FALSE(BrokenConfinement("compiler/emit/emitter.h", "#include \"llvm/IR/IRBuilder.h\""));
}

}  // namespace
}  // namespace laneshift::tests
