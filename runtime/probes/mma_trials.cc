// Questions about tcgen05.mma. Where nothing else is said, row m of A begins with m + 1 and row n of B with n + 1, and
// all other elements are 0: D is (m + 1)(n + 1).
#include "base/text.h"
#include "runtime/probes/policy_trials.h"
#include "runtime/probes/trial_kernel.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kGroup = 32;
constexpr int kScaleA = 48, kScaleB = 56;  // columns of scale factors
constexpr uint32_t kBefore = 0x42424242;
// Instruction descriptors without M and N (PTX ISA 9.0, "Instruction descriptor").
constexpr uint32_t kHalves = 0x10, kSparse = 4, kTf32 = 0x910, kBytes = 0x4a0;

struct TrialMma {
  std::string_view suffix = "kind::f16";
  int m = 128, n = 16, ctas = 1;
  uint32_t descriptor = kHalves;
  std::string_view form = "";  // ".sp", ".ws"
  bool tensor_a = false, accumulate = false, scaled = false;
  std::vector<uint32_t> mask{};                            // of lanes that are not written
  std::string last{};                                      // operands after the predicate
  std::function<std::string(PtxText&)> descriptor_of_b{};  // none: TrialDescriptor

  int RowsOfCta() const { return m / ctas; }
};

std::function<void(PtxText&, TensorKernel&)> Issue(const TrialMma& mma) {
  return [mma](PtxText& text, TensorKernel& tensor) {
    const std::string a =
        mma.tensor_a ? Cat("[", tensor.Column(tensor.tensor(), kTrialA), "]") : TrialDescriptor(text, 0);
    const std::string b = mma.descriptor_of_b ? mma.descriptor_of_b(text) : TrialDescriptor(text, kTrialBytesOfB);
    const uint32_t shape = static_cast<uint32_t>(mma.n >> 3 << 17 | mma.m >> 4 << 24);
    std::string operands = Cat("[", tensor.tensor(), "], ", a, ", ", b);
    if (mma.form == ".sp") operands += Cat(", [", tensor.Column(tensor.tensor(), kTrialMetadata), "]");
    operands += Cat(", ", text.Word("mov.b32", mma.descriptor | shape));
    if (!mma.mask.empty()) {
      std::vector<std::string> words;
      for (const uint32_t word : mma.mask) words.push_back(text.Word("mov.b32", word));
      operands += Cat(", ", Braced(words));
    }
    if (mma.scaled) {
      for (const int column : {kScaleA, kScaleB}) operands += Cat(", [", tensor.Column(tensor.tensor(), column), "]");
    }
    operands += Cat(", ", TrialPredicate(text, mma.accumulate), mma.last);
    text.Do(Cat(tensor.Grouped(Cat("tcgen05.mma", mma.form)), ".", mma.suffix), operands);
  };
}

// Rows of A and B as above, `words` of a number.
TrialKernel OperandsOf(const TrialMma& mma, uint32_t (*a)(int) = HalfWord, uint32_t (*b)(int) = HalfWord) {
  TrialKernel trial(mma.ctas);
  const int columns = mma.n / mma.ctas;
  for (int cta = 0; cta < mma.ctas; ++cta) {
    for (int row = 0; row < mma.RowsOfCta(); ++row) trial.PlaceWord(0, row, 0, a(cta * mma.RowsOfCta() + row + 1), cta);
    for (int row = 0; row < columns; ++row) trial.PlaceWord(kTrialBytesOfB, row, 0, b(cta * columns + row + 1), cta);
  }
  return trial;
}

// D in all lanes of CTA 0: `row(lane)` is the row there, and -1 where nothing is written.
std::vector<uint32_t> Products(const TrialKernel& trial, int columns, const std::function<int(int lane)>& row,
                               const std::function<uint32_t(int m, int n)>& product) {
  return trial.Words([&](int, int lane, int column, uint32_t before) {
    const int m = row(lane);
    return column < columns && m >= 0 ? product(m, column) : before;
  });
}
int SameLane(int lane) { return lane; }
uint32_t Product(int m, int n) { return FloatWord((m + 1) * (n + 1)); }

// The row of an accumulator with M = 64, which takes half of the lanes.
int HalfLanes(int lane) { return lane % kGroup < 16 ? lane / kGroup * 16 + lane % 16 : -1; }

}  // namespace

PolicyTrial AshiftTimeTrial(const target::Target& target) {
  const TrialMma mma{.suffix = "kind::f16.ashift", .tensor_a = true};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(kTrialA, 8, [](int lane, int column) { return column == kTrialA ? HalfWord(lane + 1) : 0; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const bool before : {false, true}) {
    made.predictions.push_back({before ? "before" : "after", trial.Words([&](int, int lane, int column, uint32_t word) {
                                  if (column >= kTrialA && column < kTrialA + 8) return kAnyWord;
                                  const int row = before && lane % kGroup != kGroup - 1 ? lane + 1 : lane;
                                  return column < mma.n ? Product(row, column) : word;
                                })});
  }
  return made;
}

// Lanes alternate between two codes of the metadata.
PolicyTrial AshiftMetadataTrial(const target::Target& target) {
  const TrialMma mma{.suffix = "kind::f16.ashift", .descriptor = kHalves | kSparse, .form = ".sp", .tensor_a = true};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(kTrialMetadata, 1, [](int lane, int) { return lane % 2 == 0 ? 0x44444444u : 0x99999999u; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "refused"};
  for (const bool moved : {false, true}) {
    made.predictions.push_back({moved ? "moved" : "stays", trial.Words([&](int, int lane, int column, uint32_t word) {
                                  if (column != kTrialMetadata) return kAnyWord;
                                  const bool last = lane % kGroup == kGroup - 1;
                                  return moved && !last ? word ^ (0x44444444u ^ 0x99999999u) : word;
                                })});
  }
  return made;
}

// Bit 36 is lane 36, which row 20 has, or row 36, which is in lane 68.
PolicyTrial MaskIndexTrial(const target::Target& target) {
  const TrialMma mma{.m = 64, .mask = {0, 0x10, 0, 0}};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(0, mma.n, [](int, int) { return kBefore; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const int off : {36, 68}) {
    made.predictions.push_back(
        {off == 36 ? "lane" : "row",
         Products(
             trial, mma.n, [off](int lane) { return lane == off ? -1 : HalfLanes(lane); }, Product)});
  }
  return made;
}

// Bit 35 is a lane of the first CTA, whichever that is.
PolicyTrial MaskOrderTrial(const target::Target& target) {
  const TrialMma mma{.m = 256, .n = 32, .ctas = 2, .mask = {0, 8, 0, 0, 0, 0, 0, 0}};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(0, mma.n, [](int, int) { return kBefore; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const int off : {0, 1}) {
    made.predictions.push_back(
        {off == 0 ? "even-first" : "odd-first", trial.Words([&](int cta, int lane, int column, uint32_t before) {
           if (column >= mma.n || (cta == off && lane == 35)) return before;
           return Product(cta * kTrialLanes + lane, column);
         })});
  }
  return made;
}

// Codes 0x4 everywhere: the first two of every four are kept.
PolicyTrial SparsePairTrial(const target::Target& target) {
  const TrialMma mma{.m = 128, .n = 32, .ctas = 2, .descriptor = kHalves | kSparse, .form = ".sp"};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(0, mma.n, [](int, int) { return kBefore; });
  trial.FillColumns(kTrialMetadata, 4, [](int, int) { return 0x44444444u; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  made.predictions.push_back({"half-lanes", trial.Words([&](int cta, int lane, int column, uint32_t before) {
                                const int row = HalfLanes(lane);
                                return column < mma.n && row >= 0 ? Product(cta * 64 + row, column) : before;
                              })});
  made.predictions.push_back({"two-by-two", trial.Words([&](int cta, int lane, int column, uint32_t before) {
                                const int half = mma.n / 2;
                                return column < half ? Product(cta * 64 + lane % 64, column + lane / 64 * half)
                                                     : before;
                              })});
  return made;
}

// Only the first group of lanes has a copy of A.
PolicyTrial RowCopiesTrial(const target::Target& target) {
  const TrialMma mma{.m = 32, .n = 64, .form = ".ws", .tensor_a = true};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(kTrialA, 8,
                    [](int lane, int column) { return column == kTrialA && lane < kGroup ? HalfWord(lane + 1) : 0; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const bool first : {false, true}) {
    made.predictions.push_back({first ? "first" : "own", trial.Words([&](int, int lane, int column, uint32_t before) {
                                  const int quarter = mma.n / 4;
                                  if (column >= quarter) return before;
                                  const bool there = first || lane < kGroup;
                                  return there ? Product(lane % kGroup, lane / kGroup * quarter + column) : 0;
                                })});
  }
  return made;
}

PolicyTrial UpperHalfTrial(const target::Target& target) {
  const TrialMma mma{.descriptor = 0};
  TrialKernel trial = OperandsOf(mma);
  trial.FillColumns(0, mma.n, [](int, int) { return kBefore; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const bool kept : {false, true}) {
    made.predictions.push_back({kept ? "kept" : "zero", Products(trial, mma.n, SameLane, [&](int m, int n) {
                                  return HalfWord((m + 1) * (n + 1)) | (kept ? kBefore & 0xffff0000 : 0);
                                })});
  }
  return made;
}

// A byte 0x10 of e2m3 is 2 in bits 5:0, and 1 in bits 6:1; B is e4m3.
PolicyTrial SixBitTrial(const target::Target& target) {
  const TrialMma mma{.suffix = "kind::f8f6f4", .descriptor = kHalves | 3u << 7, .tensor_a = true};
  TrialKernel trial = OperandsOf(mma, HalfWord, [](int) { return 0x38u; });
  trial.FillColumns(kTrialA, 8, [](int, int column) { return column == kTrialA ? 0x10u : 0; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const int value : {2, 1}) {
    made.predictions.push_back(
        {value == 2 ? "low" : "middle", Products(trial, mma.n, SameLane, [&](int, int) { return FloatWord(value); })});
  }
  return made;
}

namespace {

// Spans of 1 (bits 40 and up) and 3 (48 and up), with bit 39.
PolicyTrial ZeroColumnsTrial(const target::Target& target,
                             const std::vector<std::pair<std::string_view, bool (*)(int n)>>& zeros) {
  TrialMma mma{.n = 64, .form = ".ws"};
  TrialKernel trial = OperandsOf(mma);
  const auto issue = [mma](PtxText& text, TensorKernel& tensor) {
    TrialMma masked = mma;
    masked.last = Cat(", ", text.Wide("mov.b64", uint64_t{1} << 39 | uint64_t{2} << 48));
    Issue(masked)(text, tensor);
  };
  PolicyTrial made{.kernel = trial.Build(target, {.issue = issue})};
  for (const auto& [answer, zero] : zeros) {
    made.predictions.push_back({answer, Products(trial, mma.n, SameLane, [&, is_zero = zero](int m, int n) {
                                  return is_zero(n) ? 0 : Product(m, n);
                                })});
  }
  return made;
}

}  // namespace

PolicyTrial ZeroSpansTrial(const target::Target& target) {
  return ZeroColumnsTrial(
      target, {{"use-is-kept", [](int n) { return n % 4 == 3; }}, {"skip-is-kept", [](int n) { return n % 4 != 0; }}});
}

PolicyTrial ZeroPolarityTrial(const target::Target& target) {
  return ZeroColumnsTrial(target, {{"one", [](int n) { return n % 4 == 3; }},
                                   {"one", [](int n) { return n % 4 != 0; }},
                                   {"zero", [](int) { return false; }}});
}

// Elements 1 and 16 of A meet 1, 2, 4 and 8 of B by the code of the column that the selector chooses.
PolicyTrial HighSelectorTrial(const target::Target& target) {
  constexpr uint32_t kCodes[] = {0x44444444, 0x99999999, 0xeeeeeeee, 0x88888888};
  const TrialMma mma{.descriptor = kHalves | kSparse | 2, .form = ".sp"};
  TrialKernel trial(1);
  for (int row = 0; row < kTrialLanes; ++row) trial.PlaceWord(0, row, 0, HalfWord(1) | HalfWord(16) << 16);
  for (int row = 0; row < mma.n; ++row) {
    trial.PlaceWord(kTrialBytesOfB, row, 0, HalfWord(1) | HalfWord(2) << 16);
    trial.PlaceWord(kTrialBytesOfB, row, 1, HalfWord(4) | HalfWord(8) << 16);
  }
  trial.FillColumns(kTrialMetadata, 4, [&](int, int column) { return kCodes[column - kTrialMetadata]; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "refused"};
  const std::pair<std::string_view, int> sums[] = {
      {"group-of-four", 4 + 16 * 8}, {"column 0", 1 + 16 * 2}, {"column 1", 2 + 16 * 4}, {"column 3", 1 + 16 * 4}};
  for (const auto& [answer, sum] : sums) {
    made.predictions.push_back(
        {answer, Products(trial, mma.n, SameLane, [value = sum](int, int) { return FloatWord(value); })});
  }
  return made;
}

// B has 1 and 2 where the code 0x4 may point.
PolicyTrial Tf32NibbleTrial(const target::Target& target) {
  const TrialMma mma{.suffix = "kind::tf32", .descriptor = kTf32 | kSparse, .form = ".sp"};
  TrialKernel trial = OperandsOf(mma, FloatWord, [](int) { return FloatWord(1); });
  for (int row = 0; row < mma.n; ++row) trial.PlaceWord(kTrialBytesOfB, row, 1, FloatWord(2));
  trial.FillColumns(kTrialMetadata, 4, [](int, int) { return 0x44444444u; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  for (const int factor : {1, 2}) {
    made.predictions.push_back({factor == 1 ? "first" : "second", Products(trial, mma.n, SameLane, [&](int m, int) {
                                  return FloatWord((m + 1) * factor);
                                })});
  }
  return made;
}

// Of the elements that are kept, only that at k = 32 is 1: among 128 of B it has the first of two scale factors, 1, if
// each is for 64 of them, and the second one, 2, if each is for as many rows as A keeps elements.
PolicyTrial SparseScalesTrial(const target::Target& target) {
  constexpr uint32_t kMxf4 = 0x800480, kOne = 2;
  const TrialMma mma{
      .suffix = "kind::mxf4.block_scale.block32", .descriptor = kMxf4 | kSparse, .form = ".sp", .scaled = true};
  TrialKernel trial(1);
  for (int row = 0; row < kTrialLanes; ++row) trial.PlaceWord(0, row, 2, kOne);
  for (int row = 0; row < mma.n; ++row) trial.PlaceWord(kTrialBytesOfB, row, 4, kOne);
  trial.FillColumns(kTrialMetadata, 4, [](int, int) { return 0x44444444u; });
  trial.FillColumns(kScaleA, 8, [](int, int) { return 0x7f7fu; });
  trial.FillColumns(kScaleB, 8, [](int, int) { return 0x807fu; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}, target.mma.block_scale_ptx_version),
                   .fault = "refused"};
  for (const int factor : {1, 2}) {
    made.predictions.push_back({factor == 1 ? "dense-rows" : "kept rows",
                                Products(trial, mma.n, SameLane, [&](int, int) { return FloatWord(factor); })});
  }
  return made;
}

// B with 128-byte swizzle whose eight rows begin 128 bytes after a multiple of 1024; the base offset says so.
PolicyTrial BaseOffsetTrial(const target::Target& target) {
  const TrialMma plain;
  TrialKernel trial(1);
  for (int row = 0; row < kTrialLanes; ++row) trial.PlaceWord(0, row, 0, HalfWord(row + 1));
  for (int row = 0; row < plain.n; ++row)
    trial.PlaceRaw(kTrialBytesOfB + 128 + row * 128 + row % 8 * 16, HalfWord(row + 1));
  TrialMma mma = plain;
  mma.descriptor_of_b = [](PtxText& text) {
    constexpr uint64_t kSwizzled =
        uint64_t{2} << 61 | uint64_t{1} << 49 | uint64_t{1} << 46 | uint64_t{1024 / 16} << 32 | 1u << 16;
    const std::string at = text.Word("add.u32", text.SharedStart(), kTrialBytesOfB + 128);
    const std::string field = text.Word("and.b32", text.Word("shr.u32", at, 4), 0x3fff);
    return text.Wide("or.b64", text.Wide("cvt.u64.u32", field), kSwizzled);
  };
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "refused"};
  made.predictions = {{"row-phase", Products(trial, mma.n, SameLane, Product)},
                      {"the offset is ignored", Products(trial, mma.n, SameLane, [](int, int) { return 0u; })}};
  return made;
}

PolicyTrial IntegerScaleTrial(const target::Target& target) {
  constexpr uint32_t kSum = 64;
  const TrialMma mma{.suffix = "kind::i8", .descriptor = kBytes, .accumulate = true, .last = ", 3"};
  TrialKernel trial = OperandsOf(
      mma, [](int) { return 1u; }, [](int) { return 1u; });
  trial.FillColumns(0, mma.n, [](int, int) { return kSum; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "refused"};
  made.predictions = {{"ignored", Products(trial, mma.n, SameLane, [](int, int) { return kSum + 1; })},
                      {"the sum is scaled", Products(trial, mma.n, SameLane, [](int, int) { return kSum / 8 + 1; })}};
  return made;
}

PolicyTrial MixedHalvesTrial(const target::Target& target) {
  const TrialMma mma{.descriptor = kHalves | 1u << 10};
  TrialKernel trial = OperandsOf(mma, HalfWord, BrainWord);
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "refused"};
  made.predictions = {{"allowed", Products(trial, mma.n, SameLane, Product)}};
  return made;
}

PolicyTrial SmallestNTrial(const target::Target& target) {
  const TrialMma mma{.n = 8};
  TrialKernel trial = OperandsOf(mma);
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)}), .fault = "sixteen"};
  made.predictions = {{"eight", Products(trial, mma.n, SameLane, Product)}};
  return made;
}

PolicyTrial IntegerOverflowTrial(const target::Target& target) {
  const TrialMma mma{.suffix = "kind::i8", .descriptor = kBytes, .accumulate = true};
  TrialKernel trial = OperandsOf(
      mma, [](int) { return 1u; }, [](int) { return 1u; });
  trial.FillColumns(0, mma.n, [](int, int) { return 0x7fffffffu; });
  PolicyTrial made{.kernel = trial.Build(target, {.issue = Issue(mma)})};
  made.predictions = {{"wraps", Products(trial, mma.n, SameLane, [](int, int) { return 0x80000000u; })},
                      {"saturates", Products(trial, mma.n, SameLane, [](int, int) { return 0x7fffffffu; })}};
  return made;
}

}  // namespace laneshift::runtime
