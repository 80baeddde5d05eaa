// Loaders of an operand that is a matrix: a block of K is one tile of it, by bulk tensor copies or by copies of
// threads.
//
// Thread-safety: values.
#pragma once

#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"
#include "compiler/contraction/contraction.h"
#include "target/target.h"

namespace laneshift::compiler {

// An operand of a GEMM as its tiles lie in shared memory.
struct MatrixOperand {
  ir::Operand operand{};
  ir::SharedLayout tile{};  // that one CTA holds
  bool transposed = false;  // by the threads that copy it, on its way
  bool shared = false;      // one matrix for the whole batch
  bool indexed = false;     // an index vector says which of its rows a row of the product is
  int compression = 1;      // elements of K for each one of the tile
  int piece = 0;            // bytes of an asynchronous copy; 0: it comes otherwise
  int copied_rows = 0;      // of a bulk copy, where those of a tile that are not multiplied are left out; 0: all

  void AddParams(LoadPath path, const OperandParts& parts, std::vector<ir::Param>& params) const;
  // Bulk copies leave out rows that are not multiplied. REQUIRES: rows are the tile's outer extent.
  void LeaveOutRows(const OperandParts& parts, RowSide rows);
};

// What one CTA holds of a tile, as it is stored, or along K where it is transposed on its way.
MatrixOperand MatrixOperandOf(const Contraction& contraction, const Schedule& schedule, ir::Operand operand,
                              const target::Target& target);

// Where a tile begins in the matrices.
struct MatrixStart {
  ir::ValueId row, column, depth, batch;
  ir::ValueId rows = ir::kNoValue;  // of the tile that count
};

class MatrixLoader final : public OperandLoader {
 public:
  // REQUIRES: `parts` outlives the loader.
  MatrixLoader(const LoadTarget& target, const MatrixOperand& matrix, const OperandParts& parts)
      : OperandLoader(target), matrix_(matrix), parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override { matrix_.AddParams(target().path, parts_, params); }
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;
  // A lane keeps an address and bounds for each run of pieces of a row.
  bool KeepsManyAddresses() const override;

 private:
  const MatrixOperand matrix_;
  const OperandParts& parts_;
};

// Rows of A that an index vector names, by bulk copies of one row or a few.
class RowLoader final : public OperandLoader {
 public:
  // REQUIRES: `parts` outlives the loader.
  RowLoader(const LoadTarget& target, const MatrixOperand& matrix, const OperandParts& parts, int at_once)
      : OperandLoader(target), matrix_(matrix), parts_(parts), at_once_(at_once) {}

  // Warps that issue the copies. Each has some of every block of K: no slot becomes full without it.
  static int WarpsFor(const MatrixOperand& matrix, const OperandParts& parts, int at_once);

  int StartRegisters() const override;
  void AddParams(std::vector<ir::Param>& params) const override;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  int Rows() const { return matrix_.tile.outer / parts_.Count(matrix_.operand); }

  const MatrixOperand matrix_;
  const OperandParts& parts_;
  const int at_once_;
};

// B, all of its blocks of K.
class ResidentMatrixLoader final : public ResidentLoader {
 public:
  // REQUIRES: `parts` outlives the loader.
  ResidentMatrixLoader(const LoadTarget& target, const MatrixOperand& matrix, const KLoop& k, const OperandParts& parts)
      : ResidentLoader(target), matrix_(matrix), k_(k), parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override { matrix_.AddParams(target().path, parts_, params); }
  void Load(ir::Builder& b) const override;
  ir::ValueId Slots(ir::Builder& b) const override { return k_.Blocks(b); }

 private:
  const MatrixOperand matrix_;
  const KLoop k_;
  const OperandParts& parts_;
};

}  // namespace laneshift::compiler
