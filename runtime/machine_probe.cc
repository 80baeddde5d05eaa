#include "runtime/machine_probe.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "autotune/machine.h"
#include "base/text.h"
#include "compiler/probes/probe_programs.h"
#include "device/buffer.h"
#include "runtime/placement.h"
#include "runtime/probe_kernel.h"

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
constexpr int64_t kHandoffDepth = 1 << 20;
constexpr int kInstructionBytes = 32;  // of K, that one product covers
constexpr int kProductColumns[] = {16, 32, 64, 128, 256};
constexpr int64_t kBusyTiles = 40;  // of each SM: a launch of some 20 ms, after which power has settled
constexpr int kLoadRows[] = {8, 16, 32, 64, 128, 256};
constexpr int kReadRows = 17, kOutsideRows = 127;  // of a block of 128 rows after 16: one and those 16 exist

// Memory that all probes read: random words, each of them two finite bf16 between 0.5 and 1.
Result<device::DeviceBuffer> RandomOperands(const device::Device& device, const device::Stream& stream, size_t bytes) {
  LS_ASSIGN(device::DeviceBuffer buffer, device::DeviceBuffer::Allocate(device.context(), bytes));
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

class Prober {
 public:
  Prober(const device::Device& device, const target::Target& target, const device::Stream& stream)
      : device_(device), target_(target), stream_(stream) {}

  Result<MachineProbe> Run() {
    LS_ASSIGN(operands_, RandomOperands(device_, stream_, OperandBytes()));
    LS_ASSIGN(sums_, device::DeviceBuffer::Allocate(device_.context(), SumBytes()));
    clock_ = device_.facts().clock_khz / 1e6;
    Note("clock_ghz", clock_);
    LS_TRY(OneSm());
    LS_TRY(AllSms());
    LS_TRY(OutsideRows());
    LS_TRY(Products());
    LS_TRY(Loads());
    LS_TRY(Handoffs());
    LS_ASSIGN(found_.gpcs, PlaceClusters(device_, target_, stream_));
    return std::move(found_);
  }

 private:
  static constexpr int kMostRows = 128;  // of a product

  int Sms() const { return device_.facts().sm_count; }
  double Known(double Machine::*fact) const { return autotune::PublishedMachine(target_).*fact; }
  size_t OperandBytes() const {
    const size_t streamed = static_cast<size_t>(Sms()) * 128 * kStreamDepth;
    return static_cast<size_t>(kBytes) * std::max<size_t>(streamed, 128 * kColdDepth);
  }
  size_t SumBytes() const { return static_cast<size_t>(Sms()) * kMostRows * kBusyTiles * 256 * sizeof(float); }

  Result<ProbeKernel> Load(Result<ir::Program> built) const {
    return ProbeKernel::Load(device_, target_, std::move(built));
  }
  Result<double> TimeOf(const ProbeKernel& probe, const ProbeSize& size, int ctas) const {
    return probe.TimeOf(stream_, size, ctas, reinterpret_cast<const void*>(operands_->pointer()),
                        reinterpret_cast<void*>(sums_->pointer()));
  }
  // Nanoseconds of a block of K: the additional time of `many` over `few`.
  Result<double> BlockTime(const ProbeKernel& probe, const ProbeSize& few, const ProbeSize& many, int ctas) const {
    LS_ASSIGN(const double less, TimeOf(probe, few, ctas));
    LS_ASSIGN(const double more, TimeOf(probe, many, ctas));
    return (more - less) * 1e3 / (probe.BlocksOf(many, ctas) - probe.BlocksOf(few, ctas));
  }

  // Users of a fact check whether it is plausible (autotune::FittedFact).
  void Note(const char* name, double value) { found_.facts.push_back({name, value}); }

  // Latencies, and the bandwidth of a single SM. Tiles of one row read the same A again and again.
  Status OneSm() {
    const ProbeSize few{128, kTileColumns * kFewTiles, kResidentDepth};
    const ProbeSize many{128, kTileColumns * kManyTiles, kResidentDepth};
    LS_ASSIGN(const ProbeKernel deep, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 8}, target_)));
    LS_ASSIGN(const double flowing, BlockTime(deep, few, many, 1));
    port_ = 128 * kRowBytes / (flowing * clock_);
    Note("port", port_);
    LS_ASSIGN(const ProbeKernel single, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 1}, target_)));
    LS_ASSIGN(const double hit, BlockTime(single, few, many, 1));
    LS_ASSIGN(const double miss,
              BlockTime(single, {128, kTileColumns, kColdDepth / 2}, {128, kTileColumns, kColdDepth}, 1));
    Note("memory_latency", (miss - hit) * clock_);
    // A launch that waits for one block.
    LS_ASSIGN(const double one, TimeOf(single, {128, kTileColumns, kProbeBlock}, 1));
    Note("launch_us", one - hit / 1e3);
    return Ok();
  }

  // The bandwidth of all SMs together.
  Status AllSms() {
    const int across = std::min(kAcross, Sms());
    const int down = Sms() / across;
    const auto grid = [&](int64_t times) { return ProbeSize{int64_t{128} * down, 128 * across * times, kSharedDepth}; };
    LS_ASSIGN(const ProbeKernel both,
              Load(compiler::BuildStreamProbe({.rows = 128, .columns = 128, .stages = 6}, target_)));
    LS_ASSIGN(const double shared, BlockTime(both, grid(1), grid(kTimesOver), down * across));
    l2_rate_ = 256 * kRowBytes / (shared * clock_) * down * across / Sms();
    Note("l2_rate", l2_rate_);
    // One block at a time on every SM: the latency of a loaded chip.
    LS_ASSIGN(const ProbeKernel one_block,
              Load(compiler::BuildStreamProbe({.rows = 128, .columns = 128, .stages = 1}, target_)));
    LS_ASSIGN(const double block, BlockTime(one_block, grid(1), grid(kTimesOver), down * across));
    Note("load_latency",
         block * clock_ - 256 * kRowBytes / port_ - 2 * Known(&Machine::signal) - 2 * Known(&Machine::load_issue));
    LS_ASSIGN(const ProbeKernel deep, Load(compiler::BuildStreamProbe({.rows = 128, .stages = 8}, target_)));
    const int64_t rows = int64_t{128} * Sms();
    LS_ASSIGN(const double streamed,
              BlockTime(deep, {rows, kTileColumns, kStreamDepth / 2}, {rows, kTileColumns, kStreamDepth}, Sms()));
    Note("memory_rate", Sms() * 128 * kRowBytes / streamed / 1e3);
    return Ok();
  }

  // Tiles with one row of 128 inside, on one SM and on all; the time of the rows inside is known.
  Status OutsideRows() {
    LS_ASSIGN(const ProbeKernel low,
              Load(compiler::BuildStreamProbe({.rows = 128, .columns = 16, .stages = 8}, target_)));
    const auto clocks = [&](int sms, double rate) -> Result<double> {
      const auto strip = [&](int64_t times) { return ProbeSize{1, kTileColumns * sms * times, kSharedDepth}; };
      LS_ASSIGN(const double block, BlockTime(low, strip(1), strip(kTimesOver), sms));
      return std::max(0.01, (block * clock_ - kReadRows * kRowBytes / rate) / kOutsideRows);
    };
    LS_ASSIGN(const double single, clocks(1, port_));
    Note("outside_row", single);
    LS_ASSIGN(const double together, clocks(Sms(), std::min(port_, l2_rate_)));
    Note("outside_rate", Sms() / together);
    return Ok();
  }

  // MMAs of several shapes on one SM: the narrowest wait for operands, the widest for the tensor core. The widest on
  // all SMs at once show the clock at the power limit.
  Status Products() {
    for (const int columns : kProductColumns) {
      LS_ASSIGN(const ProbeKernel probe, Load(compiler::BuildProductProbe({.columns = columns}, target_)));
      const double instructions = compiler::kProbeProducts * kProbeBlock * kBytes / kInstructionBytes;
      const int64_t rows = probe.program().tile_m;
      LS_ASSIGN(const double single,
                BlockTime(probe, {rows, columns, kResidentDepth}, {rows, columns, kStreamDepth}, 1));
      const double held = single * clock_ / instructions;
      found_.products.push_back({columns, held});
      if (columns == std::begin(kProductColumns)[0])
        Note("shared_read", static_cast<double>(rows + columns) * kInstructionBytes / held);
      if (columns != std::end(kProductColumns)[-1]) continue;
      Note("product_columns", columns / held);
      const auto strip = [&](int64_t tiles) { return ProbeSize{rows * Sms(), columns * tiles, kStreamDepth}; };
      LS_ASSIGN(const double busy, BlockTime(probe, strip(kBusyTiles / 4), strip(kBusyTiles), Sms()));
      Note("busy_clock_ghz", std::min(1.0, single / busy) * clock_);
    }
    return Ok();
  }

  // One at a time.
  Status Loads() {
    for (const int rows : kLoadRows) {
      LS_ASSIGN(const ProbeKernel single, Load(compiler::BuildStreamProbe({.rows = rows, .stages = 1}, target_)));
      LS_ASSIGN(const double block, BlockTime(single, {rows, kTileColumns * kFewTiles, kSharedDepth},
                                              {rows, kTileColumns * kManyTiles, kSharedDepth}, 1));
      found_.loads.push_back({static_cast<int>(rows * kRowBytes), block * clock_});
    }
    return Ok();
  }

  // There and back.
  Status Handoffs() {
    LS_ASSIGN(const ProbeKernel probe, Load(compiler::BuildHandoffProbe(target_)));
    LS_ASSIGN(const double both, BlockTime(probe, {kTileColumns, kTileColumns, kHandoffDepth / 8},
                                           {kTileColumns, kTileColumns, kHandoffDepth}, 1));
    found_.handoff_clocks = both * clock_ / 2;
    return Ok();
  }

  const device::Device& device_;
  const target::Target& target_;
  const device::Stream& stream_;
  std::optional<device::DeviceBuffer> operands_, sums_;
  double clock_ = 0, port_ = 0, l2_rate_ = 0;
  MachineProbe found_;
};

}  // namespace

Result<MachineProbe> ProbeMachine(const device::Device& device, const target::Target& target, bool emulated) {
  if (emulated) {
    return MakeError(ErrorCode::kUnsupported,
                     "an emulator has no speed that could be measured; run laneshift probe on a GPU");
  }
  LS_ASSIGN(const device::ActiveContext active, device.Activate());
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(device.context()));
  auto found = Prober(device, target, stream).Run();
  if (!found) return found.error().Within("measuring the machine");
  return found;
}

}  // namespace laneshift::runtime
