// Mainloop: the loop over K of the role that multiplies: which slots it takes, in which order it multiplies what they
// hold, and when it releases them. docs/adding-a-mainloop.md says how one is added.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include "compiler/build/accumulation.h"

namespace laneshift::compiler {

class Mainloop {
 public:
  Mainloop() = default;
  Mainloop(const Mainloop&) = delete;
  Mainloop& operator=(const Mainloop&) = delete;
  virtual ~Mainloop() = default;

  // The products of one tile.
  virtual void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const = 0;
};

}  // namespace laneshift::compiler
