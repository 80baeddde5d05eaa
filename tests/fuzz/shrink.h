// Makes a draw that fails smaller: keys are dropped and numbers halved for as long as it still fails.
//
// Thread-safety: none.
#pragma once

#include <functional>

#include "tests/fuzz/random_draw.h"

namespace laneshift::fuzz {

// `fails` says whether a draw still shows the finding; it is asked at most `attempts` times.
// ENSURES: `fails` was true of the result, or it is `draw`.
Draw Shrink(Draw draw, const std::function<bool(const Draw&)>& fails, int attempts);

}  // namespace laneshift::fuzz
