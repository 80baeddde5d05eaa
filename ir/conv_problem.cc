// The rules of ConvProblem. Its one-line form is in conv_problem_text.cc.
#include "ir/conv_problem.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/problem_keys.h"
#include "ir/problem_kinds.h"
#include "ir/stored_tensor.h"

namespace laneshift {

Spatial ConvProblem::Output() const {
  Spatial output;
  for (const int i : {kDepth, kHeight, kWidth}) {
    const int64_t reach = (filter[i] - 1) * dilation[i] + 1;
    output[i] = (input[i] + pad_before[i] + pad_after[i] - reach) / stride[i] + 1;
  }
  return output;
}

}  // namespace laneshift

namespace laneshift::ir {
namespace {

using base::Cat;

constexpr SpatialDimension kDimensions[] = {kDepth, kHeight, kWidth};
// Their names in errors and in the one-line form.
constexpr std::string_view kDimensionNames[] = {"depth", "height", "width"};
constexpr std::string_view kInputKeys[] = {"d", "h", "w"};
constexpr std::string_view kFilterKeys[] = {"t", "r", "s"};

// Each stride of a tensor, and the number of items that it separates, from the innermost one.
struct Level {
  int64_t ConvPitches::*distance;
  int64_t count;
};
std::array<Level, 4> LevelsOf(const ConvTensor& tensor) {
  return {{{&ConvPitches::pixel, tensor.extents[kWidth]},
           {&ConvPitches::row, tensor.extents[kHeight]},
           {&ConvPitches::plane, tensor.extents[kDepth]},
           {&ConvPitches::image, tensor.outer}}};
}

Status CheckFootprints(const ConvProblem& p, const ConvTensor& tensor) {
  for (const Level& level : LevelsOf(tensor))
    LS_TRY(CheckFootprint(PitchKey(tensor.pitches, level.distance), level.count, p.*tensor.pitches.*level.distance));
  return Ok();
}

// Each stride is at least the extent of what lies inside of it.
Status CheckOverlaps(const ConvProblem& p, const ConvTensor& tensor) {
  int64_t inside = tensor.inner;
  for (const Level& level : LevelsOf(tensor)) {
    const int64_t pitch = p.*tensor.pitches.*level.distance;
    const bool innermost = level.distance == &ConvPitches::pixel;
    if ((level.count > 1 || innermost) && pitch < inside) {
      return InvalidProblem(Cat(PitchKey(tensor.pitches, level.distance), "=", pitch, " is below the ", inside,
                                " elements that lie inside; use at least ", inside, ", or leave it out for packed"));
    }
    inside += (level.count - 1) * pitch;
  }
  return Ok();
}

Status CheckDimension(const ConvProblem& p, SpatialDimension i) {
  LS_TRY(CheckExtent(kInputKeys[i], p.input[i]));
  LS_TRY(CheckExtent(kFilterKeys[i], p.filter[i]));
  LS_TRY(CheckExtent("stride", p.stride[i]));
  LS_TRY(CheckExtent("dilation", p.dilation[i]));
  for (const int64_t pad : {p.pad_before[i], p.pad_after[i]}) {
    if (pad < 0 || pad >= kMaxExtent) {
      return InvalidProblem(Cat("pad=", pad, " is out of range; use 0 to ", kMaxExtent - 1));
    }
  }
  // All below 2^31, so nothing overflows.
  const int64_t padded = p.input[i] + p.pad_before[i] + p.pad_after[i];
  const int64_t reach = (p.filter[i] - 1) * p.dilation[i] + 1;
  if (padded >= kMaxExtent) {
    return InvalidProblem(
        Cat("the padded ", kDimensionNames[i], " of ", padded, " is out of range; at most ", kMaxExtent - 1));
  }
  if (reach > padded) {
    return InvalidProblem(Cat("the output is empty: the filter reaches over ", reach, " in ", kDimensionNames[i],
                              ", the padded image has ", padded, "; pad by at least ", reach - padded, " more"));
  }
  return Ok();
}

// Products that are coordinates of the matrices of the convolution as a GEMM.
Status CheckProduct(std::string_view what, std::initializer_list<int64_t> factors) {
  double product = 1;
  for (const int64_t factor : factors) product *= static_cast<double>(factor);
  if (product < static_cast<double>(kMaxExtent)) return Ok();
  return InvalidProblem(Cat("the problem has more than ", kMaxExtent - 1, " ", what, "; split it"));
}

double Product(double count, const Spatial& extents, int64_t inner) {
  for (const int64_t extent : extents) count *= static_cast<double>(extent);
  return count * static_cast<double>(inner);
}

}  // namespace

std::array<ConvTensor, 4> ConvTensors(const ConvProblem& p) {
  const Spatial output = p.Output();
  std::array<ConvTensor, 4> tensors = {{{&ConvProblem::x_pitch, p.n, p.input, p.c},
                                        {&ConvProblem::w_pitch, p.k, p.filter, p.c / p.groups},
                                        {&ConvProblem::z_pitch, p.n, output, p.k},
                                        {&ConvProblem::y_pitch, p.n, output, p.k}}};
  if (p.pass == ConvPass::kForward) {
    tensors[static_cast<size_t>(ConvOperand::kY)].inner = OutputColumns(p);
    return tensors;
  }
  ConvTensor& z = tensors[static_cast<size_t>(ConvOperand::kZ)];
  z = tensors[static_cast<size_t>(OperandsOf(p.pass)[kConvD])];
  z.pitches = &ConvProblem::z_pitch;
  return tensors;
}

ConvPitches PackedPitches(const ConvTensor& tensor, const ConvPitches& given) {
  const auto or_else = [](int64_t pitch, int64_t packed) { return pitch == 0 ? packed : pitch; };
  ConvPitches pitches;
  pitches.pixel = or_else(given.pixel, tensor.inner);
  pitches.row = or_else(given.row, BoundedProduct(tensor.extents[kWidth], pitches.pixel));
  pitches.plane = or_else(given.plane, BoundedProduct(tensor.extents[kHeight], pitches.row));
  pitches.image = or_else(given.image, BoundedProduct(tensor.extents[kDepth], pitches.plane));
  return pitches;
}

namespace {

// What only the forward pass has.
Status CheckBackward(const ConvProblem& p) {
  if (p.pass == ConvPass::kForward) return Ok();
  const std::string_view name = NameOf(p.pass);
  if (p.bias != ConvBias::kNone) {
    return InvalidProblem(
        Cat("bias=k is added to y, which a ", name, " does not compute; ",
            p.pass == ConvPass::kDgrad ? "for a vector along c use epilogue=bias_c" : "leave it out"));
  }
  LS_TRY(CheckProduct("input pixels", {p.n, p.input[kDepth], p.input[kHeight], p.input[kWidth]}));
  if (IsGated(p.epilogue))
    return InvalidProblem(Cat("epilogue: a gated linear unit joins columns of y; a ", name, " does not compute y"));
  if (p.pass == ConvPass::kDgrad) return Ok();
  if (!p.epilogue.empty())
    return InvalidProblem("epilogue: a conv_wgrad has none; use alpha= and beta=, or leave it out");
  if (p.numerics == Numerics::kBatchInvariant) {
    return InvalidProblem(
        "numerics=batch_invariant: a conv_wgrad sums over all images, so each element depends on their number; use "
        "numerics=deterministic");
  }
  return Ok();
}

Status CheckTypes(const ConvProblem& p) {
  const ConvFields &a = FieldsOf(p.pass, kConvA), &b = FieldsOf(p.pass, kConvB), &d = FieldsOf(p.pass, kConvD);
  const DataType operand = p.*a.type, result = p.*d.type;
  LS_TRY(CheckOperandTypes(a.name, operand, b.name, p.*b.type, Scaling::kNone));
  for (const ConvFields& fields : {a, b}) {
    if (BitsOf(p.*fields.type) < 8)
      return InvalidProblem(Cat(fields.name, "=", DataTypeName(p.*fields.type),
                                " is for gemm and grouped_gemm; a conv multiplies elements of 8 bits or more"));
  }
  LS_TRY(CheckPrecision(operand, p.*b.type, p.sum, p.scale));
  LS_TRY(CheckResultType(d.name, result));
  LS_TRY(CheckAddendType("z", p.z, result));
  return CheckSum({.operand = operand,
                   .result = result,
                   .key = d.name,
                   .alpha = p.alpha,
                   .beta = p.beta,
                   .bias = p.bias != ConvBias::kNone,
                   .epilogue = &p.epilogue});
}

}  // namespace

Status ValidateConv(const ConvProblem& p) {
  LS_TRY(CheckExtent("n", p.n));
  LS_TRY(CheckExtent("c", p.c));
  LS_TRY(CheckExtent("k", p.k));
  LS_TRY(CheckExtent("groups", p.groups));
  for (const SpatialDimension i : kDimensions) LS_TRY(CheckDimension(p, i));
  if (p.c % p.groups != 0 || p.k % p.groups != 0) {
    const bool c = p.c % p.groups != 0;
    return InvalidProblem(Cat("groups=", p.groups, " does not divide ", c ? "c=" : "k=", c ? p.c : p.k,
                              "; use a divisor of both c and k"));
  }
  const Spatial output = p.Output();
  LS_TRY(CheckProduct("output pixels", {p.n, output[kDepth], output[kHeight], output[kWidth]}));
  LS_TRY(CheckProduct("products per output element",
                      {p.filter[kDepth], p.filter[kHeight], p.filter[kWidth], p.c / p.groups}));
  for (const ConvTensor& tensor : ConvTensors(p)) {
    for (const auto distance : kDistances) {
      LS_TRY(CheckPitch(PitchKey(tensor.pitches, distance), p.*tensor.pitches.*distance));
    }
  }
  LS_TRY(CheckTypes(p));
  LS_TRY(CheckBackward(p));
  if (p.scale != Scaling::kNone && p.scale != Scaling::kTensor) {
    return InvalidProblem(Cat("scale=", NameOf(p.scale),
                              " is for gemm; a conv has scale=tensor (one scale factor per "
                              "operand)"));
  }
  for (const ConvFields& fields : kConvFields)
    LS_TRY(CheckAlignment(fields.align_key, p.*fields.align, p.*fields.type));
  return Ok();
}

Result<Problem> Complete(ConvProblem conv) {
  LS_TRY(ValidateConv(conv));
  LS_ASSIGN(conv.epilogue,
            CompleteEpilogue(std::move(conv.epilogue), ResultTypeOf(conv), conv.numerics, LettersOf(conv.pass)));
  if (IsGated(conv.epilogue) && conv.k / conv.groups % 2 != 0) {
    return InvalidProblem(Cat("epilogue: a gated linear unit needs pairs of filters, but k=", conv.k,
                              " groups=", conv.groups, " makes ", conv.k / conv.groups, " of a group, which is odd"));
  }
  LS_TRY(CheckHalves(conv.epilogue, conv.beta, conv.scale));
  for (const ConvTensor& tensor : ConvTensors(conv)) {
    conv.*tensor.pitches = PackedPitches(tensor, conv.*tensor.pitches);
    LS_TRY(CheckFootprints(conv, tensor));
    if (tensor.pitches == &ConvProblem::z_pitch && conv.beta == 0) continue;
    LS_TRY(CheckOverlaps(conv, tensor));
  }
  return Problem(conv);
}

double Flops(const ConvProblem& p) {
  return 2 * Product(static_cast<double>(p.n), p.Output(), p.k) * Product(1, p.filter, p.c / p.groups);
}

double Bytes(const ConvProblem& p) {
  const auto count = static_cast<double>(p.n);
  const auto size = [](DataType type) { return BitsOf(type) / 8.0; };
  double bytes = Product(count, p.input, p.c) * size(p.x) +
                 Product(static_cast<double>(p.k), p.filter, p.c / p.groups) * size(p.w) +
                 Product(count, p.Output(), OutputColumns(p)) * size(p.y);
  if (p.beta != 0) {
    const ConvTensor z = ConvTensors(p)[static_cast<size_t>(ConvOperand::kZ)];
    bytes += Product(static_cast<double>(z.outer), z.extents, z.inner) * size(p.z);
  }
  if (p.bias == ConvBias::kK) bytes += static_cast<double>(p.k) * size(AddendType(p.y));
  return bytes + ScaleBytes(p);
}

}  // namespace laneshift::ir
