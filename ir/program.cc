#include "ir/program.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer_math.h"
#include "ir/mma.h"

namespace laneshift::ir {
namespace {

template <typename T, typename Variant>
struct IndexOf;
template <typename T, typename... Types>
struct IndexOf<T, std::variant<Types...>> {
  static constexpr size_t value = [] {
    size_t index = 0;
    (void)((std::is_same_v<T, Types> ? true : (++index, false)) || ...);
    return index;
  }();
};

constexpr OpInfo kOps[] = {
#define OP(Name, mnemonic, operands, result, stages, body, category, executor, roles, needs, check, Attributes, \
           summary)                                                                                             \
  {#Name,                                                                                                       \
   mnemonic,                                                                                                    \
   operands,                                                                                                    \
   ValueType::result,                                                                                           \
   StageSet::stages,                                                                                            \
   body,                                                                                                        \
   OpCategory::category,                                                                                        \
   Executor::executor,                                                                                          \
   roles,                                                                                                       \
   target::Feature::needs,                                                                                      \
   IndexOf<Attributes, Attrs>::value,                                                                           \
   summary},
#include "ir/ops.def"
};
static_assert(std::size(kOps) == kOpCount);

constexpr bool MnemonicsAreUnique() {
  for (size_t i = 0; i < std::size(kOps); ++i) {
    for (size_t j = i + 1; j < std::size(kOps); ++j) {
      if (kOps[i].mnemonic == kOps[j].mnemonic) return false;
    }
  }
  return true;
}
static_assert(MnemonicsAreUnique());

constexpr bool BodiesDefineNoResult() {
  for (const OpInfo& op : kOps) {
    if (op.body >= 0 && op.result != ValueType::kNone) return false;
  }
  return true;
}
static_assert(BodiesDefineNoResult());

}  // namespace

const OpInfo& InfoOf(OpKind kind) { return kOps[static_cast<int>(kind)]; }

ValueType TypeOfLetter(char letter) {
  switch (letter) {
    case 'i':
      return ValueType::kIndex;
    case 'p':
      return ValueType::kPredicate;
    case 's':
      return ValueType::kSlot;
    case 'f':
      return ValueType::kFragment;
    case 'l':
      return ValueType::kLaneMask;
    case 'x':
      return ValueType::kScaleFactors;
    case 'r':
      return ValueType::kRows;
    case 'e':
      return ValueType::kMetadata;
  }
  LS_CHECK(false, "no type has the letter ", letter);
}

bool Program::LoadsEarly() const {
  return std::any_of(roles.begin(), roles.end(), [](const Role& role) { return role.early; });
}

bool Program::StealsWork() const {
  for (const Channel& channel : channels) {
    if (channel.space == Space::kClcResponses) return true;
  }
  return false;
}

int Channel::StageBytes() const {
  int bytes = space == Space::kClcResponses ? kClcResponseBytes : 0, alignment = 1;
  if (space == Space::kSums) bytes = WorkspaceLayout{.rows = rows, .columns = columns}.PartialBytes();
  for (const TileSlot& tile : tiles) {
    bytes += tile.layout.Bytes();
    alignment = std::max(alignment, tile.layout.Alignment());
  }
  return base::RoundUp(bytes, alignment);
}

int Program::Depth() const {
  if (!sparse_a && HasLongRows(OperandBits(), tile_k)) return kMmaLongRowBits / OperandBits();
  return kMmaRowBits / OperandBits() * Compression(Operand::kA);
}

int Program::Parts(MulticastScope to) const {
  return to == MulticastScope::kM || to == MulticastScope::kN ? Arrivals(to) : 1;
}

int Program::CopiesOf(const Op& load) const {
  if (!load.LeavesOutRows()) return 1;
  const auto& attrs = load.As<LoadAttrs>();
  return tile_m / (attrs.whole ? 1 : Parts(attrs.to)) / FindParam(attrs.Map())->box.outer;
}

int Program::Arrivals(MulticastScope to) const {
  switch (to) {
    case MulticastScope::kOwn:
      return 1;
    case MulticastScope::kM:
      return cluster_m / ctas;
    case MulticastScope::kN:
      return cluster_n;
    case MulticastScope::kCross:
      return cluster_m / ctas + cluster_n - 1;
    case MulticastScope::kLeader:
      return ctas;
    case MulticastScope::kAll:
      return ClusterSize();
  }
  __builtin_unreachable();
}

int Program::Blocks(const Role& role) const {
  constexpr int kWarpRows = 16;  // of a wgmma accumulator
  return role.kind == RoleKind::kMath ? Rows() / (kWarpRows * role.warps) : 1;
}

int Program::AccumulatorColumns(const Role& role) const {
  const bool by_block = AnyOp(role.body, [](const Op& op) {
    const auto* mma = std::get_if<MmaAttrs>(&op.attrs);
    return mma != nullptr && mma->block != MmaAttrs::kEveryBlock;
  });
  return Columns() * (by_block ? 1 : Blocks(role));
}

const Param* Program::FindParam(Binding binding) const {
  for (const Param& param : params) {
    if (param.binding == binding) return &param;
  }
  return nullptr;
}

WorkspaceLayout WorkspaceOf(const Program& program) {
  WorkspaceLayout layout;
  for (const Role& role : program.roles) {
    if (role.kind != RoleKind::kEpilogue && role.kind != RoleKind::kMath) continue;
    const int blocks = program.Blocks(role);
    layout = {.rows = program.Rows() / blocks, .columns = program.Columns() * blocks, .warps = role.warps};
  }
  LS_CHECK(layout.warps > 0, "no role of program ", program.name, " holds accumulators");
  return layout;
}

}  // namespace laneshift::ir
