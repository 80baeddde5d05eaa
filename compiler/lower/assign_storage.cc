#include <algorithm>
#include <bit>

#include "base/integer_math.h"
#include "base/text.h"
#include "compiler/passes.h"

namespace laneshift::compiler {
namespace {

using base::Cat;

constexpr int kMinTensorColumns = 32;  // tcgen05.alloc: a power of two from 32 to 512

// Allocates shared memory from offset 0 upwards.
class SharedMemory {
 public:
  int Take(int bytes, int alignment) {
    const int offset = base::RoundUp(used_, alignment);
    used_ = offset + bytes;
    return offset;
  }
  int used() const { return used_; }

 private:
  int used_ = 0;
};

// Tiles of one stage are contiguous, so that one multiplication finds a stage.
void PlaceTiles(ir::Channel& channel, SharedMemory& memory) {
  int alignment = 1;
  for (const ir::TileSlot& tile : channel.tiles) alignment = std::max(alignment, tile.layout.Alignment());
  int offset = memory.Take(channel.StageBytes() * channel.stages, alignment);
  for (ir::TileSlot& tile : channel.tiles) {
    tile.offset = offset;
    offset += tile.layout.Bytes();
  }
}

Status PlaceAccumulators(ir::Program& program, const target::Target& target) {
  int columns = 0;
  for (size_t i = 0; i < program.channels.size(); ++i) {
    ir::Channel& channel = program.channels[i];
    if (channel.space != ir::Space::kTensor) continue;
    if (channel.is_overlap) {
      const ir::Channel& twice = program.channels[i - 1];
      channel.tmem_column = twice.tmem_column + twice.StageColumns();
      continue;
    }
    channel.tmem_column = columns;
    columns += channel.columns * channel.stages - channel.overlap;
  }
  if (columns > target.tmem_columns) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        Cat("the accumulators need ", columns, " Tensor Memory columns, ", columns - target.tmem_columns,
            " more than the ", target.tmem_columns, " of ", target.name, "; use a narrower tile or acc=1"));
  }
  if (columns > 0) {
    program.tmem_columns = std::max(kMinTensorColumns, static_cast<int>(std::bit_ceil(static_cast<unsigned>(columns))));
  }
  return Ok();
}

}  // namespace

int PlaceShared(ir::Program& program) {
  SharedMemory memory;
  for (ir::Channel& channel : program.channels) {
    if (channel.space == ir::Space::kShared) PlaceTiles(channel, memory);
  }
  for (ir::Channel& channel : program.channels) {
    if (channel.space == ir::Space::kClcResponses || channel.space == ir::Space::kSums)
      channel.slots_offset = memory.Take(channel.StageBytes() * channel.stages, ir::kClcResponseBytes);
  }
  for (ir::Buffer& buffer : program.buffers) {
    buffer.offset = memory.Take(buffer.Bytes(), buffer.layout.Alignment());
  }
  for (ir::Channel& channel : program.channels) {
    channel.barrier_offset = memory.Take(channel.Barriers() * ir::kBarrierBytes, ir::kBarrierBytes);
  }
  const bool accumulators = std::any_of(program.channels.begin(), program.channels.end(),
                                        [](const ir::Channel& channel) { return channel.space == ir::Space::kTensor; });
  if (accumulators) program.tmem_slot_offset = memory.Take(4, 4);
  return base::RoundUp(memory.used(), 16);
}

Status AssignStorage(ir::Program& program, const target::Target& target) {
  program.smem_bytes = PlaceShared(program);
  LS_TRY(PlaceAccumulators(program, target));
  if (program.smem_bytes > target.smem_bytes) {
    return MakeError(ErrorCode::kResourceExhausted,
                     Cat("the tiles need ", program.smem_bytes, " bytes of shared memory, ",
                         program.smem_bytes - target.smem_bytes, " more than the ", target.smem_bytes, " of a CTA on ",
                         target.name, "; use fewer stages or a smaller tile"));
  }
  return Ok();
}

}  // namespace laneshift::compiler
