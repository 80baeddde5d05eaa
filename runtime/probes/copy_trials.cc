// Questions about the bytes that a tensor copy signals: barriers that expect them are polled for a while.
#include "base/text.h"
#include "runtime/probes/policy_trials.h"
#include "runtime/probes/ptx_text.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr unsigned kThreads = 32;
constexpr int kPolls = 20000;
constexpr int kRows = 8, kRowBytes = 128;  // in shared memory
constexpr uint32_t kWords = 1024;          // of the tensor

// Stores whether a phase of `barrier` completes in the time of the polls. A barrier that still expects `bytes` then
// gets them, so that it is as one that was used.
void StoreCompletion(PtxText& text, const std::string& barrier, int bytes) {
  const std::string seen = text.Word("mov.u32", 0);
  text.ForEach("0", Cat(kPolls), "1", [&](const std::string&) {
    const std::string done = text.Predicate("mbarrier.test_wait.parity.shared::cta.b64", Cat("[", barrier, "]"), 0);
    text.DoIf(done, "mov.u32", seen, 1);
  });
  text.Do("st.global.b32", Cat("[", text.OutOfCta(1), "]"), seen);
  text.DoIf(text.Predicate("setp.eq.u32", seen, 0), "mbarrier.complete_tx.relaxed.cta.shared::cta.b64",
            Cat("[", barrier, "]"), bytes);
}

PolicyTrial TrialOf(PtxText& text, unsigned ctas, const ProbeMap& map, std::vector<PolicyPrediction> predictions) {
  return {.kernel = {.ptx = text.Finish(),
                     .threads = kThreads,
                     .cluster = ctas,
                     .shared_bytes = kRows * kRowBytes + 1024,
                     .in = std::vector<uint32_t>(kWords, 0),
                     .map = map,
                     .out_words = 1,
                     .expected = [](uint32_t) { return std::vector<uint32_t>(); }},
          .predictions = std::move(predictions)};
}

}  // namespace

// The barrier expects what lies in shared memory: with the packed bytes half of it never arrives.
PolicyTrial PackedBytesTrial(const target::Target& target) {
  constexpr int kWritten = kRows * kRowBytes;
  PtxText text(target, target.ptx_version, kThreads, 1, 0, true);
  text.Shared(".b64", "bar", 1, 8);
  const std::string shared = text.SharedStart(), bar = text.Word("mov.u32", "bar"), map = text.MapAddress();
  text.Elected([&] {
    text.Do("mbarrier.init.shared::cta.b64", Cat("[", bar, "]"), 1);
    text.Line("fence.mbarrier_init.release.cluster");
    text.Do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", Cat("[", bar, "]"), kWritten);
    text.Do("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", Cat("[", shared, "]"),
            Cat("[", map, ", {0, 0}]"), Cat("[", bar, "]"));
    StoreCompletion(text, bar, kWritten / 2);
  });
  return TrialOf(text, 1, {.box_rows = kRows, .padded = true}, {{"packed", {0}}, {"written", {1}}});
}

// The odd CTA copies a tile to both and names its barrier. It expects the bytes of both tiles there, the even CTA those
// of one.
PolicyTrial PairBarrierTrial(const target::Target& target) {
  constexpr int kTile = kRows * kRowBytes;
  PtxText text(target, target.ptx_version, kThreads, 2, 0, true);
  text.Shared(".b64", "bar", 1, 8);
  const std::string shared = text.SharedStart(), bar = text.Word("mov.u32", "bar"), map = text.MapAddress();
  const std::string odd = text.Predicate("setp.ne.u32", text.rank(), 0);
  const std::string bytes = text.Word("selp.b32", 2 * kTile, kTile, odd);
  text.Elected([&] {
    text.Do("mbarrier.init.shared::cta.b64", Cat("[", bar, "]"), 1);
    text.Line("fence.mbarrier_init.release.cluster");
    text.Do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", Cat("[", bar, "]"), bytes);
  });
  text.SyncCluster();
  text.Elected([&] {
    text.Unless(Cat("!", odd), [&] {
      const std::string both = text.Let(RegisterKind::kHalf, "mov.b16", 3);
      text.Do(
          "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
          "multicast::cluster",
          Cat("[", shared, "]"), Cat("[", map, ", {0, 0}]"), Cat("[", bar, "]"), both);
    });
    StoreCompletion(text, bar, kTile);
  });
  text.SyncCluster();
  return TrialOf(text, 2, {.box_rows = kRows}, {{"named-parity", {0, 1}}, {"destination", {1, 0}}});
}

}  // namespace laneshift::runtime
