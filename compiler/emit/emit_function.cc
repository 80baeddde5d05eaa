// Functions of one variable on f32, without the math library: from the chip's exp2, reciprocal and tanh.
#include <numbers>

#include "base/check.h"
#include "compiler/emit/emit_program.h"

namespace laneshift::compiler {
namespace {

using ir::Function;

constexpr double kSqrtTwoOverPi = 0.79788456080286536;
constexpr double kTanhCubic = 0.044715;

class FunctionEmitter {
 public:
  explicit FunctionEmitter(Emitter& e) : e_(e), b_(e.ir()) {}

  Value* C(double value) { return llvm::ConstantFP::get(e_.F32(), value); }
  Value* Add(Value* x, Value* y) { return b_.CreateFAdd(x, y); }
  Value* Mul(Value* x, Value* y) { return b_.CreateFMul(x, y); }
  Value* MulAdd(Value* x, Value* y, Value* z) { return Add(Mul(x, y), z); }
  Value* Select(Value* condition, Value* x, Value* y) { return b_.CreateSelect(condition, x, y); }
  Value* Above(Value* x, Value* y) { return b_.CreateFCmpOGT(x, y); }
  // NaN for NaN.
  Value* Most(Value* x, Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, x, y); }
  Value* Least(Value* x, Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, x, y); }
  // exp(factor * x)
  Value* Exp(Value* x, double factor) { return e_.Exp2(Mul(x, C(factor * std::numbers::log2e))); }
  Value* OnePlusReciprocal(Value* x) { return e_.Reciprocal(Add(C(1), x)); }

  Value* Sigmoid(Value* x, bool approximate) {
    if (!approximate) return OnePlusReciprocal(Exp(x, -1));
    return MulAdd(e_.Tanh(Mul(x, C(0.5))), C(0.5), C(0.5));
  }
  Value* Tanh(Value* x, bool approximate) {
    if (approximate) return e_.Tanh(x);
    return MulAdd(OnePlusReciprocal(Exp(x, 2)), C(-2), C(1));
  }
  // sqrt(2/pi) * (x + 0.044715 x^3)
  Value* TanhArgument(Value* x) { return Mul(x, MulAdd(Mul(x, x), C(kSqrtTwoOverPi * kTanhCubic), C(kSqrtTwoOverPi))); }
  // x (1 + tanh(u)) / 2, which is x times the sigmoid of 2 u.
  Value* HalfGated(Value* x, Value* u) {
    Value* half = Mul(x, C(0.5));
    return MulAdd(half, e_.Tanh(u), half);
  }
  // u such that (1 + tanh(u)) / 2 is NormalShare: x (a + b x^2 + c x^4), fitted on |x| <= 6.6 so that x times the
  // difference is below 2.9e-5; beyond sqrt(50) both are 0 or 1, and the polynomial in x^2 must not turn around.
  Value* ErfArgument(Value* x) {
    Value* square = Mul(x, x);
    square = Least(square, C(50));
    return Mul(x, MulAdd(square, MulAdd(square, C(-3.4569214e-4), C(0.036960119)), C(0.79757693)));
  }
  // exp(-x^2 / 2)
  Value* Bell(Value* x) { return Exp(Mul(x, x), -0.5); }
  // (1 + erf(x / sqrt(2))) / 2 by formula 7.1.26 of Abramowitz and Stegun, "Handbook of Mathematical Functions":
  // erf to within 1.5e-7. `bell` is Bell(x).
  Value* NormalShare(Value* x, Value* bell) {
    constexpr double kCoefficients[] = {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592};
    Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* t = OnePlusReciprocal(Mul(size, C(0.3275911 / std::numbers::sqrt2)));
    Value* sum = C(kCoefficients[0]);
    for (int i = 1; i < 5; ++i) sum = MulAdd(sum, t, C(kCoefficients[i]));
    // Half of erf's size: with x's sign, and no predicate for each element, of which a thread has seven.
    Value* half = MulAdd(Mul(Mul(sum, t), bell), C(-0.5), C(0.5));
    return Add(b_.CreateCopySign(half, x), C(0.5));
  }

 private:
  Emitter& e_;
  llvm::IRBuilder<>& b_;
};

}  // namespace

Value* EmitFunction(Emitter& e, Function function, bool approximate, Value* x, Value* first, Value* second) {
  FunctionEmitter f(e);
  switch (function) {
    case Function::kIdentity:
      return x;
    case Function::kRelu:
      return f.Most(x, f.C(0));
    case Function::kLeakyRelu:
      return f.Select(f.Above(x, f.C(0)), x, f.Mul(x, first));
    case Function::kGelu:
      if (approximate) return f.HalfGated(x, f.ErfArgument(x));
      return f.Mul(x, f.NormalShare(x, f.Bell(x)));
    case Function::kGeluTanh:
      if (approximate) return f.HalfGated(x, f.TanhArgument(x));
      return f.Mul(x, f.Sigmoid(f.Mul(f.TanhArgument(x), f.C(2)), false));
    case Function::kSilu:
      if (approximate) return f.HalfGated(x, f.Mul(x, f.C(0.5)));
      return f.Mul(x, f.Sigmoid(x, false));
    case Function::kSigmoid:
      return f.Sigmoid(x, approximate);
    case Function::kTanh:
      return f.Tanh(x, approximate);
    case Function::kClamp:
      return f.Least(f.Most(x, first), second);
    case Function::kRint:
      return e.RoundToInteger(x);
    case Function::kCutBf16: {
      Value* bits = e.ir().CreateAnd(e.ir().CreateBitCast(x, e.I32()), e.C32(0xffff0000));
      return e.ir().CreateBitCast(bits, e.F32());
    }
    case Function::kCutF16:
      return e.CutToHalf(x);
  }
  LS_CHECK(false, "unknown function ", static_cast<int>(function));
}

Value* EmitDerivative(Emitter& e, Function function, Value* x, Value* first, Value* second) {
  FunctionEmitter f(e);
  const auto one_minus_square = [&](Value* y) { return f.MulAdd(f.Mul(y, y), f.C(-1), f.C(1)); };
  // s + x * s * (1 - s) * inner, the derivative of x * Sigmoid(g(x)), where `inner` is that of g.
  const auto gated = [&](Value* s, Value* inner) {
    Value* slope = f.Mul(f.Mul(x, f.Add(s, f.Mul(f.Mul(s, s), f.C(-1)))), inner);
    return f.Add(s, slope);
  };
  switch (function) {
    case Function::kRelu:
      return f.Select(f.Above(x, f.C(0)), f.C(1), f.C(0));
    case Function::kGelu: {
      Value* bell = f.Bell(x);
      return f.MulAdd(f.Mul(x, f.C(std::numbers::inv_sqrtpi / std::numbers::sqrt2)), bell, f.NormalShare(x, bell));
    }
    case Function::kGeluTanh:
      return gated(f.Sigmoid(f.Mul(f.TanhArgument(x), f.C(2)), false),
                   f.MulAdd(f.Mul(x, x), f.C(6 * kSqrtTwoOverPi * kTanhCubic), f.C(2 * kSqrtTwoOverPi)));
    case Function::kSilu:
      return gated(f.Sigmoid(x, false), f.C(1));
    case Function::kSigmoid: {
      // s (1 - s) of s = (1 + t) / 2.
      Value* t = f.Tanh(f.Mul(x, f.C(0.5)), false);
      return f.Mul(one_minus_square(t), f.C(0.25));
    }
    case Function::kTanh:
      return one_minus_square(f.Tanh(x, false));
    case Function::kLeakyRelu:
      return f.Select(f.Above(x, f.C(0)), f.C(1), first);
    case Function::kClamp:
      return f.Select(f.Above(first, x), f.C(0), f.Select(f.Above(x, second), f.C(0), f.C(1)));
    case Function::kIdentity:
    case Function::kRint:
    case Function::kCutBf16:
    case Function::kCutF16:
      break;
  }
  LS_CHECK(false, "no derivative of function ", static_cast<int>(function));
}

}  // namespace laneshift::compiler
