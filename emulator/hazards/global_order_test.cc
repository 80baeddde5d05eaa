// Order of accesses of global memory across the CTAs of a grid: what orders them, at which scope, and what does not.

#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

struct Exchange {
  friend void PrintTo(const Exchange& exchange, std::ostream* out) { *out << exchange.name; }
  const char* name;
  const char* first;   // CTA 0, with %rd1 the data of its thread, %rd2 a flag that is 0
  const char* second;  // CTA 1, the same
  const char* reported = "";
  const char* third = "";  // CTA 2, if any
};

// 64 threads a CTA; %p1: thread 0. Words of `data` are 1.
std::string ExchangeText(const Exchange& exchange) {
  return std::string(
             ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 data) {\n"
             ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;\n"
             ".shared .align 128 .b8 tile[256]; .shared .align 8 .b64 full;\n"
             "ld.param.u64 %rd3, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd1, %rd3, %rd4;\n"
             "add.s64 %rd2, %rd3, 4096; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p2, %r2, 1;\n"
             "setp.eq.u32 %p3, %r2, 2; mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4;\n"
             "@%p1 mbarrier.init.shared.b64 [full], 1; bar.sync 0;\n"
             "@%p2 bra SECOND; @%p3 bra THIRD;\n") +
         exchange.first + "ret;\nSECOND:\n" + exchange.second + "ret;\nTHIRD:\n" + exchange.third + "ret;\n}\n";
}

#define LS_PUT "st.global.b32 [%rd1], %r1; bar.sync 0;\n"
#define LS_GET "bar.sync 0; ld.global.b32 %r5, [%rd1];\n"
#define LS_SPIN(load) "S: " load " %r6, [%rd2]; setp.ne.u32 %p4, %r6, 1; @%p4 bra S;\n"
#define LS_SPIN_ONE(load) "@!%p1 bra J; " LS_SPIN(load) "J:\n"
#define LS_BULK                                                            \
  "st.shared.b32 [%r3], %r1; fence.proxy.async.shared::cta; bar.sync 0;\n" \
  "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [tile], 256; @%p1 cp.async.bulk.commit_group;\n"
#define LS_BULK_GET                                                                                       \
  "@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd5, [full], 256;\n"                                        \
  "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd3], 256, [full];\n" \
  "W: mbarrier.try_wait.parity.shared.b64 %p5, [full], 0; @!%p5 bra W; ld.shared.b32 %r7, [%r3];\n"

const Exchange kExchanges[] = {
    {"ReleaseAndAcquire", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET},
    {"OfTheSystem", LS_PUT "@%p1 st.release.sys.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.sys.global.b32") LS_GET},
    {"EachLaneWaits", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN("ld.acquire.gpu.global.b32") "ld.global.b32 %r5, [%rd1];\n"},
    {"ReleaseForTheCluster", LS_PUT "@%p1 st.release.cluster.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET, "global-race"},
    {"AcquireForTheCta", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.cta.global.b32") LS_GET, "global-race"},
    {"RelaxedWithFences", LS_PUT "@%p1 fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.relaxed.gpu.global.b32") "fence.acq_rel.gpu;\n" LS_GET},
    {"VolatileWithBarriers", LS_PUT "@%p1 membar.gl; @%p1 st.volatile.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.volatile.global.b32") "membar.gl;\n" LS_GET},
    {"FenceOfTheCta", LS_PUT "@%p1 membar.cta; @%p1 st.volatile.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.volatile.global.b32") "membar.gl;\n" LS_GET, "global-race"},
    {"FenceOfTheCluster", LS_PUT "@%p1 fence.acq_rel.cluster; @%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET, "global-race"},
    {"RelaxedWithoutTheReadersFence", LS_PUT "@%p1 fence.acq_rel.gpu; @%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.relaxed.gpu.global.b32") LS_GET, "global-race"},
    {"Semaphore", LS_PUT "@%p1 red.release.gpu.global.add.u32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET},
    {"BothAtomic", LS_PUT "@%p1 atom.acq_rel.gpu.global.add.u32 %r6, [%rd2], 1;\n",
     "@!%p1 bra J; S: atom.acq_rel.gpu.global.or.b32 %r6, [%rd2], 0; setp.ne.u32 %p4, %r6, 1; @%p4 bra "
     "S;\nJ:\n" LS_GET},
    {"WithoutTheWritersBarrier", "st.global.b32 [%rd1], %r1;\n@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET, "global-race"},
    {"WithoutTheReadersBarrier", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "ld.global.b32 %r5, [%rd1];\n", "global-race"},
    {"NothingAtAll", LS_PUT, LS_GET, "global-race"},
    {"ReadsBeforeAWrite", "ld.global.b32 %r5, [%rd1];\n", LS_PUT, "global-race"},
    {"SumsOfBoth", "red.global.add.u32 [%rd1], 1;\n",
     "red.global.add.f32 [%rd1+512], 0f3f800000;\nred.global.add.u32 [%rd1], 1;\n"},
    {"ASumThatIsRead", "red.global.add.u32 [%rd1], 1;\n", LS_GET, "global-race"},
    {"NeighboursOfAWord", "st.global.b8 [%rd1], %r1;\n", "st.global.b8 [%rd1+1], %r1;\n"},
    {"ThroughAThird", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0; @%p1 st.release.gpu.global.b32 [%rd2+64], 1;\n", "",
     "add.s64 %rd2, %rd2, 64;\n@!%p1 bra J3; S3: ld.acquire.gpu.global.b32 %r6, [%rd2]; setp.ne.u32 %p4, %r6, 1; @%p4 "
     "bra S3;\nJ3:\n" LS_GET},
    {"BulkStore", LS_BULK "@%p1 cp.async.bulk.wait_group 0; @%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET},
    {"BulkStoreThatWasRead",
     LS_BULK "@%p1 cp.async.bulk.wait_group.read 0; @%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET, "pending-global"},
    {"BulkStoreWithoutAnOrder", LS_BULK "@%p1 cp.async.bulk.wait_group 0; @%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") LS_GET, "global-race"},
    {"BulkStoreAndLoad", LS_BULK "@%p1 cp.async.bulk.wait_group 0; @%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0;\n" LS_BULK_GET},
    {"BulkLoadOfStores", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0;\n" LS_BULK_GET, "missing-proxy-fence"},
    {"BulkLoadOfStoresFencedByTheReader", LS_PUT "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0; fence.proxy.async.global;\n" LS_BULK_GET},
    {"BulkLoadOfStoresFencedByTheWriter",
     "st.global.b32 [%rd1], %r1; fence.proxy.async.global; bar.sync 0;\n@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0;\n" LS_BULK_GET},
    // Fences for other memory, however many, do not displace that one.
    {"BulkLoadAfterManyFences",
     "st.global.b32 [%rd1], %r1; fence.proxy.async.global; bar.sync 0;\nmov.u32 %r9, 0;\n"
     "F: fence.proxy.async.shared::cta; add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 40; @%p6 bra F;\n"
     "@%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0;\n" LS_BULK_GET},
    {"BulkLoadOfUnorderedStores", LS_PUT "@%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0; fence.proxy.async.global;\n" LS_BULK_GET, "global-race"},
    {"StoreAfterABulkLoad", LS_BULK_GET "bar.sync 0; @%p1 st.release.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.acquire.gpu.global.b32") "bar.sync 0;\n" LS_PUT},
    {"StoreAfterAnUnorderedBulkLoad", LS_BULK_GET "bar.sync 0; @%p1 st.relaxed.gpu.global.b32 [%rd2], 1;\n",
     LS_SPIN_ONE("ld.relaxed.gpu.global.b32") "bar.sync 0;\n" LS_PUT, "global-race"},
    {"TwoWarpsOfACta",
     "st.global.b32 [%rd1], %r1; xor.b32 %r8, %r1, 32; mul.wide.u32 %rd6, %r8, 4; add.s64 %rd6, %rd3, "
     "%rd6;\nld.global.b32 %r5, [%rd6];\n",
     "", "global-race"},
    {"TwoWarpsThatMeet",
     "st.global.b32 [%rd1], %r1; xor.b32 %r8, %r1, 32; mul.wide.u32 %rd6, %r8, 4; add.s64 %rd6, %rd3, %rd6;\nbar.sync "
     "0; ld.global.b32 %r5, [%rd6];\n",
     ""},
};

class GlobalExchanges : public testing::TestWithParam<Exchange> {};

TEST_P(GlobalExchanges, AreOrderedAtTheScopeOfTheDevice) {
  const Exchange& exchange = GetParam();
  for (const Completion completion : {Completion::kEager, Completion::kLate, Completion::kRandom}) {
    for (const int threads : {1, 3}) {
      Options options;
      options.completion = completion;
      options.host_threads = threads;
      TestDevice device(options);
      const device::CuFunction kernel = device.Load(ExchangeText(exchange), "k");
      ASSERT_NE(kernel, nullptr) << device.log;
      std::vector<uint32_t> words(2048, 1);
      words[1024] = words[1024 + 16] = 0;
      device::CuDevicePtr data = device.Upload(words);
      EXPECT_EQ(device.Launch(kernel, {exchange.third[0] != 0 ? 3u : 2u, 1, 1}, 64, 0, {&data}), device::kCuSuccess);
      // A later kernel is ordered after it, whatever it accesses.
      EXPECT_EQ(device.Launch(kernel, {1, 1, 1}, 64, 0, {&data}), device::kCuSuccess);
      const Report report = TakeReport();
      EXPECT_TRUE(report.faults.empty()) << report.Print();
      EXPECT_EQ(report.hazards.empty(), exchange.reported[0] == 0) << report.Print();
      for (const Hazard& hazard : report.hazards) EXPECT_EQ(NameOf(hazard.kind), exchange.reported) << hazard.Print();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, GlobalExchanges, testing::ValuesIn(kExchanges),
                         [](const auto& exchange) { return std::string(exchange.param.name); });

// Two CTAs on two host threads pass words back and forth: a CTA that sees a flag knows what came before it.
TEST(GlobalOrder, IsKnownToWhoeverSeesTheFlag) {
  const std::string text = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data) {
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [data]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, 1;
ROUND:
@%p1 bra SECOND;
st.global.b32 [%rd1], %r2; red.release.gpu.global.add.u32 [%rd1+128], 1;
A: atom.acquire.gpu.global.or.b32 %r3, [%rd1+256], 0; setp.ne.u32 %p2, %r3, %r2; @%p2 bra A;
bra NEXT;
SECOND:
B: ld.acquire.gpu.global.b32 %r3, [%rd1+128]; setp.ne.u32 %p2, %r3, %r2; @%p2 bra B;
ld.global.b32 %r4, [%rd1]; st.release.gpu.global.b32 [%rd1+256], %r2;
NEXT:
add.u32 %r2, %r2, 1; setp.le.u32 %p3, %r2, 200; @%p3 bra ROUND;
ret;
}
)";
  Options options;
  options.host_threads = 2;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(text, "k");
  ASSERT_NE(kernel, nullptr) << device.log;
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(128, 0));
  EXPECT_EQ(device.Launch(kernel, {2, 1, 1}, 1, 0, {&data}), device::kCuSuccess);
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
}

// Where bulk copies of one page are many, those that were overwritten are forgotten, and no others.
TEST(GlobalOrder, RemembersTheLastOfManyBulkCopies) {
  LimitMeter meter{Limits{}};
  GlobalMemory memory(1 << 20, &meter);
  GlobalOrder order(meter);
  const DecodedKernel kernel;
  const GridShape shape;
  order.AddGrid(kernel, shape, 2);
  const Allocation* const allocation = memory.Allocate(1024);
  GlobalOrder::Directory* const directory = order.Find(*allocation);
  ASSERT_NE(directory, nullptr);
  constexpr uint64_t kCells = 64;
  const auto range_of = [&](uint64_t cell) {
    return GlobalRange{allocation->address() + 16 * cell, allocation->address() + 16 * cell + 16};
  };
  GlobalAccess access;
  access.cluster = 1;
  std::array<int, kCells> last_store{};
  std::mt19937 random(3);
  // Loads before anything is stored, too.
  for (int line = 1; line <= 3000; ++line) {
    const uint64_t cell = random() % kCells;
    const GlobalRange range = range_of(cell);
    access.clock = static_cast<uint32_t>(line);
    access.line = line;
    if (line > 1000 && random() % 2 == 0) {
      order.FinishStore(*directory, range.begin, range.end, access);
      last_store[cell] = line;
    } else {
      // A cell of loads has 128 bytes.
      const GlobalRange wide = range_of(cell / 8 * 8);
      const GlobalRange loaded{wide.begin, wide.begin + 128};
      order.FinishLoad(*directory, {&loaded, 1}, access);
    }
  }
  const Knowledge nothing(0);
  GlobalAccess other;
  other.cluster = 2;
  for (uint64_t cell = 0; cell < kCells; ++cell) {
    const GlobalRange range = range_of(cell);
    const GlobalViewer viewer{&nothing, 0, 2};
    const auto line_of = [&](bool write) {
      return order.Issue(*directory, range.begin, range.end, write, viewer, other, [](const auto&) { return true; })
          .access.line;
    };
    ASSERT_GT(last_store[cell], 0);
    EXPECT_EQ(line_of(false), last_store[cell]) << "cell " << cell;
  }
  // A write meets the last load where nothing was stored.
  const Allocation* const read_only = memory.Allocate(1024);
  GlobalOrder::Directory* const of_reads = order.Find(*read_only);
  const GlobalRange all{read_only->address(), read_only->address() + 1024};
  for (const int line : {7, 8}) {
    access.line = line;
    order.FinishLoad(*of_reads, {&all, 1}, access);
  }
  const GlobalRival rival = order.Touch(*of_reads, all.begin + 512, 4, true, GlobalViewer{&nothing, 0, 2}, other);
  EXPECT_EQ(rival.kind, GlobalRival::Kind::kRace);
  EXPECT_EQ(rival.access.line, 8);
  EXPECT_TRUE(rival.bulk && !rival.wrote);
}

}  // namespace
}  // namespace laneshift::emulator
