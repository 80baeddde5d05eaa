// TileEpilogue: how a tile leaves its accumulator: panels of its columns, each in pieces, through a staging buffer or
// straight to D. Where CTAs share a tile, their sums go through the workspace first, or through the shared memory of a
// cluster, whose CTAs write some panels each.
//
// Thread-safety: a value; all functions are pure but for the ops that they append.
#pragma once

#include <functional>
#include <vector>

#include "compiler/build/scale_places.h"
#include "compiler/build/subtile_steps.h"

namespace laneshift::compiler {

class TileEpilogue {
 public:
  // What one role has for all its tiles.
  struct Role {
    int buffer = -1;  // for staging
    TensorScales scales{};
  };

  // Where the sums of a tile are in Tensor Memory. kNoValue: in registers; no overlap.
  struct Accumulator {
    ir::ValueId slot = ir::kNoValue;
    ir::ValueId overlap = ir::kNoValue;  // the slot of the columns that the other accumulator has, too
    int overlap_columns = 0;
  };

  // How CTAs that share a tile add their sums.
  struct Sharing {
    int channel = -1;           // of partial sums, in a cluster
    bool slices_apart = false;  // another kernel adds those in the workspace
  };

  // REQUIRES: all outlive the epilogue, and the declarations of `program` are complete when the first op is written.
  TileEpilogue(const EpilogueTerms& terms, const CtaPlan& plan, StorePath store, Sharing sharing,
               const ir::Program& program, const OutputTensor& output)
      : terms_(terms),
        plan_(plan),
        store_(store),
        sharing_(sharing),
        cluster_k_(program.cluster_k),
        output_(output),
        steps_(terms, plan, program, output) {}

  // Once a role, before its tiles and after them.
  Role Begin(ir::Builder& b, int buffer) const { return {.buffer = buffer, .scales = steps_.LoadTensorScales(b)}; }
  void End(ir::Builder& b, const Role& role) const;
  // Where the rows of the accumulator that the warp holds begin in D, those of each block.
  std::vector<ir::ValueId> WarpRows(ir::Builder& b, const Corner& corner) const;
  // The same in the tile, as the row or the column of a scale factor; the other is none. A row is one of the part of
  // `rows_of_part` rows in which the block is.
  std::vector<ScaleStart> ScaleStarts(ir::Builder& b, int rows_of_part) const;
  // Asks L2, before the products of a tile are waited for, for what its steps will read; `corner_of` finds the tile.
  void Prefetch(ir::Builder& b, const std::function<Corner()>& corner_of) const;
  // `warp_rows`: WarpRows, or none if they are still to be found.
  void WriteTile(ir::Builder& b, const Role& role, const Accumulator& accumulator, const Corner& corner,
                 const std::vector<ir::ValueId>& warp_rows) const;

 private:
  // What is being written.
  struct Source {
    const Role& role;
    const Accumulator& accumulator;
    const Corner& corner;
    ir::ValueId sums = ir::kNoValue;  // the slot with those of the cluster
  };
  // A part of an accumulator that leaves at once.
  struct Panel {
    ir::ValueId number, first;  // its first column in the accumulator
    ir::ValueId turn;           // the number of panels that leave before it
    int columns = 0;
    int block = 0, column = 0;             // where registers hold it: the block, and the first column there
    int index = -1;                        // its number, where that is known
    std::vector<ir::ValueId> fragments{};  // of its parts, where they have been read
    // Of a panel that the CTA writes for its cluster: the slot of partial sums, and its first column in the block.
    ir::ValueId sums = ir::kNoValue, start = ir::kNoValue;
  };
  // A part of a panel that the epilogue treats at once.
  struct Part {
    ir::ValueId fragment, first;  // its first column in the accumulator
    int offset = 0, columns = 0;  // in the panel
    int number = 0;               // of the parts
  };
  // Whether panels are a loop over columns of Tensor Memory.
  bool InLoop() const { return plan_.in_tensor_memory && !terms_.promotes; }
  void ForEachPanel(ir::Builder& b, const Accumulator& accumulator,
                    const std::function<void(const Panel&)>& write) const;
  void ForEachPanelOfOverlap(ir::Builder& b, const Accumulator& accumulator,
                             const std::function<void(const Panel&)>& write) const;
  void ForEachOwnPanel(ir::Builder& b, ir::ValueId sums, const std::function<void(const Panel&)>& write) const;
  void ForEachPart(ir::Builder& b, ir::ValueId accumulator, const Panel& panel,
                   const std::function<void(const Part&)>& write) const;
  void StorePartials(ir::Builder& b, const Source& source) const;
  void ExchangeSums(ir::Builder& b, const Source& source, const std::vector<ir::ValueId>& warp_rows) const;
  void WritePanels(ir::Builder& b, const Source& source, const std::vector<ir::ValueId>& warp_rows) const;
  void WritePanel(ir::Builder& b, const Source& source, const Panel& panel, ir::ValueId own,
                  std::vector<ir::ValueId> start) const;
  Subtile SubtileOf(ir::Builder& b, const Panel& panel, const Part& part, const Corner& corner, ir::ValueId own) const;
  bool Alternates() const;
  void AwaitCopy(ir::Builder& b, const Role& role, const Panel& panel) const;

  const EpilogueTerms& terms_;
  const CtaPlan& plan_;
  const StorePath store_;
  const Sharing sharing_;
  const int cluster_k_;
  const OutputTensor& output_;
  const SubtileSteps steps_;
};

}  // namespace laneshift::compiler
