#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "laneshift/sparsity.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/npy.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr const char* kCompressExamples = R"(
Examples:
  laneshift compress gemm m=128 n=64 k=512 a=f16 sparse=a --dense dense.npy --a a.npy --metadata_a e.npy
  laneshift run gemm m=128 n=64 k=512 a=f16 sparse=a --a a.npy --metadata_a e.npy --check
  laneshift compress gemm m=128 n=64 k=512 a=f16 sparse=a --expand --a a.npy --metadata_a e.npy --dense dense.npy

Exit codes: 0 ok, 1 failure, 2 usage, an invalid problem, or a matrix that is not 2:4 sparse (the message names the first
row and group).)";

struct CompressOptions {
  std::vector<std::string> words;
  std::string dense, elements, metadata;
  bool expand = false, json = false;
};

// A without sparse=a, packed.
StoredTensor DenseShape(GemmProblem gemm) {
  gemm.sparse = Sparsity::kNone;
  gemm.lda = gemm.a_major == Major::kK ? gemm.k : gemm.m;
  gemm.stride_a = gemm.m * gemm.k;
  return Stored(gemm, OperandRole::kA);
}

int Print(const CompressOptions& options, const Problem& problem, size_t element_bytes, size_t metadata_bytes) {
  if (options.json) {
    const nlohmann::ordered_json object = {{"problem", PrintProblem(problem)}, {"expanded", options.expand},
                                           {"dense", options.dense},           {"a", options.elements},
                                           {"metadata_a", options.metadata},   {"element_bytes", element_bytes},
                                           {"metadata_bytes", metadata_bytes}};
    std::printf("%s\n", JsonLine(object).c_str());
  } else {
    std::printf("%s: %s, %s\n", PrintProblem(problem).c_str(), Cat(element_bytes, " bytes of elements").c_str(),
                Cat(metadata_bytes, " bytes of metadata").c_str());
  }
  return kExitOk;
}

Result<int> Compress(const CompressOptions& options) {
  LS_ASSIGN(const Problem problem, ParseProblem(base::Join(options.words, " ")));
  LS_TRY(SparseBytesOf(problem));  // refuses problems without a sparse operand
  const StoredTensor dense = DenseShape(std::get<GemmProblem>(problem));
  const StoredTensor elements = Stored(problem, OperandRole::kA), metadata = Stored(problem, OperandRole::kMetadataA);
  if (options.expand) {
    LS_ASSIGN(const HostTensor a, ReadNpy(options.elements, elements, "a"));
    LS_ASSIGN(const HostTensor codes, ReadNpy(options.metadata, metadata, "metadata_a"));
    LS_ASSIGN(std::vector<std::byte> expanded, ExpandSparse(problem, a.bytes, codes.bytes));
    LS_TRY(WriteNpy(options.dense, {dense, std::move(expanded)}));
    return Print(options, problem, a.bytes.size(), codes.bytes.size());
  }
  LS_ASSIGN(const HostTensor from, ReadNpy(options.dense, dense, "the dense a"));
  LS_ASSIGN(SparseOperand sparse, CompressSparse(problem, from.bytes));
  LS_TRY(WriteNpy(options.elements, {elements, std::move(sparse.elements)}));
  LS_TRY(WriteNpy(options.metadata, {metadata, std::move(sparse.metadata)}));
  return Print(options, problem, elements.Bytes(), metadata.Bytes());
}

}  // namespace

Verb AddCompress(CLI::App& app, const Settings&) {
  CLI::App* verb = app.add_subcommand("compress", "Compress a 2:4 sparse A into elements and metadata, or expand it");
  auto options = std::make_shared<CompressOptions>();
  verb->add_option("problem", options->words, "a gemm with sparse=a, in its one-line form")
      ->required()
      ->type_name("PROBLEM");
  const auto file = [&](const char* name, std::string& path, const char* help) {
    verb->add_option(name, path, help)->required()->type_name("FILE");
  };
  file("--dense", options->dense, "all elements of A, an .npy file as run --a reads it without sparse=a");
  file("--a", options->elements, "the stored elements of A, as run --a reads them");
  file("--metadata_a", options->metadata, "the metadata, as run --metadata_a reads it");
  verb->add_flag("--expand", options->expand, "read the two, and write the dense A");
  verb->add_flag("--json", options->json, "one JSON object on stdout");
  verb->footer(kCompressExamples);
  return [options] { return Compress(*options); };
}

}  // namespace laneshift::tools
