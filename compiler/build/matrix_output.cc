#include "compiler/build/matrix_output.h"

namespace laneshift::compiler {

using ir::Binding;

void MatrixOutput::AddPitches(ir::Operand operand, std::vector<ir::Param>& params) const {
  params.push_back({ir::PitchOf(operand), {}});
  if (!contraction_.grouped) params.push_back({ir::StrideOf(operand), {}});
}

void MatrixOutput::AddSizes(std::vector<ir::Param>& params) const {
  if (contraction_.group_rows > 0) {
    params.insert(params.end(), {{Binding::kGroupSizes, {}}, {Binding::kGroupRows, {}}});
  } else if (contraction_.HasDeviceSizes()) {
    params.push_back({Binding::kGroupOffsets, {}});
  }
  if (contraction_.a.indexed) params.insert(params.end(), {{Binding::kRowIndicesA, {}}, {Binding::kStoredRowsA, {}}});
  if (contraction_.d.indexed) params.insert(params.end(), {{Binding::kRowIndicesD, {}}, {Binding::kStoredRowsD, {}}});
  for (const Binding size : {Binding::kM, Binding::kN, Binding::kK, Binding::kBatch}) params.push_back({size, {}});
}

// Groups are rows of one matrix.
std::vector<ir::ValueId> MatrixOutput::StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) const {
  return {row, contraction_.grouped ? b.Constant(0) : corner.batch};
}

void MatrixOutput::BulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner&,
                             const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) const {
  ir::BulkStoreAttrs store = attrs;
  if (contraction_.grouped) store.rows = ir::RowMap::kGroups;
  b.TmaStore({copy, column, start[0], start[1]}, store);
}

}  // namespace laneshift::compiler
