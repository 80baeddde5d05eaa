// KernelBuilder: what the tile programs of all problems share: the warps of a CTA, the loop over output tiles, the role
// that multiplies, and the epilogue. A problem adds its operands, its loads and its loop over K.
//
// Thread-safety: none; one builder builds one program.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/build/staging.h"
#include "ir/builder.h"
#include "ir/program.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::compiler {

// What happens to a sum on its way to memory.
struct EpilogueTerms {
  DataType type = DataType::kBf16;  // of D
  DataType c_type = DataType::kBf16;
  bool adds_c = false;
  BiasAxis bias = BiasAxis::kNone;
  Scaling scale = Scaling::kNone;
  bool promotes = false;  // blocks of K are summed one by one, and their sums in f32 registers
  ir::RowMap rows = ir::RowMap::kMatrix;
  Epilogue steps{};
  bool orders_sums = false;  // totals of the steps are added in a fixed order

  // Whether a step needs to know where the rows of D are.
  bool HasMatrices() const;
  // Whether anything is stored with the precision of f32.
  bool KeepsF32() const;
};

// Registers of a thread after setmaxnreg; 0: as launched.
struct RegisterSplit {
  int load = 0, math = 0;
};

class KernelBuilder {
 public:
  virtual ~KernelBuilder() = default;
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;

  ir::Program Build();

 protected:
  // Element coordinates of the corner of an output tile. Where CTAs share tiles, also the K blocks of this CTA's
  // section, from `first` to below `end`, the tile's number among those that are cut, and the sections that it has.
  struct Corner {
    ir::ValueId row, column, batch;
    ir::ValueId first = ir::kNoValue, end = ir::kNoValue;
    ir::ValueId number = ir::kNoValue, section = ir::kNoValue, sections = ir::kNoValue;
  };

  KernelBuilder(std::string name, const Schedule& schedule, const target::Target& target, DataType operand_type,
                EpilogueTerms terms);

  // ---- the problem's part
  // Channels of operand tiles, and their parameters.
  virtual void AddOperands() = 0;
  // Parameters of D, C and bias, then sizes and scalars.
  virtual void AddOutputs() = 0;
  // Whether the operand stays in shared memory for all tiles of a CTA.
  virtual bool Stays(ir::Operand) const { return false; }
  // Whether threads load an operand by code that is unrolled over a filter: it holds more addresses than copies do.
  virtual bool UnrollsGather() const { return false; }
  // The producer of all operands that take `path`, for one output tile.
  virtual void WriteLoads(ir::Builder& b, LoadPath path, const Corner& corner) = 0;
  // The loads of the operand that stays, if there is one, and how many slots they fill.
  virtual void WriteKeptLoads(ir::Builder&) {}
  virtual ir::ValueId KeptSlots(ir::Builder&) const { return ir::kNoValue; }
  // Turns of the loop over K of one tile; equal to Contraction::Iterations. Where blocks of K have an accumulator each,
  // so many come of a tile.
  virtual ir::ValueId BlocksOfTile(ir::Builder& b) const = 0;
  // Slots of an operand channel that one tile takes.
  virtual ir::ValueId SlotsOfTile(ir::Builder& b, int /*channel*/) const { return BlocksOfTile(b); }
  // The loop over K: Multiply(), ReleaseOperand() and Promote() for each slot, or ForEachProduct(). `accumulator` is
  // kNoValue for registers, and where each block of K has an accumulator of its own.
  virtual void WriteProducts(ir::Builder& b, ir::ValueId accumulator, const Corner& corner) = 0;
  // Rows of a tile that count, where each warp of the epilogue drops the last of its own; 0: all.
  virtual int KeptRows() const { return 0; }
  // Coordinates, behind the column, of the bulk store of rows of D from `row` on.
  virtual std::vector<ir::ValueId> StoreStart(ir::Builder& b, ir::ValueId row, const Corner& corner) = 0;
  virtual void WriteBulkStore(ir::Builder& b, ir::ValueId copy, ir::ValueId column, const Corner& corner,
                              const std::vector<ir::ValueId>& start, const ir::BulkStoreAttrs& attrs) = 0;
  // Elements of one access to C or D where a lane holds runs of `run` columns.
  virtual int AccessWidthOf(ir::Operand operand, int run) const = 0;

  // ---- for the problem's part
  const Schedule& schedule() const { return schedule_; }
  bool in_tensor_memory() const { return in_tensor_memory_; }
  ir::Program& program() { return program_; }
  int AddChannel(ir::Channel channel);
  // How many CTAs of the cluster bring a part of each tile of A or B to all of them; which they are; and whether they
  // do.
  int PartsOf(ir::Operand operand) const { return program_.Parts(LineOf(operand)); }
  ir::Reach LineOf(ir::Operand operand) const { return operand == ir::Operand::kA ? ir::Reach::kN : ir::Reach::kM; }
  ir::Reach ReachOf(ir::Operand operand) const { return PartsOf(operand) > 1 ? LineOf(operand) : ir::Reach::kOwn; }
  // The box that brings one part of a tile.
  ir::SharedLayout PartOf(ir::SharedLayout tile, ir::Operand operand) const {
    tile.outer /= PartsOf(operand);
    return tile;
  }
  // `first` + rows * (which part of the operand's tiles this CTA brings).
  ir::ValueId PartStart(ir::Builder& b, ir::ValueId first, ir::Operand operand, int rows) const;
  // The first column of B that this CTA holds: of a pair, each CTA has half of the tile's. Where columns come in turns
  // from two halves, the first one of the first half.
  ir::ValueId ColumnOfB(ir::Builder& b, ir::ValueId column) const;
  // Whether the columns of B come in turns from two halves.
  bool JoinsHalves() const { return ir::JoinsHalves(terms_.steps); }
  int ColumnsOfB() const { return schedule_.tile_n / schedule_.ctas; }
  LoadPath PathOf(ir::Operand operand) const {
    return operand == ir::Operand::kA ? schedule_.a_load : schedule_.b_load;
  }
  bool LoadsBy(LoadPath path) const { return schedule_.a_load == path || schedule_.b_load == path; }
  int KeptChannel() const { return kept_; }
  // The first column of B that stays.
  ir::ValueId KeptColumn(ir::Builder& b) const;
  // The slot of a number of the operand that stays.
  ir::ValueId KeptSlot(ir::Builder& b, ir::ValueId number) const;
  // Where bulk stores write D: its tensor map, and that of the columns left behind whole panels, where there are any.
  void AddMapsOfD();
  // The operands and numbers of the epilogue, but for where its matrices lie.
  void AddEpilogueParams();
  const EpilogueTerms& terms() const { return terms_; }
  void AddParam(ir::Binding binding, ir::SharedLayout box = {}) { program_.params.push_back({binding, box}); }
  void AddParams(std::initializer_list<ir::Binding> bindings) {
    for (const ir::Binding binding : bindings) AddParam(binding);
  }
  // Calls `write(index)` inside a loop from 0 up to below `count`.
  static void ForEach(ir::Builder& b, ir::ValueId count, const std::function<void(ir::ValueId)>& write);
  bool SharesTiles() const { return schedule_.split_k > 1; }
  // Calls `write(block)` for each turn of the loop over K that this CTA makes.
  void ForEachBlock(ir::Builder& b, const Corner& corner, const std::function<void(ir::ValueId)>& write) const;
  // The same for products: `write` issues them into the accumulator `sums`, ends with FinishProduct() and returns their
  // factors. Where sums are promoted and registers hold two accumulators, these take turns: the sums of one are added
  // while the products of the other run.
  void ForEachProduct(ir::Builder& b, const Corner& corner,
                      const std::function<ir::ValueId(ir::ValueId block, int sums)>& write) const;
  // Whether this CTA made a turn of this tile before the one of `block`.
  ir::ValueId IsLater(ir::Builder& b, const Corner& corner, ir::ValueId block) const;
  // One product of an A and a B tile, added to the accumulator where `accumulate` holds.
  void Multiply(ir::Builder& b, ir::ValueId accumulator, ir::ValueId a_slot, ir::ValueId b_slot, ir::ValueId accumulate,
                ir::MmaAttrs attrs) const;
  // The factors of the tile in hand for a block of K, or kNoValue if it has none or the role does not need
  // them. Loaded early: they take as long as the products.
  ir::ValueId LoadFactors(ir::Builder& b, ir::ValueId block) const;
  // Adds the sums of the products since the last call to those of the tile, where it promotes. Behind the release of
  // what was multiplied.
  void Promote(ir::Builder& b, ir::ValueId factors) const;
  // Parameters of the factors that the problem has.
  void AddFactorParams();
  // The slot's products are issued; `later` tells whether the role has had a slot of this channel before in this tile.
  void ReleaseOperand(ir::Builder& b, ir::ValueId slot, ir::ValueId later) const;
  // The same within ForEachProduct, which promotes.
  void FinishProduct(ir::Builder& b, ir::ValueId slot, ir::ValueId later, int sums) const;

 private:
  // Roles that take turns at tiles, and the warps of each.
  int Turns() const { return schedule_.consumers == Consumers::kPingpong ? 2 : 1; }
  int EpilogueWarps() const { return 4 * schedule_.math_warpgroups / Turns(); }
  // Of the register accumulator, all its blocks side by side.
  int Blocks() const { return in_tensor_memory_ ? 1 : program_.Rows() / (kWarpRows * EpilogueWarps()); }
  int AccumulatorColumns() const { return program_.Columns() * Blocks(); }
  bool RowsAlongN() const { return schedule_.rows == RowSide::kN; }
  // Columns of the accumulator that make one of D.
  int JoinedColumns() const { return ir::IsGated(terms_.steps) && !RowsAlongN() ? 2 : 1; }
  RegisterSplit Registers() const;
  int MostRegisters() const;
  bool AlternatesSums() const;
  void AddSums(ir::Builder& b, ir::ValueId factors, int sums) const;
  int WidestPanel() const;
  int PanelRegisters(int columns) const;
  int RingDepth(const Staging& staging) const;
  std::vector<ir::Buffer> BuffersOf(const Staging& staging) const;
  void PlanEpilogue();
  // A turn of a loop over tiles: the loop's first argument, and the extents of a tile, which are defined before it.
  struct Tile {
    ir::ValueId first, rows, columns;
  };
  // Calls `write` inside a loop over the tiles that are the role's.
  void ForEachTile(ir::Builder& b, int turn, const std::function<void(const Tile&)>& write);
  void ForEachCorner(ir::Builder& b, const std::function<void(const Corner&)>& write);
  // The share of the work that a turn of that loop is, and where its tile lies too.
  Corner ShareOf(const Tile& tile) const;
  Corner CornerOf(ir::Builder& b, const Tile& tile) const;
  void PassTile(ir::Builder& b) const;
  void AddRole(ir::Role role, const std::function<void(ir::Builder&)>& write);
  void AddLoadRole(LoadPath path);
  void AddKeepRole();
  // The loads that come by `path`: of the operand that stays, and of those that come with each tile.
  bool KeepsBy(LoadPath path) const;
  bool StreamsBy(LoadPath path) const;
  // Whether what stays comes by a role of its own.
  bool KeepsApart() const { return KeepsBy(LoadPath::kTma) && StreamsBy(LoadPath::kTma); }
  void AwaitKept(ir::Builder& b) const;
  void AddMmaRole();
  void AddScheduleRole();
  void AddEpilogueRole(int turn);
  void WriteTurn(ir::Builder& b, int turn, const Tile& tile);
  void WriteProductsInTurn(ir::Builder& b, int turn, const Corner& corner);
  int RowsOfWarp() const;
  ir::ValueId FirstRow(ir::Builder& b, const Corner& corner) const;
  void WriteSums(ir::Builder& b, int turn, const Corner& corner);
  void AddToSums(ir::Builder& b, ir::ValueId fragment, int column, ir::ValueId factors) const;
  void WriteTile(ir::Builder& b, ir::ValueId accumulator, const Corner& corner);
  // A part of an accumulator that leaves at once.
  struct Panel {
    ir::ValueId number, first;  // its first column in the accumulator
    int columns = 0;
    int block = 0, column = 0;  // where registers hold it: the block, and the first column there
    int index = -1;             // its number, where that is known
  };
  // A part of a panel that the epilogue treats at once.
  struct Part {
    ir::ValueId fragment, first;  // its first column in the accumulator
    int offset = 0, columns = 0;  // in the panel
    int number = 0;               // of the parts
  };
  bool InLoop() const { return in_tensor_memory_ && !terms_.promotes; }
  void ForEachPanel(ir::Builder& b, const std::function<void(const Panel&)>& write) const;
  void ForEachPart(ir::Builder& b, ir::ValueId accumulator, const Panel& panel,
                   const std::function<void(const Part&)>& write) const;
  void ForEachColumns(const std::function<void(int column, int columns)>& write) const;
  bool Alternates() const;
  void AwaitCopy(ir::Builder& b, const Panel& panel) const;
  void WritePanels(ir::Builder& b, ir::ValueId accumulator, const Corner& corner);
  void LoadTensorFactors(ir::Builder& b);
  ir::ValueId ScaleByPointer(ir::Builder& b, ir::ValueId fragment, ir::Binding binding) const;
  // A piece of the tile on its way to D: where it begins, and how many operands and numbers of the epilogue's steps it
  // has passed. Where columns have been joined in pairs, `column` is D's.
  struct Piece {
    ir::ValueId fragment, row, column, batch;
    int columns = 0;  // of the accumulator
    int operand = 0, number = 0;
    bool gated = false;
    ir::ValueId own = ir::kNoValue;                         // where the warp's rows of the accumulator begin in D
    ir::ValueId tile = ir::kNoValue, panel = ir::kNoValue;  // where its columns do; the panel among those of a tile
    int part = 0;                                           // of the panel

    std::vector<ir::ValueId> Operands() const { return {fragment, row, column, batch}; }
  };
  // Whether what lies along an axis lies as two halves there.
  bool HalvesOf(BiasAxis axis, const Piece& piece) const {
    return axis == BiasAxis::kN && !piece.gated && JoinsHalves();
  }
  void WritePanel(ir::Builder& b, ir::ValueId accumulator, const Panel& panel, const Corner& corner, ir::ValueId own,
                  std::vector<ir::ValueId> start);
  Piece PieceOf(ir::Builder& b, const Panel& panel, const Part& part, const Corner& corner, ir::ValueId own) const;
  void Finish(ir::Builder& b, Piece& piece) const;
  void WriteStep(ir::Builder& b, const EpilogueStep& step, Piece& piece) const;
  void AddFunction(const FunctionCall& call);
  // The program's function that the call is of.
  int IndexOf(const FunctionCall& call) const;
  static void PassGate(ir::Builder& b, Piece& piece);
  void WriteFunction(ir::Builder& b, const EpilogueStep& step, Piece& piece) const;
  void WriteTotal(ir::Builder& b, const EpilogueStep& step, Piece& piece) const;
  void StoreTotal(ir::Builder& b, ir::Binding base, BiasAxis axis, const Piece& piece) const;
  // Of a piece of so many columns of the accumulator.
  ir::GlobalAttrs GlobalAccess(ir::Operand operand, int columns) const;
  // The same, of a matrix that lies as D does.
  ir::GlobalAttrs StepAccess(ir::Binding base, DataType type, int columns) const;

  static constexpr int kWarpRows = 16;  // of a register accumulator

  const Schedule schedule_;
  const target::Target& target_;
  const bool in_tensor_memory_;
  const EpilogueTerms terms_;
  ir::Program program_;
  std::vector<int> operand_channels_;  // shared ones whose slots are refilled, in the order in which they were added
  int kept_ = -1;                      // channel of the operand that stays, or -1
  int accumulators_ = -1;              // channel
  int grants_ = -1;                    // channel, or -1 for a fixed order of tiles
  int turns_ = -1;                     // channel, or -1 where roles take no turns
  int out_ = -1;                       // the staging buffer of the role at hand
  ir::FragmentKind fragment_{};
  Staging staging_{};
  Corner place_{ir::kNoValue, ir::kNoValue, ir::kNoValue};  // of the tile in hand; its row is the warp's first
  std::map<ir::Binding, ir::ValueId> factors_;              // that the epilogue has loaded
};

}  // namespace laneshift::compiler
