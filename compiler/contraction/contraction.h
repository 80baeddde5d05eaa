// Contraction: what a problem asks of the tensor cores, made from it once: D[m,n] = sum over k of A[m,k] * B[k,n], for
// each product of a batch, with operands that lie wherever their sources say.
//
// Rules, programs, parameters, traffic and estimates are made from this value, and do not ask what kind of problem it
// came from. Where operands are not matrices they ask their source. docs/adr/0028-*.md says how other contractions fit.
// Thread-safety: values and pure functions.
#pragma once

#include <string_view>

#include "compiler/contraction/conv_geometry.h"
#include "compiler/contraction/operand_source.h"
#include "laneshift/problem.h"
#include "laneshift/schedule.h"

namespace laneshift::compiler {

struct Contraction {
  OperandSource a, b, c, d;
  std::string_view d_rows{};  // what rows of D are called in messages: "D", "y"

  // Of one product.
  int64_t m = 0;        // rows of A and D: of images the positions of the walk
  int64_t n = 0;        // columns of B
  int64_t columns = 0;  // of D: half of n where the epilogue joins columns in pairs
  // K is `runs` runs of `run` elements, each walked in whole blocks: one run of a matrix, the channels of each tap.
  int64_t run = 0, runs = 1;
  int64_t batch = 1;              // products: matrices, or groups of channels
  std::string_view batch_name{};  // as the problem's key: "batch", "groups"

  ConvGeometry geometry{};  // of pixels and filters

  // What happens to a sum.
  double alpha = 1, beta = 0;
  BiasAxis bias = BiasAxis::kNone;
  Scaling scale = Scaling::kNone;
  SumPrecision sum = SumPrecision::kF32;
  Numerics numerics = Numerics::kDefault;
  const Epilogue* steps = nullptr;  // the problem's

  const OperandSource& Of(ir::Operand operand) const;
  OperandSource& Of(ir::Operand operand);
  const Epilogue& epilogue() const { return *steps; }
  bool WalksPixels() const { return a.kind == SourceKind::kPixels; }
  // The same contraction under another schedule, made of less than ContractionOf() makes it. REQUIRES: `problem` is the
  // one that it is of.
  Contraction Under(const Problem& problem, const Schedule& schedule) const;
  // Blocks of K of one product.
  int64_t Blocks(const Schedule& schedule) const;
  // Iterations of the loop over K of one tile: what the CTAs that share it divide. Where activations are reused, the
  // columns of a filter row are one.
  int64_t Iterations(const Schedule& schedule) const;
};

// REQUIRES: the problem is complete and outlives the contraction.
Contraction ContractionOf(const Problem& problem, const Schedule& schedule);
// As far as no schedule decides it: each position of a walk is a pixel of the output.
Contraction ContractionOf(const Problem& problem);

}  // namespace laneshift::compiler
