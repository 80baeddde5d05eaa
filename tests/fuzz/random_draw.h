// A random problem with a random constraint on its schedule, a target and a completion order, small enough for the
// emulator. Keys and their values come from the tables of the parsers (ir/grammar.h, laneshift/schedule.h), so that a
// new key is drawn without a change here.
//
// Thread-safety: none; values.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::fuzz {

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

// What draws may cost: the emulator runs about 10^8 products a second.
inline constexpr double kMaxFlops = 5e7;
inline constexpr double kMaxBytes = 16 << 20;

// Numbers for a draw, the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // 0 to `count` - 1. REQUIRES: count > 0.
  int64_t Below(int64_t count) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(count)); }
  // `low` to `high`.
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  // True with this probability.
  bool Chance(double probability) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability; }
  // `low` to `high`, each power of two of the range as often as the next.
  int64_t Scaled(int64_t low, int64_t high);
  template <typename Values>
  const auto& Of(const Values& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(std::size(values))))];
  }

 private:
  std::mt19937_64 engine_;
};

// A draw for the target, or for any if it is empty. Most problems are valid; a schedule need not fit.
Draw MakeDraw(Dice& dice, std::string_view target);

// The numbers of a key's values as its table describes them ("f16, bf16 or f32": the three; "1 to 64": none).
std::vector<std::string> ChoicesOf(std::string_view values);

}  // namespace laneshift::fuzz
