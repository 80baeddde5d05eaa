// The revision of the code generator must be raised when the PTX of the same tile program changes: stored kernels
// are found by it. The record is compiler/emit/emission_digests.txt, kernels of every schedule key, type and epilogue
// step of tests/sweep; tests/compare_kernels.py compares the PTX of two builds over it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/fingerprint.h"
#include "base/text.h"
#include "compiler/compile.h"
#include "ir/program.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

struct EmissionCase {
  std::string program, ptx;  // digests
  std::string text;          // problem; schedule; target

  std::string Line() const { return Cat(program, " ", ptx, " ", text); }
};

struct EmissionRecord {
  std::vector<std::string> comments;
  std::string generator;
  std::vector<EmissionCase> cases;
};

std::string RecordPath() { return std::string(LANESHIFT_SOURCE_DIR) + "/compiler/emit/emission_digests.txt"; }

EmissionRecord ReadRecord() {
  EmissionRecord record;
  std::ifstream file(RecordPath());
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) {
      record.comments.push_back(line);
    } else if (line.starts_with("generator ")) {
      record.generator = line.substr(10);
    } else {
      const size_t first = line.find(' '), second = line.find(' ', first + 1);
      record.cases.push_back(
          {line.substr(0, first), line.substr(first + 1, second - first - 1), line.substr(second + 1)});
    }
  }
  return record;
}

std::string Digest(std::string_view text) { return base::Fingerprinter().Text("text", text).Finish().Hex(); }

EmissionCase Emit(const std::string& text) {
  std::vector<std::string> parts;
  for (const std::string_view part : base::Split(text, ';')) parts.emplace_back(base::Trim(part));
  EmissionCase emitted{.program = "", .ptx = "", .text = text};
  if (parts.size() != 3) {
    ADD_FAILURE() << text << ": write three parts";
    return emitted;
  }
  const target::Target& target = target::NamedTarget(parts[2]);
  const auto problem = ParseProblem(parts[0]);
  const auto schedule = ParseSchedule(parts[1]);
  if (!problem || !schedule) {
    ADD_FAILURE() << text << ": " << (problem ? schedule.error() : problem.error()).message;
    return emitted;
  }
  const auto program = BuildProgram(*CompleteProblem(*problem), schedule->value, target);
  if (!program) {
    ADD_FAILURE() << text << ": " << program.error().message;
    return emitted;
  }
  const auto module = EmitPtx(*program, target);
  EXPECT_TRUE(module) << text << ": " << module.error().message;
  emitted.program = Digest(ir::PrintProgram(*program));
  if (module) emitted.ptx = Digest(module->ptx);
  return emitted;
}

std::string RevisionOf(const std::string& generator) { return generator.substr(0, generator.find('/')); }

void WriteRecord(const EmissionRecord& record, const std::vector<EmissionCase>& cases) {
  std::ofstream file(RecordPath());
  for (const std::string& comment : record.comments) file << comment << "\n";
  file << "generator " << Generator() << "\n";
  for (const EmissionCase& one : cases) file << one.Line() << "\n";
}

TEST(Emission, OtherPtxOfTheSameProgramIsAnotherRevision) {
  const EmissionRecord record = ReadRecord();
  ASSERT_GE(record.cases.size(), 300u);
  const bool same_revision = RevisionOf(record.generator) == Cat(kGeneratorRevision);
  const bool bless = std::getenv("BLESS") != nullptr;
  if (same_revision && record.generator != Generator() && !bless) {
    GTEST_SKIP() << "recorded with generator " << record.generator << ", this is " << Generator()
                 << ": another LLVM has other keys";
  }
  std::vector<EmissionCase> cases;
  for (const EmissionCase& recorded : record.cases) {
    cases.push_back(Emit(recorded.text));
    if (record.generator != Generator()) continue;
    const bool same_program = cases.back().program == recorded.program;
    const bool same_ptx = cases.back().ptx == recorded.ptx;
    EXPECT_TRUE(!same_program || same_ptx)
        << recorded.text << "\nhas other PTX than before, under the same key: raise kGeneratorRevision, then BLESS=1";
    EXPECT_TRUE(same_program || bless) << recorded.text << "\nhas another tile program, with "
                                       << (same_ptx ? "the same PTX" : "other PTX (tests/compare_kernels.py shows it)")
                                       << ": record it with BLESS=1";
  }
  if (bless) {
    if (!HasFailure()) WriteRecord(record, cases);
    return;
  }
  EXPECT_TRUE(same_revision) << "the record is of generator " << record.generator << ": BLESS=1 rewrites it";
}

TEST(Emission, TheGeneratorNamesItsRevisionAndItsLlvm) {
  EXPECT_TRUE(Generator().starts_with(Cat(kGeneratorRevision, "/llvm-"))) << Generator();
  EXPECT_GT(Generator().size(), Cat(kGeneratorRevision, "/llvm-").size());
}

}  // namespace
}  // namespace laneshift::compiler
