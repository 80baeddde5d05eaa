// Translates one Kernel: statements of an entry and of every function that it may call become instructions.
//
// Each function is translated once. Its registers have separate slots, which a call saves and its return restores; its
// local variables and parameters are in a frame of the thread's local memory, whose address the call chooses.
// BuildKernel of program_builder.h is the entry point. Files: statements and functions (program_builder.cc), variables
// and operands (program_operands.cc), calls and tables of branch targets (program_calls.cc).
// Thread-safety: a KernelBuilder belongs to one thread.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/decode/decode_kernel.h"
#include "emulator/decode/decoded_kernel.h"
#include "emulator/ptx/ptx_instructions.h"

namespace laneshift::emulator {

class KernelDecoder {
 public:
  KernelDecoder(const ModuleSyntax& module, const VariableAddresses& addresses, Chip chip)
      : module_(module), addresses_(addresses), chip_(chip) {}
  Result<DecodedKernel> Build(const FunctionSyntax& entry);

 private:
  // Where a variable lives: an offset in its space, or a global address.
  struct Home {
    StateSpace space = StateSpace::kGlobal;
    uint64_t value = 0;
    bool dynamic = false;   // after the static shared variables
    bool in_frame = false;  // value counts from the frame of the running call
  };
  // A function being translated.
  struct Frame {
    const FunctionSyntax* function;
    std::vector<uint32_t> slots;  // of its registers
    std::unordered_map<std::string_view, Home> parameters;
    std::unordered_map<const VariableSyntax*, Home> variables;
    std::unordered_map<std::string_view, std::vector<const LabelSyntax*>> labels;
    std::vector<uint32_t> starts;                      // first instruction of each statement
    std::vector<std::pair<uint32_t, uint32_t>> jumps;  // instruction -> statement
    std::vector<uint32_t> returns;                     // instructions that go to the end of the function
    std::map<std::pair<uint8_t, uint64_t>, uint32_t> frame_addresses;
    CallTarget* callee = nullptr;  // nullptr: the entry
  };
  using Operands = std::vector<DecodedOperand>;

  // ---- program_builder.cc ----
  Result<const Found*> Find(const StatementSyntax& statement);
  Status CheckChip(const StatementSyntax& statement, const Row& row) const;
  Status Translate(Frame& frame);
  Status TranslateFunctions();
  Status Statement(Frame& frame, const StatementSyntax& statement);
  Status DecodeOperands(Frame& frame, const StatementSyntax& statement, const Found& found, Instruction& instruction);
  Status EmitStatement(const Instruction& instruction);
  Status Branch(Frame& frame, const StatementSyntax& statement, Instruction& instruction);
  uint32_t OpcodeId(const std::string& opcode, const Row& row);
  Status Emit(Instruction instruction, const Operands& operands);
  void Guard(Frame& frame, const StatementSyntax& statement, Instruction& instruction);
  Status LayOutShared(const FunctionSyntax& entry);

  // ---- program_calls.cc ----
  Result<uint32_t> FindLabel(const Frame& frame, std::string_view name, int scope, Position at) const;
  Status Table(Frame& frame, const StatementSyntax& statement, Instruction& instruction);
  Status Call(Frame& frame, const StatementSyntax& statement);
  Status IndirectCall(Frame& frame, const StatementSyntax& statement, const OperandSyntax& callee,
                      const OperandSyntax* list, Instruction& instruction);
  Status CallBuiltin(const FunctionSyntax& function, const StatementSyntax& statement, Instruction& instruction);
  Result<uint32_t> CalleeNumber(const FunctionSyntax& function, Position at);
  Status CheckArguments(const StatementSyntax& statement, const OperandSyntax* actual,
                        const std::vector<VariableSyntax>& formal, std::string_view name) const;
  Result<DecodedOperand> Argument(Frame& frame, const OperandSyntax& value);
  void PlaceParameters(Frame& frame);

  // ---- program_operands.cc ----
  Status ReadOperands(Frame& frame, const StatementSyntax& statement, const Found& found, Instruction& instruction);
  Result<DecodedOperand> ReadOperand(Frame& frame, const OperandSyntax& syntax, const OperandForm& form,
                                     const Match& match, Instruction& instruction);
  Result<DecodedOperand> Value(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<DecodedOperand> RegisterValue(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<DecodedOperand> PredicateValue(Frame& frame, const OperandSyntax& syntax, bool destination);
  Result<DecodedOperand> Address(Frame& frame, const OperandSyntax& syntax, Instruction& instruction);
  Result<DecodedOperand> Vector(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<DecodedOperand> SymbolValue(Frame& frame, const OperandSyntax& symbol, uint8_t bytes);
  Result<Home> Find(Frame& frame, const OperandSyntax& symbol);
  DecodedOperand AddressConstant(Frame& frame, const Home& home, uint8_t bytes, int64_t offset);
  Type OperandType(const OperandForm& form, const Match& match) const;
  Result<uint64_t> Immediate(const OperandSyntax& syntax, Type type) const;
  Home Place(Frame& frame, const VariableSyntax& variable);
  Home PlaceLocal(Frame& frame, const VariableSyntax& variable);
  Home PlaceShared(const VariableSyntax& variable);
  uint32_t NewSlot(uint8_t bytes);
  uint32_t SlotOf(Frame& frame, int index);
  DecodedOperand Constant(SlotSource source, uint8_t bytes, uint64_t value);

  const ModuleSyntax& module_;
  const VariableAddresses& addresses_;
  Chip chip_;
  DecodedKernel kernel_;
  uint32_t next_slot_ = 0, next_predicate_ = 0, predicates_left_ = 0;
  uint64_t shared_end_ = kSharedBase;
  std::unordered_map<const VariableSyntax*, Home> shared_;
  std::map<std::tuple<SlotSource, uint8_t, uint64_t>, uint32_t> constants_;
  std::vector<size_t> dynamic_;  // entries of kernel_.initial after the static variables
  std::map<std::pair<uint8_t, uint64_t>, uint32_t> dynamic_constants_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> opcodes_;
  std::unordered_map<std::string, Found> found_;
  std::vector<const FunctionSyntax*> to_translate_;
  CallTarget* saving_ = nullptr;  // the function whose new slots a call has to save
  // The operands of the statement being decoded, and conversions around it for registers of another width.
  Operands operands_;
  std::vector<Operands> vectors_;
  std::vector<std::pair<DecodedOperand, DecodedOperand>> narrow_, widen_;  // destination, source
  std::vector<Type> widen_types_;
};

uint8_t SlotBytes(Type type);

}  // namespace laneshift::emulator
