// SubtileSteps: what happens to a subtile of a tile between its sums and D: scaling, C, bias and the steps of the
// epilogue.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <vector>

#include "compiler/build/cta_plan.h"
#include "compiler/build/output_tensor.h"

namespace laneshift::compiler {

// A subtile of the tile on its way to D: where it begins, and how many operands and numbers of the epilogue's steps it
// has passed. Where columns have been joined in pairs, `column` is D's.
struct Subtile {
  ir::ValueId fragment = ir::kNoValue, row = ir::kNoValue, column = ir::kNoValue, batch = ir::kNoValue;
  int columns = 0;  // of the accumulator
  int operand = 0, number = 0;
  bool gated = false;
  ir::ValueId own = ir::kNoValue;                         // where the warp's rows of the accumulator begin in D
  ir::ValueId tile = ir::kNoValue, panel = ir::kNoValue;  // where its columns do; the panel among those of a tile
  int part = 0;                                           // of the panel

  std::vector<ir::ValueId> Operands() const { return {fragment, row, column, batch}; }
};

// Scale factors of whole tensors, which a role has loaded; kNoValue: there is none.
struct TensorScales {
  ir::ValueId a = ir::kNoValue, b = ir::kNoValue, d = ir::kNoValue;
};

// The parameters of an epilogue, after those of the operands and of D: C, the bias, scale factors, what the steps read
// and write, with their functions, then sizes and scalars.
void DeclareEpilogue(const EpilogueTerms& terms, const OutputTensor& output, ir::Program& program);

class SubtileSteps {
 public:
  // REQUIRES: all outlive the steps, and the declarations of `program` are complete when the first op is written.
  SubtileSteps(const EpilogueTerms& terms, const CtaPlan& plan, const ir::Program& program, const OutputTensor& output)
      : terms_(terms), plan_(plan), program_(program), output_(output) {}

  // Once a role, before its tiles.
  TensorScales LoadTensorScales(ir::Builder& b) const;
  // steps(alpha * scale factors * accumulator + beta * C + bias) * scale factor of D, or that quantised in blocks.
  void Write(ir::Builder& b, Subtile& subtile, const TensorScales& scales) const;
  // Whether a tile's steps read C or matrices that L2 can be asked for row by row.
  bool Prefetches() const { return !MatricesToPrefetch().empty(); }
  // Asks for those of the tile.
  void Prefetch(ir::Builder& b, const Corner& corner) const;
  // Rows of the accumulator that a warp has in one block: those that are kept.
  int RowsOfWarp() const;
  // How C or D is accessed where a lane holds a subtile of `columns` columns of the accumulator.
  ir::GlobalAttrs AccessOf(ir::Operand operand, int columns) const;

 private:
  std::vector<ir::PrefetchMatrixAttrs> MatricesToPrefetch() const;
  // The same, of a matrix that lies as D does.
  ir::GlobalAttrs StepAccess(ir::Binding base, DataType type, int columns) const;
  // Whether what lies along an axis lies as two halves there.
  bool HalvesOf(BiasAxis axis, const Subtile& subtile) const {
    return axis == BiasAxis::kN && !subtile.gated && ir::HasSplitGateUp(terms_.steps);
  }
  // The subtile, and its place in D or C: shared by all steps, or computed anew for each.
  std::vector<ir::ValueId> OperandsOf(ir::Builder& b, const Subtile& subtile) const;
  void WriteStep(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void WriteCall(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void WriteFunction(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void MultiplyByFactors(ir::Builder& b, BiasAxis axis, Subtile& subtile) const;
  void CombineVector(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void PassMatrix(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void Reduce(ir::Builder& b, const EpilogueStep& step, Subtile& subtile) const;
  void StorePartials(ir::Builder& b, ir::Binding base, BiasAxis axis, const Subtile& subtile) const;

  const EpilogueTerms& terms_;
  const CtaPlan& plan_;
  const ir::Program& program_;
  const OutputTensor& output_;
};

}  // namespace laneshift::compiler
