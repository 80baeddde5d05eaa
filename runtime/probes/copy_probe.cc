// Probes of copies from global memory that L2 holds to shared memory: bulk copies, with and without a tensor map, of
// one CTA or of all SMs, and cp.async; and bulk copies that go to every CTA of a cluster.
#include <bit>

#include "runtime/probes/probe_operands.h"
#include "runtime/probes/ptx_text.h"
#include "runtime/probes/rate_families.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr unsigned kThreads = 128;
constexpr uint32_t kSourceBytes = 1u << 20;  // of which each CTA begins at another place
constexpr uint32_t kCtaStride = 24 * 1024;
constexpr int kSlots = 16;  // at most
constexpr uint32_t kClusterSlot = 8192;
constexpr int kClusterDepth = 4;

uint32_t SourceWord(uint64_t word) { return static_cast<uint32_t>(word) * 2654435761u; }

std::vector<uint32_t> SourceWords() {
  std::vector<uint32_t> words(kSourceBytes / 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = SourceWord(i);
  return words;
}

// Where copy `index` of a CTA begins in the source.
uint32_t PlaceOf(uint32_t cta, uint32_t index, uint32_t bytes) {
  return (cta * kCtaStride + index * bytes) & (kSourceBytes - 1);
}

// The slots after `copies` copies of `bytes` into a ring of `depth`.
std::vector<uint32_t> RingAfter(uint32_t cta, uint32_t copies, uint32_t depth, uint32_t bytes) {
  std::vector<uint32_t> out(size_t{depth} * bytes / 4);
  for (uint32_t index = copies - depth; index < copies; ++index) {
    const uint32_t from = PlaceOf(cta, index, bytes) / 4, to = index % depth * bytes / 4;
    for (uint32_t i = 0; i < bytes / 4; ++i) out[to + i] = SourceWord((from + i) % (kSourceBytes / 4));
  }
  return out;
}

enum class CopyKind : uint8_t { kTensor, kBulk };

struct RingShape {
  CopyKind kind = CopyKind::kTensor;
  uint32_t bytes = 8192;  // of one copy
  uint32_t depth = 4;     // in flight
  bool all_sms = false;
};

// The byte offset of the next copy, which is advanced.
std::string NextPlace(PtxText& text, const std::string& place, const std::string& bytes) {
  const std::string now = text.Word("mov.b32", place);
  text.Do("add.u32", place, place, bytes);
  text.Do("and.b32", place, place, kSourceBytes - 1);
  return now;
}

// Parameters: bytes of a copy, copies in flight.
std::string RingKernel(const target::Target& target, CopyKind kind) {
  const bool tensor = kind == CopyKind::kTensor;
  PtxText text(target, target.ptx_version, kThreads, 1, 2, tensor);
  text.Shared(".b64", "bars", kSlots, 8);
  const std::string bars = text.Word("mov.u32", "bars"), shared = text.SharedStart();
  const std::string bytes = text.parameter(0), depth = text.parameter(1);
  const std::string place = text.Word("mul.lo.u32", text.cta(), kCtaStride);
  text.Do("and.b32", place, place, kSourceBytes - 1);
  const std::string ring_bytes = text.Word("mul.lo.u32", bytes, depth);
  const std::string map = tensor ? text.MapAddress() : "";
  const auto issue = [&](const std::string& slot, const std::string& bar) {
    const std::string from = NextPlace(text, place, bytes);
    text.Do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", Cat("[", bar, "]"), bytes);
    if (tensor) {
      const std::string row = text.Word("shr.u32", from, std::countr_zero(static_cast<unsigned>(kProbeRowBytes)));
      text.Do("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", Cat("[", slot, "]"),
              Cat("[", map, ", {0, ", row, "}]"), Cat("[", bar, "]"));
    } else {
      text.Do("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", Cat("[", slot, "]"),
              Cat("[", text.Wide("add.s64", text.in(), text.Wide("cvt.u64.u32", from)), "]"), bytes,
              Cat("[", bar, "]"));
    }
  };
  text.Elected([&] {
    text.Repeat(depth, [&](const std::string& slot) {
      text.Do("mbarrier.init.shared::cta.b64", Cat("[", text.Word("mad.lo.u32", slot, 8, bars), "]"), 1);
    });
    text.Line("fence.mbarrier_init.release.cluster");
    const std::string slot = text.Word("mov.u32", 0), parity = text.Word("mov.u32", 0);
    const auto at = [&] { return text.Word("mad.lo.u32", slot, bytes, shared); };
    const auto bar = [&] { return text.Word("mad.lo.u32", slot, 8, bars); };
    const auto advance = [&] {
      text.Do("add.u32", slot, slot, 1);
      const std::string around = text.Predicate("setp.eq.u32", slot, depth);
      text.DoIf(around, "mov.u32", slot, 0);
      text.DoIf(around, "xor.b32", parity, parity, 1);
    };
    text.Repeat(depth, [&](const std::string&) {
      issue(at(), bar());
      advance();
    });
    text.Do("mov.u32", parity, 0);
    const std::string begin = text.Clock();
    text.Repeat(text.Word("mul.lo.u32", text.repeats(), depth), [&](const std::string&) {
      const std::string full = bar();
      text.WaitFor(full, parity);
      issue(at(), full);
      advance();
    });
    const std::string end = text.Clock();
    text.StoreClocks(begin, end);
    text.Repeat(depth, [&](const std::string&) {
      text.WaitFor(bar(), parity);
      advance();
    });
  });
  text.SyncCta();
  // Every thread has to see the copies complete by itself: their last phase.
  text.Repeat(depth, [&](const std::string& slot) {
    text.WaitFor(text.Word("mad.lo.u32", slot, 8, bars), text.Word("and.b32", text.repeats(), 1));
  });
  const std::string own = text.Wide("add.s64", text.out(), text.Wide("mul.wide.u32", text.cta(), ring_bytes));
  text.DumpShared(shared, own, ring_bytes);
  return text.Finish();
}

RateProbe RingProbe(const target::Target& target, const RingShape& shape) {
  RateProbe probe{.ptx = RingKernel(target, shape.kind),
                  .threads = kThreads,
                  .shared_bytes = static_cast<int>(shape.bytes * shape.depth) + 1024,
                  .fills_device = shape.all_sms,
                  .words = {shape.bytes, shape.depth},
                  .in = SourceWords(),
                  .out_words = size_t{shape.bytes} * shape.depth / 4,
                  .per_repeat = static_cast<double>(shape.depth) * (shape.depth == 1 ? 1 : shape.bytes),
                  .expected = [shape](uint32_t cta) {
                    return RingAfter(cta, (kFewRepeats + 1) * shape.depth, shape.depth, shape.bytes);
                  }};
  if (shape.kind == CopyKind::kTensor) probe.map = ProbeMap{static_cast<int>(shape.bytes) / kProbeRowBytes};
  // All SMs together take a slot for themselves.
  if (shape.all_sms) probe.shared_bytes = std::max(probe.shared_bytes, target.smem_bytes * 3 / 5);
  return probe;
}

// One SM's path from L2, or its share of L2 if all read.
double AssumedRate(const RingShape& shape, const autotune::Machine& machine) {
  return shape.all_sms ? std::min(machine.port, machine.l2_rate) : machine.port;
}

std::vector<ProbePoint> RingPoints(const target::Target& target, const char* family, CopyKind kind) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTma)) return points;
  const auto add = [&](const RingShape& shape) {
    const bool latency = shape.depth == 1;
    points.push_back({.name = Cat(family, ".b", shape.bytes, ".x", shape.depth, shape.all_sms ? ".all" : ""),
                      .unit = latency ? RateUnit::kClocks : RateUnit::kBytesPerClock,
                      .build = [&target, shape] { return RingProbe(target, shape); },
                      .assumed =
                          [shape, latency](const autotune::Machine& machine) {
                            const double rate = AssumedRate(shape, machine);
                            return latency
                                       ? machine.load_issue + machine.load_latency + shape.bytes / rate + machine.signal
                                       : rate;
                          }});
  };
  for (const uint32_t bytes : {2048u, 8192u, 16384u}) {
    for (const uint32_t depth : {1u, 2u, 4u, 8u}) add({kind, bytes, depth});
  }
  for (const uint32_t depth : {2u, 8u}) add({kind, 8192, depth, true});
  return points;
}

// cp.async: each thread copies 16 bytes four times in a group, and waits only for its own.
constexpr uint32_t kGroupBytes = kThreads * 16 * 4;

std::string CpAsyncKernel(const target::Target& target, int depth) {
  PtxText text(target, target.ptx_version, kThreads, 1, 0, false);
  const std::string shared = text.SharedStart(), own = text.Word("shl.b32", text.thread(), 4);
  const std::string to = text.Word("add.u32", shared, own);
  const std::string from = text.Wide("add.s64", text.in(), text.Wide("cvt.u64.u32", own));
  const std::string place = text.Word("mul.lo.u32", text.cta(), kCtaStride), slot = text.Word("mov.u32", 0);
  const auto issue = [&] {
    const std::string now = NextPlace(text, place, Cat(kGroupBytes));
    const std::string source = text.Wide("add.s64", from, text.Wide("cvt.u64.u32", now));
    const std::string target_slot = text.Word("add.u32", to, slot);
    for (uint32_t piece = 0; piece < kGroupBytes; piece += kThreads * 16) {
      text.Do("cp.async.cg.shared.global", Cat("[", target_slot, "+", piece, "]"), Cat("[", source, "+", piece, "]"),
              16);
    }
    text.Line("cp.async.commit_group");
    text.Do("add.u32", slot, slot, kGroupBytes);
    const std::string around = text.Predicate("setp.eq.u32", slot, kGroupBytes * static_cast<uint32_t>(depth));
    text.DoIf(around, "mov.u32", slot, 0);
  };
  for (int i = 0; i < depth; ++i) issue();
  const std::string begin = text.Clock();
  text.Repeat(text.Word("mul.lo.u32", text.repeats(), depth), [&](const std::string&) {
    text.Line(Cat("cp.async.wait_group ", depth - 1));
    issue();
  });
  text.Line("cp.async.wait_group 0");
  const std::string end = text.Clock();
  text.Unless(text.other_threads(), [&] { text.StoreClocks(begin, end); });
  const uint32_t ring_bytes = kGroupBytes * static_cast<uint32_t>(depth);
  text.DumpShared(shared, text.OutOfCta(static_cast<int>(ring_bytes / 4)), Cat(ring_bytes));
  return text.Finish();
}

// Each CTA of a cluster loads its part of every slot for all of them: thread 0 issues the copies, and a thread of
// another warp takes the slots. Full: the slot's bytes have arrived here. Empty: every CTA of the cluster expects the
// next bytes.
std::string MulticastKernel(const target::Target& target, int ctas) {
  PtxText text(target, target.ptx_version, kThreads, static_cast<unsigned>(ctas), 0, false);
  text.Shared(".b64", "full", kClusterDepth, 8);
  text.Shared(".b64", "empty", kClusterDepth, 8);
  const std::string shared = text.SharedStart(), full = text.Word("mov.u32", "full");
  const std::string empty = text.Word("mov.u32", "empty");
  const uint32_t part = kClusterSlot / static_cast<uint32_t>(ctas);
  const std::string own_part = text.Word("mul.lo.u32", text.rank(), part);
  const std::string place = text.Word("mov.u32", 0);
  const std::string source = text.Wide("add.s64", text.in(), text.Wide("cvt.u64.u32", own_part));
  const std::string everyone = text.Let(RegisterKind::kHalf, "mov.b16", (1 << ctas) - 1);
  const auto expect = [&](int slot) {
    text.Do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", Cat("[", full, "+", 8 * slot, "]"), kClusterSlot);
  };
  const auto issue = [&](int slot) {
    const std::string now = NextPlace(text, place, Cat(kClusterSlot));
    text.Do(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
        Cat("[", text.Word("add.u32", text.Word("add.u32", shared, own_part), slot * static_cast<int>(kClusterSlot)),
            "]"),
        Cat("[", text.Wide("add.s64", source, text.Wide("cvt.u64.u32", now)), "]"), part,
        Cat("[", text.Word("add.u32", full, 8 * slot), "]"), everyone);
  };
  text.Elected([&] {
    for (int slot = 0; slot < kClusterDepth; ++slot) {
      text.Do("mbarrier.init.shared::cta.b64", Cat("[", full, "+", 8 * slot, "]"), 1);
      text.Do("mbarrier.init.shared::cta.b64", Cat("[", empty, "+", 8 * slot, "]"), ctas);
    }
    text.Line("fence.mbarrier_init.release.cluster");
    for (int slot = 0; slot < kClusterDepth; ++slot) expect(slot);
  });
  text.SyncCluster();
  const std::string last = text.Word("and.b32", text.repeats(), 1);
  text.Elected([&] {
    for (int slot = 0; slot < kClusterDepth; ++slot) issue(slot);
    const std::string begin = text.Clock();
    text.Repeat(text.repeats(), [&](const std::string& index) {
      const std::string parity = text.Word("and.b32", index, 1);
      for (int slot = 0; slot < kClusterDepth; ++slot) {
        text.WaitFor(Cat(empty, "+", 8 * slot), parity);
        issue(slot);
      }
    });
    const std::string end = text.Clock();
    text.StoreClocks(begin, end);
  });
  text.Unless(text.Predicate("setp.ne.u32", text.thread(), 32), [&] {
    std::vector<std::string> ranks;
    for (int rank = 0; rank < ctas; ++rank) ranks.push_back(text.Word("mapa.shared::cluster.u32", empty, rank));
    text.Repeat(text.repeats(), [&](const std::string& index) {
      const std::string parity = text.Word("and.b32", index, 1);
      for (int slot = 0; slot < kClusterDepth; ++slot) {
        text.WaitFor(Cat(full, "+", 8 * slot), parity);
        expect(slot);
        for (const std::string& there : ranks)
          text.Do("mbarrier.arrive.shared::cluster.b64", "_", Cat("[", there, "+", 8 * slot, "]"));
      }
    });
  });
  text.SyncCta();
  for (int slot = 0; slot < kClusterDepth; ++slot) text.WaitFor(Cat(full, "+", 8 * slot), last);
  text.SyncCluster();
  text.DumpShared(shared, text.OutOfCta(kClusterDepth * static_cast<int>(kClusterSlot) / 4),
                  Cat(kClusterDepth * kClusterSlot));
  return text.Finish();
}

}  // namespace

std::vector<ProbePoint> TensorMapPoints(const target::Target& target) {
  return RingPoints(target, "tma", CopyKind::kTensor);
}

std::vector<ProbePoint> BulkPoints(const target::Target& target) { return RingPoints(target, "bulk", CopyKind::kBulk); }

std::vector<ProbePoint> CpAsyncPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  for (const uint32_t depth : {1u, 2u, 4u, 8u}) {
    points.push_back({.name = Cat("cp_async.b", kGroupBytes, ".x", depth),
                      .unit = depth == 1 ? RateUnit::kClocks : RateUnit::kBytesPerClock,
                      .build = [&target, depth] {
                        return RateProbe{.ptx = CpAsyncKernel(target, static_cast<int>(depth)),
                                         .threads = kThreads,
                                         .shared_bytes = static_cast<int>(kGroupBytes * depth) + 1024,
                                         .in = SourceWords(),
                                         .out_words = size_t{kGroupBytes} * depth / 4,
                                         .per_repeat = static_cast<double>(depth) * (depth == 1 ? 1 : kGroupBytes),
                                         .expected = [depth](uint32_t cta) {
                                           return RingAfter(cta, (kFewRepeats + 1) * depth, depth, kGroupBytes);
                                         }};
                      }});
  }
  return points;
}

std::vector<ProbePoint> MulticastPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTma)) return points;
  for (const int ctas : {2, 4, 8}) {
    for (const bool all_sms : {false, true}) {
      points.push_back({.name = Cat("multicast.cta", ctas, all_sms ? ".all" : ""),
                        .unit = RateUnit::kBytesPerClock,
                        .build = [&target, ctas, all_sms] {
                          return RateProbe{
                              .ptx = MulticastKernel(target, ctas),
                              .threads = kThreads,
                              .cluster = static_cast<unsigned>(ctas),
                              .shared_bytes = all_sms ? target.smem_bytes * 3 / 5
                                                      : kClusterDepth * static_cast<int>(kClusterSlot) + 1024,
                              .fills_device = all_sms,
                              .in = SourceWords(),
                              .out_words = kClusterDepth * kClusterSlot / 4,
                              .per_repeat = kClusterDepth * kClusterSlot,
                              .expected = [](uint32_t) {
                                return RingAfter(0, (kFewRepeats + 1) * kClusterDepth, kClusterDepth, kClusterSlot);
                              }};
                        }});
    }
  }
  return points;
}

}  // namespace laneshift::runtime
