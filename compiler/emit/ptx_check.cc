#include "compiler/emit/ptx_check.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "compiler/functions/function_code.h"
#include "ir/mma.h"
#include "ir/row_steps.h"
#include "ir/stored_tensor.h"

namespace laneshift::compiler {
namespace {

using base::Cat;
using ir::OpKind;

// What may not appear, and what its appearance means.
struct Forbidden {
  std::string_view text, reason;
};
constexpr Forbidden kForbidden[] = {
    {".local", "the kernel uses local memory"},
    {"__local_depot", "a kernel parameter or array was copied to local memory"},
    {"brx.idx", "a branch goes through a table"},
    {"call", "the kernel calls a function"},
};

// The instruction of a line, without its predicate; empty for anything else.
std::string_view InstructionOf(std::string_view line) {
  line = base::Trim(line);
  if (line.starts_with('@')) line = base::Trim(line.substr(std::min(line.find_first_of(" \t"), line.size())));
  if (line.empty() || line.find(';') == std::string_view::npos) return {};
  if (line[0] < 'a' || line[0] > 'z') return {};
  return line.substr(0, line.find_first_of(" \t;"));
}

int CountPrefix(const std::map<std::string, int>& census, std::string_view prefix) {
  int count = 0;
  for (auto it = census.lower_bound(std::string(prefix)); it != census.end() && it->first.starts_with(prefix); ++it) {
    count += it->second;
  }
  return count;
}

struct Expected {
  int mma = 0, wgmma = 0, loads = 0, stores = 0, commits = 0, copies = 0, shifts = 0;
  int of_threads = 0;  // asynchronous copies
};

// Blocks of rows that an op multiplies; in a loop of whose rows some may not count, in all of its copies: the first
// block is in each, the last in one. With rows along n there is a copy for each width.
int BlocksOf(const ir::Program& program, const ir::Role& role, const ir::MmaAttrs& attrs, bool counts_rows) {
  const int blocks = program.Blocks(role, attrs);
  if (!counts_rows) return blocks;
  if (program.row_axis == ir::Axis::kN) return blocks * static_cast<int>(ir::ProductWidths(program.Columns()).size());
  int sum = 0;
  for (int block = 0; block < blocks; ++block) sum += program.Blocks(role) - std::max(0, attrs.block) - block;
  return sum;
}

void Count(const ir::Program& program, const std::vector<ir::Op>& body, std::map<ir::ValueId, int>& channel_of,
           const ir::Role& role, bool counts_rows, Expected& expected) {
  const int steps = program.Steps();
  for (const ir::Op& op : body) {
    if (op.kind == OpKind::kCursor) channel_of[op.result] = op.As<ir::CursorAttrs>().channel;
    if (InfoOf(op.kind).category == ir::OpCategory::kMma && op.kind != OpKind::kMmaRegisters)
      expected.mma += steps / op.PartsOfBlock();
    if (op.kind == OpKind::kBlockCopy) {
      const ir::Channel& channel = program.channels[channel_of.at(op.operands[1])];
      const auto& copy = op.As<ir::BlockCopyAttrs>();
      expected.copies += copy.Blocks(channel.tiles[static_cast<size_t>(copy.tile)].layout);
    }
    if (op.kind == OpKind::kTensorCopy || op.kind == OpKind::kTensorRefresh) expected.copies += steps;
    if (op.kind == OpKind::kTensorShift) expected.shifts += steps * op.As<ir::TensorShiftAttrs>().issues;
    if (op.kind == OpKind::kMmaRegisters)
      expected.wgmma += steps * BlocksOf(program, role, op.As<ir::MmaAttrs>(), counts_rows);
    if (op.kind == OpKind::kTmaStore || op.kind == OpKind::kStorePixels) ++expected.stores;
    if (op.kind == OpKind::kMmaCommit) ++expected.commits;
    if (op.kind == OpKind::kLoadRows) {
      const auto& attrs = op.As<ir::RowLoadAttrs>();
      const ir::Channel& channel = program.channels[channel_of.at(op.operands[0])];
      const int step = attrs.at_once * 32 * role.warps;
      expected.loads += channel.tiles[attrs.tile].layout.Boxes() * ((attrs.rows + step - 1) / step);
    }
    if (op.kind == OpKind::kCopyLoad && op.As<ir::LoadAttrs>().piece != 0) {
      const auto& attrs = op.As<ir::LoadAttrs>();
      const ir::Channel& channel = program.channels[channel_of.at(op.operands[0])];
      const ir::SharedLayout& layout = channel.tiles[static_cast<size_t>(attrs.tile)].layout;
      // Of a warp, for a group of eight rows; and once more where a piece may be inside in part.
      const int times = attrs.piece > layout.ElementBytes() ? 2 : 1;
      expected.of_threads += times * 8 * layout.RowBytes() / attrs.piece / 32;
    }
    if (op.kind == OpKind::kTmaLoad || op.kind == OpKind::kLoadPixels) {
      const ir::Channel& channel = program.channels[channel_of.at(op.operands[0])];
      const auto* pixels = std::get_if<ir::PixelLoadAttrs>(&op.attrs);
      const int tile = pixels != nullptr ? pixels->tile : op.As<ir::LoadAttrs>().tile;
      const bool one = pixels != nullptr && pixels->column != ir::PixelLoadAttrs::kEveryColumn;
      expected.loads += one ? 1 : channel.tiles[tile].layout.Boxes() * program.CopiesOf(op);
    }
    Count(program, op.body, channel_of, role, counts_rows || op.CountsRows(), expected);
  }
}

// Without users' functions, which may call others and have local memory.
std::string OwnPart(std::string_view ptx) {
  std::string own;
  for (;;) {
    const size_t begin = ptx.find(kFunctionBegins);
    own += ptx.substr(0, begin);
    const size_t end = begin == std::string_view::npos ? begin : ptx.find(kFunctionEnds, begin);
    if (end == std::string_view::npos) return own;
    ptx.remove_prefix(end + kFunctionEnds.size());
  }
}

}  // namespace

std::map<std::string, int> InstructionCensus(std::string_view ptx) {
  std::map<std::string, int> census;
  for (const std::string_view line : base::Split(ptx, '\n')) {
    const std::string_view instruction = InstructionOf(line);
    if (!instruction.empty()) ++census[std::string(instruction)];
  }
  return census;
}

Status CheckPtx(std::string_view whole, const ir::Program& program) {
  const std::string ptx = OwnPart(whole);
  const std::map<std::string, int> census = InstructionCensus(ptx);
  for (const Forbidden& rule : kForbidden) {
    const bool directive = rule.text[0] == '.' || rule.text[0] == '_';
    const bool found = directive ? ptx.find(rule.text) != std::string_view::npos : CountPrefix(census, rule.text) > 0;
    if (found) return MakeError(ErrorCode::kInternal, Cat("emitted PTX contains '", rule.text, "': ", rule.reason));
  }
  Expected expected;
  for (const ir::Role& role : program.roles) {
    std::map<ir::ValueId, int> channel_of;
    Count(program, role.body, channel_of, role, false, expected);
  }
  const std::pair<std::string_view, int> rules[] = {{"tcgen05.mma", expected.mma},
                                                    {"wgmma.mma_async", expected.wgmma},
                                                    {"tcgen05.commit", expected.commits},
                                                    {"tcgen05.cp", expected.copies},
                                                    {"tcgen05.shift", expected.shifts}};
  for (const auto& [prefix, count] : rules) {
    if (CountPrefix(census, prefix) != count) {
      return MakeError(ErrorCode::kInternal, Cat("emitted PTX has ", CountPrefix(census, prefix), " ", prefix,
                                                 " instructions, the tile program asks for ", count));
    }
  }
  const int of_threads = CountPrefix(census, "cp.async.ca.") + CountPrefix(census, "cp.async.cg.");
  if (of_threads != expected.of_threads) {
    return MakeError(
        ErrorCode::kInternal,
        Cat("emitted PTX has ", of_threads, " cp.async instructions, the tile program asks for ", expected.of_threads));
  }
  int loads = 0, stores = 0;
  for (const auto& [instruction, count] : census) {
    if (!instruction.starts_with("cp.async.bulk.tensor")) continue;
    (instruction.find(".mbarrier") != std::string::npos ? loads : stores) += count;
  }
  if (loads != expected.loads || stores != expected.stores) {
    return MakeError(ErrorCode::kInternal,
                     Cat("emitted PTX has ", loads, " bulk tensor loads and ", stores,
                         " stores, the tile program asks for ", expected.loads, " and ", expected.stores));
  }
  return Ok();
}

}  // namespace laneshift::compiler
