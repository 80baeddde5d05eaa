#include "target/target.h"

#include "base/check.h"
#include "base/text.h"

namespace laneshift::target {
namespace {

constexpr uint32_t Bits(std::initializer_list<Feature> features) {
  uint32_t bits = 0;
  for (const Feature feature : features) bits |= static_cast<uint32_t>(feature);
  return bits;
}

constexpr Target kSm100a = {
    .name = "sm_100a",
    .compute_major = 10,
    .compute_minor = 0,
    .ptx_version = 86,
    .smem_bytes = 232448,
    .tmem_columns = 512,
    .registers_per_sm = 65536,
    .eight_bit_sum_bits = 23,
    .mma_macs_per_clock = 4096,
    .product = Product::kB200,
    .default_sm_count = 148,
    .max_cluster = 8,
    .features = Bits({Feature::kTma, Feature::kTensorMemory, Feature::kSetMaxNReg, Feature::kTmaToCta,
                      Feature::kLaunchControl, Feature::kFloat4, Feature::kTmaGather}),
    .mma = {.summary = "tcgen05.mma, with Tensor Memory",
            .accumulators = AccumulatorSpace::kTensorMemory,
            .descriptors = MatrixDescriptorFormat::kTcgen05,
            .one_thread_issues = true,
            .most_rows = 128,
            .full_rate_rows = 128,
            .most_ctas = 2,
            .least_mn_major_bits = 8,
            .mixed_integers_ptx_version = 86,
            .block_scale_ptx_version = 88,
            .sparse_ptx_version = 86,
            .integers = true,
            .pads_operands = true,
            .multiplies_sparse_four_bit = true,
            .long_rows = false,
            .moves_lanes = true}};

// Another chip with Tensor Memory, by what distinguishes it from sm_100a.
struct Relative {
  std::string_view name;
  int compute_major, compute_minor, ptx_version;
  Product product;
  int sm_count;
  bool integers, moves_lanes;
  bool family = false;
  bool long_rows = false;
};
constexpr Target Like(Target target, const Relative& other) {
  target.name = other.name;
  target.compute_major = other.compute_major;
  target.compute_minor = other.compute_minor;
  target.ptx_version = other.ptx_version;
  target.product = other.product;
  target.default_sm_count = other.sm_count;
  target.mma.mixed_integers_ptx_version = other.ptx_version;
  target.mma.block_scale_ptx_version = other.ptx_version;
  target.mma.sparse_ptx_version = other.ptx_version;
  target.mma.integers = other.integers;
  target.mma.moves_lanes = other.moves_lanes;
  target.mma.long_rows = other.long_rows;
  target.mma.multiplies_sparse_four_bit = !other.family;
  target.family = other.family;
  return target;
}

constexpr Target kTargets[] = {
    kSm100a,
    {.name = "sm_90a",
     .compute_major = 9,
     .compute_minor = 0,
     .ptx_version = 80,
     .smem_bytes = 232448,
     .tmem_columns = 0,
     .registers_per_sm = 65536,
     .eight_bit_sum_bits = 13,
     .mma_macs_per_clock = 2048,
     .product = Product::kH200,
     .default_sm_count = 132,
     .max_cluster = 8,
     .features = Bits({Feature::kTma, Feature::kWgmma, Feature::kSetMaxNReg}),
     .mma = {.summary = "wgmma",
             .accumulators = AccumulatorSpace::kRegisters,
             .descriptors = MatrixDescriptorFormat::kWgmma,
             .one_thread_issues = false,
             .most_rows = 64,
             .full_rate_rows = 64,
             .most_ctas = 1,
             .least_mn_major_bits = 16,
             .mixed_integers_ptx_version = 84,
             .block_scale_ptx_version = 0,
             .sparse_ptx_version = 82,
             .integers = true,
             .pads_operands = false,
             .multiplies_sparse_four_bit = false,
             .long_rows = false,
             .moves_lanes = false}},
    // PTX ISA 9.0, "tcgen05.mma", "tcgen05.mma.sp" and "tcgen05.shift", "Target ISA Notes": kind::i8 is not for sm_103a
    // and families; shifts, and sparsity of mxf4 and mxf4nvf4, are not for families; K = 96 is for sm_103a.
    Like(kSm100a, {.name = "sm_103a",
                   .compute_major = 10,
                   .compute_minor = 3,
                   .ptx_version = 88,
                   .product = Product::kB300,
                   .sm_count = 148,
                   .integers = false,
                   .moves_lanes = true,
                   .long_rows = true}),
    Like(kSm100a, {"sm_110a", 11, 0, 90, Product::kThor, 20, true, true}),
    Like(kSm100a, {"sm_100f", 10, 0, 88, Product::kB200, 148, false, false, true}),
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

std::string TargetNames(std::string_view separator) {
  std::string names;
  for (const Target& target : kTargets) names += base::Cat(names.empty() ? "" : separator, target.name);
  return names;
}

Result<const Target*> FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return MakeError(ErrorCode::kUnsupported,
                   base::Cat("unknown target '", name, "'; known targets: ", TargetNames(", ")));
}

const Target& NamedTarget(std::string_view name) {
  const auto target = FindTarget(name);
  LS_CHECK(target.has_value(), "a target is named that does not exist: ", name);
  return **target;
}

Result<const Target*> TargetOfDevice(int compute_major, int compute_minor) {
  for (const Target& target : kTargets) {
    if (!target.family && target.RunsOn(compute_major, compute_minor)) return &target;
  }
  std::string known;
  for (const Target& target : kTargets) {
    known +=
        base::Cat(known.empty() ? "" : ", ", target.compute_major, ".", target.compute_minor, " (", target.name, ")");
  }
  return MakeError(ErrorCode::kUnsupported, base::Cat("compute capability ", compute_major, ".", compute_minor,
                                                      " has no target here; laneshift generates code for ", known));
}

}  // namespace laneshift::target
