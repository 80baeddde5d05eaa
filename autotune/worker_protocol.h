// The protocol between a tuner and its worker process: lines of text, one request, one reply.
//
//   open     problem                        -> opened
//   compile  problem, schedule...           -> compiled  verdict...
//   check    problem, schedule              -> checked   verdict
//   time     problem, schedule..., rounds, order
//                                           -> timed     sample...
//
// A worker begins with `hello`, or with `error` if it cannot work. Every request may be answered by `error`.
// Thread-safety: values and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autotune/search.h"
#include "base/message.h"
#include "laneshift/problem.h"
#include "laneshift/result.h"
#include "store/records.h"

namespace laneshift::autotune {

// Lines of text between the two (base/message.h).
using base::EncodeError;
using base::Message;
using base::ParseMessage;
using base::PrintMessage;

// The device of a worker.
struct WorkerHello {
  std::string target, device_key, device_name, driver;
  store::AssemblerRecord assembler{};
  int sm_count = 0;
  bool emulated = false;  // then it checks, and has no times

  bool operator==(const WorkerHello&) const = default;
};
Message Encode(const WorkerHello& hello);
Result<WorkerHello> DecodeHello(const Message& message);

// The error that the message carries, or one that says that the message is not one of `expected`.
Error DecodeError(const Message& message, std::string_view expected);

// Verdicts without samples, in the order of the request; an empty detail means none.
Message EncodeVerdicts(std::string_view kind, const std::vector<Trial>& trials);
Result<std::vector<Trial>> DecodeVerdicts(std::string_view kind, const Message& message);

// The samples of each schedule, in the order of the request.
using SampleTable = std::vector<std::vector<store::Sample>>;
Message EncodeSamples(const SampleTable& samples);
Result<SampleTable> DecodeSamples(const Message& message, size_t schedules);

}  // namespace laneshift::autotune
