#include "ir/problem_keys.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/text.h"
#include "ir/element_type.h"
#include "ir/grammar.h"
#include "ir/mma.h"
#include "ir/stored_tensor.h"
#include "laneshift/schedule.h"

namespace laneshift::ir {

using base::Cat;

namespace {

constexpr int64_t kMaxPitch = int64_t{1} << 40, kMaxElements = int64_t{1} << 46;

// Those that a problem may name.
std::vector<DataType> OperandAndResultTypes() {
  std::vector<DataType> types;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    if (InfoOf(type).result || MmaKindOf(type)) types.push_back(type);
  }
  return types;
}

std::optional<DataType> FindType(std::string_view name) {
  for (const DataType type : OperandAndResultTypes()) {
    if (DataTypeName(type) == name) return type;
  }
  return std::nullopt;
}

constexpr std::string_view kSumNames[] = {"f32", "fast", "saturate"};
constexpr std::string_view kNumericsNames[] = {"default", "deterministic", "batch_invariant"};
constexpr std::string_view kNumericsDocs[] = {
    "any order of summation",
    "the same bits in every run of one schedule, including the epilogue's sums",
    "deterministic, and results computed from a row of A (an image of x) have the same bits for any number of others",
};
static_assert(std::size(kNumericsNames) == std::size(kNumericsDocs));
constexpr std::string_view kScalingNames[] = {"none", "tensor", "block", "mx", "nv", "row"};
constexpr std::string_view kOutputScalingNames[] = {"none", "mx", "nv"};
constexpr std::string_view kScaleTypeNames[] = {"f32", "ue8m0"};
constexpr std::string_view kRowIndicesNames[] = {"none", "gather", "scatter", "gather+scatter"};
constexpr std::string_view kScaleLayoutNames[] = {"128x4", "linear"};
constexpr std::string_view kSparsityNames[] = {"none", "a"};
constexpr std::string_view kConstantNames[] = {"none", "b"};

template <typename Enum, size_t kCount>
std::optional<Enum> FindName(const std::string_view (&names)[kCount], std::string_view text) {
  const auto* found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(names));
}

// `refusal` follows the key and what was said instead of a name.
template <typename Enum, size_t kCount>
Result<Enum> ParseNamed(const std::string_view (&names)[kCount], std::string_view key, std::string_view text,
                        std::string_view refusal) {
  if (const auto value = FindName<Enum>(names, text)) return *value;
  return InvalidProblem(Cat(key, "=", text, refusal));
}

std::vector<std::string_view> Distinct(const std::vector<std::string_view>& names) {
  std::vector<std::string_view> distinct;
  for (const std::string_view name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.push_back(name);
  }
  return distinct;
}

constexpr Alias kTypeAliases[] = {
    {"fp16 float16 half h fp16_t", "f16"},
    {"bfloat16 bfloat bf brain", "bf16"},
    {"fp32 float32 float single s", "f32"},
    {"fp8 float8 f8 e4m3fn fp8_e4m3 float8_e4m3fn float8_e4m3 fp8e4m3 f8e4m3", "e4m3"},
    {"fp8_e5m2 float8_e5m2 fp8e5m2 f8e5m2 bf8", "e5m2"},
    {"fp4 float4 float4_e2m1fn e2m1fn fp4_e2m1 mxfp4 nvfp4", "e2m1"},
    {"fp6 float6 float6_e3m2fn e3m2fn fp6_e3m2", "e3m2"},
    {"float6_e2m3fn e2m3fn fp6_e2m3", "e2m3"},
    {"tfloat32 float32_tf32 tf", "tf32"},
    {"int8 i8 int8_t char", "s8"},
    {"uint8 uint8_t byte uchar", "u8"},
    {"int32 i32 int32_t int", "s32"},
};
constexpr Alias kGemmAliases[] = {
    {"dtype dtypes type types precision data_type in_dtype out_dtype", "types are a=, b= and d=, such as a=bf16"},
    {"shape size sizes mnk dims", "sizes are m=, n= and k=, such as m=512 n=512 k=512"},
    {"transa trans_a transpose_a opa op_a layout_a", "for A contiguous along m use a_major=m"},
    {"transb trans_b transpose_b opb op_b layout_b", "for B contiguous along n use b_major=n"},
    {"layout layouts order trans", "the contiguous index is a_major=k or m, and b_major=k or n"},
    {"bs batch_size batch_count batchcount batches num_batches l", "use batch="},
    {"sf_layout scale_format swizzle factor_layout", "scale factors lie in blocks, or in rows: scale_layout=linear"},
    {"groups group", "use a grouped_gemm with groups=, a gemm with batch=, or a conv with groups="},
    {"acc acc_type accumulator accum compute_type computetype compute", "use sum=f32 or sum=fast"},
    {"strides stride", "use lda=, ldb=, ldc=, ldd=; between matrices stride_a= and so on"},
};
constexpr Alias kConvAliases[] = {
    {"dtype dtypes type types precision data_type in_dtype out_dtype a b", "types are x=, w= and y=, such as x=bf16"},
    {"shape size sizes dims", "sizes are n=, h=, w=, c=, k=, r= and s="},
    {"kernel_size kernel ksize filter_size kernel_shape kh kw filter",
     "rows and columns are r= and s=, such as r=3 s=3"},
    {"in_channels cin c_in ic input_channels channels_in channels", "use c="},
    {"out_channels cout c_out oc output_channels channels_out filters", "use k="},
    {"batch batch_size bs images b_size", "use n="},
    {"height ih in_h hin", "use h="},
    {"width iw in_w win", "use w="},
    {"depth id in_d din", "use d="},
    {"padding pads padd pad_h pad_w", "use pad=, such as pad=1 or pad=1,1"},
    {"strides str stride_h stride_w u v", "use stride=, such as stride=2 or stride=2,1"},
    {"dilations dilate dilation_h dilation_w", "use dilation=, such as dilation=2"},
    {"layout format data_format memory_format", "tensors are NHWC and filters KRSC; there is no key for it"},
    {"acc acc_type accumulator accum compute_type computetype compute", "use sum=f32 or sum=fast"},
};
// Of both kinds.
constexpr Alias kProblemAliases[] = {
    {"activation act relu gelu silu swish swiglu sigmoid", "epilogue steps are epilogue=, such as epilogue=relu"},
    {"d_scale y_scale out_scale scale_out block_scale_d",
     "a gemm writes D with scale factors of blocks: d_scale=mx or nv"},
    {"fused fusion post_op", "epilogue steps are epilogue=, such as epilogue=bias_n+relu"},
    {"device target check seed vs", "that is an option: write it with two dashes"},
};

Error UnknownKey(std::string_view kind, std::string_view key, const std::vector<std::string_view>& names) {
  std::string_view cure = kind.starts_with("conv") ? CureOf(kConvAliases, key) : CureOf(kGemmAliases, key);
  if (cure.empty()) cure = CureOf(kProblemAliases, key);
  if (!cure.empty()) return InvalidProblem(Cat("unknown key '", key, "' of a ", kind, "; ", cure));
  for (const ScheduleKey& of_schedule : ScheduleKeys()) {
    if (of_schedule.name != key) continue;
    return InvalidProblem(Cat("unknown key '", key, "' of a ", kind, "; it is one of schedules: --schedule \"", key,
                              "=", of_schedule.usual, "\""));
  }
  return InvalidProblem(base::UnknownName("key", key, Distinct(names)));
}

// "m=16,n=16" is one word of a command line.
Status CheckSeparators(std::string_view word) {
  const size_t comma = word.find(',');
  if (comma == std::string_view::npos || word.find('=', comma) == std::string_view::npos) return Ok();
  std::string right(word);
  std::replace(right.begin(), right.end(), ',', ' ');
  return InvalidProblem(Cat("'", word, "': keys are separated by blanks, not commas; write ", right));
}

}  // namespace

std::string KnownTypes() {
  std::vector<std::string_view> names;
  for (const DataType type : OperandAndResultTypes()) names.push_back(DataTypeName(type));
  return Choice(names);
}
std::string SumNames() { return Choice(kSumNames); }
std::string ScalingNames() { return Choice(kScalingNames); }
std::string OutputScalingNames() { return Choice(kOutputScalingNames); }
std::string ScaleLayoutNames() { return Choice(kScaleLayoutNames); }
std::string SparsityNames() { return Choice(kSparsityNames); }
std::string ConstantNames() { return Choice(kConstantNames); }
std::string ScaleTypeNames() { return Choice(kScaleTypeNames); }
std::string RowIndicesNames() { return Choice(kRowIndicesNames); }
std::string NumericsNames() { return Choice(kNumericsNames); }

std::vector<GrammarRow> NumericsRows() {
  std::vector<GrammarRow> rows;
  for (size_t i = 0; i < std::size(kNumericsNames); ++i) {
    rows.push_back(
        {.name = std::string(kNumericsNames[i]), .values = {}, .usual = {}, .doc = std::string(kNumericsDocs[i])});
  }
  return rows;
}

std::string Choice(std::span<const std::string_view> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += Cat(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  }
  return text;
}

std::string_view CureOf(std::span<const Alias> aliases, std::string_view word) {
  std::string lowered(word);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const Alias& alias : aliases) {
    const std::vector<std::string_view> words = base::Words(alias.words);
    if (std::find(words.begin(), words.end(), lowered) != words.end()) return alias.cure;
  }
  return {};
}

Error InvalidProblem(std::string message) { return MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

Result<std::vector<KeyValue>> ResolveKeys(const std::vector<std::string_view>& words,
                                          const std::vector<std::string_view>& names,
                                          const std::function<size_t(std::string_view, std::string_view)>& row_of) {
  std::vector<KeyValue> values;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return InvalidProblem(
          Cat("'", words[i], "' is not of the form key=value, without blanks, such as ", names[0], "=16"));
    }
    LS_TRY(CheckSeparators(words[i]));
    const std::string_view key = words[i].substr(0, equals), text = words[i].substr(equals + 1);
    const size_t row = row_of(key, text);
    if (row == names.size()) return UnknownKey(words[0], key, names);
    const bool seen = std::any_of(values.begin(), values.end(), [&](const KeyValue& v) { return v.row == row; });
    if (seen) return InvalidProblem(Cat("key '", key, "' is given twice; leave one out"));
    values.push_back({row, text});
  }
  return values;
}

Result<int64_t> ParseIntValue(std::string_view key, std::string_view text) {
  const auto value = base::ParseInt(text);
  if (!value) return InvalidProblem(Cat(key, "=", text, " is not a whole number"));
  return *value;
}

Result<double> ParseDoubleValue(std::string_view key, std::string_view text) {
  const auto value = base::ParseDouble(text);
  if (!value) return InvalidProblem(Cat(key, "=", text, " is not a finite number"));
  return *value;
}

Result<DataType> ParseTypeValue(std::string_view key, std::string_view text) {
  const auto type = FindType(text);
  if (!type) {
    const std::string_view meant = CureOf(kTypeAliases, text);
    const std::string question = meant.empty() ? "" : Cat("did you mean ", meant, "? ");
    return InvalidProblem(Cat(key, "=", text, " is not a type; ", question, "known types: ", KnownTypes()));
  }
  return *type;
}

Result<SumPrecision> ParseSumValue(std::string_view key, std::string_view text) {
  return ParseNamed<SumPrecision>(
      kSumNames, key, text,
      " is not a precision; use f32, fast (that of the tensor core; e4m3 and e5m2) or saturate "
      "(clamped to s32; s8 and u8)");
}
std::string_view NameOf(SumPrecision sum) { return kSumNames[static_cast<size_t>(sum)]; }

Result<Numerics> ParseNumericsValue(std::string_view key, std::string_view text) {
  return ParseNamed<Numerics>(kNumericsNames, key, text, " is unknown; use default, deterministic or batch_invariant");
}
std::string_view NameOf(Numerics numerics) { return kNumericsNames[static_cast<size_t>(numerics)]; }

Result<Scaling> ParseScalingValue(std::string_view key, std::string_view text) {
  return ParseNamed<Scaling>(
      kScalingNames, key, text,
      " is not a scaling; use none, tensor (one scale factor per operand), row (one for each row "
      "of A and column of B), block (A by row and 128 of k, B by 128 x 128), mx (ue8m0 for 32 of "
      "k) or nv (e2m1: ue4m3 for 16 of k)");
}
std::string_view NameOf(Scaling scale) { return kScalingNames[static_cast<size_t>(scale)]; }

Result<ScaleLayout> ParseScaleLayoutValue(std::string_view key, std::string_view text) {
  return ParseNamed<ScaleLayout>(kScaleLayoutNames, key, text,
                                 " is not a layout of scale factors; use 128x4 (blocks of 128 rows x 4 factors) or "
                                 "linear (row-major)");
}
std::string_view NameOf(ScaleLayout layout) { return kScaleLayoutNames[static_cast<size_t>(layout)]; }

Result<OutputScaling> ParseOutputScalingValue(std::string_view key, std::string_view text) {
  return ParseNamed<OutputScaling>(
      kOutputScalingNames, key, text,
      " is not a scaling of D; use none, mx (e4m3, e5m2 or e2m1: ue8m0 for 32 columns) or nv "
      "(e2m1: ue4m3 for 16 columns)");
}
std::string_view NameOf(OutputScaling scale) { return kOutputScalingNames[static_cast<size_t>(scale)]; }

Result<Sparsity> ParseSparsityValue(std::string_view key, std::string_view text) {
  const auto sparse = FindName<Sparsity>(kSparsityNames, text);
  if (sparse) return *sparse;
  return InvalidProblem(Cat(key, "=", text, " is not a sparsity; use none, or a (A is 2:4 sparse)",
                            text == "b" ? "; only the first operand of a matrix instruction may be sparse: compute the "
                                          "transposed product, with b as a"
                                        : ""));
}
std::string_view NameOf(Sparsity sparse) { return kSparsityNames[static_cast<size_t>(sparse)]; }

Result<ConstantOperand> ParseConstantValue(std::string_view key, std::string_view text) {
  return ParseNamed<ConstantOperand>(kConstantNames, key, text,
                                     " is not an operand that can be constant; use none, or b (the weights)");
}
std::string_view NameOf(ConstantOperand constant) { return kConstantNames[static_cast<size_t>(constant)]; }

Result<ScaleFactorType> ParseScaleTypeValue(std::string_view key, std::string_view text) {
  return ParseNamed<ScaleFactorType>(
      kScaleTypeNames, key, text,
      " is not a type of the scale factors of scale=block; use f32 or ue8m0 (powers of two)");
}
std::string_view NameOf(ScaleFactorType type) { return kScaleTypeNames[static_cast<size_t>(type)]; }

Status CheckScaleType(ScaleFactorType type, Scaling scale) {
  if (type == ScaleFactorType::kF32 || scale == Scaling::kBlock) return Ok();
  return InvalidProblem(Cat("scale_type=", NameOf(type), " is for scale=block, not ", NameOf(scale), "; leave it out"));
}

Result<RowIndices> ParseRowIndicesValue(std::string_view key, std::string_view text) {
  return ParseNamed<RowIndices>(
      kRowIndicesNames, key, text,
      " says nothing of rows; use none, gather (rows of A by an index vector), scatter (those "
      "of C and D) or gather+scatter");
}
std::string_view NameOf(RowIndices rows) { return kRowIndicesNames[static_cast<size_t>(rows)]; }

bool NamesType(std::string_view text) { return FindType(text).has_value(); }

Status CheckExtent(std::string_view key, int64_t value) {
  if (value >= 1 && value < kMaxExtent) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 1 to ", kMaxExtent - 1));
}

Status CheckPitch(std::string_view key, int64_t value) {
  if (value >= 0 && value < kMaxPitch) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is out of range; use 0 (packed) to 2^40-1 elements"));
}

Status CheckFootprint(std::string_view key, int64_t count, int64_t distance) {
  if (distance >= kMaxPitch) {
    return InvalidProblem(Cat(key, "=", distance,
                              " is out of range; neighbours are at most 2^40-1 elements apart; use a smaller problem"));
  }
  if (BoundedProduct(count, distance) <= kMaxElements) return Ok();
  return InvalidProblem(Cat(key, "=", distance, " makes an operand of more than 2^46 elements (", count,
                            " times as far); use a smaller problem"));
}

int64_t BoundedProduct(int64_t count, int64_t distance) {
  constexpr int64_t kTooMany = 4 * kMaxElements;
  return static_cast<double>(count) * static_cast<double>(distance) < static_cast<double>(kTooMany) ? count * distance
                                                                                                    : kTooMany;
}

Status CheckAlignment(std::string_view key, int64_t value, DataType type) {
  if (value >= BytesOf(type, 1) && value <= 256 && std::has_single_bit(static_cast<uint64_t>(value))) return Ok();
  return InvalidProblem(Cat(key, "=", value, " is not an alignment; use a power of two from ", BytesOf(type, 1),
                            " (one element) to 256 bytes"));
}

Status CheckOperandTypes(std::string_view left, DataType left_type, std::string_view right, DataType right_type,
                         Scaling scale) {
  if (MmaKindOf(left_type, right_type, scale)) return Ok();
  const std::optional<BlockScaling> blocks = BlockScalingOf(scale);
  return InvalidProblem(Cat(left, "=", DataTypeName(left_type), " with ", right, "=", DataTypeName(right_type),
                            " is not supported", blocks ? Cat(" with scale=", NameOf(scale)) : "", "; ", left, " and ",
                            right, " are ", OperandPairs(blocks ? blocks->run : 0),
                            left_type == DataType::kF32 ? Cat("; f32 in memory is ", left, "=tf32") : ""));
}

Status CheckOutputScaling(DataType d, OutputScaling scale) {
  switch (scale) {
    case OutputScaling::kNone:
      if (d != DataType::kE2m1) return CheckResultType("d", d);
      return InvalidProblem("d=e2m1 needs scale factors of blocks of D; use d_scale=mx or d_scale=nv");
    case OutputScaling::kMx:
      if (IsFloat8(d) || d == DataType::kE2m1) return Ok();
      return InvalidProblem(Cat("d_scale=mx quantises D to e4m3, e5m2 or e2m1, not ", DataTypeName(d), "; use d=e4m3"));
    case OutputScaling::kNv:
      if (d == DataType::kE2m1) return Ok();
      return InvalidProblem(Cat("d_scale=nv quantises D to e2m1, not ", DataTypeName(d), "; use d=e2m1",
                                IsFloat8(d) ? ", or d_scale=mx" : ""));
  }
  __builtin_unreachable();
}

Status CheckResultType(std::string_view key, DataType type) {
  if (InfoOf(type).result) return Ok();
  std::vector<std::string_view> names;
  for (int i = 0; i < kDataTypes; ++i) {
    const auto known = static_cast<DataType>(i);
    if (InfoOf(known).result) names.push_back(DataTypeName(known));
  }
  return InvalidProblem(
      Cat(key, "=", DataTypeName(type), " is a type of operands, not of results; use ", Choice(names)));
}

Status CheckAddendType(std::string_view key, DataType type, DataType d) {
  LS_TRY(CheckResultType(key, type));
  if (!IsInteger(type) || IsInteger(d)) return Ok();
  return InvalidProblem(Cat(key, "=", DataTypeName(type), " is only the type of an s32 result; use ", key, "=f32"));
}

Status CheckSum(const SumTerms& sum) {
  if (sum.result != DataType::kS32) return Ok();
  if (!IsInteger(sum.operand)) {
    return InvalidProblem(Cat(sum.key, "=s32 is for integer operands (s8, u8), not ", DataTypeName(sum.operand),
                              "; use ", sum.key, "=", DataTypeName(ResultType(sum.operand))));
  }
  if (sum.alpha == 1 && sum.beta == 0 && !sum.bias && sum.epilogue->empty() && sum.scale == Scaling::kNone) return Ok();
  return InvalidProblem(
      Cat(sum.key,
          "=s32 is the sum as it is, without scale factors, alpha, beta, bias and epilogue; for these "
          "use ",
          sum.key, "=f32, f16 or bf16"));
}

Status CheckPrecision(DataType left, DataType right, SumPrecision sum, Scaling scale) {
  // Of operands of two widths the narrower one decides.
  const DataType operand = BitsOf(left) <= BitsOf(right) ? left : right;
  if (sum == SumPrecision::kSaturate && !IsInteger(operand)) {
    return InvalidProblem(Cat("sum=saturate is for s8 and u8, not ", DataTypeName(operand), "; use sum=f32"));
  }
  if (IsFloat8(operand) || (IsInteger(operand) && scale == Scaling::kRow)) return Ok();
  if (sum == SumPrecision::kFast) {
    return InvalidProblem(Cat("sum=fast is for e4m3 and e5m2; sums of ", DataTypeName(operand), " are ",
                              DataTypeName(AccumulatorType(operand)), "; leave it out"));
  }
  const bool factors_of_sums = scale == Scaling::kTensor || scale == Scaling::kRow;
  if (factors_of_sums && MmaKindOf(left, right) == MmaKind::kF8f6f4) return Ok();
  if (scale != Scaling::kNone && !BlockScalingOf(scale)) {
    return InvalidProblem(
        Cat("scale=", NameOf(scale), " is for e4m3", scale == Scaling::kRow ? ", e5m2, s8 and u8" : " and e5m2",
            "; for ", DataTypeName(operand), scale == Scaling::kRow ? " use epilogue=scale_m+scale_n" : " use alpha="));
  }
  return Ok();
}

}  // namespace laneshift::ir
