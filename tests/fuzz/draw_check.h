// What must come of a draw: a refusal that says why, or a kernel that ptxas takes without a spill and whose results on
// the emulator are right, without a hazard. Anything else is a finding.
//
// Thread-safety: none; the emulated device is one for the process.
#pragma once

#include <string>

#include "tests/fuzz/random_draw.h"

namespace laneshift::fuzz {

enum class DrawVerdict { kRight, kRefused, kFinding };
// "right", "refused", "finding".
std::string_view VerdictName(DrawVerdict verdict);

struct Judgement {
  DrawVerdict verdict = DrawVerdict::kRight;
  std::string reason;  // why it is refused or a finding, in one line
};

enum class Assembly { kNone, kPtxas };
// kPtxas: where there is no ptxas, as kNone.
Judgement Judge(const Draw& draw, Assembly assembly);

}  // namespace laneshift::fuzz
