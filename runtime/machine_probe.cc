#include "runtime/machine_probe.h"

#include <algorithm>
#include <cstdint>

#include "autotune/machine.h"
#include "base/text.h"
#include "compiler/bindings.h"
#include "compiler/compile.h"
#include "compiler/machine_probe.h"
#include "device/buffer.h"
#include "device/event.h"
#include "device/launch.h"
#include "device/module.h"
#include "runtime/launch_arguments.h"

namespace laneshift::runtime {
namespace {

using autotune::Machine;
using compiler::kProbeBlock;
using compiler::StreamProbe;

constexpr double kBytes = 2;          // of an element
constexpr double kRowBytes = 128;     // of a block
constexpr int64_t kTileColumns = 16;  // of a stream that has no B
constexpr int64_t kFewTiles = 16, kManyTiles = 144;
constexpr int64_t kResidentDepth = 4096;  // elements of K that stay in the L2 cache: of one SM, and
constexpr int64_t kSharedDepth = 1024;    // of all
constexpr int64_t kTimesOver = 8;         // tiles of each SM
constexpr int kAcross = 11;               // tiles of a row of the grid: as near a square as a GEMM's
constexpr int64_t kStreamDepth = 16384;
constexpr int64_t kColdDepth = 1 << 20;  // for one SM: more than any cache
constexpr int kTimes = 5;

// Memory that all probes read: random words, each of them two finite bf16 between 0.5 and 1.
Result<device::Buffer> RandomOperands(const device::Device& device, const device::Stream& stream, size_t bytes) {
  LS_ASSIGN(device::Buffer buffer, device::Buffer::Allocate(device.context(), bytes));
  std::vector<uint32_t> words(size_t{1} << 20);
  uint64_t state = 1;
  for (uint32_t& word : words) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    word = 0x3f003f00u | (static_cast<uint32_t>(state >> 33) & 0x807f807fu);
  }
  for (size_t at = 0; at < bytes; at += words.size() * 4) {
    LS_TRY(buffer.CopyFromHost(stream, words.data(), std::min(bytes - at, words.size() * 4), at));
  }
  LS_TRY(stream.Synchronize());
  return buffer;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Size {
  int64_t m, n, k;
};

class Prober {
 public:
  Prober(const device::Device& device, const target::Target& target, device::Stream stream, device::Buffer operands)
      : device_(device), target_(target), stream_(std::move(stream)), operands_(std::move(operands)) {}

  static size_t OperandBytes(const device::Device& device) {
    const auto streamed = static_cast<size_t>(device.facts().sm_count) * 128 * kStreamDepth;
    return static_cast<size_t>(kBytes) * std::max<size_t>(streamed, 128 * kColdDepth);
  }

  Result<std::vector<ProbedFact>> Run() {
    clock_ = device_.facts().clock_khz / 1e6;
    LS_TRY(Note("clock_ghz", clock_));
    LS_TRY(OneSm());
    LS_TRY(AllSms());
    return std::move(facts_);
  }

 private:
  struct Loaded {
    ir::Program program;
    device::Module module;
    device::Kernel kernel;
  };

  Result<Loaded> Load(Result<ir::Program> built) const {
    LS_ASSIGN(ir::Program program, std::move(built));
    LS_ASSIGN(const compiler::PtxModule ptx, compiler::EmitPtx(program, target_));
    LS_ASSIGN(device::Module module, device::Module::LoadPtx(device_.context(), ptx.ptx));
    LS_ASSIGN(device::Kernel kernel, module.GetKernel(ptx.entry));
    LS_TRY(kernel.AllowDynamicSmem(program.smem_bytes));
    return Loaded{std::move(program), std::move(module), std::move(kernel)};
  }

  // The shortest of a few runs, in microseconds.
  Result<double> TimeOf(const Loaded& probe, int64_t m, int64_t n, int64_t k, int ctas) const {
    LS_ASSIGN(const Problem problem, CompleteProblem(GemmProblem{.m = m, .n = n, .k = k}));
    const Schedule schedule{.tile_m = probe.program.tile_m, .tile_n = probe.program.tile_n, .tile_k = kProbeBlock};
    const auto params = compiler::BindParams(problem, schedule, probe.program);
    const auto* memory = reinterpret_cast<const void*>(operands_.pointer());
    LaunchArguments arguments;
    LS_TRY(arguments.Bind(device_.api(), params, {.a = memory, .b = memory}, nullptr));
    LS_ASSIGN(const device::Event start, device::Event::Create(device_.context()));
    LS_ASSIGN(const device::Event end, device::Event::Create(device_.context()));
    double least = 0;
    for (int time = 0; time <= kTimes; ++time) {
      LS_TRY(start.Record(stream_));
      LS_TRY(device::Launch(probe.kernel,
                            {.grid = {static_cast<unsigned>(ctas), 1, 1},
                             .block = {static_cast<unsigned>(probe.program.threads), 1, 1},
                             .cluster = {},
                             .dynamic_smem_bytes = static_cast<unsigned>(probe.program.smem_bytes)},
                            stream_, arguments.pointers()));
      LS_TRY(end.Record(stream_));
      LS_TRY(stream_.Synchronize());
      LS_ASSIGN(const float milliseconds, end.MillisecondsSince(start));
      // The first run loads the code.
      if (time > 0) least = time == 1 ? milliseconds : std::min<double>(least, milliseconds);
    }
    return least * 1e3;
  }

  // Nanoseconds of a block of K: what `many` take longer than `few`.
  Result<double> BlockTime(const Loaded& probe, const Size& few, const Size& many, int ctas) const {
    const auto blocks = [&](const Size& size) {
      const int64_t tiles = CeilDiv(size.m, probe.program.tile_m) * CeilDiv(size.n, probe.program.tile_n);
      return static_cast<double>(CeilDiv(tiles, ctas) * (size.k / kProbeBlock));
    };
    LS_ASSIGN(const double less, TimeOf(probe, few.m, few.n, few.k, ctas));
    LS_ASSIGN(const double more, TimeOf(probe, many.m, many.n, many.k, ctas));
    return (more - less) * 1e3 / (blocks(many) - blocks(few));
  }

  int Sms() const { return device_.facts().sm_count; }
  double Known(double Machine::*fact) const { return autotune::PublishedMachine(target_).*fact; }

  Status Note(const char* name, double value) {
    if (!(value > 0)) {
      std::string known;
      for (const ProbedFact& fact : facts_) known += base::Cat(" ", fact.name, "=", fact.value);
      return MakeError(ErrorCode::kDriver,
                       base::Cat("the probe of ", name, " gives ", value,
                                 ", which no device does; is another program using it? Measured before:", known));
    }
    facts_.push_back({name, value});
    return Ok();
  }

  // Latencies, and what one SM alone draws. Tiles of one row read the same A again and again.
  Status OneSm() {
    const Size few{128, kTileColumns * kFewTiles, kResidentDepth};
    const Size many{128, kTileColumns * kManyTiles, kResidentDepth};
    LS_ASSIGN(const Loaded deep, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 8}, target_)));
    LS_ASSIGN(const double flowing, BlockTime(deep, few, many, 1));
    port_ = 128 * kRowBytes / (flowing * clock_);
    LS_TRY(Note("port", port_));
    LS_ASSIGN(const Loaded single, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 1}, target_)));
    LS_ASSIGN(const double hit, BlockTime(single, few, many, 1));
    LS_ASSIGN(const double miss,
              BlockTime(single, {128, kTileColumns, kColdDepth / 2}, {128, kTileColumns, kColdDepth}, 1));
    LS_TRY(Note("memory_latency", (miss - hit) * clock_));
    // A launch that waits for one block.
    LS_ASSIGN(const double one, TimeOf(single, 128, kTileColumns, kProbeBlock, 1));
    return Note("launch_us", one - hit / 1e3);
  }

  // What all SMs draw at once.
  Status AllSms() {
    const int across = std::min(kAcross, Sms());
    const int down = Sms() / across;
    const auto grid = [&](int64_t times) { return Size{int64_t{128} * down, 128 * across * times, kSharedDepth}; };
    LS_ASSIGN(const Loaded both, Load(compiler::BuildStreamProbe({.rows = 128, .columns = 128, .stages = 6}, target_)));
    LS_ASSIGN(const double shared, BlockTime(both, grid(1), grid(kTimesOver), down * across));
    LS_TRY(Note("l2_rate", 256 * kRowBytes / (shared * clock_) * down * across / Sms()));
    // One block at a time on every SM: the latency that a loaded chip has.
    LS_ASSIGN(const Loaded single,
              Load(compiler::BuildStreamProbe({.rows = 128, .columns = 128, .stages = 1}, target_)));
    LS_ASSIGN(const double alone, BlockTime(single, grid(1), grid(kTimesOver), down * across));
    LS_TRY(Note("load_latency", alone * clock_ - 256 * kRowBytes / port_ - 2 * Known(&Machine::signal) -
                                    2 * Known(&Machine::load_issue)));
    LS_ASSIGN(const Loaded deep, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 8}, target_)));
    const int64_t rows = int64_t{128} * Sms();
    LS_ASSIGN(const double streamed,
              BlockTime(deep, {rows, kTileColumns, kStreamDepth / 2}, {rows, kTileColumns, kStreamDepth}, Sms()));
    LS_TRY(Note("memory_rate", Sms() * 128 * kRowBytes / streamed / 1e3));
    // One row inside of 128 against all of them.
    LS_ASSIGN(const Loaded low, Load(compiler::BuildStreamProbe({.rows = 128, .columns = 16, .stages = 8}, target_)));
    const auto strip = [&](int64_t m, int64_t times) { return Size{m, kTileColumns * Sms() * times, kSharedDepth}; };
    LS_ASSIGN(const double inside, BlockTime(low, strip(128, 1), strip(128, kTimesOver), Sms()));
    LS_ASSIGN(const double outside, BlockTime(low, strip(1, 1), strip(1, kTimesOver), Sms()));
    return Note("outside_row", std::max(0.01, (outside - inside) * clock_ / 127));
  }

  const device::Device& device_;
  const target::Target& target_;
  device::Stream stream_;
  device::Buffer operands_;
  double clock_ = 0, port_ = 0;
  std::vector<ProbedFact> facts_;
};

}  // namespace

Result<std::vector<ProbedFact>> ProbeMachine(const device::Device& device, const target::Target& target,
                                             bool emulated) {
  if (emulated) {
    return MakeError(ErrorCode::kUnsupported,
                     "an emulator has no speed that could be measured; run laneshift probe on a GPU");
  }
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  LS_ASSIGN(device::Stream stream, device::Stream::Create(device.context()));
  LS_ASSIGN(device::Buffer operands, RandomOperands(device, stream, Prober::OperandBytes(device)));
  auto facts = Prober(device, target, std::move(stream), std::move(operands)).Run();
  if (!facts) return facts.error().Within("measuring the machine");
  return facts;
}

}  // namespace laneshift::runtime
