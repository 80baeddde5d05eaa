// Questions about what moves Tensor Memory, and who issues what.
#include <algorithm>

#include "base/text.h"
#include "runtime/probes/policy_trials.h"
#include "runtime/probes/trial_kernel.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kGroup = 32;
constexpr int kMoved = 8;  // columns of a shift, and of a row of 32 bytes
constexpr uint32_t kBefore = 0xabcd1234;

uint32_t Lane(int lane, int) { return static_cast<uint32_t>(lane); }
int NextInGroup(int lane) { return lane % kGroup == kGroup - 1 ? lane : lane + 1; }

// Columns that hold lane numbers, one instruction, and from where each lane of columns `first` on has its number then.
struct Movement {
  std::string_view answer;
  int first;
  int (*from)(int lane);
};
PolicyTrial MovementTrial(const target::Target& target, const std::function<void(PtxText&, TensorKernel&)>& issue,
                          const std::vector<Movement>& movements, std::string_view fault) {
  TrialKernel trial;
  trial.FillColumns(0, kTrialColumns, Lane);
  PolicyTrial made{.kernel = trial.Build(target, {.issue = issue}), .fault = fault};
  for (const Movement& movement : movements) {
    made.predictions.push_back({movement.answer, trial.Words([&](int, int lane, int column, uint32_t before) {
                                  const bool moved = column >= movement.first && column < movement.first + kMoved;
                                  return moved ? static_cast<uint32_t>(movement.from(lane)) : before;
                                })});
  }
  return made;
}

std::function<void(PtxText&, TensorKernel&)> ShiftAt(uint32_t offset) {
  return [offset](PtxText& text, TensorKernel& tensor) {
    text.Do("tcgen05.shift.cta_group::1.down", Cat("[", text.Word("add.u32", tensor.tensor(), offset), "]"));
  };
}

// One tcgen05.cp.4x256b to a lane; rows are numbered from 128 on.
PolicyTrial CopyTrial(const target::Target& target, int lane, const std::vector<Movement>& movements,
                      std::string_view fault) {
  TrialKernel trial;
  trial.FillColumns(0, kTrialColumns, Lane);
  for (int row = 0; row < 4; ++row) {
    for (int word = 0; word < kMoved; ++word) trial.PlaceWord(0, row, word, static_cast<uint32_t>(kTrialLanes + row));
  }
  PolicyTrial made{.kernel = trial.Build(target, {.issue =
                                                      [lane](PtxText& text, TensorKernel& tensor) {
                                                        const std::string at =
                                                            text.Word("add.u32", tensor.tensor(), lane << 16);
                                                        text.Do("tcgen05.cp.cta_group::1.4x256b", Cat("[", at, "]"),
                                                                TrialDescriptor(text, 0));
                                                      }}),
                   .fault = fault};
  for (const Movement& movement : movements) {
    made.predictions.push_back({movement.answer, trial.Words([&](int, int at, int column, uint32_t before) {
                                  return column < kMoved ? static_cast<uint32_t>(movement.from(at)) : before;
                                })});
  }
  return made;
}

}  // namespace

PolicyTrial ShiftScopeTrial(const target::Target& target) {
  return MovementTrial(target, ShiftAt(0),
                       {{"groups", 0, NextInGroup},
                        {"addressed", 0, [](int lane) { return lane < kGroup - 1 ? lane + 1 : lane; }},
                        {"cta", 0, [](int lane) { return std::min(lane + 1, kTrialLanes - 1); }}},
                       {});
}

PolicyTrial ShiftLaneTrial(const target::Target& target) {
  return MovementTrial(
      target, ShiftAt(32u << 16),
      {{"ignored", 0, NextInGroup},
       {"the addressed group", 0, [](int lane) { return lane / kGroup == 1 ? NextInGroup(lane) : lane; }}},
      "refused");
}

PolicyTrial ShiftColumnTrial(const target::Target& target) {
  return MovementTrial(target, ShiftAt(4), {{"any", 4, NextInGroup}, {"rounded down", 0, NextInGroup}}, "eight");
}

PolicyTrial CopyRowsTrial(const target::Target& target) {
  return CopyTrial(target, 0,
                   {{"every32", 0, [](int lane) { return lane % kGroup == 0 ? kTrialLanes + lane / kGroup : lane; }},
                    {"adjacent", 0, [](int lane) { return lane < 4 ? kTrialLanes + lane : lane; }}},
                   {});
}

PolicyTrial CopyLaneTrial(const target::Target& target) {
  return CopyTrial(
      target, kGroup - 1,
      {{"offset", 0, [](int lane) { return lane % kGroup == kGroup - 1 ? kTrialLanes + lane / kGroup : lane; }},
       {"ignored", 0, [](int lane) { return lane % kGroup == 0 ? kTrialLanes + lane / kGroup : lane; }}},
      "refused");
}

// Two lanes commit to a barrier of two arrivals, which is polled for a while.
PolicyTrial IssueCountTrial(const target::Target& target) {
  constexpr int kPolls = 20000;
  PtxText text(target, target.ptx_version, kTensorThreads, 1, 0, false);
  text.Shared(".b64", "both", 1, 8);
  text.Unless(text.other_threads(), [&] { text.Do("mbarrier.init.shared::cta.b64", "[both]", 2); });
  TensorKernel tensor(text, 1);
  tensor.Begin();
  text.Unless(text.Predicate("setp.ge.u32", text.thread(), 2), [&] {
    text.Do("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64",
            Cat("[", text.Word("mov.u32", "both"), "]"));
  });
  text.Line("bar.warp.sync -1");
  text.Unless(text.other_threads(), [&] {
    const std::string seen = text.Word("mov.u32", 0);
    text.ForEach("0", Cat(kPolls), "1", [&](const std::string&) {
      const std::string done = text.Predicate("mbarrier.test_wait.parity.shared::cta.b64", "[both]", 0);
      text.DoIf(done, "mov.u32", seen, 1);
    });
    text.Do("st.global.b32", Cat("[", text.out(), "]"), seen);
  });
  tensor.Measure([] {});
  tensor.End();
  PolicyTrial made{.kernel = {.ptx = text.Finish(),
                              .threads = kTensorThreads,
                              .shared_bytes = 1024,
                              .in = {0},
                              .out_words = 1,
                              .expected = [](uint32_t) { return std::vector<uint32_t>(); }}};
  made.predictions = {{"per-lane", {1}}, {"once", {0}}};
  return made;
}

PolicyTrial UnpackTrial(const target::Target& target) {
  TrialKernel trial;
  trial.FillColumns(0, kTrialColumns, [](int, int) { return kBefore; });
  const auto store = [](PtxText& text, TensorKernel& tensor) {
    const std::string both = text.Word("mov.b32", "0x56781111");
    text.Do("tcgen05.st.sync.aligned.32x32b.x1.unpack::16b.b32", Cat("[", tensor.lanes(), "]"), Braced({both}));
  };
  PolicyTrial made{.kernel = trial.Build(target, {.everyone = store})};
  for (const bool kept : {false, true}) {
    made.predictions.push_back({kept ? "kept" : "zero", trial.Words([&](int, int, int column, uint32_t before) {
                                  if (column > 1) return before;
                                  return (kept ? kBefore & 0xffff0000 : 0) | (column == 0 ? 0x1111u : 0x5678u);
                                })});
  }
  return made;
}

// Every warp names the lanes of the second one, and stores what it has loaded to its own.
PolicyTrial ForeignLanesTrial(const target::Target& target) {
  constexpr int kResult = 8;
  TrialKernel trial;
  trial.FillColumns(0, kResult, Lane);
  const auto load = [](PtxText& text, TensorKernel& tensor) {
    const std::string from = text.Word("add.u32", tensor.tensor(), 32u << 16), loaded = text.New(RegisterKind::kWord);
    text.Do("tcgen05.ld.sync.aligned.32x32b.x1.b32", Braced({loaded}), Cat("[", from, "]"));
    text.Line("tcgen05.wait::ld.sync.aligned");
    text.Do("tcgen05.st.sync.aligned.32x32b.x1.b32", Cat("[", tensor.Column(tensor.lanes(), kResult), "]"),
            Braced({loaded}));
  };
  PolicyTrial made{.kernel = trial.Build(target, {.everyone = load}), .fault = "refused"};
  const auto predict = [&](std::string_view answer, const std::function<int(int)>& from) {
    made.predictions.push_back({answer, trial.Words([&](int, int lane, int column, uint32_t before) {
                                  return column == kResult ? static_cast<uint32_t>(from(lane)) : before;
                                })});
  };
  predict("ignored", [](int lane) { return lane; });
  predict("the named lanes", [](int lane) { return 32 + lane % kGroup; });
  return made;
}

// The even CTA frees Tensor Memory and then says so in global memory; the odd one polls for that, for a while, before
// it frees too.
PolicyTrial PairReleaseTrial(const target::Target& target) {
  constexpr int kPolls = 100000;
  PtxText text(target, target.ptx_version, 32, 2, 0, false);
  text.Shared(".b32", "slot", 1, 8);
  text.Do("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32", "[slot]", 32);
  text.Line("bar.warp.sync -1");
  const std::string at = text.Word("ld.shared.b32", "[slot]");
  const std::string odd = text.Predicate("setp.ne.u32", text.rank(), 0);
  const std::string even = text.NewLabel(), end = text.NewLabel();
  const auto release = [&] { text.Do("tcgen05.dealloc.cta_group::2.sync.aligned.b32", at, 32); };
  text.BranchIf(Cat("!", odd), even);
  const std::string seen = text.Word("mov.u32", 0);
  text.ForEach("0", Cat(kPolls), "1", [&](const std::string&) {
    text.Do("or.b32", seen, seen, text.Word("ld.relaxed.gpu.global.b32", Cat("[", text.out(), "]")));
  });
  release();
  text.Unless(text.other_threads(), [&] { text.Do("st.global.b32", Cat("[", text.out(), "+4]"), seen); });
  text.Branch(end);
  text.Place(even);
  release();
  text.Unless(text.other_threads(), [&] { text.Do("st.relaxed.gpu.global.b32", Cat("[", text.out(), "]"), 1); });
  text.Place(end);
  text.SyncCluster();
  PolicyTrial made{
      .kernel = {
          .ptx = text.Finish(), .threads = 32, .cluster = 2, .in = {0}, .out_words = 1, .expected = [](uint32_t) {
            return std::vector<uint32_t>();
          }}};
  made.predictions = {{"waits", {1, 0}}, {"returns", {1, 1}}};
  return made;
}

}  // namespace laneshift::runtime
