#include "emulator/decode/kernel_decoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "emulator/decode/async_registers.h"
#include "emulator/decode/binders.h"
#include "emulator/decode/calls.h"
#include "emulator/decode/control_flow.h"
#include "emulator/decode/decode_kernel.h"
#include "emulator/decode/entry_registers.h"

namespace laneshift::emulator {

using base::Cat;

namespace {

constexpr size_t kMaxInstructions = 1 << 21;
constexpr uint64_t kMaxLocalBytes = 512 << 10;    // of a thread, as on hardware
constexpr uint32_t kMaxRegisterBytes = 64 << 20;  // of a warp: half a million live names

// mov between a register and a vector of its parts, and mov from a clock, are separate instructions here.
std::string_view RootOf(const StatementSyntax& statement) {
  if (statement.root != "mov" || statement.operands.size() != 2) return statement.root;
  if (statement.operands[0].kind == OperandKind::kVector) return "mov_unpack";
  if (statement.operands[1].kind == OperandKind::kVector) return "mov_pack";
  if (statement.operands[1].kind == OperandKind::kSpecial) {
    const SpecialFacts* special = FindSpecial(statement.operands[1].name);
    if (special != nullptr && IsClock(special->special)) return "mov_clock";
  }
  return statement.root;
}

}  // namespace

uint32_t KernelDecoder::OpcodeId(const std::string& opcode, const Row& row) {
  // One spelling may match several rows: mov between registers, of vector elements, of a clock.
  const auto number = static_cast<uint32_t>(&row - InstructionTable().data());
  const auto [known, fresh] =
      opcodes_.emplace(std::pair(opcode, number), static_cast<uint32_t>(kernel_.opcodes.size()));
  if (fresh) {
    kernel_.opcodes.push_back(opcode);
    kernel_.opcode_rows.push_back(number);
  }
  return known->second;
}

void KernelDecoder::Guard(Frame& frame, const StatementSyntax& statement, Instruction& instruction) {
  instruction.at = statement.at;
  if (statement.guard < 0) return;
  instruction.guard = SlotOf(frame, statement.guard);
  instruction.guard_negated = statement.guard_negated;
}

Status KernelDecoder::Emit(Instruction instruction, const Operands& operands) {
  if (kernel_.code.size() >= kMaxInstructions) {
    return PtxError(instruction.at, Cat("the kernel has more than ", kMaxInstructions, " instructions"));
  }
  if (next_slot_ > kMaxRegisterBytes) {
    return PtxError(instruction.at,
                    Cat("the kernel's registers and constants take more than ", kMaxRegisterBytes, " bytes of a warp"));
  }
  size_t total = operands.size();
  for (const DecodedOperand& operand : operands) total += operand.count;
  auto block = std::make_unique<DecodedOperand[]>(std::max<size_t>(total, 1));
  size_t next = operands.size();
  for (size_t i = 0; i < operands.size(); ++i) {
    block[i] = operands[i];
    if (operands[i].count == 0) continue;
    const Operands& elements = vectors_[static_cast<size_t>(operands[i].offset)];
    block[i].elements = &block[next];
    block[i].offset = 0;
    for (const DecodedOperand& element : elements) block[next++] = element;
  }
  instruction.operands = block.get();
  instruction.operand_count = static_cast<uint32_t>(operands.size());
  kernel_.operand_blocks.push_back(std::move(block));
  kernel_.code.push_back(instruction);
  return Ok();
}

// Few opcodes make up a kernel: each is matched against the table once.
Result<const Found*> KernelDecoder::Find(const StatementSyntax& statement) {
  const std::string_view root = RootOf(statement);
  std::string opcode(root);
  for (const std::string_view suffix : statement.suffixes) (opcode += '.') += suffix;
  auto known = found_.find(opcode);
  if (known == found_.end()) {
    auto found = FindInstruction(root, statement.suffixes);
    if (!found.has_value()) return PtxError(statement.at, found.error().message);
    known = found_.emplace(std::move(opcode), std::move(*found)).first;
  }
  return &known->second;
}

Status KernelDecoder::CheckChip(const StatementSyntax& statement, const Row& row) const {
  if (row.since == Chip::kSm100a && chip_ != Chip::kSm100a) {
    return PtxError(statement.at, Cat("'", statement.Opcode(), "' needs the target sm_100a"));
  }
  if (row.since == Chip::kSm90a && chip_ != Chip::kSm90a) {
    return PtxError(statement.at, Cat("'", statement.Opcode(), "' exists on sm_90a only"));
  }
  return Ok();
}

// Fills operands_ and what goes with it.
Status KernelDecoder::DecodeOperands(Frame& frame, const StatementSyntax& statement, const Found& found,
                                     Instruction& instruction) {
  operands_.clear();
  vectors_.clear();
  narrow_.clear();
  widen_.clear();
  widen_types_.clear();
  const std::string_view root = found.row->root;
  if (root == "mov_pack" || root == "mov_unpack") {
    Found pieces = found;
    Row row = *found.row;
    const size_t at = root == "mov_pack" ? 1 : 0;
    const size_t count = std::max<size_t>(1, statement.operands[at].elements.size());
    OperandForm& form = row.operands[at];
    const int bits = BitsOf(found.match.TypeAt(0).value_or(Type::kB32)) / static_cast<int>(count);
    form.width = OperandForm::Width::kFixed;
    form.type = bits == 8 ? Type::kB8 : bits == 16 ? Type::kB16 : bits == 32 ? Type::kB32 : Type::kB64;
    pieces.row = &row;
    instruction.modifiers = static_cast<uint64_t>(bits);
    LS_TRY(ReadOperands(frame, statement, pieces, instruction));
  } else if (root == "mov_clock") {
    StatementSyntax clock = statement;
    clock.operands.pop_back();
    instruction.modifiers = static_cast<uint64_t>(FindSpecial(statement.operands[1].name)->special);
    LS_TRY(ReadOperands(frame, clock, found, instruction));
  } else {
    LS_TRY(ReadOperands(frame, statement, found, instruction));
  }
  instruction.operands = operands_.data();
  instruction.operand_count = static_cast<uint32_t>(operands_.size());
  for (DecodedOperand& operand : operands_) {
    if (operand.count != 0) operand.elements = vectors_[static_cast<size_t>(operand.offset)].data();
  }
  return Ok();
}

// REQUIRES: the instruction will be emitted next, after the conversions of narrow_.
Status KernelDecoder::Branch(Frame& frame, const StatementSyntax& statement, Instruction& instruction) {
  const OperandSyntax& label = statement.operands[0];
  LS_ASSIGN(const uint32_t target, FindLabel(frame, label.name, statement.scope, label.at));
  instruction.is_branch = true;
  frame.jumps.emplace_back(static_cast<uint32_t>(kernel_.code.size() + narrow_.size()), target);
  return Ok();
}

namespace {

// All threads of the warp must execute it together. bar is short for barrier.aligned.
bool IsAligned(const StatementSyntax& statement) {
  const std::string opcode = statement.Opcode();
  return opcode.find(".aligned") != std::string::npos || (opcode.starts_with("bar.") && opcode != "bar.warp.sync");
}

}  // namespace

Status KernelDecoder::Statement(Frame& frame, const StatementSyntax& statement) {
  LS_ASSIGN(const Found* const found, Find(statement));
  LS_TRY(CheckChip(statement, *found->row));
  if (statement.root == "call") return Call(frame, statement);
  Instruction instruction;
  Guard(frame, statement, instruction);
  instruction.opcode = OpcodeId(statement.Opcode(), *found->row);
  instruction.space = SpaceOf(found->match("Space"));
  // The parameters of a function lie in its frame; those of the kernel are .param::entry there.
  if (frame.callee != nullptr && instruction.space == StateSpace::kParam && found->match("Space") != "param::entry")
    instruction.space = StateSpace::kLocal;
  LS_TRY(DecodeOperands(frame, statement, *found, instruction));
  auto handler = found->row->binder(found->match, instruction);
  if (!handler.has_value()) return PtxError(statement.at, Cat("'", statement.Opcode(), "': ", handler.error().message));
  instruction.handler = *handler;
  if (IsAligned(statement)) instruction.inner = std::exchange(instruction.handler, ExecuteAligned);
  if (statement.root == "bra") LS_TRY(Branch(frame, statement, instruction));
  if (statement.root == "brx") LS_TRY(Table(frame, statement, instruction));
  if (statement.root == "ret" && frame.callee != nullptr) {
    instruction.is_branch = true;
    instruction.handler = ExecuteBranch;
    frame.returns.push_back(static_cast<uint32_t>(kernel_.code.size()));
  }
  return EmitStatement(instruction);
}

Status KernelDecoder::EmitStatement(const Instruction& instruction) {
  for (const auto& [to, from] : narrow_) {
    Instruction convert = instruction;
    convert.handler = NarrowHandler(from.bytes);
    convert.is_branch = false;
    LS_TRY(Emit(convert, {to, from}));
  }
  LS_TRY(Emit(instruction, operands_));
  for (size_t i = 0; i < widen_.size(); ++i) {
    Instruction convert = instruction;
    convert.handler = WidenHandler(widen_[i].first.bytes, widen_types_[i]);
    convert.is_branch = false;
    LS_TRY(Emit(convert, {widen_[i].first, widen_[i].second}));
  }
  return Ok();
}

Status KernelDecoder::Translate(Frame& frame) {
  const FunctionSyntax& function = *frame.function;
  // A function's predicates share no word with another's: a call saves whole words.
  predicates_left_ = 0;
  saving_ = frame.callee;
  frame.slots.assign(function.registers.size(), kNoSlot);
  for (const LabelSyntax& label : function.labels) {
    auto& same = frame.labels[label.name];
    for (const LabelSyntax* other : same) {
      if (other->scope == label.scope) return PtxError(function.at, Cat("label '", label.name, "' is defined twice"));
    }
    same.push_back(&label);
  }
  const size_t first_table = kernel_.jump_tables.size();
  for (const StatementSyntax& statement : function.statements) {
    frame.starts.push_back(static_cast<uint32_t>(kernel_.code.size()));
    LS_TRY(Statement(frame, statement));
  }
  const auto end = static_cast<uint32_t>(kernel_.code.size());
  frame.starts.push_back(end);
  for (const auto& [at, statement] : frame.jumps) kernel_.code[at].target = frame.starts[statement];
  for (const uint32_t at : frame.returns) kernel_.code[at].target = end;
  for (size_t t = first_table; t < kernel_.jump_tables.size(); ++t) {
    for (uint32_t& target : kernel_.jump_tables[t]) target = frame.starts[target];
  }
  // Falling off the end, and jumps to a label there, return, or end the thread.
  const std::string_view last = frame.callee != nullptr ? "ret" : "exit";
  Instruction leave;
  leave.handler = frame.callee != nullptr ? ExecuteReturn : ExecuteExit;
  leave.ends_function = true;
  leave.opcode = OpcodeId(std::string(last), *FindInstruction(last, {})->row);
  leave.at = end == 0 ? function.at : kernel_.code.back().at;
  return Emit(leave, {});
}

// Callees come to light while functions are translated.
Status KernelDecoder::TranslateFunctions() {
  for (size_t next = 0; next < kernel_.callees.size(); ++next) {
    CallTarget& callee = kernel_.callees[next];
    Frame frame;
    frame.function = to_translate_[next];
    frame.callee = &callee;
    callee.start = static_cast<uint32_t>(kernel_.code.size());
    PlaceParameters(frame);
    LS_TRY(Translate(frame));
    kernel_.function_addresses[module_.AddressOf(*frame.function)] = static_cast<uint32_t>(next);
  }
  return Ok();
}

Status KernelDecoder::LayOutShared(const FunctionSyntax& entry) {
  kernel_.static_shared_bytes = static_cast<uint32_t>(shared_end_ - kSharedBase);
  // Kernels rely on 1024-aligned dynamic shared memory whatever alignment they declare.
  const uint64_t align = std::max<uint64_t>(1024, kernel_.dynamic_shared_align);
  const uint64_t dynamic = (shared_end_ + align - 1) / align * align;
  if (dynamic > (uint64_t{1} << kRankShift))
    return PtxError(entry.at, Cat(kernel_.static_shared_bytes, " bytes of static shared memory"));
  kernel_.dynamic_shared_offset = static_cast<uint32_t>(dynamic);
  for (const size_t i : dynamic_) kernel_.initial[i].value += dynamic;
  return Ok();
}

Result<DecodedKernel> KernelDecoder::Build(const FunctionSyntax& entry) {
  kernel_.name = std::string(entry.name);
  kernel_.syntax = &entry;
  kernel_.scratch_slot = NewSlot(16);
  Frame frame;
  frame.function = &entry;
  for (const VariableSyntax& parameter : entry.parameters) {
    frame.parameters[parameter.name] = {StateSpace::kParam, parameter.offset, false, false};
  }
  LS_TRY(Translate(frame));
  LS_TRY(TranslateFunctions());
  LS_TRY(LayOutShared(entry));
  kernel_.register_bytes = next_slot_ + 512;
  kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
  if (kernel_.local_bytes > kMaxLocalBytes) {
    return PtxError(entry.at, Cat("'", entry.name, "' has ", kernel_.local_bytes,
                                  " bytes of local variables, more than the ", kMaxLocalBytes, " of a thread"));
  }
  FindReconvergence(kernel_);
  FindClearedRegisters(kernel_);
  MarkAsyncRegisters(kernel_.code, kernel_.opcodes);
  for (const std::string& opcode : kernel_.opcodes) {
    kernel_.cancels_clusters |= opcode.starts_with("clusterlaunchcontrol.try_cancel");
    kernel_.lets_others_begin |= opcode == "griddepcontrol.launch_dependents";
  }
  return std::move(kernel_);
}

Result<DecodedKernel> BuildKernel(const ModuleSyntax& module, const FunctionSyntax& entry,
                                  const VariableAddresses& addresses, Chip chip) {
  KernelDecoder builder(module, addresses, chip);
  return builder.Build(entry);
}

}  // namespace laneshift::emulator
