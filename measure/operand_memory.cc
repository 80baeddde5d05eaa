#include "measure/operand_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/text.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {
namespace {

uint64_t BytesOfHost() {
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  uint64_t bytes = pages * static_cast<uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, uint64_t{limit.rlim_cur});
  return bytes;
}

}  // namespace

Status CheckHostMemory(const Problem& problem, HostCopies copies) {
  std::string largest;
  uint64_t largest_bytes = 0, all = 0;
  const auto count = [&](std::string_view name, uint64_t bytes) {
    all += bytes;
    if (bytes <= largest_bytes) return;
    largest_bytes = bytes;
    largest = name;
  };
  for (const ir::OperandRole role : ir::kAllRoles) {
    if (ir::Uses(problem, role)) count(ir::NameOf(problem, role), ir::Stored(problem, role).Bytes());
  }
  for (const ir::EpilogueTensor& operand : ir::EpilogueTensors(problem)) count(operand.name, operand.tensor.Bytes());
  if (copies == HostCopies::kTwice) all *= 2;
  const uint64_t host = BytesOfHost();
  if (all <= host) return Ok();
  return MakeError(ErrorCode::kResourceExhausted,
                   base::Cat(largest, " has ", largest_bytes, " bytes and all operands take ", all,
                             copies == HostCopies::kTwice ? " on the host and on the emulated device" : " on the host",
                             ", which has ", host, "; use a smaller problem"));
}

}  // namespace laneshift::measure
