// Message: what processes of laneshift say to each other, as lines of text.
//
// Thread-safety: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::base {

// A line: a word and fields "name=value" with tabs between them. Names may repeat; values may hold any text.
struct Message {
  std::string kind;
  std::vector<std::pair<std::string, std::string>> fields{};

  void Add(std::string_view name, std::string_view value) { fields.emplace_back(name, value); }
  // The first value of that name, or empty.
  std::string_view Find(std::string_view name) const;
  std::vector<std::string_view> All(std::string_view name) const;

  bool operator==(const Message&) const = default;
};
std::string PrintMessage(const Message& message);
Result<Message> ParseMessage(std::string_view line);

// Any text in one line: tabs, ends of lines and backslashes as "\t", "\n" and "\\".
std::string Escape(std::string_view text);

// An error as a message to another process, and back; nothing if the message is not an error.
Message EncodeError(const Error& error);
std::optional<Error> ErrorOf(const Message& message);

}  // namespace laneshift::base
