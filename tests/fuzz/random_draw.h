// A random problem with a random constraint on its schedule, a target and a completion order, small enough for the
// emulator (tools/draw/grammar_draw.h).
//
// Thread-safety: none; values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"
#include "tools/draw/grammar_draw.h"

namespace laneshift::fuzz {

using tools::Dice;

struct Draw {
  std::vector<std::string> problem;   // words; the kind is the first
  std::vector<std::string> schedule;  // words
  std::string target;
  std::string async = "eager";
  int multiprocessors = 0;  // of the emulated device; 0: as many as the chip has

  std::string ProblemText() const;
  std::string ScheduleText() const;
  // The command that repeats it.
  std::string Command() const;

  // One line, which ParseDraw reads back.
  std::string Print() const;
  bool operator==(const Draw&) const = default;
};
Result<Draw> ParseDraw(std::string_view line);

// A draw for the target and of the kind of problem, or of any where that is empty. Most problems are valid; a schedule
// need not fit.
Draw MakeDraw(Dice& dice, std::string_view target, std::string_view kind = "");

}  // namespace laneshift::fuzz
