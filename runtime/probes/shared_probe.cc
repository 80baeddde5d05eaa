// Probes of shared memory: loads and stores of 16 bytes by all threads, of the CTA itself and of the next CTA of a
// cluster, and chains of dependent loads.
#include "runtime/probes/ptx_text.h"
#include "runtime/probes/rate_families.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr unsigned kThreads = 256;
constexpr int kPieces = 8;  // of 16 bytes, of each thread
constexpr int kBytes = static_cast<int>(kThreads) * 16 * kPieces;
constexpr int kChain = 8;  // loads of an iteration

enum class SharedAccess : uint8_t { kLoad, kStore };

struct SharedShape {
  SharedAccess access = SharedAccess::kLoad;
  int ctas = 1;  // of the cluster; the next one's memory is read if there is one
};

uint32_t WordOf(size_t word) { return static_cast<uint32_t>(word) * 40503u + 17; }

// The address of shared memory at `shared` in the next CTA, or here.
std::string ReadFrom(PtxText& text, const std::string& shared, int ctas) {
  if (ctas == 1) return shared;
  const std::string next = text.Word("and.b32", text.Word("add.u32", text.rank(), 1), ctas - 1);
  return text.Word("mapa.shared::cluster.u32", shared, next);
}

std::string RateKernel(const target::Target& target, const SharedShape& shape) {
  PtxText text(target, target.ptx_version, kThreads, static_cast<unsigned>(shape.ctas), 0, false);
  const std::string shared = text.SharedStart(), own = text.Word("shl.b32", text.thread(), 4);
  const bool loads = shape.access == SharedAccess::kLoad;
  text.FillShared(shared, text.in(), kBytes / 4);
  const std::string at = text.Word("add.u32", ReadFrom(text, shared, shape.ctas), own);
  const auto sums = text.NewWords(4);
  for (const std::string& sum : sums) text.Do("mov.u32", sum, loads ? "0" : text.thread());
  text.SyncCluster();
  const std::string begin = text.Clock();
  text.Repeat(text.repeats(), [&](const std::string& index) {
    if (!loads) text.Do("add.u32", sums[0], text.thread(), index);
    for (int piece = 0; piece < kPieces; ++piece) {
      const std::string place = Cat("[", at, "+", piece * static_cast<int>(kThreads) * 16, "]");
      if (!loads) {
        text.Do("st.volatile.shared.v4.b32", place, Braced(sums));
        continue;
      }
      const auto words = text.NewWords(4);
      text.Do(shape.ctas == 1 ? "ld.volatile.shared.v4.b32" : "ld.volatile.shared::cluster.v4.b32", Braced(words),
              place);
      for (size_t i = 0; i < 4; ++i) text.Do("add.u32", sums[i], sums[i], words[i]);
    }
  });
  text.SyncCta();
  const std::string end = text.Clock();
  text.Unless(text.other_threads(), [&] { text.StoreClocks(begin, end); });
  if (loads) {
    const std::string out =
        text.Wide("add.s64", text.OutOfCta(static_cast<int>(kThreads) * 4), text.Wide("cvt.u64.u32", own));
    text.Do("st.global.v4.b32", Cat("[", out, "]"), Braced(sums));
  } else {
    text.DumpShared(shared, text.OutOfCta(kBytes / 4), Cat(kBytes));
  }
  text.SyncCluster();
  return text.Finish();
}

std::vector<uint32_t> SourceWords() {
  std::vector<uint32_t> in(kBytes / 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = WordOf(i);
  return in;
}

std::vector<uint32_t> LoadedSums() {
  std::vector<uint32_t> out(size_t{kThreads} * 4, 0);
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t piece = 0; piece < kPieces; ++piece) out[i] += kFewRepeats * WordOf(piece * kThreads * 4 + i);
  }
  return out;
}

std::vector<uint32_t> StoredWords() {
  std::vector<uint32_t> out(kBytes / 4);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto thread = static_cast<uint32_t>(i / 4 % kThreads);
    out[i] = thread + (i % 4 == 0 ? kFewRepeats - 1 : 0);
  }
  return out;
}

RateProbe RateOf(const target::Target& target, const SharedShape& shape) {
  const bool loads = shape.access == SharedAccess::kLoad;
  return {.ptx = RateKernel(target, shape),
          .threads = kThreads,
          .cluster = static_cast<unsigned>(shape.ctas),
          .shared_bytes = kBytes + 1024,
          .in = SourceWords(),
          .out_words = loads ? size_t{kThreads} * 4 : size_t{kBytes} / 4,
          .per_repeat = kBytes,
          .expected = [loads](uint32_t) { return loads ? LoadedSums() : StoredWords(); }};
}

// A word of the chain is the byte offset of the next one.
uint32_t NextInChain(uint32_t offset) { return (offset + 4 * 1031) % kBytes; }

std::string LatencyKernel(const target::Target& target, int ctas) {
  PtxText text(target, target.ptx_version, kThreads, static_cast<unsigned>(ctas), 0, false);
  const std::string shared = text.SharedStart();
  text.FillShared(shared, text.in(), kBytes / 4);
  const std::string base = ReadFrom(text, shared, ctas);
  text.SyncCluster();
  text.Unless(text.other_threads(), [&] {
    const std::string offset = text.Word("mov.u32", 0);
    const std::string begin = text.Clock();
    text.Repeat(text.repeats(), [&](const std::string&) {
      for (int i = 0; i < kChain; ++i) {
        const std::string at = text.Word("add.u32", base, offset);
        text.Do(ctas == 1 ? "ld.volatile.shared.b32" : "ld.volatile.shared::cluster.b32", offset, Cat("[", at, "]"));
      }
    });
    // No offset is this large; the second reading of the clock has to wait for the last load.
    const std::string end = text.Wide("mov.u64", begin);
    text.DoIf(text.Predicate("setp.lt.u32", offset, kBytes), "mov.u64", end, "%clock64");
    text.StoreClocks(begin, end);
    text.Do("st.global.b32", Cat("[", text.OutOfCta(1), "]"), offset);
  });
  text.SyncCluster();
  return text.Finish();
}

RateProbe LatencyOf(const target::Target& target, int ctas) {
  RateProbe probe{.ptx = LatencyKernel(target, ctas),
                  .threads = kThreads,
                  .cluster = static_cast<unsigned>(ctas),
                  .shared_bytes = kBytes + 1024,
                  .in = std::vector<uint32_t>(kBytes / 4),
                  .out_words = 1,
                  .per_repeat = kChain,
                  .expected = [](uint32_t) {
                    uint32_t offset = 0;
                    for (uint32_t i = 0; i < kFewRepeats * kChain; ++i) offset = NextInChain(offset);
                    return std::vector<uint32_t>{offset};
                  }};
  for (uint32_t i = 0; i < probe.in.size(); ++i) probe.in[i] = NextInChain(i * 4);
  return probe;
}

}  // namespace

std::vector<ProbePoint> SharedPoints(const target::Target& target) {
  const auto rate = [&target](const char* name, SharedAccess access) {
    return ProbePoint{.name = name,
                      .unit = RateUnit::kBytesPerClock,
                      .build =
                          [&target, access] {
                            return RateOf(target, {access, 1});
                          },
                      .assumed = [](const autotune::Machine& machine) { return machine.shared_read; }};
  };
  return {rate("shared.load", SharedAccess::kLoad),
          rate("shared.store", SharedAccess::kStore),
          {.name = "shared.latency", .build = [&target] { return LatencyOf(target, 1); }}};
}

std::vector<ProbePoint> DsmemPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTma)) return points;
  for (const int ctas : {2, 4, 8}) {
    points.push_back({.name = Cat("dsmem.load.cta", ctas),
                      .unit = RateUnit::kBytesPerClock,
                      .build =
                          [&target, ctas] {
                            return RateOf(target, {SharedAccess::kLoad, ctas});
                          },
                      .assumed = [](const autotune::Machine& machine) { return machine.dsmem_rate; }});
    points.push_back(
        {.name = Cat("dsmem.latency.cta", ctas), .build = [&target, ctas] { return LatencyOf(target, ctas); }});
  }
  return points;
}

}  // namespace laneshift::runtime
