// The invariants of a tile program. A message names the rule by its number here.
//
//  1. Names are identifiers, unique among their kind. The program is for the target that it is checked against;
//     its CTA has whole warps, at most 1024 threads; its tile is positive, its rows run along m or n. Stale rows are
//     the same number of each 32 lanes of a tile of 128. The extents of its cluster are powers of two, and their
//     product is within the target's limit; one along K is the only one, and there are no pairs. On a target with
//     Tensor Memory, and in a cluster of an even extent along m, CTAs may issue MMAs in pairs; then only bulk copies
//     fill tiles.
//  2. No binding is declared twice. A parameter has a box if and only if it is a tensor map; its outer extent, like
//  that
//     of a box of the TMA, is at most 256. Tensor maps need a target with the TMA.
//  3. The two axes of a layout differ, its rows are whole swizzle spans, and its columns are whole groups of
//     eight spans, so that every column begins a swizzle pattern; a box may be a single row. Rows of buffers and of D's
//     boxes may be shorter than a span, but are whole 16 bytes.
//  4. A shared channel has tiles and no columns; a Tensor Memory channel has 64 or 128 rows, columns, no tiles,
//     and a target with Tensor Memory. Of two accumulators that have columns in common the next channel, of one slot,
//     is these columns. A channel of CLC responses, of which there is at most one, holds nothing else
//     and needs a target with cluster launch control. An order channel has one slot, which is empty. A channel of
//     partial sums holds a tile that the CTAs of a cluster share. A channel of slots of each CTA's own is a shared
//     ring, and one that threads store into is a ring in Tensor Memory that is no role's own. Stages, copies and
//     warps of buffers are positive, and the warps that share a copy divide those. Arrivals are positive once the
//     program is lowered and 0 before; a private ring of a role is in Tensor Memory and awaits none on its full side; a
//     resident channel is shared and awaits none on its empty side.
//  5. Roles have warps, all inside the CTA, and no two share one; an elected role has one warp. An early role loads B
//     and accesses no other memory before an op of it waits for the previous kernel. Leaders are those of pairs, and
//     only the leader of a pair issues MMAs. Registers are 0 or a multiple of 8 from 24 to 256, equal within a
//     warpgroup, and together within the SM's.
//  6. An op is in a stage, a kind of role and a target that allow it, with as many threads as it needs. Roles
//     that hold accumulators consist of whole, aligned warpgroups: the hardware gives warp w the rows of w
//     modulo 4.
//  7. Operands have the count and the types of the op's row; a value is defined once, before its uses and in a
//     region around them; ids are dense and have the types that the program lists.
//  8. Attributes are those of the op's row and in range; references point at something that exists.
//  9. What an op reads from the runtime (maps, pointers, pitches, strides, bounds, scales) is declared. A
//     tensor map's box is a column of the tile that it fills; if several CTAs multicast the tile, as many boxes
//     as there are such CTAs make up a column, or if rows of it may be left out, a number of boxes for each of them.
// 10. Every channel has a role that produces it and one that consumes it, no role does both but of partial sums, and
//     every tile is loaded; only one role reserves and retires a private ring.
//     Lowered: each barrier awaits the arrivals that the roles make.
//     All roles have the same tiles in the same order, but for those of a ping-pong.
//     The role that issues CLC requests also takes the responses, as every other role does; then all work comes from
//     cluster launch control, and each iteration of it ends with one work.next.
// 11. In its region, a slot that was put is sent once and one that was taken is released once; nothing uses it
//     later. A role holds no more slots than the ring has, a lag is shorter than the ring, and lagging releases are
//     drained. A slot that asynchronous copies of threads fill is sent late; then the role sends all slots of the
//     channel late, and drains them after the last. Lowered: nothing uses a cursor's slot after its advance, and the
//     bytes expected are those that bulk copies bring, of the same rows if some are left out.
// 12. An MMA's tiles have the operands' type, or any 8-bit one if that is 8-bit, and hold the program's tile from
//     the MMA's first row on (of a sparse A half of K), its accumulator the tile's rows and columns, its metadata
//     those of all rows; fragments are inside the
//     accumulator and fill the buffer that they are staged in, together with those of the warps that share a copy,
//     which arrive together if tiles are cut along K. Lanes are masked, stale or shifted only in tiles of 128
//     rows; with stale lanes, threads store D. The promoted accumulator is cleared before it is used, and fragments
//     have its layout. Each CTA of a pair holds half of a tile of B.
//     Columns of a register accumulator, and of the promoted one, are those of all its blocks.
// 13. Storage is assigned to all or to none. Assigned, it is disjoint, aligned (tiles and buffers to their
//     swizzle pattern, barriers to 8 bytes, the Tensor Memory slot to 4) and inside `smem_bytes`, which the
//     target has; accumulators are disjoint but for their overlap, inside `tmem_columns`, a power of two from 32 to
//     what the target has.
// 14. There are as many ping-pong roles as they say, of one kind and with the same number of warps, each with a
//     different index. Each passes the other roles' slots of a channel from which it takes for each tile, and takes a
//     slot only while it holds a slot of an order channel.
// 15. A slot of a resident channel is put outside of loops over tiles and neither taken nor released; a role that reads
//     it by its index has awaited the channel's slots before.
#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "base/text.h"
#include "ir/metadata_block.h"
#include "ir/program.h"
#include "ir/role_verifier.h"
#include "ir/stored_tensor.h"
#include "ir/token.h"

namespace laneshift::ir {

using base::Cat;

Error BrokenRule(int rule, const std::string& message) {
  return MakeError(ErrorCode::kInternal, Cat("rule ", rule, ": ", message));
}

namespace {

// They keep the bytes of a stage within 31 bits.
constexpr int kMaxExtent = 4096;

template <typename Named>
Status CheckNames(std::string_view kind, const std::vector<Named>& list) {
  std::set<std::string_view> names;
  for (const Named& item : list) {
    if (!IsIdentifier(item.name)) return BrokenRule(1, Cat(kind, " '", item.name, "' is not named by an identifier"));
    if (!names.insert(item.name).second) return BrokenRule(1, Cat("two ", kind, "s are named '", item.name, "'"));
  }
  return Ok();
}

Status CheckCluster(const Program& program, const target::Target& target) {
  for (const int extent : {program.cluster_m, program.cluster_n, program.cluster_k}) {
    const bool legal =
        extent >= 1 && extent <= target.max_cluster && std::has_single_bit(static_cast<unsigned>(extent));
    if (!legal)
      return BrokenRule(1, Cat("a cluster extent of ", extent, " is not a power of two up to ", target.max_cluster));
  }
  if (program.ClusterSize() > target.max_cluster) {
    return BrokenRule(1, Cat("a cluster of ", program.ClusterSize(), " CTAs is more than the ", target.max_cluster,
                             " of ", target.name));
  }
  if (program.cluster_k > 1 && program.ClusterSize() * program.ctas != program.cluster_k)
    return BrokenRule(1, "CTAs that share a tile have no neighbours along m or n, and are no pairs");
  if (program.ctas == 1) return Ok();
  if (program.ctas != 2) return BrokenRule(1, Cat(program.ctas, " CTAs cannot issue MMAs together"));
  if (program.ctas > target.mma.most_ctas)
    return BrokenRule(1, Cat("pairs need Tensor Memory, which ", target.name, " does not have"));
  return program.cluster_m % 2 == 0 ? Ok() : BrokenRule(1, "the CTAs of a pair are adjacent along m in a cluster");
}

Status CheckHeader(const Program& program, const target::Target& target) {
  if (!IsIdentifier(program.name))
    return BrokenRule(1, Cat("program '", program.name, "' is not named by an identifier"));
  if (program.target != target.name) {
    return BrokenRule(1, Cat("the program is for ", program.target, ", not for ", target.name));
  }
  if (program.threads < 32 || program.threads > 1024 || program.threads % 32 != 0) {
    return BrokenRule(1, Cat("threads=", program.threads, " is not a multiple of 32 up to 1024"));
  }
  for (const int extent : {program.tile_m, program.tile_n, program.tile_k}) {
    if (extent < 1 || extent > kMaxExtent)
      return BrokenRule(1, Cat("tile extent ", extent, " is not 1 to ", kMaxExtent));
  }
  if (program.row_axis == Axis::kK) return BrokenRule(1, "the rows of an accumulator run along m or n, not k");
  LS_TRY(CheckCluster(program, target));
  if (program.live_rows != 0 && (program.live_rows < 0 || program.live_rows >= program.tile_m ||
                                 program.tile_m != kTensorLanes || program.live_rows % kRefreshedRows != 0)) {
    return BrokenRule(1, Cat("live_rows=", program.live_rows, " is not an equal part of each ", kPartitionLanes, " of ",
                             kTensorLanes, " rows"));
  }
  if (program.diagonal_blocks < 1 || program.diagonal_blocks > kMaxExtent)
    return BrokenRule(1, Cat("diagonal_blocks=", program.diagonal_blocks, " is not 1 to ", kMaxExtent));
  const bool boxes = program.box_lines != 0 || program.box_columns != 0;
  if (boxes && (program.box_lines < 1 || program.box_columns < 1 ||
                int64_t{program.box_lines} * program.box_columns != program.tile_m))
    return BrokenRule(1, Cat("box_lines=", program.box_lines, " of box_columns=", program.box_columns,
                             " are not the tile's ", program.tile_m, " rows"));
  for (const int extent : {program.window_lines, program.window_spans, program.window_rows, program.window_channels}) {
    if (program.HasWindows() ? extent < 1 || extent > kMaxExtent : extent != 0)
      return BrokenRule(1, Cat("an extent ", extent, " of windows is not 1 to ", kMaxExtent, ", or not 0 without any"));
  }
  int64_t pixels = 1;
  for (const int extent : {program.patch_d, program.patch_h, program.patch_w}) {
    pixels *= extent;
    if (extent < 1 || pixels > kMaxExtent)
      return BrokenRule(1, Cat("patch=", program.patch_d, "x", program.patch_h, "x", program.patch_w, " is not 1 to ",
                               kMaxExtent, " pixels"));
  }
  LS_TRY(CheckNames("channel", program.channels));
  LS_TRY(CheckNames("buffer", program.buffers));
  LS_TRY(CheckNames("role", program.roles));
  for (const Channel& channel : program.channels) LS_TRY(CheckNames("tile", channel.tiles));
  return Ok();
}

// The extents that a layout may have, besides whole spans in whole groups of rows.
struct Allowed {
  bool single_row = false, short_rows = false;
};
Status CheckLayout(const std::string& where, const SharedLayout& layout, Allowed allowed = {}) {
  constexpr int kTmaUnit = 16;  // bytes
  if (layout.outer_axis == layout.inner_axis) return BrokenRule(3, Cat(where, " has one axis twice"));
  if (layout.outer < 1 || layout.outer > kMaxExtent || layout.inner < 1 || layout.inner > kMaxExtent) {
    return BrokenRule(3, Cat(where, " has extents ", layout.outer, " and ", layout.inner, ", not 1 to ", kMaxExtent));
  }
  const int row_bytes = layout.RowBytes();
  const bool short_row = allowed.short_rows && row_bytes < layout.Span() && row_bytes % kTmaUnit == 0;
  if (row_bytes % layout.Span() != 0 && !short_row) {
    return BrokenRule(3, Cat(where, " has rows of ", row_bytes, " bytes, not whole spans of ", layout.Span()));
  }
  if (layout.linear && (layout.Columns() != 1 || layout.padded))
    return BrokenRule(3, Cat(where, " is linear, but its rows are not one span"));
  if (layout.outer % 8 != 0 && !layout.linear && !(allowed.single_row && layout.outer == 1))
    return BrokenRule(3, Cat(where, " has ", layout.outer, " rows, not a multiple of 8"));
  if (layout.step < 0 || layout.step > layout.outer || layout.step % 8 != 0 || (layout.step > 0 && layout.KMajor()))
    return BrokenRule(3, Cat(where, " has columns of M or N that begin ", layout.step,
                             " rows apart, not a multiple of 8 up to ", layout.outer));
  return Ok();
}

Status CheckParams(const Program& program, const target::Target& target) {
  std::set<Binding> bindings;
  for (const Param& param : program.params) {
    const std::string name = PrintBinding(param.binding);
    if (!bindings.insert(param.binding).second) return BrokenRule(2, Cat("param ", name, " is declared twice"));
    if (param.binding.family == BindingFamily::kRowIndices &&
        program.FindParam({BindingFamily::kStoredRows, param.binding.index}) == nullptr)
      return BrokenRule(2, Cat("param ", name, " without the number of rows that its indices may name"));
    if (KindOf(param.binding) != ParamKind::kTensorMap) {
      if (param.box != SharedLayout{}) return BrokenRule(2, Cat("param ", name, " is not a tensor map, but has a box"));
      continue;
    }
    if (!target.Has(target::Feature::kTma)) return BrokenRule(2, Cat("param ", name, " needs a target with the TMA"));
    if (param.box == SharedLayout{}) return BrokenRule(2, Cat("tensor map ", name, " has no box"));
    const bool of_d = param.binding == Binding::kMapD || param.binding == Binding::kMapDRest;
    LS_TRY(CheckLayout(Cat("the box of ", name), param.box, {.single_row = true, .short_rows = of_d}));
    // Lines of blocks are copied as longer rows.
    const bool blocks = ScaleBlock::Holds(param.box.type) || MetadataBlock::Holds(param.box);
    if (const int rows = param.box.outer / (blocks ? ScaleBlock::kMapRowLines : 1); rows > 256 && !param.box.linear) {
      return BrokenRule(2, Cat("the box of ", name, " has ", rows, " rows, more than 256"));
    }
  }
  return Ok();
}

Status CheckSpace(const Program& program, const Channel& channel, const target::Target& target) {
  const bool placed = channel.rows != 0 || channel.columns != 0 || channel.tmem_column != -1;
  if (channel.space == Space::kClcResponses) {
    if (!target.Has(target::Feature::kLaunchControl))
      return BrokenRule(
          4, Cat("channel ", channel.name, " needs cluster launch control, which ", target.name, " does not have"));
    if (placed || !channel.tiles.empty())
      return BrokenRule(4, Cat("channel ", channel.name, " of CLC responses holds tiles"));
    return Ok();
  }
  if (channel.space == Space::kOrder) {
    if (channel.stages == 1 && !placed && channel.tiles.empty() && !channel.is_private) return Ok();
    return BrokenRule(4, Cat("channel ", channel.name, " is an order channel, but not one empty slot"));
  }
  if (channel.space == Space::kSums) {
    const bool whole = channel.rows == program.Rows() && channel.columns == program.Columns();
    if (whole && channel.tiles.empty() && channel.tmem_column == -1 && program.cluster_k > 1) return Ok();
    return BrokenRule(4,
                      Cat("channel ", channel.name, " does not hold the sums of a tile that CTAs of a cluster share"));
  }
  if (channel.space == Space::kShared) {
    if (channel.tiles.empty() || channel.tiles.size() > kMostTilesOfSlot) {
      return BrokenRule(4, Cat("shared channel ", channel.name, " has ", channel.tiles.size(), " tiles, not 1 to ",
                               kMostTilesOfSlot));
    }
    if (placed) return BrokenRule(4, Cat("shared channel ", channel.name, " has rows or columns"));
    for (const TileSlot& tile : channel.tiles) {
      LS_TRY(CheckLayout(Cat("tile ", tile.name, " of ", channel.name), tile.layout));
      const bool factors = tile.layout.type == DataType::kF32 && tile.layout.inner == kFactorsOfLine;
      const bool blocks = ScaleBlock::Holds(tile.layout.type) || MetadataBlock::Holds(tile.layout) || factors;
      if (tile.layout.swizzle == Swizzle::kNone && !blocks)
        return BrokenRule(3, Cat("tile ", tile.name, " of ", channel.name, " has no swizzle, and is multiplied"));
    }
    return Ok();
  }
  if (target.tmem_columns == 0) {
    return BrokenRule(4,
                      Cat("channel ", channel.name, " needs Tensor Memory, which ", program.target, " does not have"));
  }
  if (!channel.tiles.empty()) return BrokenRule(4, Cat("Tensor Memory channel ", channel.name, " has tiles"));
  if (channel.rows != 64 && channel.rows != 128) {
    return BrokenRule(4, Cat("channel ", channel.name, " has ", channel.rows, " rows, not 64 or 128"));
  }
  if (channel.columns < 1 || channel.columns > target.tmem_columns) {
    return BrokenRule(
        4, Cat("channel ", channel.name, " has ", channel.columns, " columns, not 1 to ", target.tmem_columns));
  }
  return Ok();
}

// Two accumulators that share columns, and the channel that hands these over.
Status CheckOverlap(const Program& program, const Channel& channel) {
  const auto broken = [&](const char* what) { return BrokenRule(4, Cat("channel ", channel.name, what)); };
  const Channel* const neighbour = &channel + (channel.is_overlap ? -1 : 1);
  const bool first = &channel == &program.channels.front(), last = &channel == &program.channels.back();
  if (channel.overlap != 0) {
    if (channel.space != Space::kTensor || channel.is_private || channel.stages != 2)
      return broken(" overlaps, but is not of two accumulators");
    if (channel.overlap < 0 || channel.overlap >= channel.columns) return broken(" overlaps by all of its columns");
    if (last || !neighbour->is_overlap) return broken(" overlaps, and no channel follows for the columns of both");
  }
  if (!channel.is_overlap) return Ok();
  if (first || neighbour->overlap == 0) return broken(" is of an overlap, and does not follow one");
  const bool same = channel.space == Space::kTensor && channel.rows == neighbour->rows &&
                    channel.columns == neighbour->overlap && channel.stages == 1 && !channel.is_private;
  if (!same) return broken(" is not the columns that both accumulators have");
  const int place = neighbour->tmem_column == -1 ? -1 : neighbour->tmem_column + neighbour->StageColumns();
  return channel.tmem_column == place ? Ok() : broken(" does not begin where the accumulators overlap");
}

Status CheckRings(const Program& program, const target::Target& target) {
  const bool lowered = program.stage == Stage::kLowered;
  const auto responses = std::count_if(program.channels.begin(), program.channels.end(),
                                       [](const Channel& channel) { return channel.space == Space::kClcResponses; });
  if (responses > 1) return BrokenRule(4, "there is more than one channel of CLC responses");
  for (const Channel& channel : program.channels) {
    if (channel.stages < 1 || channel.stages > kMaxExtent) {
      return BrokenRule(4, Cat("channel ", channel.name, " has ", channel.stages, " stages"));
    }
    LS_TRY(CheckSpace(program, channel, target));
    LS_TRY(CheckOverlap(program, channel));
    if (channel.is_private && (channel.space != Space::kTensor || channel.full_arrivals != 0)) {
      return BrokenRule(
          4, Cat("channel ", channel.name, " is a private ring, but not in Tensor Memory or filled by other roles"));
    }
    if (channel.resident && (channel.space != Space::kShared || channel.empty_arrivals != 0)) {
      return BrokenRule(4, Cat("channel ", channel.name, " is resident, but is not shared or is released"));
    }
    if ((channel.own && channel.space != Space::kShared) || (channel.own && channel.resident))
      return BrokenRule(4, Cat("channel ", channel.name, " is of each CTA's own slots, but not a shared ring"));
    if (channel.stored && (channel.space != Space::kTensor || channel.is_private || channel.overlap != 0))
      return BrokenRule(4, Cat("channel ", channel.name, " is stored by threads, but not a ring in Tensor Memory"));
    // No other role fills a private ring, and none releases resident slots.
    for (const int arrivals : {channel.is_private ? channel.empty_arrivals : channel.full_arrivals,
                               channel.resident ? channel.full_arrivals : channel.empty_arrivals}) {
      if (lowered ? arrivals < 1 : arrivals != 0) {
        return BrokenRule(4, Cat("channel ", channel.name, " of a ", lowered ? "lowered" : "scheduled", " program has ",
                                 arrivals, " arrivals"));
      }
    }
  }
  for (const Buffer& buffer : program.buffers) {
    LS_TRY(CheckLayout(Cat("buffer ", buffer.name), buffer.layout, {.short_rows = true}));
    if (buffer.copies < 1 || buffer.copies > 64 || buffer.warps < 1 || buffer.warps > 32) {
      return BrokenRule(4, Cat("buffer ", buffer.name, " has ", buffer.copies, " copies for ", buffer.warps, " warps"));
    }
    if (buffer.sharers < 1 || buffer.warps % buffer.sharers != 0) {
      return BrokenRule(
          4, Cat("buffer ", buffer.name, " is shared by ", buffer.sharers, " of ", buffer.warps, " warps each"));
    }
  }
  return Ok();
}

// Until it waits. Sizes that the previous kernel may write are not read either.
bool OnlyLoadsB(const std::vector<Op>& body) {
  return std::all_of(body.begin(), body.end(), [](const Op& op) {
    switch (InfoOf(op.kind).category) {
      case OpCategory::kIndex:
        if (op.kind == OpKind::kFindRows) return false;
        break;
      case OpCategory::kStructure:
      case OpCategory::kChannel:
      case OpCategory::kBarrier:
        break;
      case OpCategory::kWork: {
        const auto* work = std::get_if<WorkAttrs>(&op.attrs);
        if (work != nullptr && work->source != WorkSource::kStatic && work->source != WorkSource::kLaunchControl)
          return false;
        break;
      }
      case OpCategory::kBulkLoad:
        if (op.kind != OpKind::kTmaLoad || op.As<LoadAttrs>().operand != Operand::kB) return false;
        break;
      case OpCategory::kFma: {
        const auto* gemv = std::get_if<GemvAttrs>(&op.attrs);
        if (gemv == nullptr || !gemv->waits) return false;
        break;
      }
      default:
        return false;
    }
    return OnlyLoadsB(op.body);
  });
}

Status CheckRoles(const Program& program, const target::Target& target) {
  std::vector<const Role*> owner(static_cast<size_t>(program.threads) / 32, nullptr);
  for (const Role& role : program.roles) {
    const bool inside = role.first_warp >= 0 && role.warps >= 1 &&
                        static_cast<int64_t>(role.first_warp) + role.warps <= static_cast<int64_t>(owner.size());
    if (!inside) {
      return BrokenRule(
          5, Cat("role ", role.name, " has warps ", role.first_warp, "+", role.warps, " of a CTA of ", owner.size()));
    }
    for (int warp = role.first_warp; warp < role.first_warp + role.warps; ++warp) {
      const Role*& slot = owner[static_cast<size_t>(warp)];
      if (slot != nullptr) return BrokenRule(5, Cat("roles ", slot->name, " and ", role.name, " share warp ", warp));
      slot = &role;
    }
    if (role.elected && role.warps != 1) {
      return BrokenRule(5, Cat("role ", role.name, " elects a thread of ", role.warps, " warps"));
    }
    if (role.early && !OnlyLoadsB(role.body)) {
      return BrokenRule(5, Cat("role ", role.name, " does not wait for the previous kernel and does more than load B"));
    }
    if (role.leader && program.ctas != 2)
      return BrokenRule(5, Cat("role ", role.name, " is a leader's, but there are no pairs"));
    const bool fits = role.registers >= 24 && role.registers <= 256 && role.registers % 8 == 0;
    if (role.registers != 0 && !(fits && target.Has(target::Feature::kSetMaxNReg))) {
      return BrokenRule(
          5, Cat("role ", role.name, " has registers=", role.registers, ", not a multiple of 8 from 24 to 256"));
    }
  }
  int64_t registers = 0;
  for (size_t first = 0; first < owner.size(); first += 4) {
    const Role* leader = nullptr;
    for (size_t warp = first; warp < std::min(first + 4, owner.size()); ++warp) {
      if (owner[warp] == nullptr) continue;
      if (leader != nullptr && owner[warp]->registers != leader->registers) {
        return BrokenRule(
            5, Cat("roles ", leader->name, " and ", owner[warp]->name, " share a warpgroup and differ in registers"));
      }
      leader = owner[warp];
    }
    if (leader != nullptr) registers += int64_t{128} * leader->registers;
  }
  if (registers > target.registers_per_sm) {
    return BrokenRule(5, Cat("the roles' registers are ", registers, ", the SM has ", target.registers_per_sm));
  }
  return Ok();
}

// A region of shared memory or of Tensor Memory.
struct Extent {
  int64_t begin, size, alignment;
  std::string owner;
};

Status CheckDisjoint(std::string_view unit, std::vector<Extent> extents, int64_t limit) {
  std::sort(extents.begin(), extents.end(), [](const Extent& x, const Extent& y) { return x.begin < y.begin; });
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    if (extent.begin % extent.alignment != 0) {
      return BrokenRule(13,
                        Cat(extent.owner, " at ", unit, " ", extent.begin, " is not aligned to ", extent.alignment));
    }
    if (extent.begin + extent.size > limit) {
      return BrokenRule(
          13, Cat(extent.owner, " ends at ", unit, " ", extent.begin + extent.size, ", after the end ", limit));
    }
    if (i > 0 && extents[i - 1].begin + extents[i - 1].size > extent.begin) {
      return BrokenRule(13, Cat(extents[i - 1].owner, " and ", extent.owner, " overlap at ", unit, " ", extent.begin));
    }
  }
  return Ok();
}

std::vector<Extent> SharedExtents(const Program& program) {
  std::vector<Extent> extents;
  for (const Channel& channel : program.channels) {
    const int64_t step = channel.StageBytes();
    for (const TileSlot& tile : channel.tiles) {
      for (int stage = 0; stage < channel.stages; ++stage) {
        extents.push_back({tile.offset + stage * step, tile.layout.Bytes(), tile.layout.Alignment(),
                           Cat("tile ", channel.name, ".", tile.name, " of stage ", stage)});
      }
    }
    extents.push_back({channel.barrier_offset, int64_t{kBarrierBytes} * channel.Barriers(), kBarrierBytes,
                       Cat("the barriers of ", channel.name)});
    if (channel.space == Space::kClcResponses || channel.space == Space::kSums) {
      extents.push_back({channel.slots_offset, step * channel.stages, kClcResponseBytes,
                         Cat(channel.space == Space::kSums ? "the sums of " : "the responses of ", channel.name)});
    }
  }
  for (const Buffer& buffer : program.buffers) {
    const int64_t pieces = int64_t{buffer.copies} * buffer.Groups();
    for (int64_t piece = 0; piece < pieces; ++piece) {
      extents.push_back({buffer.offset + piece * buffer.layout.Bytes(), buffer.layout.Bytes(),
                         buffer.layout.Alignment(), Cat("buffer ", buffer.name)});
    }
  }
  if (program.tmem_columns > 0) extents.push_back({program.tmem_slot_offset, 4, 4, "the Tensor Memory slot"});
  return extents;
}

std::vector<Extent> TensorExtents(const Program& program) {
  std::vector<Extent> extents;
  for (const Channel& channel : program.channels) {
    if (channel.space != Space::kTensor || channel.is_overlap) continue;
    extents.push_back({channel.tmem_column, int64_t{channel.stages} * channel.columns - channel.overlap, 1,
                       Cat("channel ", channel.name)});
  }
  return extents;
}

Status CheckStorage(const Program& program, const target::Target& target) {
  const std::vector<Extent> shared = SharedExtents(program), tensor = TensorExtents(program);
  const bool assigned = program.smem_bytes != -1;
  for (const auto* list : {&shared, &tensor}) {
    for (const Extent& extent : *list) {
      // What has no place yet is at -1, its later stages at -1 plus a multiple of their distance.
      if (extent.begin < 0 && assigned)
        return BrokenRule(13, Cat(extent.owner, " has no place in an assigned program"));
    }
  }
  const auto unplaced = [&](int offset) { return assigned || offset == -1; };
  for (const Channel& channel : program.channels) {
    bool clean = unplaced(channel.barrier_offset) && unplaced(channel.tmem_column) && unplaced(channel.slots_offset);
    for (const TileSlot& tile : channel.tiles) clean = clean && unplaced(tile.offset);
    if (!clean) return BrokenRule(13, Cat("channel ", channel.name, " has a place in a program without smem_bytes"));
  }
  for (const Buffer& buffer : program.buffers) {
    if (!unplaced(buffer.offset))
      return BrokenRule(13, Cat("buffer ", buffer.name, " has a place in a program without smem_bytes"));
  }
  if (!assigned) {
    if (program.tmem_columns == 0 && program.tmem_slot_offset == -1) return Ok();
    return BrokenRule(13, "Tensor Memory is allocated in a program without smem_bytes");
  }
  if (program.smem_bytes < 0 || program.smem_bytes > target.smem_bytes) {
    return BrokenRule(13, Cat("smem_bytes=", program.smem_bytes, ", the target has ", target.smem_bytes));
  }
  const int columns = program.tmem_columns;
  const bool legal =
      columns >= 32 && columns <= target.tmem_columns && std::has_single_bit(static_cast<unsigned>(columns));
  if (tensor.empty() ? columns != 0 || program.tmem_slot_offset != -1 : !legal) {
    return BrokenRule(13, Cat("tmem_columns=", columns,
                              tensor.empty() ? " without a Tensor Memory channel"
                                             : " is not a power of two from 32 to the target's"));
  }
  LS_TRY(CheckDisjoint("byte", shared, program.smem_bytes));
  return CheckDisjoint("column", tensor, columns);
}

}  // namespace

Status VerifyProgram(const Program& program, const target::Target& target) {
  LS_TRY(CheckHeader(program, target));
  LS_TRY(CheckParams(program, target));
  LS_TRY(CheckRings(program, target));
  LS_TRY(CheckRoles(program, target));
  LS_TRY(RoleVerifier(program, target).Verify());
  return CheckStorage(program, target);
}

}  // namespace laneshift::ir
