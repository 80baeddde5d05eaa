#include "tools/emulation/json_tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;

// Reads the text and counts how far the parser has come: its events carry no positions.
struct CountedText {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  const char* at;
  const char** furthest;
  reference operator*() const { return *at; }
  CountedText& operator++() {
    ++at;
    *furthest = std::max(*furthest, at);
    return *this;
  }
  CountedText operator++(int) {
    CountedText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedText& other) const { return at == other.at; }
  bool operator!=(const CountedText& other) const { return at != other.at; }
};

// RFC 6901: what a key is inside a pointer.
std::string Escape(std::string_view key) {
  std::string text;
  for (const char c : key) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& text, JsonNode& root) : text_(text), furthest_(text.data()), root_(root) {}
  const char** furthest() { return &furthest_; }
  // Where and what went wrong.
  size_t error_at = 0;
  std::string error;

  bool null() override { return Add(JsonNode::Kind::kNull) != nullptr; }
  bool boolean(bool value) override {
    JsonNode* node = Add(JsonNode::Kind::kBoolean);
    if (node != nullptr) node->boolean = value;
    return node != nullptr;
  }
  bool number_integer(number_integer_t value) override {
    return Number(static_cast<uint64_t>(value), value < 0, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override { return Number(value, false, static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override {
    JsonNode* node = Add(JsonNode::Kind::kFloat);
    if (node != nullptr) node->number = value;
    return node != nullptr;
  }
  bool string(string_t& value) override {
    JsonNode* node = Add(JsonNode::Kind::kString);
    if (node != nullptr) node->text = std::move(value);
    return node != nullptr;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(JsonNode::Kind::kObject); }
  bool start_array(size_t) override { return Open(JsonNode::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    Skip();
    if (value.size() > JsonTree::kMaxKey) return Fail(Cat("a key has more than ", JsonTree::kMaxKey, " bytes"));
    if (open_.back()->members.size() == JsonTree::kMaxMembers)
      return Fail(Cat("an object has more than ", JsonTree::kMaxMembers, " keys"));
    if (open_.back()->Find(value) != nullptr) return Fail(Cat("the key '", value, "' occurs twice"));
    key_ = std::move(value);
    token_ = static_cast<size_t>(furthest_ - text_.data());
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& exception) override {
    error_at = position == 0 ? 0 : position - 1;
    const std::string_view what = exception.what();
    const size_t mark = what.find(": ");
    error = Cat("this is not JSON: ", mark == std::string_view::npos ? what : what.substr(mark + 2));
    return false;
  }

 private:
  bool Number(uint64_t bits, bool negative, double number) {
    JsonNode* node = Add(JsonNode::Kind::kInteger);
    if (node != nullptr) node->bits = bits, node->negative = negative, node->number = number;
    return node != nullptr;
  }
  // From the end of the last token to the beginning of the next.
  void Skip() {
    constexpr std::string_view kBetween = " \t\r\n,:]}";
    while (token_ < text_.size() && kBetween.find(text_[token_]) != std::string_view::npos) ++token_;
  }
  bool Fail(std::string why) {
    error = std::move(why);
    error_at = token_;
    return false;
  }
  JsonNode* Add(JsonNode::Kind kind) {
    Skip();
    if (++nodes_ > JsonTree::kMaxNodes)
      return Fail(Cat("more than ", JsonTree::kMaxNodes, " values; put large data in files")), nullptr;
    JsonNode* node = &root_;
    if (!open_.empty()) {
      JsonNode& parent = *open_.back();
      if (parent.kind == JsonNode::Kind::kArray) {
        node = &parent.elements.emplace_back();
      } else {
        parent.members.push_back({key_, {}});
        node = &parent.members.back().node;
      }
    }
    node->kind = kind;
    node->at = token_;
    token_ = static_cast<size_t>(furthest_ - text_.data());
    return node;
  }
  bool Open(JsonNode::Kind kind) {
    JsonNode* node = Add(kind);
    if (node == nullptr) return false;
    // A vector that holds an open node does not grow while it is open.
    open_.push_back(node);
    return open_.size() <= JsonTree::kMaxDepth ||
           Fail(Cat("more than ", JsonTree::kMaxDepth, " levels of arrays and objects"));
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::string& text_;
  const char* furthest_;
  JsonNode& root_;
  std::vector<JsonNode*> open_;
  std::string key_;
  size_t token_ = 0, nodes_ = 0;
};

}  // namespace

const JsonNode* JsonNode::Find(std::string_view key) const {
  const auto known =
      std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.key == key; });
  return known == members.end() ? nullptr : &known->node;
}

std::string_view Describe(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kNull:
      return "null";
    case JsonNode::Kind::kBoolean:
      return "a boolean";
    case JsonNode::Kind::kInteger:
      return "an integer";
    case JsonNode::Kind::kFloat:
      return "a number that is no integer";
    case JsonNode::Kind::kString:
      return "a string";
    case JsonNode::Kind::kArray:
      return "an array";
    case JsonNode::Kind::kObject:
      return "an object";
  }
  return "";
}

Result<JsonTree> JsonTree::Parse(std::string name, std::string text) {
  JsonTree tree;
  tree.name_ = std::move(name);
  if (text.size() > kMaxText) {
    return MakeError(ErrorCode::kInvalidArgument,
                     Cat(tree.name_, ": has ", text.size(), " bytes; at most ", kMaxText, " are read"));
  }
  tree.text_ = std::move(text);
  Builder builder(tree.text_, tree.root_);
  const char* begin = tree.text_.data();
  const CountedText first{begin, builder.furthest()}, last{begin + tree.text_.size(), builder.furthest()};
  if (!nlohmann::json::sax_parse(first, last, &builder)) {
    return MakeError(ErrorCode::kInvalidArgument, Cat(tree.Locate(builder.error_at), ": ", builder.error));
  }
  return tree;
}

std::string JsonTree::Locate(size_t at) const {
  at = std::min(at, text_.size());
  const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  const size_t start = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
  return Cat(name_, ":", line, ":", start == std::string::npos ? at + 1 : at - start);
}

bool JsonTree::AppendPath(const JsonNode& from, const JsonNode& to, std::string& path) const {
  if (&from == &to) return true;
  const size_t length = path.size();
  for (size_t i = 0; i < from.elements.size(); ++i) {
    path += Cat("/", i);
    if (AppendPath(from.elements[i], to, path)) return true;
    path.resize(length);
  }
  for (const auto& [key, member] : from.members) {
    path += Cat("/", Escape(key));
    if (AppendPath(member, to, path)) return true;
    path.resize(length);
  }
  return false;
}

Error JsonTree::At(const JsonNode& node, std::string_view what) const {
  // Looked for when it is needed: paths of all nodes would take the square of the text.
  std::string path;
  AppendPath(root_, node, path);
  return MakeError(ErrorCode::kInvalidArgument, Cat(Locate(node.at), ": ", path.empty() ? "" : path + ": ", what));
}

}  // namespace laneshift::tools
