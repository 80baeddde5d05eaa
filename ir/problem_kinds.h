// The kinds of problem that ParseProblem and the related functions dispatch to: one set of overloads each, in separate
// files.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/grammar.h"
#include "laneshift/problem.h"

namespace laneshift::ir {

// `words` are those of the one-line form, the kind first. Keys that are not given have their defaults; nothing is
// checked yet.
Result<Problem> ParseGemm(const std::vector<std::string_view>& words);
Result<Problem> ParseConv(ConvPass pass, const std::vector<std::string_view>& words);
Result<Problem> ParseGroupedGemm(const std::vector<std::string_view>& words);

// One row a key.
std::vector<GrammarRow> GemmKeys();
std::vector<GrammarRow> ConvKeys(ConvPass pass);
std::vector<GrammarRow> GroupedGemmKeys();

// The other public functions (laneshift/problem.h), for one kind.
Result<Problem> Complete(GemmProblem problem);
Result<Problem> Complete(ConvProblem problem);
Result<Problem> Complete(GroupedGemmProblem problem);
std::string Print(const GemmProblem& problem);
std::string Print(const ConvProblem& problem);
std::string Print(const GroupedGemmProblem& problem);
double Flops(const GemmProblem& problem);
double Flops(const ConvProblem& problem);
double Flops(const GroupedGemmProblem& problem);
double Bytes(const GemmProblem& problem);
double Bytes(const ConvProblem& problem);
double Bytes(const GroupedGemmProblem& problem);

}  // namespace laneshift::ir
