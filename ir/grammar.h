// What may be written in the one-line form of a problem, for help and documents: from the tables that the parsers use.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace laneshift::ir {

// A key of a kind of problem, or a step of an epilogue.
struct GrammarRow {
  std::string name;    // "lda"; of a step with its numbers: "clamp:x:y"
  std::string values;  // "f16, bf16, f32, e4m3, e5m2"; for a step the types of its operand
  std::string usual;   // the value where the key is left out: "1", "packed", "required"
  std::string doc;
};

// "gemm", "conv", "conv_dgrad", "conv_wgrad", "grouped_gemm".
std::vector<std::string_view> ProblemKinds();
// In printed order. REQUIRES: `kind` is one of them.
std::vector<GrammarRow> ProblemKeys(std::string_view kind);
// The steps of an epilogue, for a GEMM and for a convolution; not users' functions.
std::vector<GrammarRow> EpilogueSteps();
// The values of `numerics=`.
std::vector<GrammarRow> NumericsRows();

}  // namespace laneshift::ir
