// RowOffsetMainloop: the columns of a filter row are products of one slot of activations, each from its own row on.
//
// Thread-safety: a value.
#pragma once

#include <utility>

#include "compiler/build/filter_row.h"
#include "compiler/build/mainloop.h"

namespace laneshift::compiler {

class RowOffsetMainloop final : public Mainloop {
 public:
  explicit RowOffsetMainloop(FilterRow row) : row_(std::move(row)) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;

 private:
  const FilterRow row_;
};

}  // namespace laneshift::compiler
