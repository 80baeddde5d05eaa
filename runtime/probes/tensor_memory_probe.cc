// Probes of what else moves Tensor Memory: tcgen05.shift, cp and ld.
#include "runtime/probes/rate_families.h"
#include "runtime/probes/tensor_kernel.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr int kLanes = 128, kLaneGroup = 32;
constexpr int kGroupColumns = 8;  // that a shift or a cp moves, at most
constexpr int kGroups = 8;        // one instruction each in one iteration
constexpr int kMovedColumns = kGroups * kGroupColumns;

// Shifts. Every column holds lane numbers.
std::string ShiftKernel(const target::Target& target, int ctas) {
  PtxText text(target, target.ptx_version, kTensorThreads, static_cast<unsigned>(ctas), 0, false);
  TensorKernel tensor(text, ctas);
  tensor.Fill(0, kMovedColumns, [&](int) { return std::vector<std::string>(16, text.thread()); });
  tensor.Begin();
  tensor.Measure([&] {
    text.Repeat(text.repeats(), [&](const std::string&) {
      for (int group = 0; group < kGroups; ++group) {
        const std::string at = tensor.Column(tensor.tensor(), group * kGroupColumns);
        text.Do(Cat(tensor.Grouped("tcgen05.shift"), ".down"), Cat("[", at, "]"));
      }
    });
  });
  tensor.Dump(Cat(kMovedColumns), kMovedColumns);
  tensor.End();
  return text.Finish();
}

std::vector<uint32_t> ShiftedLanes() {
  std::vector<uint32_t> out(size_t{kLanes} * kMovedColumns);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto lane = static_cast<uint32_t>(i / kMovedColumns);
    out[i] = lane / kLaneGroup * kLaneGroup + std::min(lane % kLaneGroup + kFewRepeats, uint32_t{kLaneGroup - 1});
  }
  return out;
}

// Copies from shared memory: rows of 16 or 32 bytes, and the lanes that receive each (PTX ISA 9.0, "tcgen05.cp").
struct CopyShape {
  const char* name;
  int rows, bytes;
  int copies;  // of each row
  int (*lane)(int row, int copy);
};
constexpr CopyShape kCopies[] = {
    {"128x256b", 128, 32, 1, [](int row, int) { return row; }},
    {"128x128b", 128, 16, 1, [](int row, int) { return row; }},
    {"4x256b", 4, 32, 1, [](int row, int) { return row * kLaneGroup; }},
    {"64x128b.warpx2::02_13", 64, 16, 2, [](int row, int copy) { return row + copy * 64; }},
    {"64x128b.warpx2::01_23", 64, 16, 2, [](int row, int copy) { return row / 32 * 64 + row % 32 + copy * 32; }},
    {"32x128b.warpx4", 32, 16, 4, [](int row, int copy) { return row + copy * 32; }}};
constexpr int kCopyWords = 128 * 8;               // of the largest source
constexpr int kChunkWords = 4, kRowsOfGroup = 8;  // without swizzle: 8 rows of 16 bytes are contiguous
constexpr int kGroupWords = kRowsOfGroup * kChunkWords;

uint32_t CopiedWord(int row, int word) { return static_cast<uint32_t>(row * 256 + word + 1); }
int ChunkDistance(const CopyShape& shape) { return std::max(1, shape.rows / kRowsOfGroup) * kGroupWords; }  // in words

std::string CopyKernel(const target::Target& target, const CopyShape& shape, int ctas) {
  PtxText text(target, target.ptx_version, kTensorThreads, static_cast<unsigned>(ctas), 0, false);
  const std::string shared = text.SharedStart();
  text.FillShared(shared, text.in(), kCopyWords);
  TensorKernel tensor(text, ctas);
  const std::string zero = text.Word("mov.u32", 0);
  tensor.Fill(0, kMovedColumns, [&](int) { return std::vector<std::string>(16, zero); });
  tensor.Begin();
  const uint64_t descriptor = uint64_t{1} << 46 | uint64_t{kGroupWords * 4 / 16} << 32 |
                              static_cast<uint64_t>(ChunkDistance(shape) * 4 / 16) << 16;
  const std::string start = text.Word("and.b32", text.Word("shr.u32", shared, 4), 0x3fff);
  const std::string source = text.Wide("or.b64", text.Wide("cvt.u64.u32", start), descriptor);
  tensor.Measure([&] {
    text.Repeat(text.repeats(), [&](const std::string&) {
      for (int group = 0; group < kGroups; ++group) {
        const std::string at = tensor.Column(tensor.tensor(), group * kGroupColumns);
        text.Do(Cat(tensor.Grouped("tcgen05.cp"), ".", shape.name), Cat("[", at, "]"), source);
      }
    });
  });
  tensor.Dump(Cat(kMovedColumns), kMovedColumns);
  tensor.End();
  return text.Finish();
}

std::vector<uint32_t> CopySource(const CopyShape& shape) {
  std::vector<uint32_t> in(kCopyWords, 0);
  for (int row = 0; row < shape.rows; ++row) {
    for (int word = 0; word < shape.bytes / 4; ++word) {
      const int at = row / kRowsOfGroup * kGroupWords + row % kRowsOfGroup * kChunkWords +
                     word / kChunkWords * ChunkDistance(shape) + word % kChunkWords;
      in[static_cast<size_t>(at)] = CopiedWord(row, word);
    }
  }
  return in;
}

std::vector<uint32_t> CopiedLanes(const CopyShape& shape) {
  std::vector<uint32_t> out(size_t{kLanes} * kMovedColumns, 0);
  for (int row = 0; row < shape.rows; ++row) {
    for (int copy = 0; copy < shape.copies; ++copy) {
      for (int group = 0; group < kGroups; ++group) {
        for (int word = 0; word < shape.bytes / 4; ++word) {
          out[static_cast<size_t>(shape.lane(row, copy) * kMovedColumns + group * kGroupColumns + word)] =
              CopiedWord(row, word);
        }
      }
    }
  }
  return out;
}

RateProbe MovesOf(std::string ptx, int ctas) {
  return {.ptx = std::move(ptx),
          .threads = kTensorThreads,
          .cluster = static_cast<unsigned>(ctas),
          .out_words = size_t{kLanes} * kMovedColumns,
          .per_repeat = kGroups};
}

// Loads: lane and column of a register of a thread, from those of the address on (PTX ISA 9.0, "tcgen05.ld").
struct LoadShape {
  const char* name;
  int registers;
  int (*lane)(int thread, int word);
  int (*column)(int thread, int word);
  const char* split = nullptr;  // the operand after the address
};
constexpr LoadShape kLoads[] = {
    {"32x32b.x8", 8, [](int t, int) { return t; }, [](int, int j) { return j; }},
    {"32x32b.x32", 32, [](int t, int) { return t; }, [](int, int j) { return j; }},
    {"32x32b.x64", 64, [](int t, int) { return t; }, [](int, int j) { return j; }},
    {"16x64b.x32", 32, [](int t, int) { return t / 4 + 8 * (t & 1); },
     [](int t, int j) { return (t % 4 >> 1) + 2 * j; }},
    {"16x128b.x16", 32, [](int t, int j) { return t / 4 + 8 * (j & 1); },
     [](int t, int j) { return t % 4 + 4 * (j >> 1); }},
    {"16x256b.x8", 32, [](int t, int j) { return t / 4 + 8 * (j >> 1 & 1); },
     [](int t, int j) { return 2 * (t % 4) + (j & 1) + 8 * (j >> 2); }},
    {"16x32bx2.x32", 32, [](int t, int) { return t % 16; }, [](int t, int j) { return j + (t < 16 ? 0 : 32); }, "32"}};
constexpr int kLoadedColumns = 128;
constexpr int kLoadsAtOnce = 2;  // into separate registers, then one wait

uint32_t LoadedWord(int lane, int column) { return static_cast<uint32_t>(lane * 1024 + column); }

std::string LoadKernel(const target::Target& target, const LoadShape& shape, int at_once) {
  PtxText text(target, target.ptx_version, kTensorThreads, 1, 0, false);
  TensorKernel tensor(text, 1);
  const std::string lane = text.Word("shl.b32", text.thread(), 10);
  tensor.Fill(0, kLoadedColumns, [&](int first) {
    std::vector<std::string> words;
    for (int i = 0; i < 16; ++i) words.push_back(text.Word("add.u32", lane, first + i));
    return words;
  });
  tensor.Begin();
  std::vector<std::vector<std::string>> loaded;
  for (int i = 0; i < at_once; ++i) loaded.push_back(text.NewWords(shape.registers));
  const std::string begin = text.Clock();
  text.Repeat(text.repeats(), [&](const std::string&) {
    for (const auto& words : loaded) {
      const std::string from = Cat("[", tensor.lanes(), "]");
      const std::string instruction = Cat("tcgen05.ld.sync.aligned.", shape.name, ".b32");
      if (shape.split == nullptr) {
        text.Do(instruction, Braced(words), from);
      } else {
        text.Do(instruction, Braced(words), from, shape.split);
      }
    }
    text.Line("tcgen05.wait::ld.sync.aligned");
  });
  text.SyncCta();
  const std::string end = text.Clock();
  text.Unless(text.other_threads(), [&] { text.StoreClocks(begin, end); });
  const int words = at_once * shape.registers;
  const std::string own = text.Wide("add.s64", text.out(), text.Wide("mul.wide.u32", text.thread(), words * 4));
  for (int i = 0; i < words; ++i) {
    const auto& of = loaded[static_cast<size_t>(i / shape.registers)];
    text.Do("st.global.b32", Cat("[", own, "+", i * 4, "]"), of[static_cast<size_t>(i % shape.registers)]);
  }
  tensor.End();
  return text.Finish();
}

std::vector<uint32_t> LoadedWords(const LoadShape& shape, int at_once) {
  std::vector<uint32_t> out;
  for (int thread = 0; thread < kLanes; ++thread) {
    for (int i = 0; i < at_once * shape.registers; ++i) {
      const int word = i % shape.registers, t = thread % kLaneGroup;
      out.push_back(LoadedWord(thread / kLaneGroup * kLaneGroup + shape.lane(t, word), shape.column(t, word)));
    }
  }
  return out;
}

RateProbe LoadsOf(const target::Target& target, const LoadShape& shape, int at_once, double per_repeat) {
  return {.ptx = LoadKernel(target, shape, at_once),
          .threads = kTensorThreads,
          .out_words = size_t{kLanes} * static_cast<size_t>(at_once * shape.registers),
          .per_repeat = per_repeat,
          .expected = [shape, at_once](uint32_t) { return LoadedWords(shape, at_once); }};
}

}  // namespace

std::vector<ProbePoint> ShiftPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.mma.moves_lanes) return points;
  for (const int ctas : {1, 2}) {
    points.push_back({.name = Cat("shift.cta", ctas),
                      .build =
                          [&target, ctas] {
                            RateProbe probe = MovesOf(ShiftKernel(target, ctas), ctas);
                            probe.expected = [](uint32_t) { return ShiftedLanes(); };
                            return probe;
                          },
                      .assumed = [](const autotune::Machine& machine) { return machine.tensor_move; },
                      .fact = ctas == 1 ? "tensor_move" : ""});
  }
  return points;
}

std::vector<ProbePoint> CopyToTensorPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTensorMemory)) return points;
  for (const CopyShape& shape : kCopies) {
    for (const int ctas : {1, 2}) {
      points.push_back({.name = Cat("cp.", shape.name, ".cta", ctas), .build = [&target, shape, ctas] {
                          RateProbe probe = MovesOf(CopyKernel(target, shape, ctas), ctas);
                          probe.shared_bytes = kCopyWords * 4 + 1024;
                          probe.in = CopySource(shape);
                          probe.expected = [shape](uint32_t) { return CopiedLanes(shape); };
                          return probe;
                        }});
    }
  }
  return points;
}

std::vector<ProbePoint> TensorLoadPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTensorMemory)) return points;
  for (const LoadShape& shape : kLoads) {
    const double bytes = 4.0 * kLoadsAtOnce * kLanes * shape.registers;
    points.push_back({.name = Cat("ld.", shape.name),
                      .unit = RateUnit::kBytesPerClock,
                      .build = [&target, shape, bytes] { return LoadsOf(target, shape, kLoadsAtOnce, bytes); },
                      .assumed = [](const autotune::Machine& machine) { return machine.sums_read; },
                      .fact = std::string_view(shape.name) == "32x32b.x64" ? "sums_read" : ""});
  }
  return points;
}

std::vector<ProbePoint> TensorLoadLatencyPoints(const target::Target& target) {
  std::vector<ProbePoint> points;
  if (!target.Has(target::Feature::kTensorMemory)) return points;
  const LoadShape& shape = kLoads[0];
  points.push_back(
      {.name = Cat("ld_latency.", shape.name),
       .build = [&target] { return LoadsOf(target, kLoads[0], 1, 1); },
       .assumed = [bytes = 4.0 * kLanes * shape.registers](
                      const autotune::Machine& machine) { return machine.sums_latency + bytes / machine.sums_read; }});
  return points;
}

}  // namespace laneshift::runtime
