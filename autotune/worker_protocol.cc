#include "autotune/worker_protocol.h"

#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "store/trial_table.h"

namespace laneshift::autotune {
namespace {

using base::Cat;
using store::Conditions;
using store::Sample;

Error Misunderstood(const Message& message) {
  return MakeError(ErrorCode::kInternal, Cat("the worker's answer is not understood: ", PrintMessage(message)));
}

// The columns of Conditions that are real numbers, in the order in which they are written.
constexpr std::array kReadings = {&Conditions::sm_mhz, &Conditions::memory_mhz, &Conditions::temperature_c,
                                  &Conditions::power_w};

// "12.5 1980 2619 - 320.5 0": the time, then the conditions; what is unknown is a dash.
std::string PrintSample(const Sample& sample) {
  std::string text = base::PrintDouble(sample.time_us);
  for (const auto reading : kReadings) {
    const auto& value = sample.conditions.*reading;
    text += value ? Cat(" ", base::PrintDouble(*value)) : " -";
  }
  const auto& throttle = sample.conditions.throttle_reasons;
  return text + (throttle ? Cat(" ", *throttle) : " -");
}

std::optional<Sample> ParseSample(const std::vector<std::string_view>& words) {
  if (words.size() != 2 + kReadings.size()) return std::nullopt;
  Sample sample;
  const auto time = base::ParseDouble(words[0]);
  if (!time) return std::nullopt;
  sample.time_us = *time;
  for (size_t i = 0; i < kReadings.size(); ++i) {
    if (words[i + 1] == "-") continue;
    const auto value = base::ParseDouble(words[i + 1]);
    if (!value) return std::nullopt;
    sample.conditions.*kReadings[i] = *value;
  }
  if (words.back() != "-") {
    sample.conditions.throttle_reasons = base::ParseInt(words.back());
    if (!sample.conditions.throttle_reasons) return std::nullopt;
  }
  return sample;
}

}  // namespace

Message Encode(const WorkerHello& hello) {
  return {"hello",
          {{"target", hello.target},
           {"device_key", hello.device_key},
           {"device_name", hello.device_name},
           {"driver", hello.driver},
           {"assembler", hello.assembler.name},
           {"assembler_file", hello.assembler.file},
           {"sm_count", Cat(hello.sm_count)},
           {"emulated", hello.emulated ? "yes" : "no"}}};
}

Result<WorkerHello> DecodeHello(const Message& message) {
  if (message.kind != "hello") return DecodeError(message, "hello");
  const auto sm_count = base::ParseInt(message.Find("sm_count"));
  if (!sm_count) return Misunderstood(message);
  return WorkerHello{.target = std::string(message.Find("target")),
                     .device_key = std::string(message.Find("device_key")),
                     .device_name = std::string(message.Find("device_name")),
                     .driver = std::string(message.Find("driver")),
                     .assembler = {std::string(message.Find("assembler")), std::string(message.Find("assembler_file"))},
                     .sm_count = static_cast<int>(*sm_count),
                     .emulated = message.Find("emulated") == "yes"};
}

Error DecodeError(const Message& message, std::string_view expected) {
  if (auto error = base::ErrorOf(message)) return std::move(*error);
  return Misunderstood(message).Within(Cat("expected ", expected));
}

Message EncodeVerdicts(std::string_view kind, const std::vector<Trial>& trials) {
  Message message{std::string(kind)};
  for (const Trial& trial : trials) {
    message.Add("verdict", store::VerdictName(trial.verdict));
    message.Add("detail", trial.detail);
  }
  return message;
}

Result<std::vector<Trial>> DecodeVerdicts(std::string_view kind, const Message& message) {
  if (message.kind != kind) return DecodeError(message, kind);
  const auto verdicts = message.All("verdict"), details = message.All("detail");
  if (verdicts.size() != details.size()) return Misunderstood(message);
  std::vector<Trial> trials;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const auto found = store::VerdictFrom(verdicts[i]);
    if (!found) return Misunderstood(message);
    trials.push_back({.verdict = *found, .detail = std::string(details[i])});
  }
  return trials;
}

Message EncodeSamples(const SampleTable& samples) {
  Message message{"timed"};
  for (size_t i = 0; i < samples.size(); ++i) {
    for (const Sample& sample : samples[i]) message.Add("sample", Cat(i, " ", PrintSample(sample)));
  }
  return message;
}

Result<SampleTable> DecodeSamples(const Message& message, size_t schedules) {
  if (message.kind != "timed") return DecodeError(message, "timed");
  SampleTable table(schedules);
  for (const std::string_view text : message.All("sample")) {
    std::vector<std::string_view> words = base::Words(text);
    const auto index = words.empty() ? std::nullopt : base::ParseInt(words[0]);
    if (!index || *index < 0 || static_cast<size_t>(*index) >= schedules) return Misunderstood(message);
    words.erase(words.begin());
    const auto sample = ParseSample(words);
    if (!sample) return Misunderstood(message);
    table[static_cast<size_t>(*index)].push_back(*sample);
  }
  return table;
}

}  // namespace laneshift::autotune
