// Verifies the bodies of all roles, one after another: rules 5 to 12 of ir/verifier.cc.
//
// Private to the verifier. Thread-safety: one verifier per thread.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ir/program_text.h"

namespace laneshift::ir {

// kInternal "rule N: message".
Error BrokenRule(int rule, const std::string& message);

inline bool InRange(int value, int least, int64_t below) { return value >= least && value < below; }

// Whether the columns of `tile` are boxes of a map of `box`, or `parts` boxes each; with `part`, a box has some of
// their rows.
inline bool HasBox(SharedLayout tile, SharedLayout box, int parts = 1, bool part = false) {
  tile.inner = box.inner = 0;
  box.outer *= parts;
  if (part && box.outer < tile.outer) box.outer = tile.outer;
  return tile == box;
}

class RoleVerifier {
 public:
  // REQUIRES: the program's declarations keep rules 1 to 4.
  RoleVerifier(const Program& program, const target::Target& target);

  // Checks the bodies of all roles, then the rules that concern several roles.
  Status Verify();

 private:
  enum class SlotState : uint8_t { kPut, kTaken, kResident, kCursor, kClosed };
  // What is known about a value while it is in scope.
  struct Value {
    bool defined = false, in_scope = false;
    size_t region = 0;                      // where it was defined
    SlotState slot{};                       // of a slot
    FragmentLayout fragment{};              // of a fragment
    bool integers = false;                  // of a fragment: its elements are s32
    int tma_bytes = 0, expected_bytes = 0;  // loaded into and announced for a slot, lowered
    // How many rows of A count for the slot's copies, and for the bytes that are announced; kNoValue: all.
    ValueId rows_loaded = kNoValue, rows_expected = kNoValue;
    bool on_their_way = false;  // asynchronous copies of threads into a slot
  };
  // What one role does with one channel.
  struct Use {
    bool produces = false, consumes = false;
    bool peeks = false;                  // asks whether its next slot is full
    bool passes = false;                 // slots of the other ping-pong roles
    bool in_pingpong = false;            // taken from in the tile loop of a ping-pong role
    int open = 0;                        // slots put or taken and not yet sent or released
    int release_lag = 0, drain_lag = 0;  // of the lagging releases and of the drain
    bool sends = false, sends_late = false, drains_sends = false;
    std::array<int, 2> arrivals{};  // per Side, for each slot
  };

  Status VerifyRole(const Role& role);
  Status CloseRole();
  Status VerifyRegion(const std::vector<Op>& body);
  Status CloseRegion(const std::vector<ValueId>& defined);
  Status VerifyOp(const Op& op, std::vector<ValueId>& defined);
  Status VerifyShape(const Op& op) const;
  Status VerifyUses(const Op& op) const;
  Status VerifyChannelRange(const Op& op) const;
  Status Define(const Op& op, std::vector<ValueId>& defined);
  Status VerifyChannelsAreServed() const;

  // Rules 8 to 12: Check… of the op's row in ir/ops.def.
  Status Check(const Op& op);
  Status CheckNothing(const Op& op) const;
  Status CheckClusterIndex(const Op& op) const;
  Status CheckParam(const Op& op) const;
  Status CheckScale(const Op& op) const;
  Status CheckLoadScaleFactor(const Op& op) const;
  Status CheckPartial(const Op& op) const;
  Status CheckPartialTotal(const Op& op) const;
  Status CheckClusterSums(const Op& op) const;
  Status CheckPut(const Op& op);
  Status CheckTake(const Op& op);
  Status CheckPeek(const Op& op);
  Status CheckPreview(const Op& op);
  Status CheckSend(const Op& op);
  Status CheckRelease(const Op& op);
  Status CheckReserve(const Op& op);
  Status CheckPass(const Op& op);
  Status CheckAdvance(const Op& op);
  Status CheckAdvanceBy(const Op& op);
  Status CheckClearPromoted(const Op& op);
  Status CheckAddPromoted(const Op& op) const;
  Status CheckReadPromoted(const Op& op) const;
  Status CheckStageStore(const Op& op) const;
  Status CheckStoreRows(const Op& op) const;
  Status CheckBulkWait(const Op& op) const;
  Status CheckStamp(const Op& op);
  Status CheckScalar(Binding binding, ParamKind kind) const;
  Status CheckNumber(const Op& op) const;
  Status CheckFor(const Op& op) const;
  Status CheckWork(const Op& op);
  Status CheckPingpong() const;
  bool HoldsOrderSlot() const;
  Status CheckClcResponse(const Op& op);
  Status CheckExpect(const Op& op);
  Status CheckDrain(const Op& op);
  Status CheckDrainSends(const Op& op);
  Status CheckCursor(const Op& op);
  Status CheckBarrier(const Op& op);
  Status Arrive(ValueId slot, Side side, int count);
  Status VerifyArrivals() const;
  Status FillTile(const Op& op, int tile);
  Status FillByBoxes(const Op& op, int tile, Binding map, MulticastScope to, int parts);
  Status CheckMulticastScope(MulticastScope to) const;
  Status CheckLoad(const Op& op);
  Status CheckRowsLeftOut(const Op& op);
  Status CheckPieces(const Op& op);
  Status CheckFindRows(const Op& op) const;
  Status CheckLoadRows(const Op& op);
  Status CheckRowsOfThreads(int rows, int at_once) const;
  Status CheckLoadPixels(const Op& op);
  Status CheckGather(const Op& op);
  Status CheckRowBorderMask(const Op& op) const;
  Status CheckPack(const Op& op) const;
  Status CheckPackFilter(const Op& op) const;
  Status CheckPackIm2col(const Op& op) const;
  Status CheckPackWindows(const Op& op) const;
  Status CheckPackFactors(const Op& op) const;
  Status CheckBlockRows(const Op& op) const;
  Status CheckReducePartialRows(const Op& op) const;
  Status CheckArrival(const Op& op);
  Status CheckBulkStore(const Op& op) const;
  Status CheckMma(const Op& op) const;
  Status CheckTensorOperand(const Op& op) const;
  Status CheckMmaScaled(const Op& op) const;
  Status CheckBlockCopy(const Op& op) const;
  Status CheckMmaSparse(const Op& op) const;
  Status CheckReadMetadata(const Op& op) const;
  Status CheckMetadata(const Channel& cells, int first, int columns) const;
  Status CheckOperandTile(const Op& op, size_t slot, int tile, Operand operand, int scale_run) const;
  Status CheckAccumulator(const Channel& accumulator) const;
  Status CheckFragment(const Op& op) const;
  Status CheckDepthwise(const Op& op) const;
  Status CheckPixelTile(const Channel& channel, size_t tile, int channels, int plane) const;
  Status CheckTaps(const Op& op) const;
  Status CheckAddTaps(const Op& op) const;
  Status CheckStoreTaps(const Op& op);
  Status CheckGemv(const Op& op);
  Status CheckLoadSums(const Op& op) const;
  Status CheckSums(const Op& op, int tile, int copies) const;
  Status CheckScaleFactors(const Op& op);
  Status CheckReadScaleFactors(const Op& op) const;
  Status CheckSlotScaleFactors(const Op& op) const;
  Status CheckPromoted(int column, const FragmentLayout& piece) const;
  Status CheckStaging(const Op& op, int index) const;
  Status CheckStaged(const Op& op, const Buffer& buffer) const;
  Status NeedsRows(Operand operand, RowMap rows) const;
  Status CheckRowMap(RowMap rows) const;
  Status CheckPatch(RowMap rows) const;
  Status CheckWholeColumns() const;
  Status CheckGlobal(const Op& op) const;
  Status CheckPrefetchMatrix(const Op& op) const;
  Status CheckAccess(const Op& op, const GlobalAttrs& attrs) const;
  Status CheckHalves(BiasAxis axis, bool gated, bool halves) const;
  Status NeedsPointer(Binding base) const;
  Status CheckStep(const Op& op) const;
  Status CheckQuantize(const Op& op) const;
  Status CheckNumbers(Function function, int number) const;
  // Whether its result is its first operand with pairs of columns combined.
  bool IsGatedOp(const Op& op) const;
  Status CheckPairs(const FragmentLayout& pairs) const;
  Status CheckCall(const Op& op) const;
  Status CheckVector(const Op& op, int vector, DataType type) const;
  Status Open(const Op& op, SlotState state);
  Status Close(const Op& op, SlotState expected);
  Status CheckResident(const Op& op);
  Status CheckFilledOnce(const Op& op) const;
  Status Needs(std::initializer_list<Binding> bindings) const;
  Status NeedsBounds(Operand operand) const;

  FragmentLayout FragmentOf(const Op& op) const;
  bool HoldsIntegers(const Op& op) const;
  Status CheckElements(const Op& op) const;
  // Whether the program's MMAs can read elements of the tile.
  // Of an instruction with scale factors for `scale_run` elements along K; 0: without.
  bool IsOperand(const SharedLayout& tile, int scale_run = 0) const;
  const Channel& ChannelOfSlot(ValueId slot) const;
  Error Broken(int rule, const std::string& message) const { return BrokenRule(rule, message); }

  const Program& program_;
  const target::Target& target_;
  const Role* role_ = nullptr;
  WorkAttrs work_;        // of the loop over the work of the current role
  bool in_work_ = false;  // inside of that loop
  size_t region_ = 0;
  size_t region_count_ = 0;
  std::vector<Value> values_;
  SlotChannels slots_;
  std::optional<FragmentKind> promoted_;                  // of the current role, once they are cleared
  std::set<int> stamps_;                                  // ids of stamps, of all roles
  bool stamping_ = false;                                 // the current role has begun its records
  std::set<int> scale_sets_;                              // of the current role, once they are loaded
  int arriving_ = 0;                                      // its warps that arrive together; 0: none do
  std::vector<Use> uses_;                                 // of the current role, per channel
  std::vector<int> producers_, consumers_;                // per channel
  std::vector<std::array<int, 2>> arrivals_;              // of all roles, per channel and Side
  std::vector<std::vector<const Role*>> pingpong_roles_;  // the ping-pong roles, by index
  std::optional<WorkAttrs> order_of_work_{};              // of the roles so far, without their place in a ping-pong
  std::vector<std::vector<bool>> tiles_loaded_;           // per channel and tile
};

}  // namespace laneshift::ir
