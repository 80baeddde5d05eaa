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

constexpr Target kTargets[] = {
    {.name = "sm_100a",
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
     .features = Bits(
         {Feature::kTma, Feature::kTensorMemory, Feature::kSetMaxNReg, Feature::kTmaToCta, Feature::kLaunchControl}),
     .mma = {.summary = "tcgen05.mma, with Tensor Memory",
             .accumulators = AccumulatorSpace::kTensorMemory,
             .descriptors = MatrixDescriptorFormat::kTcgen05,
             .one_thread_issues = true,
             .most_rows = 128,
             .full_rate_rows = 128,
             .most_ctas = 2,
             .narrow_columns = false,
             .least_mn_major_bits = 8,
             .mixed_integers_ptx_version = 86,
             .block_scale_ptx_version = 88,
             .moves_lanes = true}},
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
             .narrow_columns = true,
             .least_mn_major_bits = 16,
             .mixed_integers_ptx_version = 84,
             .block_scale_ptx_version = 0,
             .moves_lanes = false}},
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

Result<const Target*> FindTarget(std::string_view name) {
  std::string known;
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
    known += base::Cat(known.empty() ? "" : ", ", target.name);
  }
  return MakeError(ErrorCode::kUnsupported, base::Cat("unknown target '", name, "'; known targets: ", known));
}

const Target& NamedTarget(std::string_view name) {
  const auto target = FindTarget(name);
  LS_CHECK(target.has_value(), "a target is named that does not exist: ", name);
  return **target;
}

Result<const Target*> TargetOfDevice(int compute_major, int compute_minor) {
  for (const Target& target : kTargets) {
    if (target.compute_major == compute_major && target.compute_minor == compute_minor) return &target;
  }
  return MakeError(ErrorCode::kUnsupported,
                   base::Cat("compute capability ", compute_major, ".", compute_minor,
                             " has no target here; laneshift generates code for 10.0 (sm_100a) and 9.0 (sm_90a)"));
}

}  // namespace laneshift::target
