// Stopwatch: wall time in milliseconds since it was made.
#pragma once

#include <chrono>

namespace laneshift::runtime {

class Stopwatch {
 public:
  double Milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace laneshift::runtime
