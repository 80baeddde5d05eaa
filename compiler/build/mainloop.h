// Mainloop: the loop over K of the role that multiplies: which slots it takes, in which order it multiplies what they
// hold, and when it releases them. docs/adding-a-mainloop.md says how one is added.
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include "base/check.h"
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

  // What another role stores to Tensor Memory for the products of one tile.
  virtual bool HasStores() const { return false; }
  virtual void WriteStores(ir::Builder&, const Corner&) const { LS_CHECK(false, "no role stores operands"); }

  // Issues the first product of the tile that is written next, so that it runs during the epilogue of the one before.
  // The loading role fills a slot for it after the last tile, too.
  virtual bool MayBegin() const { return false; }
  virtual void Begin(ir::Builder&, const Accumulation&) const { LS_CHECK(false, "it begins no tile early"); }
  // The slot that was begun after the last tile is taken.
  virtual void End(ir::Builder&) const {}
};

}  // namespace laneshift::compiler
