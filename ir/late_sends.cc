#include "ir/late_sends.h"

#include <algorithm>
#include <map>
#include <vector>

namespace laneshift::ir {
namespace {

// Slots of the channel that a role still holds when it takes another one.
int ReleaseLag(const std::vector<Op>& body, int channel, std::map<ValueId, int>& channel_of) {
  int lag = 0;
  for (const Op& op : body) {
    if (op.kind == OpKind::kTake) channel_of[op.result] = op.As<ChannelAttrs>().channel;
    if (op.kind == OpKind::kReleaseLate && channel_of.at(op.operands[0]) == channel)
      lag = std::max(lag, op.As<ReleaseAttrs>().lag);
    lag = std::max(lag, ReleaseLag(op.body, channel, channel_of));
  }
  return lag;
}

}  // namespace

int SlotsOnTheirWay(const Program& program, int channel) {
  int lag = 0;
  for (const Role& role : program.roles) {
    std::map<ValueId, int> channel_of;
    lag = std::max(lag, ReleaseLag(role.body, channel, channel_of));
  }
  const int stages = program.channels[static_cast<size_t>(channel)].stages;
  return std::max(0, std::min(stages / 2, stages - 1 - lag));
}

}  // namespace laneshift::ir
