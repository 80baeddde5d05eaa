#include "bench/published_kernel.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "base/text.h"

namespace laneshift::bench {
namespace {

using autotune::Pipeline;
using autotune::PipelineRole;
using autotune::Step;
using autotune::StepKind;
using autotune::StepList;
using autotune::TileOrder;

constexpr double kListedBlocks = 48;
constexpr int kOperands = 0, kSums = 1;  // rings
constexpr double kPanel = 64;            // columns that an epilogue treats at once
constexpr double kSharedBytes = 227.0 * 1024;
constexpr int kTensorColumns = 512, kLeastColumns = 32;
constexpr double kOutBytes = 2, kSumBytes = 4;

// The words of a line, followed by those of `common`.
class Words {
 public:
  Words(std::string_view line, const std::map<std::string, std::string>& common) : words_(common) {
    for (const std::string_view word : base::Words(line)) {
      const size_t equals = word.find('=');
      if (equals != std::string_view::npos) words_[std::string(word.substr(0, equals))] = word.substr(equals + 1);
    }
  }
  std::string Text(const std::string& key, const std::string& usual = "") const {
    const auto found = words_.find(key);
    return found == words_.end() ? usual : found->second;
  }
  double Number(const std::string& key, double usual = 0) const {
    const auto found = words_.find(key);
    return found == words_.end() ? usual : std::strtod(found->second.c_str(), nullptr);
  }
  const std::map<std::string, std::string>& all() const { return words_; }

 private:
  std::map<std::string, std::string> words_;
};

struct PublishedKernel {
  double m, n, k, bytes;
  double tile_m, tile_n, tile_k;
  int stages, group, acc;
  int ahead;  // blocks that loads are ahead of products
  bool specialised, persistent, overlaps;
  std::string wait;
  double row, kstep, copies, panel;
  std::string scales, out;
  double store_row;  // bytes; 0: bulk stores

  double Blocks() const { return std::ceil(k / tile_k); }
  double Listed() const { return std::min(Blocks(), kListedBlocks); }
  double OwnRows() const { return tile_m / group; }  // on one SM
};

PublishedKernel KernelOf(const Words& words) {
  const auto tile = base::Split(words.all().at("tile"), 'x');
  const auto extent = [&](size_t i) { return std::strtod(std::string(tile[i]).c_str(), nullptr); };
  return {.m = words.Number("m"),
          .n = words.Number("n"),
          .k = words.Number("k"),
          .bytes = words.Number("bits") / 8,
          .tile_m = extent(0),
          .tile_n = extent(1),
          .tile_k = extent(2),
          .stages = static_cast<int>(words.Number("stages")),
          .group = static_cast<int>(words.Number("cta_group", 1)),
          .acc = static_cast<int>(words.Number("acc", 1)),
          .ahead = static_cast<int>(words.Number("ahead", words.Number("stages") - 1)),
          .specialised = words.Number("ws") != 0,
          .persistent = words.Number("persistent") != 0,
          .overlaps = words.Number("overlap") != 0,
          .wait = words.Text("wait"),
          .row = words.Number("row", std::min(128.0, extent(2) * words.Number("bits") / 8)),
          .kstep = words.Number("kstep", 32),
          .copies = words.Number("copies", std::max(1.0, extent(2) * words.Number("bits") / 8 / 128)),
          .panel = words.Number("panel", kPanel),
          .scales = words.Text("scales"),
          .out = words.Text("out"),
          .store_row = words.Number("store_row")};
}

class RoleWriter {
 public:
  RoleWriter(const PublishedKernel& kernel, StepList& steps) : k_(kernel), steps_(steps) {}

  void Add(StepKind kind, int ring = -1, int lag = 0) { steps_.Add({.kind = kind, .ring = ring, .lag = lag}); }
  void Load() {
    Add(StepKind::kPut, kOperands);
    Operand(k_.OwnRows(), false);
    Operand(k_.tile_n / k_.group, true);
    if (k_.scales == "tma" || k_.scales == "cp") Scales();
    Add(StepKind::kSend, kOperands);
  }
  void Product() {
    if (k_.scales == "threads" || k_.scales == "tma") {
      // Threads load the scale factors from memory, or from shared memory, to Tensor Memory before the MMA.
      steps_.Add({.kind = k_.scales == "threads" ? StepKind::kReadGlobal : StepKind::kStage,
                  .bytes = ScaleBytes(),
                  .elements = ScaleBytes()});
      steps_.Add({.kind = StepKind::kReadAccumulator, .bytes = ScaleBytes()});
    }
    if (k_.scales == "cp") steps_.Add({.kind = StepKind::kTensorCopy, .bytes = ScaleBytes()});
    steps_.Add({.kind = StepKind::kMma,
                .rows = k_.OwnRows(),
                .columns = k_.tile_n,
                .depth = k_.tile_k * k_.bytes / k_.kstep,
                .b_share = 1.0 / k_.group,
                .tensor_memory = true,
                .pair = k_.group == 2});
  }
  void Epilogue() {
    for (double column = 0; column < k_.tile_n; column += k_.panel) {
      const double elements = k_.OwnRows() * std::min(k_.panel, k_.tile_n - column);
      steps_.Add({.kind = StepKind::kReadAccumulator, .bytes = elements * kSumBytes});
      if (k_.store_row > 0) {
        steps_.Add({.kind = StepKind::kStoreThreads, .bytes = elements * kOutBytes, .row_bytes = k_.store_row});
        continue;
      }
      Add(StepKind::kStoreWait, -1, 1);
      steps_.Add({.kind = StepKind::kStage, .elements = elements});
      steps_.Add({.kind = StepKind::kStore, .bytes = elements * kOutBytes, .row_bytes = 128});
    }
  }

 private:
  void Operand(double rows, bool of_b) {
    const double bytes = rows * k_.tile_k * k_.bytes;
    steps_.Add({.kind = StepKind::kLoad, .bytes = bytes, .of_b = of_b, .row_bytes = k_.row, .issues = k_.copies});
  }
  // One byte for 32 elements, for A and B.
  double ScaleBytes() const { return (k_.OwnRows() + k_.tile_n) * k_.tile_k / 32; }
  void Scales() { steps_.Add({.kind = StepKind::kLoad, .bytes = ScaleBytes(), .row_bytes = 128, .issues = 2}); }

  const PublishedKernel& k_;
  StepList& steps_;
};

// Loads, MMAs and epilogue by different warps.
std::vector<PipelineRole> Specialised(const PublishedKernel& k) {
  std::vector<PipelineRole> roles(3);
  RoleWriter load(k, roles[0].tile), multiply(k, roles[1].tile), epilogue(k, roles[2].tile);
  multiply.Add(StepKind::kPut, kSums);
  for (double block = 0; block < k.Listed(); ++block) {
    load.Load();
    multiply.Add(StepKind::kTake, kOperands);
    multiply.Product();
    multiply.Add(StepKind::kRelease, kOperands);
  }
  multiply.Add(StepKind::kSend, kSums);
  epilogue.Add(StepKind::kTake, kSums);
  epilogue.Epilogue();
  epilogue.Add(StepKind::kRelease, kSums);
  // A CTA does not end before its stores have read their accumulators.
  if (!k.persistent) epilogue.Add(StepKind::kStoreWait, -1, 0);
  return roles;
}

// One thread does one after the other.
std::vector<PipelineRole> Unspecialised(const PublishedKernel& k) {
  std::vector<PipelineRole> roles(1);
  RoleWriter all(k, roles[0].tile);
  const bool keeps = k.persistent && k.overlaps;
  // With overlap the first blocks of a tile are issued during the last MMAs of the previous tile, one more than
  // otherwise. The next block is issued only after that tile's stores have read its accumulators, which lie in slots of
  // the ring.
  const double ahead = std::min<double>(k.ahead + (keeps ? 1 : 0), k.Listed());
  RoleWriter before(k, keeps ? roles[0].before : roles[0].tile);
  for (double block = 0; block < ahead; ++block) before.Load();
  for (double block = 0; block < k.Listed(); ++block) {
    const bool more = keeps || block + ahead < k.Listed();
    const bool first = keeps && block == 0;  // is multiplied before the next one is loaded
    if (more && k.wait != "late" && !first) all.Load();
    all.Add(StepKind::kTake, kOperands);
    if (k.wait == "before" && block > 0) {
      all.Add(StepKind::kAwaitProducts);
      all.Add(StepKind::kRelease, kOperands);
    }
    all.Product();
    if (k.wait == "each") all.Add(StepKind::kDrain, kOperands);
    if (k.wait == "slot") all.Add(StepKind::kRelease, kOperands);
    if (k.wait == "late") {
      all.Add(StepKind::kReleaseLate, kOperands, 1);
      if (more) all.Load();
    }
    if (first) all.Add(StepKind::kStoreWait, -1, 0);
  }
  if (keeps) all.Load();
  all.Add(StepKind::kDrain, kOperands);
  all.Epilogue();
  if (!keeps) all.Add(StepKind::kStoreWait, -1, 0);
  return roles;
}

TileOrder OrderOf(const std::string& word, bool persistent) {
  if (word == "runs") return TileOrder::kRuns;
  return word == "clc" || !persistent ? TileOrder::kStolen : TileOrder::kStrides;
}

// How many CTAs fit on an SM.
double CtasOf(const PublishedKernel& k) {
  const double out = k.store_row > 0 ? 0 : k.OwnRows() * std::min(k.tile_n, 2 * kPanel) * kOutBytes;
  const double ring = k.stages * (k.OwnRows() + k.tile_n / k.group) * k.tile_k * k.bytes;
  const double shared = k.out == "ring" ? std::max(ring, out) : ring + out;
  // Scale factors lie next to the accumulators, those of A and of B in the fewest columns that can be allocated.
  const double scales = k.scales.empty() ? 0 : 2 * kLeastColumns;
  const double by_tensor = std::floor(kTensorColumns / (k.tile_n * k.acc + scales));
  return std::clamp(std::floor(kSharedBytes / shared), 1.0, std::max(1.0, by_tensor));
}

Pipeline PipelineOf(const PublishedKernel& k, const Words& words) {
  Pipeline pipeline;
  pipeline.rings = {{.stages = k.stages, .producers = 1, .consumers = 1},
                    {.stages = k.acc, .producers = 1, .consumers = 1}};
  pipeline.roles = k.specialised ? Specialised(k) : Unspecialised(k);
  pipeline.products = k.Blocks();
  pipeline.counted = k.Listed();
  pipeline.tile_rows = std::ceil(k.m / k.tile_m);
  pipeline.tile_columns = std::ceil(k.n / k.tile_n);
  pipeline.tiles = pipeline.tile_rows * pipeline.tile_columns;
  pipeline.raster = words.Number("raster", 8);
  pipeline.sms_per_tile = k.group;
  pipeline.persistent = k.persistent;
  pipeline.order = OrderOf(words.Text("order"), k.persistent);
  pipeline.ctas_per_sm = k.persistent ? 1 : words.Number("ctas", CtasOf(k));
  pipeline.a = {.unique_bytes = k.m * k.k * k.bytes, .tile_bytes = k.OwnRows() * k.k * k.bytes};
  pipeline.b = {.unique_bytes = k.n * k.k * k.bytes, .tile_bytes = k.tile_n / k.group * k.k * k.bytes};
  pipeline.stored_bytes = k.m * k.n * kOutBytes;
  pipeline.cold = words.Number("cold", 1) != 0;
  return pipeline;
}

Result<std::map<std::string, autotune::Machine>> ReadNodes(const std::string& path, const target::Target& target) {
  std::ifstream file(path);
  if (!file) return MakeError(ErrorCode::kNotFound, base::Cat("cannot read ", path));
  std::map<std::string, autotune::Machine> nodes;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const Words words(line, {});
    autotune::Machine machine = autotune::PublishedMachine(target, static_cast<int>(words.Number("sms")));
    machine.clock_ghz = words.Number("clock");
    machine.busy_clock_ghz = words.Number("busy");
    nodes[words.Text("node")] = machine;
  }
  return nodes;
}

}  // namespace

Result<std::vector<TimingSample>> ReadPublished(const std::string& path, const target::Target& target) {
  std::ifstream file(path);
  if (!file) return MakeError(ErrorCode::kNotFound, base::Cat("cannot read ", path));
  LS_ASSIGN(const auto nodes, ReadNodes(path.substr(0, path.rfind('/') + 1) + "nodes.txt", target));
  std::map<std::string, std::string> common;
  std::vector<TimingSample> samples;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const Words words(line, common);
    if (line.starts_with("common ")) {
      common = words.all();
      continue;
    }
    const auto node = nodes.find(words.Text("node"));
    if (node == nodes.end()) return MakeError(ErrorCode::kNotFound, base::Cat("no such node: ", line));
    const PublishedKernel kernel = KernelOf(words);
    TimingSample sample{.series = words.Text("series"),
                        .name = base::Cat(words.Text("name"), " ", words.Text("tile"), " stages=", kernel.stages, " k=",
                                          words.Text("k"), " ws=", words.Text("ws"), " pers=", words.Text("persistent"),
                                          " cg=", words.Text("cta_group"), " raster=", words.Text("raster")),
                        .node = words.Text("node"),
                        .pipeline = PipelineOf(kernel, words),
                        .machine = node->second,
                        .flops = 2 * kernel.m * kernel.n * kernel.k};
    sample.pipeline.most_sms = words.Number("sms");
    sample.us = sample.flops / words.Number("tflops") / 1e6;
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace laneshift::bench
