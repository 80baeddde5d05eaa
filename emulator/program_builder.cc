#include "emulator/program_builder.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "emulator/binders.h"
#include "emulator/control_flow.h"
#include "emulator/wgmma_registers.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

constexpr size_t kMaxInstructions = 1 << 21;
constexpr size_t kMaxCallDepth = 64;

// Where a variable lives: an offset in its space, or a global address.
struct Home {
  Space space = Space::kGlobal;
  uint64_t value = 0;
  bool dynamic = false;  // behind the static shared variables
};

// One expansion of a function.
struct Frame {
  const FunctionSyntax* function;
  std::vector<uint32_t> slots;  // of its registers
  std::unordered_map<std::string_view, Home> parameters;
  std::unordered_map<const VariableSyntax*, Home> variables;
  std::unordered_map<std::string_view, std::vector<const LabelSyntax*>> labels;
  std::vector<uint32_t> starts;                      // first instruction of each statement
  std::vector<std::pair<uint32_t, uint32_t>> jumps;  // instruction -> statement
  std::vector<uint32_t> returns;                     // instructions that go to the end of the frame
  bool is_entry = false;
};

uint8_t SlotBytes(Type type) {
  if (type == Type::kPred) return 0;
  const int bits = BitsOf(type);
  return static_cast<uint8_t>(bits <= 32 ? 4 : bits / 8);
}

class Builder {
 public:
  Builder(const ModuleSyntax& module, const VariableAddresses& addresses, Chip chip)
      : module_(module), addresses_(addresses), chip_(chip) {}
  Result<Kernel> Build(const FunctionSyntax& entry);

 private:
  Result<const Found*> Find(const StatementSyntax& statement);
  Status Expand(Frame& frame);
  Status Statement(Frame& frame, const StatementSyntax& statement);
  Status Call(Frame& frame, const StatementSyntax& statement);
  Status Operands(Frame& frame, const StatementSyntax& statement, const Found& found, Instruction& instruction);
  Result<Operand> Value(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<Operand> RegisterValue(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<Operand> PredicateValue(Frame& frame, const OperandSyntax& syntax, bool destination);
  Result<Operand> Address(Frame& frame, const OperandSyntax& syntax, Instruction& instruction);
  Result<Operand> Vector(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form);
  Result<Home> Find(Frame& frame, const OperandSyntax& symbol);
  Operand AddressConstant(const Home& home, uint8_t bytes, int64_t offset);
  Type OperandType(const OperandForm& form, const Match& match) const;
  Result<uint64_t> Immediate(const OperandSyntax& syntax, Type type) const;
  Home Place(Frame& frame, const VariableSyntax& variable);
  Home PlaceLocal(const VariableSyntax& variable);
  Home PlaceShared(const VariableSyntax& variable);
  uint32_t NewSlot(uint8_t bytes);
  uint32_t SlotOf(Frame& frame, int index);
  Operand Constant(SlotSource source, uint8_t bytes, uint64_t value);
  uint32_t OpcodeId(const std::string& opcode, const Row& row);
  Status Emit(Instruction instruction, const std::vector<Operand>& operands);
  void Guard(Frame& frame, const StatementSyntax& statement, Instruction& instruction);

  const ModuleSyntax& module_;
  const VariableAddresses& addresses_;
  Chip chip_;
  Kernel kernel_;
  uint32_t next_slot_ = 0, next_predicate_ = 0, predicates_left_ = 0;
  uint64_t shared_end_ = kSharedBase;
  std::unordered_map<const VariableSyntax*, Home> shared_;
  std::map<std::tuple<SlotSource, uint8_t, uint64_t>, uint32_t> constants_;
  std::vector<size_t> dynamic_;  // entries of kernel_.initial behind the static variables
  std::map<std::pair<uint8_t, uint64_t>, uint32_t> dynamic_constants_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> opcodes_;
  std::unordered_map<std::string, Found> found_;
  std::vector<const FunctionSyntax*> calls_;
  // The operands of the statement being decoded, and conversions around it for registers of another width.
  std::vector<Operand> operands_;
  std::vector<std::vector<Operand>> vectors_;
  std::vector<std::pair<Operand, Operand>> narrow_, widen_;  // destination, source
  std::vector<Type> widen_types_;
};

uint32_t Builder::NewSlot(uint8_t bytes) {
  if (bytes == 0) {
    if (predicates_left_ == 0) {
      next_predicate_ = NewSlot(4);
      predicates_left_ = kLanes;
    }
    --predicates_left_;
    return next_predicate_ + 4 * predicates_left_;
  }
  const uint32_t slot = next_slot_;
  next_slot_ += bytes * uint32_t{kLanes};
  return slot;
}

uint32_t Builder::SlotOf(Frame& frame, int index) {
  uint32_t& slot = frame.slots[static_cast<size_t>(index)];
  if (slot == kNoSlot) slot = NewSlot(SlotBytes(frame.function->registers[static_cast<size_t>(index)].type));
  return slot;
}

Operand Builder::Constant(SlotSource source, uint8_t bytes, uint64_t value) {
  if (bytes == 4) value &= 0xffffffff;
  Operand operand;
  operand.bytes = bytes;
  const auto key = std::tuple(source, bytes, value);
  if (const auto known = constants_.find(key); known != constants_.end()) {
    operand.slot = known->second;
    return operand;
  }
  operand.slot = NewSlot(bytes);
  constants_[key] = operand.slot;
  kernel_.initial.push_back({bytes == 0 ? SlotSource::kPredicate : source, bytes, operand.slot, value});
  return operand;
}

Operand Builder::AddressConstant(const Home& home, uint8_t bytes, int64_t offset) {
  const uint64_t value = home.value + static_cast<uint64_t>(offset);
  if (home.space != Space::kShared) return Constant(SlotSource::kConstant, bytes, value);
  if (!home.dynamic) return Constant(SlotSource::kSharedAddress, bytes, value);
  const auto key = std::pair(bytes, value);
  Operand operand;
  operand.bytes = bytes;
  if (const auto known = dynamic_constants_.find(key); known != dynamic_constants_.end()) {
    operand.slot = known->second;
    return operand;
  }
  operand.slot = NewSlot(bytes);
  dynamic_constants_[key] = operand.slot;
  dynamic_.push_back(kernel_.initial.size());
  kernel_.initial.push_back({SlotSource::kSharedAddress, bytes, operand.slot, value});
  return operand;
}

// ---- variables ----

Home Builder::PlaceLocal(const VariableSyntax& variable) {
  const uint64_t align = std::max<uint64_t>(variable.align, 8);
  kernel_.local_bytes = (kernel_.local_bytes + align - 1) / align * align;
  const Home home{Space::kLocal, kernel_.local_bytes, false};
  kernel_.local_bytes += variable.bytes;
  return home;
}

Home Builder::PlaceShared(const VariableSyntax& variable) {
  const auto known = shared_.find(&variable);
  if (known != shared_.end()) return known->second;
  Home home{Space::kShared, 0, variable.is_extern || variable.bytes == 0};
  if (home.dynamic) {
    kernel_.dynamic_shared_align = std::max(kernel_.dynamic_shared_align, static_cast<uint32_t>(variable.align));
  } else {
    shared_end_ = (shared_end_ + variable.align - 1) / variable.align * variable.align;
    home.value = shared_end_;
    shared_end_ += variable.bytes;
  }
  shared_[&variable] = home;
  return home;
}

Home Builder::Place(Frame& frame, const VariableSyntax& variable) {
  switch (variable.space) {
    case Space::kShared:
    case Space::kSharedCluster:
      return PlaceShared(variable);
    case Space::kGlobal:
    case Space::kConst: {
      const auto address = addresses_.find(&variable);
      LS_CHECK(address != addresses_.end(), "no address for ", variable.name);
      return {Space::kGlobal, address->second, false};
    }
    case Space::kLocal:
    case Space::kParam:
    case Space::kGeneric:
      break;
  }
  const auto known = frame.variables.find(&variable);
  if (known != frame.variables.end()) return known->second;
  return frame.variables[&variable] = PlaceLocal(variable);
}

Result<Home> Builder::Find(Frame& frame, const OperandSyntax& symbol) {
  if (symbol.index >= 0) return Place(frame, frame.function->variables[static_cast<size_t>(symbol.index)]);
  if (const auto parameter = frame.parameters.find(symbol.name); parameter != frame.parameters.end())
    return parameter->second;
  for (const VariableSyntax& variable : module_.variables) {
    if (variable.name == symbol.name) return Place(frame, variable);
  }
  return PtxError(symbol.at, Cat("unknown name '", symbol.name, "'"));
}

// ---- operands ----

Type Builder::OperandType(const OperandForm& form, const Match& match) const {
  if (form.width == OperandForm::Width::kFixed) return form.type;
  const Type type = match.TypeAt(form.width == OperandForm::Width::kDouble ? 0 : form.suffix).value_or(Type::kB32);
  if (form.width == OperandForm::Width::kSuffix) return type;
  const bool is_signed = FactsOf(type).kind == TypeKind::kSigned;
  if (BitsOf(type) == 16) return is_signed ? Type::kS32 : Type::kU32;
  return is_signed ? Type::kS64 : Type::kU64;
}

Result<uint64_t> Builder::Immediate(const OperandSyntax& syntax, Type type) const {
  const bool is_float = FactsOf(type).kind == TypeKind::kFloat;
  if (syntax.kind == OperandKind::kInteger) return syntax.bits;
  if (syntax.kind == OperandKind::kFloat32) {
    if (type != Type::kF64) return syntax.bits;
    return std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(syntax.bits))));
  }
  if (type == Type::kF32 || (type == Type::kB32 && !is_float)) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(syntax.bits)));
  }
  if (BitsOf(type) != 64)
    return PtxError(syntax.at, Cat("a 64-bit float constant does not fit .", FactsOf(type).suffix));
  return syntax.bits;
}

Result<Operand> Builder::PredicateValue(Frame& frame, const OperandSyntax& syntax, bool destination) {
  if (syntax.kind == OperandKind::kInteger && !destination)
    return Constant(SlotSource::kPredicate, 0, syntax.bits != 0);
  Operand operand;
  if (syntax.kind == OperandKind::kSink && destination) {
    operand.slot = kernel_.scratch_slot;
    operand.is_destination = true;
    return operand;
  }
  if (syntax.kind != OperandKind::kRegister) return PtxError(syntax.at, "a predicate is expected");
  const RegisterSyntax& reg = frame.function->registers[static_cast<size_t>(syntax.index)];
  if (reg.type != Type::kPred) return PtxError(syntax.at, Cat("'", reg.name, "' is not a predicate register"));
  operand.slot = SlotOf(frame, syntax.index);
  operand.negated = syntax.negated;
  operand.is_destination = destination;
  return operand;
}

Result<Operand> Builder::RegisterValue(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form) {
  const RegisterSyntax& reg = frame.function->registers[static_cast<size_t>(syntax.index)];
  if (syntax.negated) return PtxError(syntax.at, "'!' belongs to predicates only");
  if ((reg.type == Type::kPred) != (type == Type::kPred)) {
    return PtxError(syntax.at, Cat("register '", reg.name, "' of type .", FactsOf(reg.type).suffix, " does not fit .",
                                   FactsOf(type).suffix));
  }
  const int have = std::max(8, BitsOf(reg.type)), want = std::max(8, BitsOf(type));
  const bool fits = have == want || (form.relaxed && have > want && have <= 64) || (want == 8 && have == 16);
  if (!fits) {
    return PtxError(syntax.at, Cat("register '", reg.name, "' has ", have, " bits, this operand needs ", want));
  }
  Operand operand;
  operand.slot = SlotOf(frame, syntax.index);
  operand.bytes = SlotBytes(reg.type);
  operand.is_destination = form.destination;
  const uint8_t bytes = SlotBytes(type);
  if (operand.bytes == bytes) return operand;
  // The handler sees a slot of the operand's own width; a conversion before or after does the rest.
  Operand inner = operand;
  inner.slot = NewSlot(bytes);
  inner.bytes = bytes;
  if (form.destination) {
    widen_.emplace_back(operand, inner);
    widen_types_.push_back(type);
  } else {
    narrow_.emplace_back(inner, operand);
  }
  return inner;
}

Result<Operand> Builder::Value(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form) {
  if (type == Type::kPred) return PredicateValue(frame, syntax, form.destination);
  const uint8_t bytes = SlotBytes(type);
  switch (syntax.kind) {
    case OperandKind::kRegister:
      return RegisterValue(frame, syntax, type, form);
    case OperandKind::kSink:
      if (form.destination) {
        Operand operand;
        operand.slot = kernel_.scratch_slot;
        operand.bytes = bytes;
        operand.is_destination = true;
        return operand;
      }
      break;
    case OperandKind::kSpecial: {
      if (form.destination) break;
      const SpecialFacts* special = FindSpecial(syntax.name);
      if (special == nullptr) return PtxError(syntax.at, Cat("unknown register '%", syntax.name, "'"));
      if (IsClock(special->special)) return PtxError(syntax.at, Cat("'%", syntax.name, "' can only be read by mov"));
      return Constant(SlotSource::kSpecial, bytes, static_cast<uint64_t>(special->special));
    }
    case OperandKind::kInteger:
    case OperandKind::kFloat32:
    case OperandKind::kFloat64: {
      if (form.destination) break;
      LS_ASSIGN(const uint64_t bits, Immediate(syntax, type));
      return Constant(SlotSource::kConstant, bytes, bits);
    }
    case OperandKind::kSymbol: {
      if (form.destination) break;
      if (syntax.name == "WARP_SZ") return Constant(SlotSource::kConstant, bytes, kLanes);
      LS_ASSIGN(const Home home, Find(frame, syntax));
      return AddressConstant(home, bytes, syntax.offset);
    }
    case OperandKind::kAddress:
    case OperandKind::kVector:
    case OperandKind::kPair:
    case OperandKind::kArguments:
      break;
  }
  return PtxError(syntax.at, form.destination ? "a register is expected" : "a register or a constant is expected");
}

Result<Operand> Builder::Address(Frame& frame, const OperandSyntax& syntax, Instruction& instruction) {
  if (syntax.kind != OperandKind::kAddress) return PtxError(syntax.at, "an address in brackets is expected");
  const OperandSyntax& base = syntax.elements[0];
  Operand operand;
  if (base.kind == OperandKind::kRegister) {
    const RegisterSyntax& reg = frame.function->registers[static_cast<size_t>(base.index)];
    if (BitsOf(reg.type) != 32 && BitsOf(reg.type) != 64) {
      return PtxError(base.at, Cat("'", reg.name, "' cannot hold an address: it is .", FactsOf(reg.type).suffix));
    }
    operand.slot = SlotOf(frame, base.index);
    operand.bytes = SlotBytes(reg.type);
  } else if (base.kind == OperandKind::kInteger) {
    operand = Constant(SlotSource::kConstant, 8, base.bits);
  } else {
    LS_ASSIGN(const Home home, Find(frame, base));
    operand = AddressConstant(home, 8, 0);
    // A parameter of an expanded function, or of a call, lies in local memory.
    if (home.space == Space::kLocal && instruction.space == Space::kParam) instruction.space = Space::kLocal;
  }
  operand.offset = syntax.offset;
  operand.is_address = true;
  return operand;
}

Result<Operand> Builder::Vector(Frame& frame, const OperandSyntax& syntax, Type type, const OperandForm& form) {
  const bool single = syntax.kind != OperandKind::kVector;
  std::vector<Operand> elements;
  const size_t count = single ? 1 : syntax.elements.size();
  for (size_t e = 0; e < count; ++e) {
    const OperandSyntax& element = single ? syntax : syntax.elements[e];
    LS_ASSIGN(Operand operand, Value(frame, element, type, form));
    elements.push_back(operand);
  }
  Operand vector;
  vector.is_destination = form.destination;
  vector.bytes = SlotBytes(type);
  vector.count = static_cast<uint32_t>(elements.size());
  vector.offset = static_cast<int64_t>(vectors_.size());
  vectors_.push_back(std::move(elements));
  return vector;
}

Status Builder::Operands(Frame& frame, const StatementSyntax& statement, const Found& found, Instruction& instruction) {
  using Kind = OperandForm::Kind;
  size_t next = 0;
  const auto& given = statement.operands;
  for (size_t f = 0; f < found.row->operands.size(); ++f) {
    const OperandForm& form = found.row->operands[f];
    const bool vector_here = next < given.size() && given[next].kind == OperandKind::kVector;
    const bool skip = next == given.size() || (form.kind == Kind::kVector && form.optional && !vector_here);
    if (skip) {
      if (!form.optional)
        return PtxError(statement.at, Cat("'", statement.Opcode(), "' needs more operands than ", given.size()));
      operands_.emplace_back();
      if (form.paired) operands_.emplace_back();
      continue;
    }
    const OperandSyntax* syntax = &given[next++];
    const OperandSyntax* second = nullptr;
    if (syntax->kind == OperandKind::kPair) {
      if (!form.paired) return PtxError(syntax->at, "a second destination is not allowed here");
      second = &syntax->elements[1];
      syntax = &syntax->elements[0];
    }
    const Type type = OperandType(form, found.match);
    Operand operand;
    if (form.kind == Kind::kLabel) {
      operands_.push_back(operand);
      continue;
    }
    if (form.kind == Kind::kImmediate) {
      if (syntax->kind != OperandKind::kInteger) return PtxError(syntax->at, "an integer constant is expected");
      operand.offset = static_cast<int64_t>(syntax->bits);
    } else if (form.kind == Kind::kVector) {
      LS_ASSIGN(operand, Vector(frame, *syntax, type, form));
    } else if (form.or_vector && syntax->kind == OperandKind::kVector) {
      LS_ASSIGN(operand, Vector(frame, *syntax, Type::kB32, OperandForm{}));
    } else if (form.kind == Kind::kAddress || (form.or_address && syntax->kind == OperandKind::kAddress)) {
      LS_ASSIGN(operand, Address(frame, *syntax, instruction));
    } else if (form.kind == Kind::kTensor) {
      LS_ASSIGN(operand, Address(frame, *syntax, instruction));
      if (syntax->elements.size() < 2 || syntax->elements[1].kind != OperandKind::kVector) {
        return PtxError(syntax->at, "a tensor address is [map, {coordinates}]");
      }
      LS_ASSIGN(const Operand coordinates, Vector(frame, syntax->elements[1], Type::kS32, OperandForm{}));
      operands_.push_back(operand);
      operands_.push_back(coordinates);
      continue;
    } else {
      LS_ASSIGN(operand, Value(frame, *syntax, type, form));
    }
    operands_.push_back(operand);
    if (form.paired) {
      Operand predicate;
      if (second != nullptr) {
        LS_ASSIGN(predicate, PredicateValue(frame, *second, true));
      }
      operands_.push_back(predicate);
    }
  }
  if (next != given.size()) {
    return PtxError(given[next].at, Cat("'", statement.Opcode(), "' takes ", next, " operands, not ", given.size()));
  }
  return Ok();
}

// ---- statements ----

uint32_t Builder::OpcodeId(const std::string& opcode, const Row& row) {
  // One spelling may belong to several rows: mov between registers, of pieces, of a clock.
  const auto number = static_cast<uint32_t>(&row - InstructionTable().data());
  const auto [known, fresh] =
      opcodes_.emplace(std::pair(opcode, number), static_cast<uint32_t>(kernel_.opcodes.size()));
  if (fresh) {
    kernel_.opcodes.push_back(opcode);
    kernel_.opcode_rows.push_back(number);
  }
  return known->second;
}

void Builder::Guard(Frame& frame, const StatementSyntax& statement, Instruction& instruction) {
  instruction.at = statement.at;
  if (statement.guard < 0) return;
  instruction.guard = SlotOf(frame, statement.guard);
  instruction.guard_negated = statement.guard_negated;
}

Status Builder::Emit(Instruction instruction, const std::vector<Operand>& operands) {
  if (kernel_.code.size() >= kMaxInstructions) {
    return PtxError(instruction.at,
                    Cat("the kernel has more than ", kMaxInstructions, " instructions with its calls expanded"));
  }
  size_t total = operands.size();
  for (const Operand& operand : operands) total += operand.count;
  auto block = std::make_unique<Operand[]>(std::max<size_t>(total, 1));
  size_t next = operands.size();
  for (size_t i = 0; i < operands.size(); ++i) {
    block[i] = operands[i];
    if (operands[i].count == 0) continue;
    const std::vector<Operand>& elements = vectors_[static_cast<size_t>(operands[i].offset)];
    block[i].elements = &block[next];
    block[i].offset = 0;
    for (const Operand& element : elements) block[next++] = element;
  }
  instruction.operands = block.get();
  instruction.operand_count = static_cast<uint32_t>(operands.size());
  kernel_.operand_blocks.push_back(std::move(block));
  kernel_.code.push_back(instruction);
  return Ok();
}

// mov between a register and a vector of its pieces, and mov from a clock, are instructions of their own here.
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

// Few opcodes make up a kernel: each is matched against the table once.
Result<const Found*> Builder::Find(const StatementSyntax& statement) {
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

Status Builder::Statement(Frame& frame, const StatementSyntax& statement) {
  if (statement.root == "call") return Call(frame, statement);
  LS_ASSIGN(const Found* const found, Find(statement));
  if (found->row->since == Chip::kSm100a && chip_ != Chip::kSm100a) {
    return PtxError(statement.at, Cat("'", statement.Opcode(), "' needs the target sm_100a"));
  }
  if (found->row->since == Chip::kSm90a && chip_ != Chip::kSm90a) {
    return PtxError(statement.at, Cat("'", statement.Opcode(), "' exists on sm_90a only"));
  }
  operands_.clear();
  vectors_.clear();
  narrow_.clear();
  widen_.clear();
  widen_types_.clear();
  Instruction instruction;
  Guard(frame, statement, instruction);
  instruction.opcode = OpcodeId(statement.Opcode(), *found->row);
  instruction.space = SpaceOf((found->match)("Space"));
  if (found->row->root == "mov_pack" || found->row->root == "mov_unpack") {
    Found pieces = *found;
    Row row = *found->row;
    const size_t count = statement.operands[row.root == "mov_pack" ? 1 : 0].elements.size();
    OperandForm& form = row.operands[row.root == "mov_pack" ? 1 : 0];
    const int bits = BitsOf(*found->match.TypeAt(0)) / static_cast<int>(count);
    form.width = OperandForm::Width::kFixed;
    form.type = bits == 8 ? Type::kB8 : bits == 16 ? Type::kB16 : bits == 32 ? Type::kB32 : Type::kB64;
    pieces.row = &row;
    LS_TRY(Operands(frame, statement, pieces, instruction));
    instruction.modifiers = static_cast<uint64_t>(bits);
  } else if (found->row->root == "mov_clock") {
    StatementSyntax clock = statement;
    clock.operands.pop_back();
    instruction.modifiers = static_cast<uint64_t>(FindSpecial(statement.operands[1].name)->special);
    LS_TRY(Operands(frame, clock, *found, instruction));
  } else {
    LS_TRY(Operands(frame, statement, *found, instruction));
  }
  instruction.operands = operands_.data();
  instruction.operand_count = static_cast<uint32_t>(operands_.size());
  for (Operand& operand : operands_) {
    if (operand.count != 0) operand.elements = vectors_[static_cast<size_t>(operand.offset)].data();
  }
  auto handler = found->row->binder(found->match, instruction);
  if (!handler.has_value()) return PtxError(statement.at, Cat("'", statement.Opcode(), "': ", handler.error().message));
  instruction.handler = *handler;
  if (statement.root == "bra") {
    const OperandSyntax& label = statement.operands[0];
    const auto known = frame.labels.find(label.name);
    const LabelSyntax* target = nullptr;
    for (int scope = statement.scope; scope >= 0 && target == nullptr && known != frame.labels.end();
         scope = frame.function->scope_parents[static_cast<size_t>(scope)]) {
      for (const LabelSyntax* candidate : known->second) {
        if (candidate->scope == scope) target = candidate;
      }
    }
    if (target == nullptr) return PtxError(label.at, Cat("unknown label '", label.name, "'"));
    instruction.is_branch = true;
    frame.jumps.emplace_back(static_cast<uint32_t>(kernel_.code.size() + narrow_.size()), target->statement);
  }
  if (statement.root == "ret" && !frame.is_entry) {
    instruction.is_branch = true;
    instruction.handler = ExecuteBranch;
    frame.returns.push_back(static_cast<uint32_t>(kernel_.code.size()));
  }
  for (const auto& [to, from] : narrow_) {
    Instruction convert = instruction;
    convert.handler = NarrowHandler(from.bytes);
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

Status Builder::Call(Frame& frame, const StatementSyntax& statement) {
  const OperandSyntax* callee = nullptr;
  const OperandSyntax* results = nullptr;
  const OperandSyntax* arguments = nullptr;
  for (const OperandSyntax& operand : statement.operands) {
    if (operand.kind == OperandKind::kArguments) {
      (callee == nullptr ? results : arguments) = &operand;
    } else if (callee == nullptr) {
      callee = &operand;
    } else {
      return PtxError(operand.at, "indirect calls are not supported");
    }
  }
  if (callee == nullptr || callee->kind != OperandKind::kSymbol)
    return PtxError(statement.at, "indirect calls are not supported");
  if (statement.guard >= 0) return PtxError(statement.at, "a guarded call is not supported");
  const FunctionSyntax* function = nullptr;
  for (const FunctionSyntax& known : module_.functions) {
    if (known.name == callee->name) function = &known;
  }
  if (function == nullptr) return PtxError(callee->at, Cat("unknown function '", callee->name, "'"));
  if (!function->has_body) {
    // printf of a kernel's debugging leftovers: nothing is printed, the result is 0.
    if (function->name == "vprintf") return Ok();
    return PtxError(callee->at, Cat("the external function '", callee->name, "' has no body in this module"));
  }
  if (std::find(calls_.begin(), calls_.end(), function) != calls_.end()) {
    return PtxError(statement.at, Cat("recursive call of '", function->name, "' is not supported"));
  }
  if (calls_.size() >= kMaxCallDepth) return PtxError(statement.at, "calls are nested too deeply");
  Frame inner;
  inner.function = function;
  const auto bind = [&](const OperandSyntax* actual, const std::vector<VariableSyntax>& formal) -> Status {
    const size_t given = actual == nullptr ? 0 : actual->elements.size();
    if (given != formal.size()) {
      return PtxError(statement.at, Cat("'", function->name, "' takes ", formal.size(), " values here, not ", given));
    }
    for (size_t i = 0; i < given; ++i) {
      const OperandSyntax& value = actual->elements[i];
      if (value.kind != OperandKind::kSymbol)
        return PtxError(value.at, "values are passed to functions in .param variables only");
      LS_ASSIGN(inner.parameters[formal[i].name], Find(frame, value));
    }
    return Ok();
  };
  LS_TRY(bind(results, function->returns));
  LS_TRY(bind(arguments, function->parameters));
  calls_.push_back(function);
  LS_TRY(Expand(inner));
  calls_.pop_back();
  return Ok();
}

Status Builder::Expand(Frame& frame) {
  const FunctionSyntax& function = *frame.function;
  frame.slots.assign(function.registers.size(), kNoSlot);
  for (const LabelSyntax& label : function.labels) {
    auto& same = frame.labels[label.name];
    for (const LabelSyntax* other : same) {
      if (other->scope == label.scope) return PtxError(function.at, Cat("label '", label.name, "' is defined twice"));
    }
    same.push_back(&label);
  }
  for (const StatementSyntax& statement : function.statements) {
    frame.starts.push_back(static_cast<uint32_t>(kernel_.code.size()));
    LS_TRY(Statement(frame, statement));
  }
  const auto end = static_cast<uint32_t>(kernel_.code.size());
  frame.starts.push_back(end);
  for (const auto& [at, statement] : frame.jumps) kernel_.code[at].target = frame.starts[statement];
  for (const uint32_t at : frame.returns) kernel_.code[at].target = end;
  return Ok();
}

Result<Kernel> Builder::Build(const FunctionSyntax& entry) {
  kernel_.name = std::string(entry.name);
  kernel_.syntax = &entry;
  kernel_.scratch_slot = NewSlot(16);
  Frame frame;
  frame.function = &entry;
  frame.is_entry = true;
  for (const VariableSyntax& parameter : entry.parameters) {
    frame.parameters[parameter.name] = {Space::kParam, parameter.offset, false};
  }
  calls_.push_back(&entry);
  LS_TRY(Expand(frame));
  // Falling off the end, and jumps to a label there, end the thread.
  Instruction exit;
  exit.handler = ExecuteExit;
  exit.opcode = OpcodeId("exit", *FindInstruction("exit", {})->row);
  exit.at = kernel_.code.empty() ? entry.at : kernel_.code.back().at;
  LS_TRY(Emit(exit, {}));
  kernel_.register_bytes = next_slot_ + 512;
  kernel_.static_shared_bytes = static_cast<uint32_t>(shared_end_ - kSharedBase);
  // Kernels rely on 1024-aligned dynamic shared memory whatever alignment they declare.
  const uint64_t align = std::max<uint64_t>(1024, kernel_.dynamic_shared_align);
  const uint64_t dynamic = (shared_end_ + align - 1) / align * align;
  if (dynamic > (uint64_t{1} << kRankShift))
    return PtxError(entry.at, Cat(kernel_.static_shared_bytes, " bytes of static shared memory"));
  kernel_.dynamic_shared_offset = static_cast<uint32_t>(dynamic);
  for (const size_t i : dynamic_) kernel_.initial[i].value += dynamic;
  kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
  FindReconvergence(kernel_.code);
  MarkWgmmaRegisters(kernel_.code, kernel_.opcodes);
  return std::move(kernel_);
}

}  // namespace

Result<Kernel> BuildKernel(const ModuleSyntax& module, const FunctionSyntax& entry, const VariableAddresses& addresses,
                           Chip chip) {
  Builder builder(module, addresses, chip);
  return builder.Build(entry);
}

}  // namespace laneshift::emulator
