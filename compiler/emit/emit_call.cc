// Users' functions: their operands are loaded for a whole fragment, then each element runs a copy of the function.
#include "base/check.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Binding;

// A parameter of a function for each register of a fragment: one value for all, or one each.
struct Input {
  Value* shared = nullptr;
  std::vector<Value*> values{};

  Value* Of(size_t j) const { return shared != nullptr ? shared : values[j]; }
};

class CallEmitter {
 public:
  CallEmitter(const RoleContext& cx, const ir::CallAttrs& attrs, Value* row, Value* column, Value* batch)
      : cx_(cx),
        attrs_(attrs),
        function_(cx.program.functions[static_cast<size_t>(attrs.function)]),
        row_(row),
        column_(column),
        batch_(batch) {}

  Fragment Emit(const Fragment& fragment) {
    const std::vector<Fragment> values = ValuesOf(fragment);
    const ir::FragmentLayout& layout = values[0].layout;
    const FunctionCode& code = cx_.functions->CodeOf(attrs_.function, layout.Registers());
    LS_CHECK(code.wide.size() == values.size() + function_.inputs.size(),
             "the parameters of a function differ from those in its program");
    Load(layout);
    std::vector<Value*> inside;
    if (code.guarded) inside = EmitInside(cx_, layout, attrs_.rows, attrs_.gated, row_, column_, batch_);
    std::vector<Fragment> results(static_cast<size_t>(code.results), Fragment{layout, {}});
    for (size_t j = 0; j < values[0].values.size(); ++j) {
      std::vector<Value*> arguments;
      for (const Fragment& value : values) arguments.push_back(value.values[j]);
      for (const Input& input : inputs_) arguments.push_back(input.Of(j));
      const std::vector<Value*> element = cx_.e.UserFunction(code, code.guarded ? inside[j] : nullptr, arguments);
      for (size_t i = 0; i < results.size(); ++i) results[i].values.push_back(element[i]);
    }
    Store(results);
    return results[0];
  }

 private:
  // The first arguments of the function: a value, or those of a pair.
  std::vector<Fragment> ValuesOf(const Fragment& fragment) const {
    if (!function_.is_gated) return {fragment};
    Pairs pairs = EmitPairs(cx_, fragment);
    return {std::move(pairs.gates), std::move(pairs.ups)};
  }

  ir::GlobalAttrs Matrix(Binding base, DataType type) const {
    return {.operand = ir::Operand::kD,
            .base = base,
            .type = type,
            .vector = std::min(attrs_.vector, static_cast<int>(16 / DataTypeBytes(type))),
            .rows = attrs_.rows};
  }

  void Load(const ir::FragmentLayout& layout) {
    int operand = attrs_.operand, number = attrs_.number;
    for (const ir::FunctionInput& input : function_.inputs) {
      const auto vector = [&](BiasAxis axis) {
        const ir::CombineVectorAttrs from{.base = ir::EpilogueBase(operand++),
                                          .axis = axis,
                                          .type = input.type,
                                          .rows = attrs_.rows,
                                          .gated = attrs_.gated,
                                          .halves = axis == BiasAxis::kN && attrs_.halves};
        return EmitLoadVector(cx_, layout, from, row_, column_, batch_).values;
      };
      switch (input.kind) {
        case FunctionOperand::kPerRow:
          inputs_.push_back({nullptr, vector(BiasAxis::kM)});
          break;
        case FunctionOperand::kPerColumn:
          inputs_.push_back({nullptr, vector(BiasAxis::kN)});
          break;
        case FunctionOperand::kPerElement:
          inputs_.push_back({nullptr, EmitLoadMatrix(cx_, layout, Matrix(ir::EpilogueBase(operand++), input.type), row_,
                                                     column_, batch_)
                                          .values});
          break;
        case FunctionOperand::kOutput:
          outputs_.push_back(Matrix(ir::EpilogueBase(operand++), input.type));
          inputs_.push_back({llvm::ConstantFP::get(cx_.e.F32(), 0), {}});
          break;
        case FunctionOperand::kTable:
          inputs_.push_back({cx_.Param(ir::EpilogueBase(operand++)), {}});
          break;
        case FunctionOperand::kNumber:
          inputs_.push_back({cx_.Param(ir::EpilogueNumber(number++)), {}});
          break;
      }
    }
  }

  void Store(const std::vector<Fragment>& results) const {
    LS_CHECK(results.size() == outputs_.size() + 1, "the results of a function differ from those in its program");
    for (size_t i = 0; i < outputs_.size(); ++i) {
      EmitGlobalStore(cx_, results[i + 1], outputs_[i], row_, column_, batch_);
    }
  }

  const RoleContext& cx_;
  const ir::CallAttrs& attrs_;
  const ir::ProgramFunction& function_;
  Value* row_;
  Value* column_;
  Value* batch_;
  std::vector<Input> inputs_;
  std::vector<ir::GlobalAttrs> outputs_;
};

}  // namespace

Fragment EmitCall(const RoleContext& cx, const Fragment& fragment, const ir::CallAttrs& attrs, Value* row,
                  Value* column, Value* batch) {
  return CallEmitter(cx, attrs, row, column, batch).Emit(fragment);
}

}  // namespace laneshift::compiler
