// Probes of wgmma: D += A * B over a row of 128 bytes by one warpgroup, again and again into one set of registers.
#include "autotune/simulation.h"
#include "runtime/probes/probe_operands.h"
#include "runtime/probes/ptx_text.h"
#include "runtime/probes/rate_families.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kSteps = kProbeRowBytes / 32, kPasses = 2;
constexpr int kRowWords = kProbeRowBytes / 4;
constexpr int kRows = 64, kMostN = 256;
constexpr unsigned kThreads = 128;
constexpr int kWordsOfB = 128 * kRowWords;  // where B begins, in words; A needs half of that
constexpr int kSharedWords = kWordsOfB + kMostN * kRowWords;
constexpr int kFragmentWords = 4;                          // of A in a thread's registers, for one instruction
constexpr int kPitch = kMostN / 2;                         // words of a thread in `out`
constexpr const char* kDescriptor = "0x4000004000010000";  // K-major, 128-byte swizzle, 8 rows 1024 bytes apart
constexpr int kNs[] = {16, 32, 64, 128, 256};

struct WgmmaForm {
  const char* name;
  const char* types;  // after the shape
  int k;              // elements of one instruction
  ElementCodes codes;
  const char* scales;      // immediates after the predicate
  const char* transposes;  // with both operands in shared memory; otherwise only that of B
  bool integer = false;
};
constexpr WgmmaForm kForms[] = {{"f16", "f32.f16.f16", 16, kCodesF16, ", 1, 1", ", 0, 0"},
                                {"tf32", "f32.tf32.tf32", 8, kCodesTf32, ", 1, 1", ""},
                                {"e4m3", "f32.e4m3.e4m3", 32, kCodesE4m3, ", 1, 1", ""},
                                {"s8", "s32.s8.s8", 32, kCodesS8, "", "", true}};

struct WgmmaShape {
  WgmmaForm form;
  bool register_a = false;
  int n = 256;
};

// Row and byte of K of a thread's word of A (PTX ISA 9.0, "Register fragments for wgmma.mma_async": the same for all
// types, counted in bytes).
int RowOfFragment(int thread, int word) { return thread / 32 * 16 + thread % 32 / 4 + 8 * (word & 1); }
int WordOfFragment(int thread, int step, int word) { return step * 8 + 4 * (word >> 1) + thread % 4; }

std::string KernelOf(const target::Target& target, const WgmmaShape& shape) {
  PtxText text(target, target.ptx_version, kThreads, 1, 0, false);
  const std::string shared = text.SharedStart();
  text.FillShared(shared, text.in(), kSharedWords);
  std::vector<std::string> fragments;
  if (shape.register_a) {
    const std::string offset = text.Wide("mul.wide.u32", text.thread(), kSteps * kFragmentWords * 4);
    const std::string own = text.Wide("add.s64", text.Wide("add.s64", text.in(), kSharedWords * 4), offset);
    for (int step = 0; step < kSteps; ++step) {
      const auto words = text.NewWords(kFragmentWords);
      text.Do("ld.global.v4.b32", Braced(words), Cat("[", own, "+", step * kFragmentWords * 4, "]"));
      fragments.push_back(Braced(words));
    }
  }
  const auto sums = text.NewWords(shape.n / 2);
  for (const std::string& sum : sums) text.Do("mov.b32", sum, 0);
  text.Line("fence.proxy.async.shared::cta");
  text.SyncCta();
  const std::string start = text.Word("and.b32", text.Word("shr.u32", shared, 4), 0x3fff);
  const std::string descriptor = text.Wide("or.b64", text.Wide("cvt.u64.u32", start), kDescriptor);
  const std::string always = text.Predicate("setp.eq.u32", text.repeats(), text.repeats());
  const std::string begin = text.Clock();
  text.Repeat(text.repeats(), [&](const std::string&) {
    text.Line("wgmma.fence.sync.aligned");
    for (int i = 0; i < kSteps * kPasses; ++i) {
      const int step = i % kSteps;
      const std::string a =
          shape.register_a ? fragments[static_cast<size_t>(step)] : text.Wide("add.s64", descriptor, 2 * step);
      const std::string b = text.Wide("add.s64", descriptor, kWordsOfB * 4 / 16 + 2 * step);
      const std::string transposes = *shape.form.transposes == 0 ? ""
                                     : shape.register_a          ? ", 0"
                                                                 : shape.form.transposes;
      text.Do(Cat("wgmma.mma_async.sync.aligned.m64n", shape.n, "k", shape.form.k, ".", shape.form.types), Braced(sums),
              a, b, Cat(always, shape.form.scales, transposes));
    }
    text.Line("wgmma.commit_group.sync.aligned");
  });
  text.Line("wgmma.wait_group.sync.aligned 0");
  const std::string end = text.Clock();
  text.Unless(text.other_threads(), [&] { text.StoreClocks(begin, end); });
  const std::string out = text.OutOfCta(static_cast<int>(kThreads) * kPitch);
  const std::string own = text.Wide("add.s64", out, text.Wide("mul.wide.u32", text.thread(), kPitch * 4));
  for (size_t i = 0; i < sums.size(); i += 4) {
    text.Do("st.global.v4.b32", Cat("[", own, "+", i * 4, "]"),
            Braced({sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}));
  }
  return text.Finish();
}

std::vector<uint32_t> OperandsOf(const WgmmaShape& shape) {
  std::vector<uint32_t> in(kSharedWords + kThreads * kSteps * kFragmentWords);
  PlaceSwizzled(in, 0, ProbeOperand::kA, shape.form.codes, 0, kRows);
  PlaceSwizzled(in, kWordsOfB, ProbeOperand::kB, shape.form.codes, 0, shape.n);
  size_t at = kSharedWords;
  for (int thread = 0; thread < static_cast<int>(kThreads); ++thread) {
    for (int step = 0; step < kSteps; ++step) {
      for (int word = 0; word < kFragmentWords; ++word) {
        in[at++] = ProbeWord(ProbeOperand::kA, shape.form.codes, RowOfFragment(thread, word),
                             WordOfFragment(thread, step, word));
      }
    }
  }
  return in;
}

std::vector<uint32_t> SumsOf(const WgmmaShape& shape) {
  std::vector<uint32_t> out(size_t{kThreads} * kPitch, 0);
  const ProbeSums sums(shape.form.codes, 0, kRows, shape.n);
  for (int thread = 0; thread < static_cast<int>(kThreads); ++thread) {
    for (int word = 0; word < shape.n / 2; ++word) {
      const int row = RowOfFragment(thread, word >> 1), column = 8 * (word >> 2) + 2 * (thread % 4) + (word & 1);
      out[static_cast<size_t>(thread * kPitch + word)] =
          AccumulatorWord(sums.At(row, column) * kPasses * static_cast<int>(kFewRepeats), shape.form.integer);
    }
  }
  return out;
}

RateProbe ProbeOf(const target::Target& target, const WgmmaShape& shape) {
  return {.ptx = KernelOf(target, shape),
          .threads = kThreads,
          .shared_bytes = kSharedWords * 4 + 1024,
          .in = OperandsOf(shape),
          .out_words = size_t{kThreads} * kPitch,
          .per_repeat = kSteps * kPasses,
          .expected = [shape](uint32_t) { return SumsOf(shape); }};
}

double AssumedClocks(const WgmmaShape& shape, const autotune::Machine& machine) {
  autotune::Step step;
  step.kind = autotune::StepKind::kMma;
  step.rows = kRows;
  step.columns = shape.n;
  step.depth = 1;
  step.a_shared = !shape.register_a;
  return autotune::TimeOf(step, machine).clocks;
}

}  // namespace

std::vector<ProbePoint> WgmmaPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kWgmma)) return points;
  for (const WgmmaForm& form : kForms) {
    for (const bool register_a : {false, true}) {
      for (const int n : kNs) {
        const WgmmaShape shape{form, register_a, n};
        points.push_back(
            {.name = Cat("wgmma.", form.name, register_a ? ".rs" : ".ss", ".n", n),
             .build = [&target, shape] { return ProbeOf(target, shape); },
             .assumed = [shape](const autotune::Machine& machine) { return AssumedClocks(shape, machine); }});
      }
    }
  }
  return points;
}

}  // namespace laneshift::runtime
