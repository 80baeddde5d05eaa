// A whole warp's access at once has the same effects as its lanes one after the other: bytes, hazards, faults, and
// the records for later accesses.

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"
#include "emulator/decode/loaded_module.h"
#include "emulator/machine/access.h"

namespace laneshift::emulator {
namespace {

constexpr uint64_t kGlobalBytes = 8192;
constexpr uint32_t kSharedBytes = 4096, kLocalBytes = 256;
constexpr int kWarps = 3, kSteps = 3000;

// Each step has its own line, so that the log keeps the hazards of each separate.
std::string LongKernel() {
  std::string text = base::Cat(
      ".version 8.7\n.target sm_100a\n.address_size 64\n.entry k(.param .b8 p[64]) {\n.reg .b64 %rd<3>;\n"
      ".shared .align 128 .b8 buffer[",
      kSharedBytes, "]; .local .align 16 .b8 depot[", kLocalBytes, "];\nmov.u64 %rd1, depot; mov.u64 %rd2, buffer;\n");
  for (int line = 0; line < kSteps; ++line) text += "mov.u64 %rd1, 1;\n";
  return text + "ret;\n}\n";
}

// One CTA of a launch whose warps the test moves by hand.
struct AccessWorld {
  AccessWorld() : memory(1 << 30, &meter) {
    auto syntax = ParsePtx(LongKernel());
    auto loaded = LoadedModule::Load(std::move(*syntax), memory, Chip::kSm100a);
    module = std::move(*loaded);
    machine.memory = &memory;
    machine.hazards = &log;
    machine.order = &order;
    machine.meter = &meter;
    launch = {&machine, module->Find("k"), {}, std::vector<uint8_t>(64, 7), 1};
    launch.shape.block = {kWarps * kLanes, 1, 1};
    launch.first_cluster = order.AddGrid(*launch.kernel, launch.shape, 1);
    global = memory.Allocate(kGlobalBytes);
    cluster = std::make_unique<Cluster>(launch, 0, host);
  }
  Warp& warp(int index) { return *cluster->ctas()[0]->warps[static_cast<size_t>(index)]; }
  const DecodedOperand& address() { return launch.kernel->code[2][0]; }

  LimitMeter meter{Limits{}};
  GlobalMemory memory;
  HazardLog log;
  GlobalOrder order{meter};
  EmulatedMachine machine;
  std::unique_ptr<LoadedModule> module;
  Launch launch;
  HostThread host;
  Allocation* global = nullptr;
  std::unique_ptr<Cluster> cluster;
};

struct RandomAccess {
  int warp;
  StateSpace space;
  uint32_t bytes, mask;
  bool write;
  std::array<uint64_t, kLanes> addresses;
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint32_t Lanes() { return OneIn(2) ? kFullMask : OneIn(3) ? 1u << Below(32) : static_cast<uint32_t>(random_()) | 1; }

  RandomAccess Next(uint64_t global) {
    constexpr StateSpace kSpaces[] = {StateSpace::kGlobal,        StateSpace::kShared, StateSpace::kShared,
                                      StateSpace::kSharedCluster, StateSpace::kLocal,  StateSpace::kParam,
                                      StateSpace::kConst};
    RandomAccess access{static_cast<int>(Below(kWarps)), kSpaces[Below(7)], 1u << Below(6), Lanes(), OneIn(2), {}};
    uint64_t base = 0, size = 64;
    if (access.space == StateSpace::kGlobal || access.space == StateSpace::kConst) base = global, size = kGlobalBytes;
    if (access.space == StateSpace::kShared || access.space == StateSpace::kSharedCluster)
      base = kSharedBase, size = kSharedBytes;
    if (access.space == StateSpace::kLocal) size = kLocalBytes;
    if (OneIn(4)) {
      if (access.space == StateSpace::kShared) base += kSharedWindow;
      if (access.space == StateSpace::kLocal) base += kLocalWindow;
      if (access.space == StateSpace::kParam) base += kParamWindow;
      access.space = StateSpace::kGeneric;
    }
    const uint64_t places = size / access.bytes;
    uint64_t first = Below(places), step = OneIn(2) ? 1 : Below(6);
    const bool scattered = OneIn(4);
    const size_t together = OneIn(4) ? size_t{2} << Below(4) : 1;  // lanes with one address
    if (OneIn(3)) {  // rows of shared memory, or one part of each 16 bytes of them
      access.mask = kFullMask;
      first -= first % (128 / access.bytes);
      if (OneIn(2)) step = std::max<uint64_t>(16 / access.bytes, 1), first += Below(step);
    }
    for (size_t lane = 0; lane < kLanes; ++lane)
      access.addresses[lane] =
          base + (scattered ? Below(places) : (first + lane / together * step) % places) * access.bytes;
    if (OneIn(40)) access.addresses[Below(32)] += Below(64);                // mostly misaligned
    if (OneIn(40)) access.addresses[Below(32)] = base + size + Below(256);  // mostly a fault
    return access;
  }

 private:
  std::mt19937_64 random_;
};

std::array<uint8_t, 32> Pattern(int step, int lane) {
  std::array<uint8_t, 32> bytes;
  for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<uint8_t>(step * 37 + lane * 5 + static_cast<int>(b));
  return bytes;
}

// Makes the access; what was read, or nothing after a fault. `at_once`: how many were made for all lanes at once.
std::string Perform(AccessWorld& world, const RandomAccess& access, int step, int* at_once) {
  Warp& warp = world.warp(access.warp);
  uint64_t executed = 0;
  EXPECT_TRUE(warp.Run(0, 1, executed));
  std::copy_n(access.addresses.begin(), kLanes, warp.At<uint64_t>(world.address()));
  const AccessKind kind = access.write ? AccessKind::kWrite : AccessKind::kRead;
  std::string seen;
  const auto move = [&](uint8_t* host, int lane) {
    if (access.write) {
      std::copy_n(Pattern(step, lane).begin(), access.bytes, host);
    } else {
      seen.append(reinterpret_cast<const char*>(host), access.bytes);
    }
  };
  HostBytes hosts;
  if (at_once != nullptr && LocateLanes(warp, access.space, world.address(), access.bytes, access.mask, kind, hosts)) {
    ++*at_once;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (access.mask >> lane & 1) move(hosts[static_cast<size_t>(lane)], lane);
    }
    return seen;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!(access.mask >> lane & 1)) continue;
    Located at;
    if (!Locate(warp, access.space, access.addresses[static_cast<size_t>(lane)], access.bytes, lane, kind, at)) break;
    move(at.host, lane);
  }
  return seen;
}

// Something between two accesses that decides what later ones may find.
void Disturb(AccessWorld& world, Draw& draw) {
  Cta& cta = *world.cluster->ctas()[0];
  Warp &one = world.warp(static_cast<int>(draw.Below(kWarps))),
       &other = world.warp(static_cast<int>(draw.Below(kWarps)));
  const auto granule = static_cast<uint32_t>(kSharedBase + draw.Below(kSharedBytes / 16) * 16);
  switch (draw.Below(12)) {
    case 0:
    case 1:
    case 2: {
      VectorClock told;
      one.Release(draw.OneIn(3) ? draw.Lanes() : kFullMask, told);
      return other.Acquire(draw.OneIn(3) ? draw.Lanes() : kFullMask, told);
    }
    case 3: {
      RecordRef record = world.host.pools.records.Take();
      record->issuer = &one;
      record->over.push_back(one.knowledge.Now(kAllLanes));
      const GranuleWord word = GranuleWord::Of(granule, (granule / 1024 + 1) * 1024);
      return cta.shared_shadow->NoteAsync(word, draw.OneIn(2), record);
    }
    case 4:
      return cta.shared().SetBarrier(granule, draw.OneIn(2));
    case 5: {
      SharedMemory::Block& block = cta.shared().BlockAt(granule);
      (draw.OneIn(2) ? block.reads : block.writes) ^= 1;
      return;
    }
    case 6:
      ++one.proxy_fences[draw.Below(kLanes)];
      return;
    default:
      return;
  }
}

class WarpAccesses : public testing::TestWithParam<int> {};

TEST_P(WarpAccesses, AreTheLanesOneAfterTheOther) {
  AccessWorld fast, slow;
  Draw draw(static_cast<uint64_t>(GetParam()));
  int at_once = 0;
  size_t hazards = 0;
  for (int step = 0; step < kSteps; ++step) {
    Draw disturbance(draw.Below(~uint64_t{0})), same = disturbance;
    Disturb(fast, disturbance);
    Disturb(slow, same);
    const RandomAccess access = draw.Next(fast.global->address());
    const std::string seen = Perform(fast, access, step, &at_once);
    ASSERT_EQ(seen, Perform(slow, access, step, nullptr)) << "step " << step;
    const auto got = fast.log.Take(), wanted = slow.log.Take();
    ASSERT_EQ(got.size(), wanted.size()) << "step " << step;
    for (size_t h = 0; h < got.size(); ++h) EXPECT_EQ(got[h].Print(), wanted[h].Print()) << "step " << step;
    hazards += got.size();
  }
  for (uint64_t at = 0; at < kGlobalBytes; ++at)
    ASSERT_EQ(fast.global->Written(fast.global->address() + at, 1),
              slow.global->Written(slow.global->address() + at, 1));
  ASSERT_TRUE(fast.cluster->fault() && slow.cluster->fault());
  EXPECT_EQ(fast.cluster->fault()->Print(), slow.cluster->fault()->Print());
  EXPECT_GT(at_once, kSteps / 4);
  EXPECT_GT(hazards, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WarpAccesses, testing::Range(0, 8));

}  // namespace
}  // namespace laneshift::emulator
