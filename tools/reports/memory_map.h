// MemoryMap: where a tile program's tiles, barriers and accumulators lie, as rows that can be drawn.
//
// Thread-safety: pure functions of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"
#include "tools/table.h"

namespace laneshift::tools {

// Bytes of shared memory, or columns of Tensor Memory.
struct Region {
  int64_t begin = 0, size = 0;
  std::string what;
};

// In order of address. REQUIRES: storage is assigned.
std::vector<Region> SharedRegions(const ir::Program& program);
std::vector<Region> TensorRegions(const ir::Program& program);

// A small table with a bar for each region; gaps are shown as free.
std::string DrawMap(const std::vector<Region>& regions, int64_t total, const std::string& unit, const Screen& screen);

// How often each PTX opcode occurs, most frequent first; modifiers are part of the opcode.
struct OpcodeCount {
  std::string opcode;
  int count = 0;
};
std::vector<OpcodeCount> Census(std::string_view ptx);

}  // namespace laneshift::tools
