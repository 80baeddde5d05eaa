#include "laneshift/schedule.h"

#include <array>
#include <span>
#include <utility>
#include <variant>

#include "base/host_memory.h"
#include "base/text.h"
#include "ir/problem_keys.h"

namespace laneshift {
namespace {

using base::Cat;
using ir::Choice;

// The names of a decision's values, in the order of its enum.
template <typename Enum>
constexpr std::array<std::string_view, 0> kNames{};
template <>
constexpr std::array<std::string_view, 4> kNames<LoadPath>{"tma", "copy", "pack", "async"};
template <>
constexpr std::array<std::string_view, 3> kNames<StorePath>{"tma", "direct", "rows"};
template <>
constexpr std::array<std::string_view, 5> kNames<Reuse>{"none", "im2col", "row_offset", "lane_shift", "direct"};
template <>
constexpr std::array<std::string_view, 2> kNames<RowSide>{"m", "n"};
template <>
constexpr std::array<std::string_view, 2> kNames<ShiftForm>{"separate", "fused"};
template <>
constexpr std::array<std::string_view, 2> kNames<Border>{"zeros", "mask"};

template <>
constexpr std::array<std::string_view, 2> kNames<Scheduler>{"static", "clc"};
template <>
constexpr std::array<std::string_view, 2> kNames<Consumers>{"cooperative", "pingpong"};
template <>
constexpr std::array<std::string_view, 3> kNames<ScaleWarps>{"none", "rows", "all"};
template <>
constexpr std::array<std::string_view, 2> kNames<EarlyLoads>{"none", "b"};

using Member = std::variant<int Schedule::*, LoadPath Schedule::*, StorePath Schedule::*, Reuse Schedule::*,
                            ShiftForm Schedule::*, Border Schedule::*, Scheduler Schedule::*, RowSide Schedule::*,
                            Consumers Schedule::*, ScaleWarps Schedule::*, EarlyLoads Schedule::*>;

// One decision. Its index in the table, over all keys, is its bit in ScheduleConstraint::fixed.
struct Field {
  Member member;
  int largest = 0;  // of a number
  int smallest = 1;
};

constexpr Field kTile[] = {{&Schedule::tile_m, 1024}, {&Schedule::tile_n, 1024}, {&Schedule::tile_k, 4096}};
constexpr Field kStages[] = {{&Schedule::stages, 64}};
constexpr Field kAcc[] = {{&Schedule::acc_stages, 16}};
constexpr Field kMath[] = {{&Schedule::math_warpgroups, 4}};
constexpr Field kRaster[] = {{&Schedule::raster, 65536}};
constexpr Field kALoad[] = {{&Schedule::a_load}};
constexpr Field kBLoad[] = {{&Schedule::b_load}};
constexpr Field kBKeep[] = {{&Schedule::b_keep, 64, 0}};
constexpr Field kDStore[] = {{&Schedule::d_store}};
constexpr Field kReuse[] = {{&Schedule::reuse}};
constexpr Field kShift[] = {{&Schedule::shift}};
constexpr Field kBorder[] = {{&Schedule::border}};
constexpr Field kFilterStages[] = {{&Schedule::filter_stages, 64}};
constexpr Field kCluster[] = {{&Schedule::cluster_m, 16}, {&Schedule::cluster_n, 16}};
constexpr Field kClusterK[] = {{&Schedule::cluster_k, 16}};
constexpr Field kCtas[] = {{&Schedule::ctas, 2}};
constexpr Field kScheduler[] = {{&Schedule::scheduler}};
constexpr Field kRows[] = {{&Schedule::rows}};
constexpr Field kConsumers[] = {{&Schedule::consumers}};
constexpr Field kSplitK[] = {{&Schedule::split_k, 256}};
constexpr Field kMergeGroups[] = {{&Schedule::merge_groups, 256}};
constexpr Field kScaleWarps[] = {{&Schedule::scale_warps}};
constexpr Field kEarly[] = {{&Schedule::early}};

// One row per key, in printed order. The values of a key's fields are joined by 'x'; those after the first `required`
// may be omitted, which leaves them undecided.
struct Key {
  std::string_view name;
  std::span<const Field> fields;
  size_t required;
  std::string_view doc;
};

// clang-format off
constexpr Key kKeys[] = {
    {"tile",    kTile,   2, "elements of one output tile (MxN) and of one K block; without the third number K stays open"},
    {"stages",  kStages, 1, "slots of the shared-memory ring between the loads and the MMA"},
    {"acc",     kAcc,    1, "accumulators; 2 overlap the epilogue of one tile with the MMAs of the next (Tensor Memory only), and have columns in common where there is no room for both"},
    {"math",    kMath,   1, "warpgroups that issue wgmma (sm_90a; 1 on sm_100a), or multiply on CUDA cores (reuse=direct)"},
    {"raster",  kRaster, 1, "tile order: bands of this many tile rows, for reuse in L2"},
    {"a_load",  kALoad,  1, "how tiles of A are loaded into shared memory: bulk tensor copies; copies by threads for any alignment; bulk copies from aligned rows of the workspace into which a separate kernel packs A first; or asynchronous copies of 4, 8 or 16 bytes by threads"},
    {"b_load",  kBLoad,  1, "the same for B"},
    {"b_keep",  kBKeep,  1, "resident B: blocks of K of B (in a convolution: of all taps) that a CTA loads once for all its tiles; 0: B is loaded for each tile"},
    {"d_store", kDStore, 1, "how tiles of D are stored: bulk tensor stores, stores by threads directly from the accumulators, or stores by threads along rows, through shared memory"},
    {"reuse",   kReuse,  1, "convolution: activations are loaded for each filter column, or once for each filter row and shifted; direct: CUDA cores multiply what they read, a depthwise one or a matrix by at most 8 vectors; none: a GEMM on tensor cores, also of a convolution of one tap at stride 1"},
    {"shift",   kShift,  1, "with reuse=lane_shift: lanes are shifted by a separate instruction and refreshed, or by the MMA, which leaves stale lanes"},
    {"border",  kBorder, 1, "with reuse (sm_100a): outside the image the TMA loads zeros, or a row-border mask disables the lanes of the MMA"},
    {"filter_stages", kFilterStages, 1, "with reuse: slots of the ring of filter tiles, in addition to the `stages` of activations"},
    {"cluster", kCluster, 2, "CTAs (along m x along n) that run together and multicast the tiles that they share: A along n, B along m"},
    {"cluster_k", kClusterK, 1, "CTAs of a cluster that share a tile: each multiplies a part of K, and they add their sums through distributed shared memory"},
    {"ctas",    kCtas,   1, "CTAs of one MMA: 2 neighbours along m are a pair, whose CTAs hold half of each B tile (sm_100a)"},
    {"scheduler", kScheduler, 1, "how a cluster gets its next tile: in a fixed order, or by work stealing with cluster launch control (sm_100a)"},
    {"rows",    kRows,   1, "the side of the output along the rows of the matrix instruction; n (swap A/B) maps a small m to its columns"},
    {"consumers", kConsumers, 1, "whether the `math` warpgroups share the rows of a tile, or two alternate between tiles: the epilogue of one overlaps the MMAs of the other (sm_90a)"},
    {"split_k", kSplitK, 1, "split-K slices of the tiles that do not fill a round of CTAs; partials are added in a workspace"},
    {"merge_groups", kMergeGroups, 1, "convolution with groups: adjacent groups that are multiplied as one, with filters that have zeros for the channels of other groups"},
    {"scale_warps", kScaleWarps, 1, "with scale=mx or nv: scale factors that four more warps store to Tensor Memory (tcgen05.st), of the operand along the rows of the matrix instruction or of both; the tensor core copies the others (tcgen05.cp) and multiplies nothing meanwhile"},
    {"early", kEarly, 1, "with constant=b: whether a separate warp loads B before the previous kernel on the stream has ended, or all operands are loaded after it"},
};
// clang-format on

constexpr size_t FieldCount() {
  size_t count = 0;
  for (const Key& key : kKeys) count += key.fields.size();
  return count;
}
static_assert(FieldCount() <= 32, "ScheduleConstraint::fixed has 32 bits");

Error Invalid(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

template <typename Enum>
Status ParseName(const Key& key, std::string_view text, std::span<const std::string_view> names, Enum& field) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != text) continue;
    field = static_cast<Enum>(i);
    return Ok();
  }
  return Invalid(Cat(key.name, "=", text, " is unknown; use ", Choice(names)));
}

struct FieldParser {
  Schedule& schedule;
  const Key& key;
  const Field& field;
  std::string_view text;

  Status operator()(int Schedule::*member) const {
    const auto value = base::ParseInt(text);
    if (!value) return Invalid(Cat(key.name, "=: '", text, "' is not a whole number"));
    if (*value < field.smallest || *value > field.largest) {
      return Invalid(Cat(key.name, "=: ", *value, " is out of range; use ", field.smallest, " to ", field.largest));
    }
    schedule.*member = static_cast<int>(*value);
    return Ok();
  }
  template <typename Enum>
  Status operator()(Enum Schedule::*member) const {
    return ParseName(key, text, kNames<Enum>, schedule.*member);
  }
};

struct FieldPrinter {
  const Schedule& schedule;

  std::string operator()(int Schedule::*member) const { return Cat(schedule.*member); }
  template <typename Enum>
  std::string operator()(Enum Schedule::*member) const {
    return std::string(kNames<Enum>[static_cast<size_t>(schedule.*member)]);
  }
};

struct ValuesPrinter {
  const Field& field;

  std::string operator()(int Schedule::*) const { return Cat(field.smallest, " to ", field.largest); }
  template <typename Enum>
  std::string operator()(Enum Schedule::*) const {
    return Choice(kNames<Enum>);
  }
};

std::string PrintKey(const Key& key, const Schedule& schedule) {
  std::string text;
  for (const Field& field : key.fields) {
    text += Cat(text.empty() ? "" : "x", std::visit(FieldPrinter{schedule}, field.member));
  }
  return text;
}

constexpr ir::Alias kScheduleAliases[] = {
    {"block blocks block_m block_n block_k bm bn bk tile_m tile_n tile_k tile_shape cta cta_tile mnk",
     "one output tile is tile=MxNxK, such as tile=128x256x64"},
    {"num_stages pipeline pipeline_stages depth", "use stages="},
    {"warps num_warps warpgroups num_warpgroups", "warpgroups that multiply are math= (sm_90a)"},
    {"cluster_m cluster_n cluster_size cluster_shape clusters", "use cluster=MxN, such as cluster=2x1"},
    {"splitk splits split_k_slices k_splits slices", "use split_k=, or cluster_k= for CTAs of a cluster"},
    {"swizzle group_m rasterization", "tile rows of a band are raster="},
    {"2cta cta_pair cta_group pair", "a pair of CTAs is ctas=2 cluster=2x1"},
    {"persistent", "how tiles are given out is scheduler=static or clc"},
    {"m n k a b d dtype", "that is a key of the problem, not of the schedule"},
};

Error UnknownScheduleKey(std::string_view name) {
  const std::string_view cure = ir::CureOf(kScheduleAliases, name);
  if (!cure.empty()) return Invalid(Cat("unknown key '", name, "' of a schedule; ", cure));
  std::vector<std::string_view> known;
  for (const Key& key : kKeys) known.push_back(key.name);
  return Invalid(base::UnknownName("key", name, known));
}

// Parses the value of `key`, whose first field has bit `first_bit`.
Status ParseValue(const Key& key, size_t first_bit, std::string_view text, ScheduleConstraint& constraint) {
  if ((constraint.fixed >> first_bit & 1) != 0)
    return Invalid(Cat("key '", key.name, "' is given twice; leave one out"));
  const std::vector<std::string_view> parts =
      key.fields.size() == 1 ? std::vector<std::string_view>{text} : base::Split(text, 'x');
  if (parts.size() < key.required || parts.size() > key.fields.size()) {
    return Invalid(Cat(key.name, "=", text, " has ", parts.size(), " numbers; write for example ", key.name, "=",
                       PrintKey(key, Schedule{})));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    LS_TRY(std::visit(FieldParser{constraint.value, key, key.fields[i], parts[i]}, key.fields[i].member));
    constraint.fixed |= uint32_t{1} << (first_bit + i);
  }
  return Ok();
}

Status ParseWord(std::string_view word, ScheduleConstraint& constraint) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos)
    return Invalid(Cat("'", word, "' is not of the form key=value, such as tile=128x256"));
  if (const size_t comma = word.find(','); comma != std::string_view::npos)
    return Invalid(Cat("'", word, "': keys are separated by blanks, not commas; write \"", word.substr(0, comma), " ",
                       word.substr(comma + 1), "\""));
  size_t bit = 0;
  for (const Key& key : kKeys) {
    if (key.name == word.substr(0, equals)) return ParseValue(key, bit, word.substr(equals + 1), constraint);
    bit += key.fields.size();
  }
  return UnknownScheduleKey(word.substr(0, equals));
}

}  // namespace

Schedule ScheduleConstraint::Apply(const Schedule& schedule) const {
  Schedule applied = schedule;
  size_t bit = 0;
  for (const Key& key : kKeys) {
    for (const Field& field : key.fields) {
      if ((fixed >> bit++ & 1) == 0) continue;
      std::visit([&](auto member) { applied.*member = value.*member; }, field.member);
    }
  }
  return applied;
}

Result<ScheduleConstraint> ParseSchedule(std::string_view text) {
  return base::WithinHostMemory([&]() -> Result<ScheduleConstraint> {
    ScheduleConstraint constraint;
    for (const std::string_view word : base::Words(text)) LS_TRY(ParseWord(word, constraint));
    return constraint;
  });
}

std::string PrintSchedule(const Schedule& schedule) {
  std::string text;
  for (const Key& key : kKeys) text += Cat(text.empty() ? "" : " ", key.name, "=", PrintKey(key, schedule));
  return text;
}

std::vector<ScheduleKey> ScheduleKeys() {
  std::vector<ScheduleKey> keys;
  for (const Key& key : kKeys) {
    std::string values;
    for (const Field& field : key.fields) {
      const std::string one = std::visit(ValuesPrinter{field}, field.member);
      if (values != one) values += Cat(values.empty() ? "" : " x ", one);
    }
    keys.push_back({.name = key.name, .values = values, .usual = PrintKey(key, Schedule{}), .doc = key.doc});
  }
  return keys;
}

}  // namespace laneshift
