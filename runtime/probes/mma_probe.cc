// Probes of tcgen05.mma: D += A * B over a row of 128 bytes, again and again into one accumulator.
#include "autotune/simulation.h"
#include "runtime/probes/probe_operands.h"
#include "runtime/probes/rate_families.h"
#include "runtime/probes/tensor_kernel.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kSteps = kProbeRowBytes / 32;  // instructions of a row
constexpr int kPasses = 2;                   // over the row in one iteration
constexpr int kRowWords = kProbeRowBytes / 4;
constexpr int kMostN = 256, kMostRows = 128;
constexpr int kWordsOfB = kMostRows * kRowWords;  // where B begins, in words
constexpr int kSharedWords = kWordsOfB + kMostN * kRowWords;
constexpr int kWordsOfRank = kSharedWords + kMostRows * kRowWords;  // then A as it lies in Tensor Memory
constexpr int kColumnA = 256, kColumnScaleA = 288, kColumnScaleB = 320;
constexpr int kPitch = kMostN;  // of a lane in `out`
// K-major with 128-byte swizzle, 8 rows of 128 bytes apart (PTX ISA 9.0, "Matrix descriptor").
constexpr const char* kDescriptor = "0x4000404000010000";
constexpr int kNs[] = {32, 64, 128, 256};

// What varies between the kinds of tcgen05.mma that are measured; one set of types each, the rate does not depend on
// it.
struct MmaForm {
  const char* name;
  const char* suffix;  // after .kind::
  ElementCodes codes;
  uint32_t descriptor;        // without M and N (PTX ISA 9.0, "Instruction descriptor")
  uint32_t scale_a, scale_b;  // four factors in a word: 2 and 1; 0: the kind has none
  bool integer = false;
};
constexpr MmaForm kForms[] = {
    {"f16", "f16", kCodesF16, 0x10, 0, 0},
    {"tf32", "tf32", kCodesTf32, 0x910, 0, 0},
    {"f8f6f4", "f8f6f4", kCodesE4m3, 0x10, 0, 0},
    {"i8", "i8", kCodesS8, 0x4a0, 0, 0, true},
    {"mxf8f6f4", "mxf8f6f4.block_scale.block32", kCodesE4m3, 0x800000, 0x80808080, 0x7f7f7f7f},
    {"mxf4", "mxf4.block_scale.block32", kCodesE2m1, 0x800480, 0x80808080, 0x7f7f7f7f},
    {"mxf4nvf4", "mxf4nvf4.block_scale.block16", kCodesE2m1, 0x480, 0x40404040, 0x38383838},
};

struct MmaShape {
  MmaForm form;
  bool tensor_a = false;
  int m = 128, n = 256, ctas = 1;

  int RowsOfCta() const { return m / ctas; }
  // Half of the columns are in lanes 64 and up.
  bool TwoByTwo() const { return ctas == 2 && m == 128; }
  int Columns() const { return TwoByTwo() ? n / 2 : n; }
  // Of row `row` of the CTA in the accumulator (PTX ISA 9.0, "Data path layout organization").
  int LaneOf(int row, int column) const {
    if (TwoByTwo()) return row + (column >= n / 2 ? 64 : 0);
    return RowsOfCta() == 64 ? row / 16 * 32 + row % 16 : row;
  }
};

// How many MMAs are in flight: until the loop is over, or one.
enum class Issue : uint8_t { kPipelined, kOneByOne };

void EmitMma(PtxText& text, TensorKernel& tensor, const MmaShape& shape, const std::string& descriptor, int step) {
  const std::string a = shape.tensor_a ? Cat("[", tensor.Column(tensor.tensor(), kColumnA + 8 * step), "]")
                                       : text.Wide("add.s64", descriptor, 2 * step);
  const std::string b = text.Wide("add.s64", descriptor, kWordsOfB * 4 / 16 + 2 * step);
  const std::string instruction = Cat(tensor.Grouped("tcgen05.mma"), ".kind::", shape.form.suffix);
  const std::string always = text.Predicate("setp.eq.u32", text.repeats(), text.repeats());
  const std::string d = Cat("[", tensor.tensor(), "]");
  if (shape.form.scale_a == 0) {
    text.Do(instruction, d, a, b, text.parameter(0), always);
  } else {
    text.Do(instruction, d, a, b, text.parameter(0), Cat("[", tensor.Column(tensor.tensor(), kColumnScaleA), "]"),
            Cat("[", tensor.Column(tensor.tensor(), kColumnScaleB), "]"), always);
  }
}

void FillTensorMemory(PtxText& text, TensorKernel& tensor, const MmaShape& shape, const std::string& source) {
  const auto constant = [&](uint32_t value) {
    return [word = text.Word("mov.b32", value)](int) { return std::vector<std::string>(16, word); };
  };
  tensor.Fill(0, kMostN, constant(0));
  if (shape.tensor_a) {
    const std::string own = text.Wide("mul.wide.u32", text.thread(), kProbeRowBytes);
    const std::string row = text.Wide("add.s64", text.Wide("add.s64", source, kSharedWords * 4), own);
    tensor.Fill(kColumnA, kRowWords, [&](int first) {
      auto words = text.NewWords(16);
      for (int i = 0; i < 16; i += 4) {
        const auto at = words.begin() + i;
        text.Do("ld.global.v4.b32", Braced({at, at + 4}), Cat("[", row, "+", (first + i) * 4, "]"));
      }
      return words;
    });
  }
  if (shape.form.scale_a != 0) {
    tensor.Fill(kColumnScaleA, 32, constant(shape.form.scale_a));
    tensor.Fill(kColumnScaleB, 32, constant(shape.form.scale_b));
  }
}

// Parameters: the instruction descriptor, and the columns of the accumulator.
std::string KernelOf(const target::Target& target, const MmaShape& shape, Issue issue) {
  const int version = shape.form.scale_a != 0 ? target.mma.block_scale_ptx_version : target.ptx_version;
  PtxText text(target, version, kTensorThreads, static_cast<unsigned>(shape.ctas), 2, false);
  const std::string shared = text.SharedStart();
  const std::string source = text.Wide("add.s64", text.in(), text.Wide("mul.wide.u32", text.rank(), kWordsOfRank * 4));
  text.FillShared(shared, source, kSharedWords);
  TensorKernel tensor(text, shape.ctas);
  FillTensorMemory(text, tensor, shape, source);
  tensor.Begin();
  const std::string start = text.Word("and.b32", text.Word("shr.u32", shared, 4), 0x3fff);
  const std::string descriptor = text.Wide("or.b64", text.Wide("cvt.u64.u32", start), kDescriptor);
  tensor.Measure([&] {
    text.Repeat(text.repeats(), [&](const std::string&) {
      for (int i = 0; i < kSteps * kPasses; ++i) {
        EmitMma(text, tensor, shape, descriptor, i % kSteps);
        // The phase of the barrier alternates: the last wait is that of an even number of them.
        if (issue == Issue::kOneByOne) tensor.CommitAndWait(Cat(i % 2));
      }
    });
  });
  tensor.Dump(text.parameter(1), kPitch);
  tensor.End();
  return text.Finish();
}

std::vector<uint32_t> OperandsOf(const MmaShape& shape) {
  std::vector<uint32_t> in(static_cast<size_t>(kWordsOfRank * shape.ctas));
  const int rows = shape.RowsOfCta(), columns = shape.n / shape.ctas;
  for (int rank = 0; rank < shape.ctas; ++rank) {
    const auto at = static_cast<size_t>(rank * kWordsOfRank);
    PlaceSwizzled(in, at, ProbeOperand::kA, shape.form.codes, rank * rows, rows);
    PlaceSwizzled(in, at + kWordsOfB, ProbeOperand::kB, shape.form.codes, rank * columns, columns);
    for (int row = 0; row < rows; ++row) {
      for (int word = 0; word < kRowWords; ++word) {
        const uint32_t value = ProbeWord(ProbeOperand::kA, shape.form.codes, rank * rows + row, word);
        // Two by two, each half of the columns has its own copy of A.
        for (const int column : {0, shape.n - 1})
          in[at + kSharedWords + static_cast<size_t>(shape.LaneOf(row, column) * kRowWords + word)] = value;
      }
    }
  }
  return in;
}

std::vector<uint32_t> SumsOf(const MmaShape& shape, uint32_t cta) {
  std::vector<uint32_t> out(size_t{kTensorThreads} * kPitch, 0);
  const int scale = shape.form.scale_a != 0 ? 2 : 1, rows = shape.RowsOfCta();
  const ProbeSums sums(shape.form.codes, static_cast<int>(cta) * rows, rows, shape.n);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      out[static_cast<size_t>(shape.LaneOf(row, column) * kPitch + column % shape.Columns())] =
          AccumulatorWord(sums.At(row, column) * scale * kPasses * static_cast<int>(kFewRepeats), shape.form.integer);
    }
  }
  return out;
}

RateProbe ProbeOf(const target::Target& target, const MmaShape& shape, Issue issue) {
  const uint32_t m = static_cast<uint32_t>(shape.m), n = static_cast<uint32_t>(shape.n);
  return {.ptx = KernelOf(target, shape, issue),
          .threads = kTensorThreads,
          .cluster = static_cast<unsigned>(shape.ctas),
          .shared_bytes = kSharedWords * 4 + 1024,
          .words = {shape.form.descriptor | n >> 3 << 17 | m >> 4 << 24, static_cast<uint32_t>(shape.Columns())},
          .in = OperandsOf(shape),
          .out_words = size_t{kTensorThreads} * kPitch,
          .per_repeat = kSteps * kPasses,
          .expected = [shape](uint32_t cta) { return SumsOf(shape, cta); }};
}

// As the timing model sees one instruction of 32 bytes of K.
double AssumedClocks(const MmaShape& shape, const autotune::Machine& machine) {
  autotune::Step step;
  step.kind = autotune::StepKind::kMma;
  step.rows = shape.RowsOfCta();
  step.columns = shape.n;
  step.depth = 1;
  step.a_shared = !shape.tensor_a;
  step.b_share = 1.0 / shape.ctas;
  step.tensor_memory = true;
  step.pair = shape.ctas == 2;
  return autotune::TimeOf(step, machine).clocks;
}

std::string NameOf(const char* family, const MmaShape& shape) {
  return Cat(family, ".", shape.form.name, shape.tensor_a ? ".ts" : ".ss", ".m", shape.m, ".n", shape.n, ".cta",
             shape.ctas);
}

// With scale factors M is 128 in a CTA, or 128 or 256 in a pair.
bool Has(const target::Target& target, const MmaShape& shape) {
  if (shape.form.integer && !target.mma.integers) return false;
  return shape.form.scale_a == 0 || (target.mma.ScalesBlocks() && shape.m >= 128);
}

}  // namespace

std::vector<ProbePoint> MmaPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTensorMemory)) return points;
  for (const MmaForm& form : kForms) {
    for (const bool tensor_a : {false, true}) {
      for (const int ctas : {1, 2}) {
        for (const int m : {64 * ctas, 128 * ctas}) {
          for (const int n : kNs) {
            const MmaShape shape{form, tensor_a, m, n, ctas};
            if (!Has(target, shape)) continue;
            points.push_back(
                {.name = NameOf("mma", shape),
                 .build = [&target, shape] { return ProbeOf(target, shape, Issue::kPipelined); },
                 .assumed = [shape](const autotune::Machine& machine) { return AssumedClocks(shape, machine); }});
          }
        }
      }
    }
  }
  return points;
}

std::vector<ProbePoint> MmaLatencyPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTensorMemory)) return points;
  for (const int ctas : {1, 2}) {
    for (const int n : {32, 256}) {
      const MmaShape shape{kForms[0], false, 128 * ctas, n, ctas};
      points.push_back({.name = NameOf("mma_latency", shape),
                        .build = [&target, shape] { return ProbeOf(target, shape, Issue::kOneByOne); },
                        .assumed =
                            [shape](const autotune::Machine& machine) {
                              return AssumedClocks(shape, machine) + machine.product_latency + machine.product_signal +
                                     (shape.ctas == 2 ? machine.pair_signal : 0);
                            }});
    }
  }
  return points;
}

}  // namespace laneshift::runtime
