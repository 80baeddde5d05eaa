// What a reviewer should not have to say: sizes, names, forbidden words, and paths in documents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_tree.h"

namespace laneshift::tests {
namespace {

constexpr size_t kMaxLines = 800;
constexpr size_t kMaxProductLines = 600;

// Words that say nothing about what a file holds.
constexpr std::string_view kForbiddenNames[] = {"util", "utils",   "helper", "helpers", "common",
                                                "misc", "manager", "impl",   "data",    "stuff"};

// Names that the hardware's manual gave: "data path" is what PTX calls the lanes of Tensor Memory that a warp reaches.
constexpr std::string_view kNamesOfTheManual[] = {"data_path"};

enum class In { kProduct, kHeaders, kAllCpp, kEverything };  // product: C++ but tests
enum class Of { kCode, kText };                              // code: without comments and string contents

// Text that must not occur in a file. `word` is a plain substring of every match, for speed.
struct Ban {
  std::string_view word, pattern;
  In in;
  Of of;
  std::vector<std::string_view> except;  // beginnings of paths
  std::string_view rule;
};

const std::vector<Ban>& Bans() {
  static const std::vector<Ban> bans = {
      {"getenv",
       "\\bgetenv\\s*\\(",
       In::kProduct,
       Of::kCode,
       // PATH, as execvp() reads it; CUDA_HOME, as every CUDA program does; and where the store is, on which the
       // library and the program have to agree.
       {"tools/", "base/subprocess.cc", "base/cuda_toolkit.cc", "store/location.cc"},
       "the environment is read in tools/; pass an option"},
      {"throw",
       "\\bthrow\\b",
       In::kAllCpp,
       Of::kCode,
       // LLVM's fatal errors can only be left by an exception; it is caught in the same file. The test's operator new
       // has to throw, and what SQLite lacks is the memory that operator new gives.
       {"compiler/emit/nvptx_backend.cc", "store/database.cc", "tests/failing_new.cc"},
       "nothing here throws; return an Error"},
      {"catch",
       "\\bcatch\\s*\\(",
       In::kProduct,
       Of::kCode,
       // The C interfaces, the emulator's host threads, the worker's and the program's main, and the parsers of CLI11
       // and JSON in tools/. What std throws where there is no memory is caught in base/host_memory.h for all others.
       {"base/host_memory.h", "runtime/c_api.cc", "emulator/driver/driver_entries.h",
        "emulator/machine/out_of_memory.cc", "autotune/worker", "compiler/emit/nvptx_backend.cc", "tools/"},
       "exceptions of others are caught only at the edges"},
      {"TEST",
       "\\bTEST_[A-Za-z0-9_]+|\\bTESTING(_ONLY)?\\b|\\bFRIEND_TEST\\b",
       In::kProduct,
       Of::kCode,
       {},
       "no hooks for tests in the product; tests use seams"},
      {"friend",
       "\\bfriend\\s+(class|struct)\\s+\\w*Test\\b",
       In::kProduct,
       Of::kCode,
       {},
       "no friends that are tests; tests use public or sibling headers"},
      {"using", "^\\s*using namespace\\b", In::kHeaders, Of::kCode, {}, "a header opens no namespace"},
      {"detail", "\\bnamespace detail\\b", In::kAllCpp, Of::kCode, {}, "no detail namespaces; use a .cc file"},
      {"compute_m",
       "\\bcompute_(major|minor)\\s*(==|!=|<=?|>=?)\\s*[0-9]",
       In::kProduct,
       Of::kCode,
       {"target/"},
       "ask the target for a Feature, not a device for its number"},
      {".dump(",
       "\\.dump\\(",
       In::kProduct,
       Of::kCode,
       // The launch schema has no text of others; preload.cc replaces, too, in many lines.
       {"tools/json_line.h", "tools/emulation/"},
       "dump() throws at bytes that are not UTF-8; use JsonLine"},
      {"istreambuf_iterator",
       "\\bistreambuf_iterator\\b",
       In::kProduct,
       Of::kCode,
       {"emulator/emulated_test_device.h", "tests/"},
       "reading a directory through one throws; use base::ReadFile"},
      {"std::",
       "\\bstd::(jthread|async|thread\\s*[({\\[]|thread\\s+\\w)|<std::thread>",
       In::kProduct,
       Of::kCode,
       {"tests/"},
       "a thread that cannot be started throws; use base/threads.h"},
      {"Problem",
       "\\b(Gemm|Conv)Problem\\b",
       In::kProduct,
       Of::kCode,
       {"include/", "ir/", "measure/", "runtime/", "tools/", "bench/", "tests/", "examples/", "compiler/contraction/"},
       "compiler/ and autotune/ take a compiler::Contraction, whatever problem it is of"},
      {"",
       "\\b(Reach|TmaReach(es)?|kTurns|TakesTurns|InTurn|kGrants?|kGranted|ReadAnswer|Takeover|TakesOver|AwaitStaying|"
       "kept_rows|Kept(Operand|Of)|IsSection|SharesTiles|WalksPixels|PixelWalk|walk_q|LanesBeside|"
       "(Read|Add|Clear)Sums|(Store|Add)Totals|LoadFactors?|Joins(Pairs|Halves)|joins_(pairs|halves)|PieceSteps)\\b",
       In::kAllCpp,
       Of::kCode,
       {},
       "a retired name; see tests/retired_words_test.cc for the field's words"},
      {"/",
       std::string_view("(^|[^A-Za-z0-9_.~)}*-])/(home|work|tmp|root|Users|mnt)/[A-Za-z0-9_]"),
       In::kEverything,
       Of::kText,
       {},
       "a path of one machine"},
  };
  return bans;
}

bool AppliesTo(const Ban& ban, const SourceFile& file) {
  const bool excepted =
      std::any_of(ban.except.begin(), ban.except.end(), [&](std::string_view prefix) { return file.Under(prefix); });
  if (excepted) return false;
  switch (ban.in) {
    case In::kProduct:
      return file.IsCpp() && !file.IsTest();
    case In::kHeaders:
      return file.path.ends_with(".h");
    case In::kAllCpp:
      return file.IsCpp();
    case In::kEverything:
      return true;
  }
  return false;
}

bool Breaks(const Ban& ban, const std::string& line) {
  if (line.find(ban.word) == std::string::npos) return false;
  const std::string text = ban.of == Of::kCode ? CodeOf(line) : line;
  return std::regex_search(text, std::regex(std::string(ban.pattern)));
}

TEST(Lint, NothingThatIsBanned) {
  for (const SourceFile& file : ReadSourceTree()) {
    if (file.path.starts_with("tests/lint_test")) continue;
    for (const Ban& ban : Bans()) {
      if (!AppliesTo(ban, file)) continue;
      for (size_t i = 0; i < file.lines.size(); ++i) {
        if (Breaks(ban, file.lines[i])) ADD_FAILURE() << file.At(i) << ": " << ban.rule << ": " << file.lines[i];
      }
    }
  }
}

TEST(Lint, BansMatchWhatTheyMean) {
  const auto broken = [](const std::string& line) {
    return std::any_of(Bans().begin(), Bans().end(), [&](const Ban& ban) { return Breaks(ban, line); });
  };
  for (const char* bad :
       {"  const char* path = std::getenv(\"HOME\");", "  throw std::runtime_error(text);", "  } catch (...) {",
        "  std::vector<std::jthread> threads;", "  puts(json.dump().c_str());", "  friend class PlanTest;",
        "  if (TakesTurns(role)) return;", "  void TEST_Compact();", "using namespace std;",
        "  if (facts.compute_major == 9) {", "see /home/someone/notes", "\"/tmp/scratch\""}) {
    EXPECT_TRUE(broken(bad)) << bad;
  }
  for (const char* good :
       {"// never throw", "  Say(\"could not throw\");", "  friend class Engine;", "  auto n = 1'000; f(\"catch (\");",
        "$HOME/.cache/laneshift", "  int compute_major = 9;", "${prefix}/home/x",
        "the home"
        "/work"
        "/tmp split"}) {
    EXPECT_FALSE(broken(good)) << good;
  }
}

TEST(Lint, FilesAreShort) {
  std::vector<size_t> sizes;
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.IsCpp()) continue;
    sizes.push_back(file.lines.size());
    const size_t most = file.IsTest() ? kMaxLines : kMaxProductLines;
    EXPECT_LE(file.lines.size(), most) << file.path << " is too long; what are its two halves called?";
  }
  ASSERT_FALSE(sizes.empty());
  std::sort(sizes.begin(), sizes.end());
  std::printf("%zu .h and .cc files: median %zu lines, 90%% up to %zu, longest %zu\n", sizes.size(),
              sizes[sizes.size() / 2], sizes[sizes.size() * 9 / 10], sizes.back());
}

TEST(Lint, NamesSaySomething) {
  const std::set<std::string_view> forbidden(std::begin(kForbiddenNames), std::end(kForbiddenNames));
  for (const SourceFile& file : ReadSourceTree()) {
    static const std::regex separators("[/_.-]");
    std::string path = file.path;
    for (std::string_view name : kNamesOfTheManual) {
      if (const size_t at = path.find(name); at != std::string::npos) path.erase(at, name.size());
    }
    std::sregex_token_iterator word(path.begin(), path.end(), separators, -1);
    for (; word != std::sregex_token_iterator(); ++word) {
      EXPECT_FALSE(forbidden.contains(word->str())) << file.path << ": \"" << *word << "\" says nothing";
    }
  }
}

TEST(Lint, HeadersOpenWithTheirPurpose) {
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.path.ends_with(".h") || file.lines.empty()) continue;
    EXPECT_TRUE(file.lines[0].starts_with("//")) << file.At(0) << ": a header opens with a comment: what it is for";
    EXPECT_TRUE(std::find(file.lines.begin(), file.lines.end(), "#pragma once") != file.lines.end())
        << file.At(0) << ": no #pragma once";
  }
}

// Who reads `#include "…/program.h"` or `Machine` knows which one is meant.
TEST(Lint, HeadersAndTheirTypesHaveNamesOfTheirOwn) {
  static const std::regex type("^(struct|class|enum class) ([A-Za-z0-9_]+)( final)?( : [^;{]*)? *\\{.*");
  std::map<std::string, std::string> headers, types;
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.path.ends_with(".h") || file.Under("tests/package/")) continue;
    const auto [other, fresh] = headers.emplace(file.Name(), file.path);
    EXPECT_TRUE(fresh) << file.path << " has the name of " << other->second;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_match(file.lines[i], match, type)) continue;
      const auto [seen, first] = types.emplace(match[2], file.At(i));
      EXPECT_TRUE(first) << file.At(i) << ": " << match[2] << " is also the name of a type at " << seen->second;
    }
  }
  EXPECT_GT(types.size(), 100u);
}

// What a document may name: files by path, by path below include/, or by bare name, and directories.
class Paths {
 public:
  explicit Paths(const std::vector<SourceFile>& files) {
    for (const SourceFile& file : files) {
      known_.insert(file.path);
      known_.insert(file.Name());
      for (size_t slash = file.path.find('/'); slash != std::string::npos; slash = file.path.find('/', slash + 1)) {
        known_.insert(file.path.substr(0, slash));
        known_.insert(file.path.substr(0, slash + 1));
      }
      if (file.Under("include/")) known_.insert(file.path.substr(std::string("include/").size()));
    }
  }

  bool Has(const std::string& path) const {
    const size_t star = path.find('*');
    if (star == std::string::npos) return known_.contains(path);
    return std::any_of(known_.begin(), known_.end(), [&](const std::string& known) {
      return known.size() >= path.size() - 1 && known.starts_with(path.substr(0, star)) &&
             known.ends_with(path.substr(star + 1));
    });
  }

  // Whether a word in backticks claims to be a path here: it begins with a directory of ours or ends like a file of
  // ours.
  bool IsPath(const std::string& word) const {
    static const std::regex path("[A-Za-z0-9_./*-]+");
    static const std::regex file(".+\\.(h|cc|def|md|cmake|sh|tir|ptx|map)");
    if (!std::regex_match(word, path) || word.starts_with("*") || word.starts_with("/")) return false;
    const size_t slash = word.find('/');
    if (word.starts_with("build")) return false;
    return word.ends_with('/') || std::regex_match(word, file) ||
           (slash != std::string::npos && known_.contains(word.substr(0, slash)));
  }

 private:
  std::set<std::string> known_;
};

// The words in backticks and the relative link targets of a line of Markdown.
std::vector<std::string> QuotedWords(const std::string& line) {
  static const std::regex quoted(R"re(`([^`]+)`|\]\(([^)#:]+)\))re");
  std::vector<std::string> words;
  for (std::sregex_iterator it(line.begin(), line.end(), quoted); it != std::sregex_iterator(); ++it) {
    words.push_back((*it)[1].matched ? (*it)[1] : (*it)[2]);
  }
  return words;
}

TEST(Lint, DocumentsNameWhatExists) {
  const std::vector<SourceFile> files = ReadSourceTree();
  const Paths paths(files);
  int named = 0;
  for (const SourceFile& file : files) {
    if (!file.path.ends_with(".md")) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : QuotedWords(file.lines[i])) {
        if (!paths.IsPath(word)) continue;
        ++named;
        const std::string sibling = file.path.substr(0, file.path.rfind('/') + 1) + word;
        EXPECT_TRUE(paths.Has(word) || paths.Has(sibling)) << file.At(i) << ": there is no " << word;
      }
    }
  }
  EXPECT_GT(named, 20) << "the documents were not found";
}

// Cells of a row of a table: every bar that is not escaped ends one, in backticks too.
int CellsOf(const std::string& row) {
  int bars = 0;
  for (size_t i = 0; i < row.size(); ++i) bars += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1 : 0;
  return bars - 1;
}

// A header of other cells than the line below it is no header, and the table is shown as text.
TEST(Lint, RowsOfTablesHaveTheCellsOfTheHeader) {
  static const std::regex separator(R"(\|(\s*:?-+:?\s*\|)+\s*)");
  int tables = 0;
  for (const SourceFile& file : ReadSourceTree()) {
    if (!file.path.ends_with(".md")) continue;
    for (size_t i = 1; i < file.lines.size(); ++i) {
      if (!std::regex_match(file.lines[i], separator)) continue;
      ++tables;
      const int cells = CellsOf(file.lines[i]);
      EXPECT_EQ(CellsOf(file.lines[i - 1]), cells) << file.At(i - 1);
      for (size_t row = i + 1; row < file.lines.size() && file.lines[row].starts_with('|'); ++row)
        EXPECT_EQ(CellsOf(file.lines[row]), cells) << file.At(row);
    }
  }
  EXPECT_GT(tables, 20) << "the tables were not found";
}

// A test that no build file globs would never run.
TEST(Lint, EveryTestIsBuilt) {
  std::map<std::string, std::string> builds;  // directory -> text of its CMakeLists.txt
  std::vector<SourceFile> files = ReadSourceTree();
  for (const SourceFile& file : files) {
    if (file.Name() != "CMakeLists.txt") continue;
    std::string& text = builds[file.path.substr(0, file.path.size() - file.Name().size())];
    for (const std::string& line : file.lines) text += line + "\n";
  }
  for (const SourceFile& file : files) {
    if (!file.path.ends_with("_test.cc")) continue;
    bool built = false;
    for (std::string directory = file.path; !built && !directory.empty();) {
      const size_t slash = directory.rfind('/', directory.size() - 2);
      directory = slash == std::string::npos ? "" : directory.substr(0, slash + 1);
      const auto build = builds.find(directory);
      if (build == builds.end() || directory.empty()) continue;
      built = build->second.find("laneshift_directory(") != std::string::npos ||
              build->second.find(file.Name()) != std::string::npos;
    }
    EXPECT_TRUE(built) << file.path << " is in no CMakeLists.txt";
  }
}

}  // namespace
}  // namespace laneshift::tests
