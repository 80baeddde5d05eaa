#include "compiler/legality/check_early.h"

#include "compiler/legality/schedule_facts.h"

namespace laneshift::compiler {
namespace {}  // namespace

Status CheckEarly(const Contraction& stored, const Schedule& asked) {
  if (asked.early == EarlyLoads::kNone) return Ok();
  if (asked.reuse == Reuse::kDirect)
    return Refused(
        "reuse=direct has threads that read, multiply and store, and no warp that only loads; use early=none");
  if (stored.constant != ConstantOperand::kB)
    return Refused("early=b loads what the previous kernel may still write; use constant=b, or early=none");
  if (asked.b_load != LoadPath::kTma)
    return Refused(
        "a separate warp loads B early by bulk copies, and what a kernel packs is not constant; use b_load=tma");
  if (IsByThreads(asked.a_load))
    return Refused("threads that copy A leave no warp that loads B early; use a_load=tma or pack");
  return Ok();
}

}  // namespace laneshift::compiler
