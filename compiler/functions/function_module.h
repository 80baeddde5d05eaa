// FunctionModule: what NVRTC made of a user's epilogue function, taken apart: PTX of a relocatable module in which
// `laneshift_entry` holds the address of the function to call and `laneshift_signature` says what its parameters are
// (nvrtc/binding.cuh). Of everything else only what the function needs is kept.
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
  // kCorrupt: no such module. kUnsupported names what an epilogue cannot have: shared memory, talk among threads, the
  // end of the kernel, or a function that is nowhere defined.
  static Result<FunctionModule> Parse(std::string_view ptx);

  // In the order of the text; what is referred to stands in front.
  const std::vector<ModuleItem>& items() const { return items_; }
  const ModuleItem& entry() const { return items_[entry_]; }
  // The words of nvrtc/binding.cuh.
  const std::vector<int>& signature() const { return signature_; }
  int version() const { return version_; }  // 90 is 9.0
  // What Parse reads as the same module.
  std::string Text() const;

 private:
  std::vector<ModuleItem> items_;
  size_t entry_ = 0;
  std::vector<int> signature_;
  int version_ = 0;
  std::string target_;
};

// The identifiers of a piece of PTX, registers and labels among them, with where they begin; directives, opcodes'
// suffixes and numbers are none.
struct Identifier {
  std::string_view text;
  size_t at;
};
std::vector<Identifier> IdentifiersOf(std::string_view text);

// What stands between semicolons and braces in the body of a function.
struct PtxStatement {
  enum class Kind : uint8_t { kOpen, kClose, kLabel, kDirective, kInstruction } kind = Kind::kInstruction;
  std::string_view text;    // of a label: its name
  std::string_view guard;   // "@%p1", or empty
  std::string_view opcode;  // "ld.param.f32"
};
// REQUIRES: `item` has a body.
std::vector<PtxStatement> StatementsOf(const ModuleItem& item);

}  // namespace laneshift::compiler
