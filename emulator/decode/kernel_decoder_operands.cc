// Variables, registers, constants: what the operands of an instruction become.

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "emulator/decode/binders.h"
#include "emulator/decode/kernel_decoder.h"

namespace laneshift::emulator {

using base::Cat;

uint8_t SlotBytes(Type type) {
  if (type == Type::kPred) return 0;
  const int bits = BitsOf(type);
  return static_cast<uint8_t>(bits <= 32 ? 4 : bits / 8);
}

uint32_t KernelDecoder::NewSlot(uint8_t bytes) {
  if (bytes == 0) {
    if (predicates_left_ == 0) {
      next_predicate_ = next_slot_;
      next_slot_ += 4 * uint32_t{kLanes};
      predicates_left_ = kLanes;
    }
    --predicates_left_;
    const uint32_t word = next_predicate_ + 4 * predicates_left_;
    if (saving_ != nullptr) saving_->saved.push_back({word, 0});
    return word;
  }
  const uint32_t slot = next_slot_;
  next_slot_ += bytes * uint32_t{kLanes};
  if (saving_ != nullptr) saving_->saved.push_back({slot, bytes});
  return slot;
}

uint32_t KernelDecoder::SlotOf(Frame& frame, int index) {
  uint32_t& slot = frame.slots[static_cast<size_t>(index)];
  if (slot == kNoSlot) slot = NewSlot(SlotBytes(frame.function->registers[static_cast<size_t>(index)].type));
  return slot;
}

DecodedOperand KernelDecoder::Constant(SlotSource source, uint8_t bytes, uint64_t value) {
  if (bytes == 4) value &= 0xffffffff;
  DecodedOperand operand;
  operand.bytes = bytes;
  const auto key = std::tuple(source, bytes, value);
  if (const auto known = constants_.find(key); known != constants_.end()) {
    operand.slot = known->second;
    return operand;
  }
  // Nobody writes it, so no call has to save it.
  CallTarget* const saving = std::exchange(saving_, nullptr);
  operand.slot = NewSlot(bytes);
  saving_ = saving;
  constants_[key] = operand.slot;
  kernel_.initial.push_back({bytes == 0 ? SlotSource::kPredicate : source, bytes, operand.slot, value});
  return operand;
}

DecodedOperand KernelDecoder::AddressConstant(Frame& frame, const Home& home, uint8_t bytes, int64_t offset) {
  const uint64_t value = home.value + static_cast<uint64_t>(offset);
  if (home.in_frame) {
    DecodedOperand operand;
    operand.bytes = bytes;
    const auto [known, fresh] = frame.frame_addresses.emplace(std::pair(bytes, value), 0u);
    if (fresh) {
      known->second = NewSlot(bytes);
      frame.callee->frame_addresses.push_back({known->second, bytes, value});
    }
    operand.slot = known->second;
    return operand;
  }
  if (home.space != StateSpace::kShared) return Constant(SlotSource::kConstant, bytes, value);
  if (!home.dynamic) return Constant(SlotSource::kSharedAddress, bytes, value);
  const auto key = std::pair(bytes, value);
  DecodedOperand operand;
  operand.bytes = bytes;
  if (const auto known = dynamic_constants_.find(key); known != dynamic_constants_.end()) {
    operand.slot = known->second;
    return operand;
  }
  CallTarget* const saving = std::exchange(saving_, nullptr);
  operand.slot = NewSlot(bytes);
  saving_ = saving;
  dynamic_constants_[key] = operand.slot;
  dynamic_.push_back(kernel_.initial.size());
  kernel_.initial.push_back({SlotSource::kSharedAddress, bytes, operand.slot, value});
  return operand;
}

// ---- variables ----

KernelDecoder::Home KernelDecoder::PlaceLocal(Frame& frame, const VariableSyntax& variable) {
  uint64_t& end = frame.callee != nullptr ? frame.callee->frame_bytes : kernel_.local_bytes;
  const uint64_t align = std::max<uint64_t>(variable.align, 8);
  end = (end + align - 1) / align * align;
  const Home home{StateSpace::kLocal, end, false, frame.callee != nullptr};
  end += variable.bytes;
  return home;
}

KernelDecoder::Home KernelDecoder::PlaceShared(const VariableSyntax& variable) {
  const auto known = shared_.find(&variable);
  if (known != shared_.end()) return known->second;
  Home home{StateSpace::kShared, 0, variable.is_extern || variable.bytes == 0, false};
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

KernelDecoder::Home KernelDecoder::Place(Frame& frame, const VariableSyntax& variable) {
  switch (variable.space) {
    case StateSpace::kShared:
    case StateSpace::kSharedCluster:
      return PlaceShared(variable);
    case StateSpace::kGlobal:
    case StateSpace::kConst: {
      const auto address = addresses_.find(&variable);
      LS_CHECK(address != addresses_.end(), "no address for ", variable.name);
      return {StateSpace::kGlobal, address->second, false, false};
    }
    case StateSpace::kLocal:
    case StateSpace::kParam:
    case StateSpace::kGeneric:
      break;
  }
  const auto known = frame.variables.find(&variable);
  if (known != frame.variables.end()) return known->second;
  return frame.variables[&variable] = PlaceLocal(frame, variable);
}

Result<KernelDecoder::Home> KernelDecoder::Find(Frame& frame, const OperandSyntax& symbol) {
  if (symbol.index >= 0) return Place(frame, frame.function->variables[static_cast<size_t>(symbol.index)]);
  if (const auto parameter = frame.parameters.find(symbol.name); parameter != frame.parameters.end())
    return parameter->second;
  for (const VariableSyntax& variable : module_.variables) {
    if (variable.name == symbol.name) return Place(frame, variable);
  }
  return PtxError(symbol.at, Cat("unknown name '", symbol.name, "'"));
}

// ---- operands ----

Type KernelDecoder::OperandType(const OperandForm& form, const Match& match) const {
  if (form.width == OperandForm::Width::kFixed) return form.type;
  const Type type = match.TypeAt(form.width == OperandForm::Width::kDouble ? 0 : form.suffix).value_or(Type::kB32);
  if (form.width == OperandForm::Width::kSuffix) return type;
  const bool is_signed = FactsOf(type).kind == TypeKind::kSigned;
  if (BitsOf(type) == 16) return is_signed ? Type::kS32 : Type::kU32;
  return is_signed ? Type::kS64 : Type::kU64;
}

Result<uint64_t> KernelDecoder::Immediate(const OperandSyntax& syntax, Type type) const {
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

Result<DecodedOperand> KernelDecoder::PredicateValue(Frame& frame, const OperandSyntax& syntax, bool destination) {
  if (syntax.kind == OperandKind::kInteger && !destination)
    return Constant(SlotSource::kPredicate, 0, syntax.bits != 0);
  DecodedOperand operand;
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

Result<DecodedOperand> KernelDecoder::RegisterValue(Frame& frame, const OperandSyntax& syntax, Type type,
                                                    const OperandForm& form) {
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
  DecodedOperand operand;
  operand.slot = SlotOf(frame, syntax.index);
  operand.bytes = SlotBytes(reg.type);
  operand.is_destination = form.destination;
  const uint8_t bytes = SlotBytes(type);
  if (operand.bytes == bytes) return operand;
  // The handler sees a slot of the operand's own width; a conversion before or after does the rest.
  DecodedOperand inner = operand;
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

// The address of a variable, or of a function.
Result<DecodedOperand> KernelDecoder::SymbolValue(Frame& frame, const OperandSyntax& symbol, uint8_t bytes) {
  if (symbol.index < 0 && !frame.parameters.contains(symbol.name)) {
    if (const FunctionSyntax* function = module_.FindFunction(symbol.name);
        function != nullptr && !function->is_entry) {
      if (bytes != 8) return PtxError(symbol.at, "the address of a function has 64 bits");
      LS_TRY(CalleeNumber(*function, symbol.at));
      return Constant(SlotSource::kConstant, bytes, module_.AddressOf(*function));
    }
  }
  LS_ASSIGN(const Home home, Find(frame, symbol));
  return AddressConstant(frame, home, bytes, symbol.offset);
}

Result<DecodedOperand> KernelDecoder::Value(Frame& frame, const OperandSyntax& syntax, Type type,
                                            const OperandForm& form) {
  if (type == Type::kPred) return PredicateValue(frame, syntax, form.destination);
  const uint8_t bytes = SlotBytes(type);
  switch (syntax.kind) {
    case OperandKind::kRegister:
      return RegisterValue(frame, syntax, type, form);
    case OperandKind::kSink:
      if (form.destination) {
        DecodedOperand operand;
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
      return SymbolValue(frame, syntax, bytes);
    }
    case OperandKind::kAddress:
    case OperandKind::kVector:
    case OperandKind::kPair:
    case OperandKind::kArguments:
      break;
  }
  return PtxError(syntax.at, form.destination ? "a register is expected" : "a register or a constant is expected");
}

Result<DecodedOperand> KernelDecoder::Address(Frame& frame, const OperandSyntax& syntax, Instruction& instruction) {
  if (syntax.kind != OperandKind::kAddress) return PtxError(syntax.at, "an address in brackets is expected");
  const OperandSyntax& base = syntax.elements[0];
  DecodedOperand operand;
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
    operand = AddressConstant(frame, home, 8, 0);
    // A parameter of a function, or of a call, lies in local memory.
    if (home.space == StateSpace::kLocal && instruction.space == StateSpace::kParam)
      instruction.space = StateSpace::kLocal;
  }
  operand.offset = syntax.offset;
  operand.is_address = true;
  return operand;
}

Result<DecodedOperand> KernelDecoder::Vector(Frame& frame, const OperandSyntax& syntax, Type type,
                                             const OperandForm& form) {
  const bool single = syntax.kind != OperandKind::kVector;
  std::vector<DecodedOperand> elements;
  const size_t count = single ? 1 : syntax.elements.size();
  for (size_t e = 0; e < count; ++e) {
    const OperandSyntax& element = single ? syntax : syntax.elements[e];
    LS_ASSIGN(DecodedOperand operand, Value(frame, element, type, form));
    elements.push_back(operand);
  }
  DecodedOperand vector;
  vector.is_destination = form.destination;
  vector.bytes = SlotBytes(type);
  vector.count = static_cast<uint32_t>(elements.size());
  vector.offset = static_cast<int64_t>(vectors_.size());
  vectors_.push_back(std::move(elements));
  return vector;
}

Result<DecodedOperand> KernelDecoder::ReadOperand(Frame& frame, const OperandSyntax& syntax, const OperandForm& form,
                                                  const Match& match, Instruction& instruction) {
  using Kind = OperandForm::Kind;
  const Type type = OperandType(form, match);
  if (form.kind == Kind::kLabel) return DecodedOperand{};
  if (form.kind == Kind::kImmediate) {
    if (syntax.kind != OperandKind::kInteger) return PtxError(syntax.at, "an integer constant is expected");
    DecodedOperand operand;
    operand.offset = static_cast<int64_t>(syntax.bits);
    return operand;
  }
  if (form.kind == Kind::kVector) return Vector(frame, syntax, type, form);
  if (form.or_vector && syntax.kind == OperandKind::kVector) return Vector(frame, syntax, Type::kB32, OperandForm{});
  if (form.kind == Kind::kAddress || form.kind == Kind::kTensor ||
      (form.or_address && syntax.kind == OperandKind::kAddress)) {
    return Address(frame, syntax, instruction);
  }
  return Value(frame, syntax, type, form);
}

Status KernelDecoder::ReadOperands(Frame& frame, const StatementSyntax& statement, const Found& found,
                                   Instruction& instruction) {
  using Kind = OperandForm::Kind;
  size_t next = 0;
  const auto& given = statement.operands;
  const auto& forms = found.row->operands;
  for (const OperandForm& form : forms) {
    const bool vector_here = next < given.size() && given[next].kind == OperandKind::kVector;
    // An optional operand in the middle is absent if the operands after it need what is left.
    const auto rest = std::span(forms).subspan(static_cast<size_t>(&form - forms.data()) + 1);
    const auto needed = std::count_if(rest.begin(), rest.end(), [](const OperandForm& f) { return !f.optional; });
    const bool skip = next == given.size() || (form.kind == Kind::kVector && form.optional && !vector_here) ||
                      (form.optional && given.size() - next <= static_cast<size_t>(needed));
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
    LS_ASSIGN(const DecodedOperand operand, ReadOperand(frame, *syntax, form, found.match, instruction));
    operands_.push_back(operand);
    if (form.kind == Kind::kTensor) {
      if (syntax->elements.size() < 2 || syntax->elements[1].kind != OperandKind::kVector) {
        return PtxError(syntax->at, "a tensor address is [map, {coordinates}]");
      }
      LS_ASSIGN(const DecodedOperand coordinates, Vector(frame, syntax->elements[1], Type::kS32, OperandForm{}));
      operands_.push_back(coordinates);
    }
    if (form.paired) {
      DecodedOperand predicate;
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

}  // namespace laneshift::emulator
