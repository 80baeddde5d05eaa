#include "ir/channel_proof.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "ir/channel_network.h"

namespace laneshift::ir {
namespace {

constexpr int kMostColumns = 32;  // of a filter whose row a kernel unrolls

bool IsRing(const Channel& channel) { return channel.stays == 0; }

// What an iteration depends on lies fewer iterations back (channel_proof.h).
int Span(const Program& program) {
  int span = 2;
  for (const Channel& channel : program.channels) span += IsRing(channel) ? channel.stages + 1 : 0;
  return span;
}

std::set<int> BlockCounts(const Program& program) {
  std::set<int> counts = {1, 2, Span(program)};
  for (const Channel& channel : program.channels) {
    if (channel.space != Space::kShared || !IsRing(channel)) continue;
    for (const int near : {channel.stages - 1, channel.stages, channel.stages + 1}) counts.insert(std::max(1, near));
  }
  return counts;
}

Result<std::vector<RoleTrace>> TraceRoles(const Program& program, const Trips& trips) {
  std::vector<RoleTrace> traces;
  for (const Role& role : program.roles) {
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

}  // namespace

Result<Trips> LeastTrips(const Program& program) {
  int most_blocks = 1;
  for (const Channel& channel : program.channels) most_blocks = std::max(most_blocks, channel.stays * channel.stages);
  for (int blocks = 1; blocks <= most_blocks; ++blocks) {
    for (int columns = 1; columns <= kMostColumns; ++columns) {
      const Trips trips{.blocks = blocks, .columns = columns};
      LS_ASSIGN(const std::vector<RoleTrace> traces, TraceRoles(program, trips));
      if (!ReadsUnawaited(traces) && !Overfills(traces)) return trips;
    }
  }
  return MakeError(ErrorCode::kInternal, "slots of a channel that stays are read that no role awaits");
}

std::vector<Trips> TripsOfProof(const Program& program, const Trips& least) {
  std::vector<Trips> all;
  const int span = Span(program);
  std::set<int> counts = BlockCounts(program);
  counts.insert(least.blocks);
  for (const int blocks : counts) {
    const int tiles = 1 + (span + blocks - 1) / blocks;
    for (const int count : {1, tiles, tiles + 1}) {
      all.push_back({.tiles = count, .blocks = blocks, .columns = least.columns});
    }
  }
  if (program.FindParam(Binding::kTapsR) != nullptr)
    all.push_back({.tiles = 2, .blocks = 2, .rows = 2, .columns = std::max(2, least.columns)});
  return all;
}

Status ProveChannels(const Program& program, const Trips& trips) {
  LS_ASSIGN(const std::vector<RoleTrace> traces, TraceRoles(program, trips));
  // Of a kernel whose slots stay, those are the counts of another schedule.
  if (Overfills(traces) || ReadsUnawaited(traces)) return Ok();
  if (auto status = ChannelNetwork(program, traces).Run(); !status) {
    return status.error().Within(base::Cat("with ", trips.Text()));
  }
  return Ok();
}

Status ProveChannels(const Program& program) {
  if (program.channels.empty()) return Ok();
  LS_ASSIGN(const Trips least, LeastTrips(program));
  for (const Trips& trips : TripsOfProof(program, least)) LS_TRY(ProveChannels(program, trips));
  return Ok();
}

}  // namespace laneshift::ir
