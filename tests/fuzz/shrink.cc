#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"

namespace laneshift::fuzz {
namespace {

using base::Cat;

std::string KeyOf(const std::string& word) { return word.substr(0, word.find('=') + 1); }

// Smaller values for a word: of a number its half and one less, of a list of steps those with one left out.
std::vector<std::string> SmallerValues(const std::string& word) {
  const std::string key = KeyOf(word), value = word.substr(key.size());
  std::vector<std::string> smaller;
  if (const auto number = base::ParseInt(value)) {
    if (*number > 3) smaller.push_back(Cat(key, *number / 2));
    if (*number > 64 && *number % 64 != 0) smaller.push_back(Cat(key, *number / 64 * 64));
    if (*number > 1) smaller.push_back(Cat(key, *number - 1));
  }
  const std::vector<std::string_view> steps = base::Split(value, '+');
  for (size_t left_out = 0; steps.size() > 1 && left_out < steps.size(); ++left_out) {
    std::vector<std::string> kept;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i != left_out) kept.emplace_back(steps[i]);
    }
    smaller.push_back(Cat(key, base::Join(kept, "+")));
  }
  return smaller;
}

// Every way to make one list of words smaller in one place. The first word stays.
template <typename Use>
void VisitSmaller(const std::vector<std::string>& words, size_t first, const Use& use) {
  for (size_t i = words.size(); i-- > first;) {
    std::vector<std::string> fewer = words;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    use(std::move(fewer));
  }
  for (size_t i = first; i < words.size(); ++i) {
    for (std::string& value : SmallerValues(words[i])) {
      std::vector<std::string> changed = words;
      changed[i] = std::move(value);
      use(std::move(changed));
    }
  }
}

std::vector<Draw> SmallerDraws(const Draw& draw) {
  std::vector<Draw> smaller;
  if (draw.async != "eager") {
    smaller.push_back(draw);
    smaller.back().async = "eager";
  }
  VisitSmaller(draw.schedule, 0, [&](std::vector<std::string> words) {
    smaller.push_back(draw);
    smaller.back().schedule = std::move(words);
  });
  VisitSmaller(draw.problem, 1, [&](std::vector<std::string> words) {
    smaller.push_back(draw);
    smaller.back().problem = std::move(words);
  });
  if (draw.multiprocessors != 0) {
    smaller.push_back(draw);
    smaller.back().multiprocessors = 0;
  }
  return smaller;
}

}  // namespace

Draw Shrink(Draw draw, const std::function<bool(const Draw&)>& fails, int attempts) {
  // After a step the search goes on where it was: what did not help before seldom helps now.
  size_t at = 0;
  for (size_t without = 0; attempts > 0;) {
    const std::vector<Draw> smaller = SmallerDraws(draw);
    if (without >= smaller.size()) break;
    const Draw& candidate = smaller[at++ % smaller.size()];
    --attempts;
    if (!fails(candidate)) {
      ++without;
      continue;
    }
    draw = candidate;
    without = 0;
    --at;
  }
  return draw;
}

}  // namespace laneshift::fuzz
