#include "runtime/probes/trial_kernel.h"

#include <bit>

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr size_t kSharedWords = kTrialSharedBytes / 4;
constexpr size_t kTensorWords = size_t{kTrialLanes} * kTrialColumns;

}  // namespace

TrialKernel::TrialKernel(int ctas)
    : ctas_(ctas), shared_(kSharedWords * static_cast<size_t>(ctas)), tensor_(kTensorWords) {}

void TrialKernel::FillColumns(int first, int count, const std::function<uint32_t(int, int)>& word) {
  for (int lane = 0; lane < kTrialLanes; ++lane) {
    for (int column = first; column < first + count; ++column)
      tensor_[static_cast<size_t>(lane * kTrialColumns + column)] = word(lane, column);
  }
}

void TrialKernel::PlaceWord(int start, int row, int word, uint32_t value, int cta) {
  const int at = start + word / 4 * kTrialChunk + row / 8 * 128 + row % 8 * 16 + word % 4 * 4;
  for (int each = 0; each < ctas_; ++each) {
    if (cta < 0 || cta == each) shared_[static_cast<size_t>(each) * kSharedWords + static_cast<size_t>(at / 4)] = value;
  }
}

void TrialKernel::PlaceRaw(int byte, uint32_t value) { shared_[static_cast<size_t>(byte / 4)] = value; }

RateProbe TrialKernel::Build(const target::Target& target, const Steps& steps, int version) const {
  PtxText text(target, version > 0 ? version : target.ptx_version, kTensorThreads, static_cast<unsigned>(ctas_), 0,
               false);
  const std::string shared = text.SharedStart();
  const std::string offset = text.Wide("mul.wide.u32", text.rank(), kTrialSharedBytes);
  text.FillShared(shared, text.Wide("add.s64", text.in(), offset), static_cast<int>(kSharedWords));
  TensorKernel tensor(text, ctas_);
  const std::string own = text.Wide("mul.wide.u32", text.thread(), kTrialColumns * 4);
  const std::string base = text.Wide("add.s64", text.in(), kTrialSharedBytes * ctas_);
  const std::string row = text.Wide("add.s64", base, own);
  tensor.Fill(0, kTrialColumns, [&](int first) {
    auto words = text.NewWords(16);
    for (int i = 0; i < 16; i += 4) {
      const auto at = words.begin() + i;
      text.Do("ld.global.v4.b32", Braced({at, at + 4}), Cat("[", row, "+", (first + i) * 4, "]"));
    }
    return words;
  });
  if (steps.everyone) {
    text.Line("tcgen05.wait::st.sync.aligned");
    steps.everyone(text, tensor);
  }
  tensor.Begin();
  tensor.Measure([&] {
    if (steps.issue) steps.issue(text, tensor);
  });
  tensor.Dump(Cat(kTrialColumns), kTrialColumns);
  tensor.End();
  RateProbe probe{.ptx = text.Finish(),
                  .threads = kTensorThreads,
                  .cluster = static_cast<unsigned>(ctas_),
                  .shared_bytes = kTrialSharedBytes + 1024,
                  .in = shared_,
                  .out_words = kTensorWords,
                  .expected = [](uint32_t) { return std::vector<uint32_t>(); }};
  probe.in.insert(probe.in.end(), tensor_.begin(), tensor_.end());
  return probe;
}

std::vector<uint32_t> TrialKernel::Words(const std::function<uint32_t(int, int, int, uint32_t)>& word) const {
  std::vector<uint32_t> words;
  for (int cta = 0; cta < ctas_; ++cta) {
    for (int lane = 0; lane < kTrialLanes; ++lane) {
      for (int column = 0; column < kTrialColumns; ++column)
        words.push_back(word(cta, lane, column, tensor_[static_cast<size_t>(lane * kTrialColumns + column)]));
    }
  }
  return words;
}

std::string TrialDescriptor(PtxText& text, int start) {
  constexpr uint64_t kFixed = uint64_t{1} << 46 | uint64_t{128 / 16} << 32 | uint64_t{kTrialChunk / 16} << 16;
  const std::string at = text.Word("add.u32", text.SharedStart(), start);
  const std::string field = text.Word("and.b32", text.Word("shr.u32", at, 4), 0x3fff);
  return text.Wide("or.b64", text.Wide("cvt.u64.u32", field), kFixed);
}

std::string TrialPredicate(PtxText& text, bool value) {
  return text.Predicate(value ? "setp.eq.u32" : "setp.ne.u32", text.thread(), text.thread());
}

uint32_t HalfWord(int value) {
  if (value == 0) return 0;
  const int exponent = std::bit_width(static_cast<unsigned>(value)) - 1;
  const auto fraction = static_cast<uint32_t>(value - (1 << exponent)) << 10 >> exponent;
  return static_cast<uint32_t>(exponent + 15) << 10 | fraction;
}

uint32_t BrainWord(int value) { return FloatWord(value) >> 16; }
uint32_t FloatWord(int value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

}  // namespace laneshift::runtime
