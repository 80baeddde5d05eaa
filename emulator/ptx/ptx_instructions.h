// The instruction table: which opcodes exist, what their operands are, and which handler executes them.
//
// Rows are drawn in ptx_instructions.def. A suffix binds by vocabulary, not by position: `.x4.trans.m8n8` and
// `.m8n8.x4.trans` are the same opcode. A suffix that no field owns is an error that names it.
// Thread-safety: the table is built once and immutable.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "emulator/decode/decoded_kernel.h"
#include "laneshift/result.h"

namespace laneshift::emulator {

enum class Scope : uint8_t { kLane, kWarp, kWarpgroup, kCta };
enum class Chip : uint8_t { kAny, kSm90, kSm90a, kSm100a };

// A field of a pattern and its text in one opcode.
struct FieldText {
  std::string_view field;
  std::string_view text;
};

// One opcode matched against one row.
struct Match {
  std::vector<FieldText> fields;
  // The text of the n-th occurrence of `field`, without its dot; empty if absent.
  std::string_view operator()(std::string_view field, int nth = 0) const;
  bool Has(std::string_view field) const { return !(*this)(field).empty(); }
  // The n-th type suffix.
  std::optional<Type> TypeAt(int nth) const;
};

// Chooses the handler for a match and sets modifiers and space. An error says what would be right, without a position.
using Binder = Result<Handler> (*)(const Match& match, Instruction& instruction);

// One operand of a row, see ptx_instructions.def.
struct OperandForm {
  enum class Kind : uint8_t {
    kScalar,
    kPredicate,
    kVector,
    kAddress,
    kTensor,
    kImmediate,
    kLabel
  } kind = Kind::kScalar;
  // The element type: fixed, the n-th type suffix, or twice the width of the first.
  enum class Width : uint8_t { kFixed, kSuffix, kDouble } width = Width::kFixed;
  Type type = Type::kB32;
  int suffix = 0;
  bool destination = false, optional = false, relaxed = false;
  bool paired = false;                         // may be followed by `|p`
  bool or_address = false, or_vector = false;  // or an address, or a vector of .b32
};

struct Row {
  std::string_view pattern;
  std::string_view root;
  struct Part {
    std::string_view text;  // a fixed suffix, or the name of a field
    bool is_field, required;
  };
  std::vector<Part> parts;
  std::vector<OperandForm> operands;
  Scope scope;
  Chip since;
  Binder binder;
};

const std::vector<Row>& InstructionTable();
// Builds the table and its index, which else the first module that is loaded pays for.
void LoadInstructionTable();

struct Found {
  const Row* row;
  Match match;
};
// kUnsupported names the opcode and the suffix that no row owns.
Result<Found> FindInstruction(std::string_view root, const std::vector<std::string_view>& suffixes);
// All rows that match; more than one is a defect of the table.
std::vector<Found> FindAll(std::string_view root, const std::vector<std::string_view>& suffixes);

}  // namespace laneshift::emulator
