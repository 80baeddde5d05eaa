// The entry point of a fuzz target: libFuzzer calls it with what it makes up, corpus_replay.cc with the files of a
// corpus. And what all targets demand of an error.
//
// Thread-safety: none; one input after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "laneshift/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace laneshift::fuzz {

inline std::string TextOf(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// Ends the program, which the fuzzer takes for a finding.
inline void Demand(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// Of what comes from outside: the reason, in one line.
inline void DemandReason(const Error& error) {
  Demand(!error.message.empty(), "an error without a message");
  Demand(error.message.find('\n') == std::string::npos, "a message of several lines: " + error.message);
}

}  // namespace laneshift::fuzz
