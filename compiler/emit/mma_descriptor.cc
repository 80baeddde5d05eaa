#include "compiler/emit/mma_descriptor.h"

#include <cstring>

#include "base/check.h"
#include "ir/element_type.h"

namespace laneshift::compiler {
namespace {

// std::bit_cast of bit-fields, which clang 14 cannot do.
template <typename To, typename From>
To BitsAs(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}

// Of accumulators: the codes of f32 and s32.
constexpr uint32_t kF32Accumulator = 1, kS32Accumulator = 2;
constexpr uint32_t kUe4m3Factors = 0, kUe8m0Factors = 1;

// In the order of ir::Swizzle: none, 32, 64 and 128 bytes.
constexpr uint64_t kTcgen05Swizzles[] = {0, 6, 4, 2};
constexpr uint64_t kWgmmaSwizzles[] = {0, 3, 2, 1};

template <typename Descriptor>
uint64_t BitsOfTile(const ir::SharedLayout& layout, const uint64_t* swizzles) {
  const ir::MatrixStrides strides = ir::DescriptorStrides(layout);
  Descriptor descriptor;
  descriptor.leading_over_16 = static_cast<uint64_t>(strides.leading >> 4);
  descriptor.stride_over_16 = static_cast<uint64_t>(strides.stride >> 4);
  descriptor.swizzle = swizzles[static_cast<size_t>(layout.swizzle)];
  return descriptor.Bits();
}

}  // namespace

uint32_t InstructionDescriptor::Bits() const { return BitsAs<uint32_t>(*this); }
InstructionDescriptor InstructionDescriptor::FromBits(uint32_t bits) { return BitsAs<InstructionDescriptor>(bits); }
uint64_t Tcgen05MatrixDescriptor::Bits() const { return BitsAs<uint64_t>(*this); }
Tcgen05MatrixDescriptor Tcgen05MatrixDescriptor::FromBits(uint64_t bits) {
  return BitsAs<Tcgen05MatrixDescriptor>(bits);
}
uint64_t WgmmaMatrixDescriptor::Bits() const { return BitsAs<uint64_t>(*this); }
WgmmaMatrixDescriptor WgmmaMatrixDescriptor::FromBits(uint64_t bits) { return BitsAs<WgmmaMatrixDescriptor>(bits); }

uint32_t ScaledInstructionDescriptor::Bits() const { return BitsAs<uint32_t>(*this); }
ScaledInstructionDescriptor ScaledInstructionDescriptor::FromBits(uint32_t bits) {
  return BitsAs<ScaledInstructionDescriptor>(bits);
}

namespace {

// The fields that both formats have.
template <typename Descriptor>
Descriptor DescriptorOf(const ir::MmaInstruction& instruction) {
  Descriptor descriptor;
  descriptor.a_format = static_cast<uint32_t>(ir::MmaTypeCode(instruction.kind, instruction.a.type));
  descriptor.b_format = static_cast<uint32_t>(ir::MmaTypeCode(instruction.kind, instruction.b.type));
  descriptor.transpose_a = instruction.a.mn_major ? 1 : 0;
  descriptor.transpose_b = instruction.b.mn_major ? 1 : 0;
  descriptor.sparse = instruction.sparse ? 1 : 0;
  descriptor.n_over_8 = static_cast<uint32_t>(instruction.n / 8);
  return descriptor;
}

}  // namespace

uint32_t InstructionDescriptorBits(const ir::MmaInstruction& instruction) {
  if (ir::InfoOf(instruction.kind).scale_run != 0) {
    auto descriptor = DescriptorOf<ScaledInstructionDescriptor>(instruction);
    descriptor.a_scale_byte = descriptor.b_scale_byte = static_cast<uint32_t>(instruction.scale_byte);
    descriptor.scale_format = instruction.kind == ir::MmaKind::kMxf4nvf4 ? kUe4m3Factors : kUe8m0Factors;
    descriptor.m_over_128 = static_cast<uint32_t>(instruction.m / 128);
    descriptor.long_rows = instruction.HasLongRows() ? 1 : 0;
    return descriptor.Bits();
  }
  auto descriptor = DescriptorOf<InstructionDescriptor>(instruction);
  descriptor.sparsity_selector = static_cast<uint32_t>(instruction.selector);
  descriptor.saturate = instruction.saturates ? 1 : 0;
  descriptor.d_format = ir::IsInteger(instruction.accumulator()) ? kS32Accumulator : kF32Accumulator;
  descriptor.m_over_16 = static_cast<uint32_t>(instruction.m / 16);
  return descriptor.Bits();
}

uint64_t MatrixDescriptorBits(const ir::SharedLayout& layout, target::MatrixDescriptorFormat format) {
  switch (format) {
    case target::MatrixDescriptorFormat::kTcgen05:
      return BitsOfTile<Tcgen05MatrixDescriptor>(layout, kTcgen05Swizzles);
    case target::MatrixDescriptorFormat::kWgmma:
      return BitsOfTile<WgmmaMatrixDescriptor>(layout, kWgmmaSwizzles);
  }
  LS_CHECK(false, "unknown format of descriptors");
}

}  // namespace laneshift::compiler
