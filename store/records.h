// What the store keeps: one struct per table.
//
// Times are seconds since 1970 (UTC). Texts are the caller's canonical forms; the store compares, never interprets
// them. Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace laneshift::store {

struct CubinRecord {
  std::string assembler;  // which program made it, e.g. "ptxas 13.0.88"
  std::string bytes;
};

struct KernelRecord {
  std::string key;  // fingerprint of everything that the PTX depends on
  std::string target;
  std::string problem;    // the problem class
  std::string schedule;   // its text form
  std::string generator;  // revision of the code generator
  std::string ptx;
  std::optional<CubinRecord> cubin;
  int64_t created = 0;    // set by the store when it is 0
  int64_t last_used = 0;  // kept by the store, to the hour
};

// From the weakest to the strongest: a choice is never replaced by one of a weaker source.
enum class ChoiceSource { kRule, kModel, kMeasured };

struct ChoiceRecord {
  std::string problem;
  std::string target;
  std::string device;  // DeviceFacts::Key(), or the emulator's
  std::string schedule;
  ChoiceSource source = ChoiceSource::kRule;
  std::optional<double> time_us;
  int64_t created = 0;  // set by the store when it is 0
};

// What a device does, as a probe measured it.
struct FactRecord {
  std::string device;  // as in ChoiceRecord
  std::string name;
  std::string answer;
  int64_t created = 0;  // set by the store when it is 0
};

struct StoreSummary {
  std::string path;     // of the file, whether or not it is in use
  std::string journal;  // "wal", "delete", or "memory"
  int64_t schema_version = 0;
  int64_t kernels = 0;
  int64_t cubins = 0;
  int64_t choices = 0;
  int64_t facts = 0;
  int64_t damaged = 0;
  int64_t bytes = 0;  // of PTX and cubins
  bool durable = false;
  std::vector<std::string> warnings;
};

}  // namespace laneshift::store
