// FunctionModule: NVRTC's PTX of a user's epilogue function, split into items: a relocatable module in which
// `laneshift_entry` holds the address of the function to call and `laneshift_signature` describes its parameters
// (nvrtc/binding.cuh). Only the items that the function needs are kept.
//
// Thread-safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::compiler {

// A function, a variable, or a declaration of one.
struct ModuleItem {
  enum class Kind : uint8_t { kFunction, kVariable, kExternal } kind = Kind::kFunction;
  std::string name;
  std::string text;  // without linkage; ends with ';' or '}'
  bool has_body = false;
};

class FunctionModule {
 public:
  // kCorrupt: not such a module. kUnsupported names what an epilogue cannot have: shared memory, communication of
  // threads, the end of the kernel, or a function that is not defined.
  static Result<FunctionModule> Parse(std::string_view ptx);

  // In the order of the text; an item comes after those that it refers to.
  const std::vector<ModuleItem>& items() const { return items_; }
  const ModuleItem& entry() const { return items_[entry_]; }
  // The words of nvrtc/binding.cuh.
  const std::vector<int>& signature() const { return signature_; }
  int version() const { return version_; }  // 90 is 9.0
  // PTX that Parse reads as the same module.
  std::string Text() const;

 private:
  std::vector<ModuleItem> items_;
  size_t entry_ = 0;
  std::vector<int> signature_;
  int version_ = 0;
  std::string target_;
};

// The identifiers of a piece of PTX, including registers and labels, with their positions; directives, suffixes of
// opcodes and numbers are not identifiers.
struct Identifier {
  std::string_view text;
  size_t at;
};
std::vector<Identifier> IdentifiersOf(std::string_view text);

// The text between semicolons and braces in the body of a function.
struct PtxStatement {
  enum class Kind : uint8_t { kOpen, kClose, kLabel, kDirective, kInstruction } kind = Kind::kInstruction;
  std::string_view text;    // of a label: its name
  std::string_view guard;   // "@%p1", or empty
  std::string_view opcode;  // "ld.param.f32"
};
// REQUIRES: `item` has a body.
std::vector<PtxStatement> StatementsOf(const ModuleItem& item);

}  // namespace laneshift::compiler
