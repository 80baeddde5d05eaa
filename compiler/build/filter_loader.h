// Loaders of a convolution's filters: a block of K is channels of one tap, by bulk tensor copies or by copies of
// threads. Of a gradient of x it is filters, and their channels are N.
//
// Thread-safety: values.
#pragma once

#include <vector>

#include "compiler/build/operand_loader.h"
#include "compiler/build/operand_parts.h"

namespace laneshift::compiler {

struct FilterOperand {
  ir::SharedLayout tile{};  // that one CTA holds
  KLoop k{};
  std::vector<int> columns{};  // of the filter, where a block of K has a slot for each
  bool finds_taps = false;     // taps do not follow each other at one distance: threads look each up
  bool planes = false;         // three spatial dimensions
  bool known = false;          // all of the filter is in one tile

  // Whether a row is a filter's channels of one tap, of which a gradient of x reads columns: K are the filters.
  bool IsTransposed() const { return tile.outer_axis == ir::Axis::kK; }

  void AddParams(LoadPath path, const OperandParts& parts, std::vector<ir::Param>& params) const;
};

class FilterLoader final : public OperandLoader {
 public:
  // REQUIRES: `parts` outlives the loader.
  FilterLoader(const LoadTarget& target, const FilterOperand& filter, const OperandParts& parts)
      : OperandLoader(target), filter_(filter), parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override { filter_.AddParams(target().path, parts_, params); }
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const FilterOperand filter_;
  const OperandParts& parts_;
};

// Slots are numbered by taps, and by blocks of their channels.
class ResidentFilterLoader final : public ResidentLoader {
 public:
  // REQUIRES: `parts` outlives the loader.
  ResidentFilterLoader(const LoadTarget& target, const FilterOperand& filter, const OperandParts& parts)
      : ResidentLoader(target), filter_(filter), parts_(parts) {}

  void AddParams(std::vector<ir::Param>& params) const override { filter_.AddParams(target().path, parts_, params); }
  void Load(ir::Builder& b) const override;
  ir::ValueId Slots(ir::Builder& b) const override;

 private:
  const FilterOperand filter_;
  const OperandParts& parts_;
};

}  // namespace laneshift::compiler
