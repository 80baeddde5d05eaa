// Options of the command line whose value is a number: one way to say which numbers a verb takes, checked before it
// starts. A value outside of the range, or that is no such number, is a usage error that names both.
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace laneshift::tools {

// More calls or rounds than anybody waits for, and times of them that still fit into memory.
inline constexpr int64_t kMostRepeats = 1000000;
// A year. A clock counts nanoseconds in 63 bits, and so many of them can still be added to any time.
inline constexpr double kLongestSeconds = 365 * 86400;
// Of texts that are read into 64 bits with a sign.
inline constexpr int64_t kLargestSeed = INT64_MAX;

// Decimal digits, possibly with a sign.
CLI::Validator WholeNumber(int64_t least, int64_t most);
// A finite number; NaN is none.
CLI::Validator RealNumber(double least, double most);
// A number of bytes; the option gets the digits of "512M" as 536870912.
CLI::Validator ByteCount(int64_t least);

}  // namespace laneshift::tools
