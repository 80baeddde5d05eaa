// The frame of a kernel: it declares the program, plans the CTA and joins the parts that a kind of problem chooses into
// roles. A kind of problem is a set of loaders, a main loop and the addressing of D (build_gemm.cc, build_conv.cc).
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/build/epilogue_terms.h"
#include "compiler/build/k_loop.h"
#include "compiler/build/mainloop.h"
#include "compiler/build/operand_loader.h"
#include "compiler/build/output_tensor.h"
#include "ir/program.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

struct KernelParts {
  std::string name;
  DataType operand_type{};                          // of A
  int operand_bits = 0;                             // of an element of A or B in shared memory; 0: of that type
  bool sparse_a = false;                            // the same
  bool saturates = false;                           // ir::Program
  ir::WorkSource source = ir::WorkSource::kStatic;  // or of groups, or of parts of K
  bool indexes_a = false;                           // an index vector says which rows of A rows of the product are
  EpilogueTerms terms{};
  int live_rows = 0;               // ir::Program
  int diagonal_blocks = 1;         // the same
  PixelWindows windows{};          // whose elements are columns of D, where it has any
  bool slices_apart = false;       // another kernel adds split-K's partial sums (Contraction::AddsSlicesApart)
  Spatial patch{1, 1, 1};          // ir::Program: patch_d, patch_h, patch_w
  bool overlaps_launches = false;  // ir::Program
  bool has_waves = false;          // CTAs have several tiles
  int row_step = 0;                // RowDivision::step
  KLoop k{};
  std::vector<ir::Channel> channels{};                    // that the loaders fill, and the main loop's own
  std::vector<std::unique_ptr<OperandLoader>> loaders{};  // A's first
  std::unique_ptr<ResidentLoader> resident{};             // of B, or null
  std::unique_ptr<Mainloop> mainloop{};
  std::unique_ptr<OutputTensor> output{};
  SlotMetadata metadata{};  // of a sparse A
};

// Whether two accumulators may have columns in common, if Tensor Memory has no room for both. Not where partial sums
// are read before the tile is (split-K).
bool AccumulatorsMayOverlap(const Schedule& schedule);

// Columns of D that are elements of windows, where there are any.
void NameWindows(const PixelWindows& windows, ir::Program& program);

// Patches of pixels that are columns of D or of a filter.
void NamePatches(const Spatial& patch, ir::Program& program);

// A program of output tiles, of which nothing else is declared yet.
ir::Program ProgramOfTile(std::string name, const Schedule& schedule, DataType operand_type,
                          const target::Target& target);

ir::Program JoinKernel(KernelParts parts, const Schedule& schedule, const target::Target& target);

}  // namespace laneshift::compiler
