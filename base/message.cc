#include "base/message.h"

#include <array>
#include <optional>

#include "base/text.h"

namespace laneshift::base {
namespace {

constexpr std::array kErrorCodes = {ErrorCode::kInvalidArgument, ErrorCode::kUnsupported, ErrorCode::kResourceExhausted,
                                    ErrorCode::kNotFound,        ErrorCode::kCorrupt,     ErrorCode::kDriver,
                                    ErrorCode::kTimeout,         ErrorCode::kWrongResult, ErrorCode::kInternal};

// The characters that end a field or a line, and the one that announces them.
constexpr std::array<std::pair<char, char>, 3> kEscapes = {{{'\t', 't'}, {'\n', 'n'}, {'\\', '\\'}}};

std::optional<std::string> Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    bool known = false;
    for (const auto& [character, letter] : kEscapes) {
      if (text[i] == letter) plain += character, known = true;
    }
    if (!known) return std::nullopt;
  }
  return plain;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    bool special = false;
    for (const auto& [character, letter] : kEscapes) {
      if (c == character) escaped += {'\\', letter}, special = true;
    }
    if (!special) escaped += c;
  }
  return escaped;
}

std::string_view Message::Find(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

std::vector<std::string_view> Message::All(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields) {
    if (key == name) values.push_back(value);
  }
  return values;
}

std::string PrintMessage(const Message& message) {
  std::string line = Escape(message.kind);
  for (const auto& [name, value] : message.fields) line += Cat("\t", Escape(name), "=", Escape(value));
  return line;
}

Result<Message> ParseMessage(std::string_view line) {
  const auto malformed = [&] { return MakeError(ErrorCode::kCorrupt, Cat("'", line, "' is no message")); };
  Message message;
  for (const std::string_view field : base::Split(line, '\t')) {
    const bool first = field.data() == line.data();
    const size_t equals = first ? std::string_view::npos : field.find('=');
    if (!first && equals == std::string_view::npos) return malformed();
    const auto name = Unescape(field.substr(0, equals));
    const auto value = first ? std::string() : Unescape(field.substr(equals + 1));
    if (!name || !value || name->empty()) return malformed();
    if (first) {
      message.kind = *name;
    } else {
      message.Add(*name, *value);
    }
  }
  return message;
}

Message EncodeError(const Error& error) {
  return {"error", {{"code", std::string(ErrorCodeName(error.code))}, {"message", error.message}}};
}

std::optional<Error> ErrorOf(const Message& message) {
  if (message.kind != "error") return std::nullopt;
  for (const ErrorCode code : kErrorCodes) {
    if (ErrorCodeName(code) == message.Find("code")) return MakeError(code, std::string(message.Find("message")));
  }
  return std::nullopt;
}

}  // namespace laneshift::base
