#include "ir/proof/channel_proof.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ir/proof/channel_network.h"

namespace laneshift::ir {
namespace {

constexpr int kMostColumns = 32;  // of a filter whose row a kernel unrolls

bool IsRing(const Channel& channel) { return channel.resident == 0; }

// What an iteration depends on is fewer iterations back (channel_proof.h).
int Span(const Program& program) {
  int span = 2;
  for (const Channel& channel : program.channels) span += IsRing(channel) ? channel.stages + 1 : 0;
  return span;
}

bool IsPingpong(const Program& program) {
  return std::any_of(program.channels.begin(), program.channels.end(),
                     [](const Channel& channel) { return channel.space == Space::kOrder; });
}

// Whether a loop processes several blocks of K per iteration, so that a tile may end with a remainder.
bool GoesByMany(const std::vector<Op>& body) {
  return AnyOp(body, [](const Op& op) { return op.kind == OpKind::kFor && op.As<ForAttrs>().step > 1; });
}

// The program's roles, reduced to what affects barriers; they are traced for one trip count after another.
std::vector<Role> Skeletons(const Program& program) {
  std::vector<Role> skeletons;
  for (const Role& role : program.roles) skeletons.push_back(ChannelsOnly(program, role));
  return skeletons;
}

Result<std::vector<RoleTrace>> TraceRoles(const Program& program, const std::vector<Role>& skeletons,
                                          const Trips& trips) {
  std::vector<RoleTrace> traces;
  for (const Role& role : skeletons) {
    LS_ASSIGN(RoleTrace trace, TraceRole(program, role, trips));
    traces.push_back(std::move(trace));
  }
  return traces;
}

bool ReadsUnawaited(const std::vector<RoleTrace>& traces) {
  return std::any_of(traces.begin(), traces.end(), [](const RoleTrace& trace) { return trace.reads_unawaited; });
}
bool Overfills(const std::vector<RoleTrace>& traces) {
  return std::any_of(traces.begin(), traces.end(), [](const RoleTrace& trace) { return trace.overfills; });
}

Result<Trips> LeastOf(const Program& program, const std::vector<Role>& skeletons) {
  int most_blocks = 1;
  for (const Channel& channel : program.channels)
    most_blocks = std::max(most_blocks, channel.resident * channel.stages);
  for (int blocks = 1; blocks <= most_blocks; ++blocks) {
    for (int columns = 1; columns <= kMostColumns; ++columns) {
      const Trips trips{.blocks = blocks, .columns = columns};
      LS_ASSIGN(const std::vector<RoleTrace> traces, TraceRoles(program, skeletons, trips));
      if (!ReadsUnawaited(traces) && !Overfills(traces)) return trips;
    }
  }
  return MakeError(ErrorCode::kInternal, "slots of a resident channel are read that no role awaits");
}

Status Prove(const Program& program, const std::vector<Role>& skeletons, const Trips& trips) {
  const Result<std::vector<RoleTrace>> traced = TraceRoles(program, skeletons, trips);
  if (!traced) return traced.error().Within(base::Cat("with ", trips.Text()));
  const std::vector<RoleTrace>& traces = *traced;
  // For a kernel with resident slots, those are the counts of another schedule.
  if (Overfills(traces) || ReadsUnawaited(traces)) return Ok();
  if (auto status = ChannelNetwork(program, traces).Run(); !status) {
    return status.error().Within(base::Cat("with ", trips.Text()));
  }
  return Ok();
}

}  // namespace

Result<Trips> LeastTrips(const Program& program) { return LeastOf(program, Skeletons(program)); }

std::vector<Trips> TripsOfProof(const Program& program, const Trips& least) {
  const int span = Span(program);
  std::set<int> counts = {1, 2, span, least.blocks};
  for (const Role& role : program.roles) {
    if (GoesByMany(role.body)) counts.insert(span + 1);
  }
  // With resident slots, a tile has no more blocks than there are slots: all counts.
  for (const Channel& channel : program.channels) {
    for (int blocks = 1; channel.resident != 0 && blocks * least.columns <= channel.stages; ++blocks)
      counts.insert(blocks);
  }
  std::vector<Trips> all = {{.tiles = 1, .blocks = least.blocks, .columns = least.columns}};
  for (const int blocks : counts) {
    const int tiles = 1 + (span + blocks - 1) / blocks;
    all.push_back({.tiles = tiles, .blocks = blocks, .columns = least.columns});
    if (IsPingpong(program)) all.push_back({.tiles = tiles + 1, .blocks = blocks, .columns = least.columns});
  }
  if (program.FindParam(Binding::kTapsR) != nullptr)
    all.push_back({.tiles = 2, .blocks = 2, .rows = 2, .columns = std::max(2, least.columns)});
  return all;
}

Status ProveChannels(const Program& program, const Trips& trips) { return Prove(program, Skeletons(program), trips); }

Status ProveChannels(const Program& program) {
  if (program.channels.empty()) return Ok();
  const std::vector<Role> skeletons = Skeletons(program);
  LS_ASSIGN(const Trips least, LeastOf(program, skeletons));
  for (const Trips& trips : TripsOfProof(program, least)) LS_TRY(Prove(program, skeletons, trips));
  return Ok();
}

}  // namespace laneshift::ir
