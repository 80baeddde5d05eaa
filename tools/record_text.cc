#include "tools/record_text.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/message.h"
#include "base/text.h"
#include "store/choice_table.h"
#include "store/trial_table.h"
#include "tools/json_line.h"
#include "tools/optional_json.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;
using store::ChoiceRecord;
using store::FactRecord;
using store::KernelRecord;
using store::TrialRecord;

constexpr int kFormat = 1;
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Error Corrupt(std::string message) { return MakeError(ErrorCode::kCorrupt, std::move(message)); }

// The columns of a sample's conditions that are real numbers.
struct Condition {
  const char* name;
  std::optional<double> store::Conditions::*value;
};
constexpr Condition kConditions[] = {{"sm_mhz", &store::Conditions::sm_mhz},
                                     {"memory_mhz", &store::Conditions::memory_mhz},
                                     {"temperature_c", &store::Conditions::temperature_c},
                                     {"power_w", &store::Conditions::power_w}};

Json ToJson(const ChoiceRecord& r, Code) {
  return {{"record", "choice"},           {"problem", r.problem},
          {"target", r.target},           {"device", r.device},
          {"schedule", r.schedule},       {"source", store::ChoiceSourceName(r.source)},
          {"time_us", OrNull(r.time_us)}, {"generator", r.generator},
          {"driver", r.driver},           {"basis", r.basis},
          {"created", r.created}};
}

Json ToJson(const FactRecord& r, Code) {
  return {{"record", "fact"}, {"device", r.device}, {"name", r.name}, {"answer", r.answer}, {"created", r.created}};
}

Json ToJson(const KernelRecord& r, Code code) {
  Json json = {{"record", "kernel"},       {"key", r.key},
               {"target", r.target},       {"problem", r.problem},
               {"schedule", r.schedule},   {"generator", r.generator},
               {"created", r.created},     {"last_used", r.last_used},
               {"ptx_bytes", r.ptx.size()}};
  json["cubin_bytes"] = r.cubin ? Json(r.cubin->bytes.size()) : Json();
  json["assembler"] = r.cubin ? Json(r.cubin->assembler) : Json();
  if (code == Code::kLeftOut) return json;
  json["ptx"] = r.ptx;
  json["cubin"] = r.cubin ? Json(EncodeBase64(r.cubin->bytes)) : Json();
  return json;
}

Json ToJson(const TrialRecord& r, Code) {
  Json json = {{"record", "trial"},
               {"problem", r.problem},
               {"target", r.target},
               {"device", r.device},
               {"schedule", r.schedule},
               {"generator", r.generator},
               {"driver", r.driver},
               {"verdict", store::VerdictName(r.verdict)},
               {"detail", r.detail},
               {"predicted_us", OrNull(r.predicted_us)},
               {"time_us", r.time_us},
               {"low_us", r.low_us},
               {"high_us", r.high_us},
               {"created", r.created},
               {"assembler", r.assembler.name},
               {"assembler_file", r.assembler.file},
               {"order", store::TimingOrderName(r.order)}};
  Json& samples = json["samples"] = Json::array();
  for (const store::Sample& sample : r.samples) {
    Json entry = {{"time_us", sample.time_us}};
    for (const Condition& condition : kConditions) {
      if (const auto& value = sample.conditions.*condition.value) entry[condition.name] = *value;
    }
    if (const auto& reasons = sample.conditions.throttle_reasons) entry["throttle_reasons"] = *reasons;
    samples.push_back(std::move(entry));
  }
  return json;
}

// The keys of one object, each of the type that it must have.
class Keys {
 public:
  explicit Keys(const Json& json) : json_(json) {}

  Status Text(const char* key, std::string& to) const {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_string()) return Wrong(key, "a string");
    to = value->get<std::string>();
    return Ok();
  }
  Status Integer(const char* key, int64_t& to) const {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_number_integer()) return Wrong(key, "a whole number");
    to = value->get<int64_t>();
    return Ok();
  }
  Status Real(const char* key, double& to) const {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_number()) return Wrong(key, "a number");
    to = value->get<double>();
    return Ok();
  }
  // Absent and null are the same.
  Status Optional(const char* key, std::optional<double>& to) const {
    if (!Has(key)) return Ok();
    double value = 0;
    LS_TRY(Real(key, value));
    to = value;
    return Ok();
  }
  bool Has(const char* key) const { return Find(key) != nullptr && !Find(key)->is_null(); }
  const Json* Find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

 private:
  static Status Wrong(const char* key, const char* what) { return Corrupt(Cat("key '", key, "' is not ", what)); }
  const Json& json_;
};

Result<store::Record> ParseChoice(const Keys& keys) {
  ChoiceRecord r;
  LS_TRY(keys.Text("problem", r.problem));
  LS_TRY(keys.Text("target", r.target));
  LS_TRY(keys.Text("device", r.device));
  LS_TRY(keys.Text("schedule", r.schedule));
  std::string source;
  LS_TRY(keys.Text("source", source));
  const auto known = store::ChoiceSourceFrom(source);
  if (!known)
    return Corrupt(Cat("source '", base::Escape(source), "' is unknown; known sources: rule, model, measured"));
  r.source = *known;
  LS_TRY(keys.Optional("time_us", r.time_us));
  LS_TRY(keys.Text("generator", r.generator));
  LS_TRY(keys.Text("driver", r.driver));
  // Older files have none.
  if (keys.Has("basis")) LS_TRY(keys.Text("basis", r.basis));
  LS_TRY(keys.Integer("created", r.created));
  return store::Record(std::move(r));
}

Result<store::Record> ParseFact(const Keys& keys) {
  FactRecord r;
  LS_TRY(keys.Text("device", r.device));
  LS_TRY(keys.Text("name", r.name));
  LS_TRY(keys.Text("answer", r.answer));
  LS_TRY(keys.Integer("created", r.created));
  return store::Record(std::move(r));
}

Result<store::Record> ParseKernel(const Keys& keys) {
  KernelRecord r;
  LS_TRY(keys.Text("key", r.key));
  LS_TRY(keys.Text("target", r.target));
  LS_TRY(keys.Text("problem", r.problem));
  LS_TRY(keys.Text("schedule", r.schedule));
  LS_TRY(keys.Text("generator", r.generator));
  LS_TRY(keys.Text("ptx", r.ptx));
  LS_TRY(keys.Integer("created", r.created));
  LS_TRY(keys.Integer("last_used", r.last_used));
  if (!keys.Has("cubin")) return store::Record(std::move(r));
  store::CubinRecord cubin;
  std::string text;
  LS_TRY(keys.Text("assembler", cubin.assembler));
  LS_TRY(keys.Text("cubin", text));
  LS_ASSIGN(cubin.bytes, DecodeBase64(text));
  r.cubin = std::move(cubin);
  return store::Record(std::move(r));
}

Result<store::Sample> ParseSample(const Json& json) {
  if (!json.is_object()) return Corrupt("a sample is not an object");
  const Keys keys(json);
  store::Sample sample;
  LS_TRY(keys.Real("time_us", sample.time_us));
  for (const Condition& condition : kConditions) {
    LS_TRY(keys.Optional(condition.name, sample.conditions.*condition.value));
  }
  if (keys.Has("throttle_reasons")) {
    int64_t reasons = 0;
    LS_TRY(keys.Integer("throttle_reasons", reasons));
    sample.conditions.throttle_reasons = reasons;
  }
  return sample;
}

Result<store::Record> ParseTrial(const Keys& keys) {
  TrialRecord r;
  LS_TRY(keys.Text("problem", r.problem));
  LS_TRY(keys.Text("target", r.target));
  LS_TRY(keys.Text("device", r.device));
  LS_TRY(keys.Text("schedule", r.schedule));
  LS_TRY(keys.Text("generator", r.generator));
  LS_TRY(keys.Text("driver", r.driver));
  std::string verdict;
  LS_TRY(keys.Text("verdict", verdict));
  const auto known = store::VerdictFrom(verdict);
  if (!known) return Corrupt(Cat("verdict '", base::Escape(verdict), "' is unknown"));
  r.verdict = *known;
  LS_TRY(keys.Text("detail", r.detail));
  LS_TRY(keys.Optional("predicted_us", r.predicted_us));
  LS_TRY(keys.Real("time_us", r.time_us));
  LS_TRY(keys.Real("low_us", r.low_us));
  LS_TRY(keys.Real("high_us", r.high_us));
  LS_TRY(keys.Integer("created", r.created));
  // Older files have none of these.
  if (keys.Has("assembler")) LS_TRY(keys.Text("assembler", r.assembler.name));
  if (keys.Has("assembler_file")) LS_TRY(keys.Text("assembler_file", r.assembler.file));
  if (keys.Has("order")) {
    std::string order;
    LS_TRY(keys.Text("order", order));
    const auto ordered = store::TimingOrderFrom(order);
    if (!ordered) return Corrupt(Cat("order '", base::Escape(order), "' is unknown"));
    r.order = *ordered;
  }
  const Json* samples = keys.Find("samples");
  if (samples == nullptr || !samples->is_array()) return Corrupt("key 'samples' is not an array");
  for (const Json& json : *samples) {
    LS_ASSIGN(store::Sample sample, ParseSample(json));
    r.samples.push_back(sample);
  }
  return store::Record(std::move(r));
}

struct Kind {
  std::string_view name;
  Result<store::Record> (*parse)(const Keys& keys);
};
constexpr Kind kKinds[] = {
    {"choice", ParseChoice}, {"fact", ParseFact}, {"kernel", ParseKernel}, {"trial", ParseTrial}};

Result<Json> ParseObject(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return Corrupt("the line is not a JSON object");
  return json;
}

}  // namespace

std::string PrintRecordHeader() { return JsonLine(Json{{"laneshift_store", kFormat}}); }

Status CheckRecordHeader(std::string_view line) {
  LS_ASSIGN(const Json json, ParseObject(line));
  const auto version = json.find("laneshift_store");
  if (version == json.end() || !version->is_number_integer()) {
    return Corrupt("the first line does not begin a file of laneshift's records ({\"laneshift_store\":1})");
  }
  if (version->get<int>() == kFormat) return Ok();
  return MakeError(ErrorCode::kUnsupported,
                   Cat("the records are in format ", version->get<int>(), "; this laneshift knows format ", kFormat));
}

std::string PrintRecord(const store::Record& record, Code code) {
  const Json json = std::visit([&](const auto& r) { return ToJson(r, code); }, record);
  return JsonLine(json);
}

Result<store::Record> ParseRecord(std::string_view line) {
  LS_ASSIGN(const Json json, ParseObject(line));
  const Keys keys(json);
  std::string name;
  LS_TRY(keys.Text("record", name));
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind.parse(keys);
  }
  return Corrupt(Cat("record '", base::Escape(name), "' is unknown; known records: choice, fact, kernel, trial"));
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[word >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Result<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return Corrupt("base64 text is not whole");
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t word = 0;
    size_t digits = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = kDigits.find(text[i + j]);
      const bool pad = text[i + j] == '=' && j >= 2 && i + 4 == text.size();
      if ((digit == std::string_view::npos && !pad) || (digit != std::string_view::npos && digits < j)) {
        return Corrupt("base64 text has a character that is not a base64 digit");
      }
      digits += !pad;
      word = word << 6 | (pad ? 0u : static_cast<uint32_t>(digit));
    }
    for (size_t j = 0; j + 1 < digits; ++j) bytes += static_cast<char>(word >> (16 - 8 * j) & 255);
  }
  return bytes;
}

}  // namespace laneshift::tools
