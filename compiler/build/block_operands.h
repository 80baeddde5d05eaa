// What the tensor core reads for an operand besides its elements: scale factors of A and B (scale=mx, nv), and the
// metadata of a sparse A. Both lie in blocks of 16-byte lines in memory, come into the slots of the operands' ring as
// tiles of such lines, and go to columns of Tensor Memory block by block, or, without Tensor Memory, to registers of
// the role that multiplies (Accumulation).
//
// Thread-safety: values; all functions are pure but for the ops that they append.
#pragma once

#include <optional>
#include <vector>

#include "compiler/build/mainloop.h"
#include "compiler/build/operand_loader.h"
#include "ir/metadata_block.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {

// The tiles of one operand in a slot, all of one layout.
struct BlockTiles {
  ir::Operand operand{};
  ir::OperandComponent component{};
  ir::SharedLayout layout{};  // of a tile
  int count = 0;              // tiles
  int lines = 0;              // of a block
  bool begin_within = false;  // tiles of the operand are not whole blocks of rows and may begin within one
  int step = 0;               // columns of Tensor Memory from block to block of a tile
  int columns = 0;            // of all blocks of all tiles

  ir::Binding Map() const { return ir::MapOf(operand, component); }
};
// A tile for each 128 rows, of the blocks along a block of K of `tile_k` elements.
BlockTiles ScaleTiles(ir::Operand operand, const ir::BlockScaling& scaling, int rows, int tile_k);
// A tile of the lines of `rows` rows for each block along K, or for the one of which a block of K is half; elements
// have so many bits in shared memory.
BlockTiles MetadataTiles(int operand_bits, int rows, int tile_k);

class BlockLoader : public OperandLoader {
 public:
  // The first tile is `target.tile`.
  BlockLoader(const LoadTarget& target, const BlockTiles& tiles) : OperandLoader(target), tiles_(tiles) {}

  void AddParams(std::vector<ir::Param>& params) const override { params.push_back({tiles_.Map(), tiles_.layout}); }

 protected:
  const BlockTiles& tiles() const { return tiles_; }
  // From a row and a matrix of the tensor map on, whose rows have ScaleBlock::kMapRowLines lines.
  void Load(ir::Builder& b, ir::ValueId slot, int tile, ir::ValueId row, ir::ValueId matrix) const;

 private:
  const BlockTiles tiles_;
};

class ScaleLoader final : public BlockLoader {
 public:
  using BlockLoader::BlockLoader;
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;
};

class MetadataLoader final : public BlockLoader {
 public:
  // `depth`: elements of K of a block, of which a block of K has `tile_k`.
  MetadataLoader(const LoadTarget& target, const BlockTiles& tiles, int depth, int tile_k)
      : BlockLoader(target, tiles), depth_(depth), tile_k_(tile_k) {}
  LoadBlock StartTile(ir::Builder& b, const Corner& corner) const override;

 private:
  const int depth_, tile_k_;
};

// Tiles that go from a ring in shared memory to Tensor Memory.
struct CopiedBlocks {
  BlockTiles tiles{};
  int first_tile = 0;       // of a slot of the ring
  int first_column = 0;     // of a slot in Tensor Memory
  bool by_threads = false;  // from the ring of those; otherwise from that of the operands, by the role that multiplies
};

// Each block of K is one slot with a tile of A and of B and the tiles of blocks, which go to Tensor Memory first. Those
// that threads store come in a separate ring.
class BlockMainloop final : public Mainloop {
 public:
  struct Slots {
    int ring = -1, stored_ring = -1, cells = -1;  // channels
    int row_tile = 0, column_tile = 1;       // of a slot of the ring: operands of the instruction's rows and columns
    int parts = 1;                           // of a block of K; a slot in Tensor Memory is for one
    int scale_run = 0;                       // elements along K for which a scale factor is; 0: without
    std::vector<CopiedBlocks> scales{};      // of the rows, then of the columns
    std::optional<CopiedBlocks> metadata{};  // of a sparse A
  };
  BlockMainloop(const KLoop& k, Slots slots) : k_(k), slots_(std::move(slots)) {}

  void Write(ir::Builder& b, const Accumulation& sums, const ProductTile& tile) const override;
  bool HasStores() const override { return slots_.stored_ring >= 0; }
  void WriteStores(ir::Builder& b, const Corner& corner) const override;

 private:
  const KLoop k_;
  const Slots slots_;
};

}  // namespace laneshift::compiler
