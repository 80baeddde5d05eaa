// The descriptors of matrix instructions, as structs whose members are the fields of the manual.
//
// Thread-safety: values.
#pragma once

#include <cstdint>

#include "ir/layout.h"
#include "ir/mma.h"
#include "target/target.h"

namespace laneshift::compiler {

// Of tcgen05.mma (PTX ISA, "Instruction descriptor").
struct InstructionDescriptor {
  uint32_t sparsity_selector : 2 = 0;
  uint32_t sparse : 1 = 0;
  uint32_t saturate : 1 = 0;  // of integers
  uint32_t d_format : 2 = 0;  // 1: f32, 2: s32
  uint32_t reserved_6 : 1 = 0;
  uint32_t a_format : 3 = 0;
  uint32_t b_format : 3 = 0;
  uint32_t negate_a : 1 = 0;
  uint32_t negate_b : 1 = 0;
  uint32_t transpose_a : 1 = 0;  // 1: A is M-major
  uint32_t transpose_b : 1 = 0;  // 1: B is N-major
  uint32_t n_over_8 : 6 = 0;
  uint32_t reserved_23 : 1 = 0;
  uint32_t m_over_16 : 5 = 0;
  uint32_t reserved_29 : 1 = 0;
  uint32_t max_shift : 2 = 0;

  uint32_t Bits() const;
  static InstructionDescriptor FromBits(uint32_t bits);
};

// The same of kinds with scale factors, which have only M = 128 and 256.
struct ScaledInstructionDescriptor {
  uint32_t reserved_0 : 2 = 0;
  uint32_t sparse : 1 = 0;
  uint32_t reserved_3 : 1 = 0;
  uint32_t b_scale_byte : 2 = 0;
  uint32_t reserved_6 : 1 = 0;
  uint32_t a_format : 3 = 0;
  uint32_t b_format : 3 = 0;
  uint32_t negate_a : 1 = 0;
  uint32_t negate_b : 1 = 0;
  uint32_t transpose_a : 1 = 0;
  uint32_t transpose_b : 1 = 0;
  uint32_t n_over_8 : 6 = 0;
  uint32_t scale_format : 1 = 0;  // 1: ue8m0
  uint32_t reserved_24 : 3 = 0;
  uint32_t m_over_128 : 2 = 0;
  uint32_t a_scale_byte : 2 = 0;
  uint32_t long_rows : 1 = 0;  // K = 96, of kinds with 4-bit elements

  uint32_t Bits() const;
  static ScaledInstructionDescriptor FromBits(uint32_t bits);
};

uint32_t InstructionDescriptorBits(const ir::MmaInstruction& instruction);

// Of an operand in shared memory, of tcgen05.mma (PTX ISA, "Shared memory descriptor").
struct Tcgen05MatrixDescriptor {
  uint64_t start_over_16 : 14 = 0;
  uint64_t reserved_14 : 2 = 0;
  uint64_t leading_over_16 : 14 = 0;
  uint64_t reserved_30 : 2 = 0;
  uint64_t stride_over_16 : 14 = 0;
  uint64_t version : 3 = 1;
  uint64_t base_offset : 3 = 0;
  uint64_t leading_mode : 1 = 0;  // 1: the leading offset is an address
  uint64_t reserved_53 : 8 = 0;
  uint64_t swizzle : 3 = 0;

  uint64_t Bits() const;
  static Tcgen05MatrixDescriptor FromBits(uint64_t bits);
};

// The same of wgmma (PTX ISA, "Matrix descriptor format").
struct WgmmaMatrixDescriptor {
  uint64_t start_over_16 : 14 = 0;
  uint64_t reserved_14 : 2 = 0;
  uint64_t leading_over_16 : 14 = 0;
  uint64_t reserved_30 : 2 = 0;
  uint64_t stride_over_16 : 14 = 0;
  uint64_t reserved_46 : 3 = 0;
  uint64_t base_offset : 3 = 0;
  uint64_t reserved_52 : 10 = 0;
  uint64_t swizzle : 2 = 0;

  uint64_t Bits() const;
  static WgmmaMatrixDescriptor FromBits(uint64_t bits);
};

// The constant bits of a tile's descriptor: all but its start address.
uint64_t MatrixDescriptorBits(const ir::SharedLayout& layout, target::MatrixDescriptorFormat format);

}  // namespace laneshift::compiler
