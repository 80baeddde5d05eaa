#include "compiler/build/operand_loader.h"

#include <algorithm>
#include <cstddef>

namespace laneshift::compiler {

using ir::Builder;
using ir::ValueId;

namespace {

using Loaders = std::vector<const OperandLoader*>;

// Where the tile begins in each operand.
std::vector<OperandLoader::LoadBlock> StartTile(Builder& b, const Corner& corner, const Loaders& loaders) {
  // The last operand finds its place first: the order decides the code of kernels that have been measured.
  std::vector<OperandLoader::LoadBlock> loads(loaders.size());
  for (size_t i = loaders.size(); i-- > 0;) loads[i] = loaders[i]->StartTile(b, corner);
  return loads;
}

// The first loader after those of one channel.
size_t EndOfChannel(const Loaders& loaders, size_t begin) {
  size_t end = begin;
  while (end < loaders.size() && loaders[end]->target().channel == loaders[begin]->target().channel) ++end;
  return end;
}

// Whether slots are sent late: copies into one may be on their way while the next ones are filled.
bool SendsLate(const Loaders& loaders, size_t begin, size_t end) {
  return std::any_of(loaders.begin() + static_cast<std::ptrdiff_t>(begin),
                     loaders.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const OperandLoader* loader) { return loader->target().path == LoadPath::kAsync; });
}

void FillSlots(Builder& b, const KBlock& block, const Loaders& loaders,
               const std::vector<OperandLoader::LoadBlock>& loads) {
  for (size_t begin = 0, end = 0; begin < loaders.size(); begin = end) {
    const LoadTarget& target = loaders[begin]->target();
    end = EndOfChannel(loaders, begin);
    for (int i = 0; i < target.slots_of_block; ++i) {
      const ValueId slot = b.Put({}, {.channel = target.channel});
      for (size_t l = begin; l < end; ++l) loads[l](b, slot, block, i);
      SendsLate(loaders, begin, end) ? b.SendLate({slot}) : b.Send({slot});
    }
  }
}

}  // namespace

void LoadTile(Builder& b, const KLoop& k, const Corner& corner, const Loaders& loaders) {
  const auto loads = StartTile(b, corner, loaders);
  k.ForEachBlock(b, corner, [&](const KBlock& block) { FillSlots(b, block, loaders, loads); });
}

void LoadFirstBlock(Builder& b, const Corner& corner, const Loaders& loaders) {
  FillSlots(b, {.number = b.Constant(0), .first = b.Constant(0)}, loaders, StartTile(b, corner, loaders));
}

void SendRest(Builder& b, const Loaders& loaders) {
  for (size_t begin = 0, end = 0; begin < loaders.size(); begin = end) {
    end = EndOfChannel(loaders, begin);
    if (SendsLate(loaders, begin, end)) b.DrainSends({}, {.channel = loaders[begin]->target().channel});
  }
}

}  // namespace laneshift::compiler
