// The grammar that all kinds of problem share: words of the form key=value, and the values and limits of plain types.
//
// Thread-safety: pure functions.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "laneshift/problem.h"

namespace laneshift::ir {

// Coordinates of tiles and of tensor maps are s32.
constexpr int64_t kMaxExtent = int64_t{1} << 31;

Error InvalidProblem(std::string message);

// One word, resolved to a row of the kind's table of keys.
struct KeyValue {
  size_t row;
  std::string_view text;
};

// Resolves the words after the kind, which is the first; `row_of(key, text)` is names.size() for an unknown key. An
// error names a word that is not of the form key=value, an unknown key, or one that is given twice.
Result<std::vector<KeyValue>> ResolveKeys(const std::vector<std::string_view>& words,
                                          const std::vector<std::string_view>& names,
                                          const std::function<size_t(std::string_view, std::string_view)>& row_of);

Result<int64_t> ParseIntValue(std::string_view key, std::string_view text);
Result<double> ParseDoubleValue(std::string_view key, std::string_view text);
Result<DataType> ParseTypeValue(std::string_view key, std::string_view text);
Result<SumPrecision> ParseSumValue(std::string_view key, std::string_view text);
Result<Scaling> ParseScalingValue(std::string_view key, std::string_view text);
Result<ScaleLayout> ParseScaleLayoutValue(std::string_view key, std::string_view text);
Result<OutputScaling> ParseOutputScalingValue(std::string_view key, std::string_view text);
Result<Sparsity> ParseSparsityValue(std::string_view key, std::string_view text);
Result<ConstantOperand> ParseConstantValue(std::string_view key, std::string_view text);
Result<ScaleFactorType> ParseScaleTypeValue(std::string_view key, std::string_view text);
Result<RowIndices> ParseRowIndicesValue(std::string_view key, std::string_view text);
Result<Numerics> ParseNumericsValue(std::string_view key, std::string_view text);
std::string_view NameOf(Numerics numerics);
std::string_view NameOf(SumPrecision sum);
std::string_view NameOf(Scaling scale);
std::string_view NameOf(ScaleLayout layout);
std::string_view NameOf(OutputScaling scale);
std::string_view NameOf(Sparsity sparse);
std::string_view NameOf(ConstantOperand constant);
std::string_view NameOf(RowIndices rows);
std::string_view NameOf(ScaleFactorType type);
bool NamesType(std::string_view text);
// "f16, bf16, f32, e4m3 or e5m2", and so on: what the values above may be.
std::string KnownTypes();
std::string SumNames();
std::string ScalingNames();
std::string ScaleLayoutNames();
std::string OutputScalingNames();
std::string SparsityNames();
std::string ConstantNames();
std::string RowIndicesNames();
std::string ScaleTypeNames();
std::string NumericsNames();

// "tma, copy or pack".
std::string Choice(std::span<const std::string_view> names);

// A name that other libraries use for something of ours.
struct Alias {
  std::string_view words;  // separated by blanks
  std::string_view cure;   // what to write instead
};
// The advice of the first row that has the word, in any case; empty: no row has it.
std::string_view CureOf(std::span<const Alias> aliases, std::string_view word);

// 1 to kMaxExtent - 1.
Status CheckExtent(std::string_view key, int64_t value);
// 0 to 2^40 - 1.
Status CheckPitch(std::string_view key, int64_t value);
// `count` items of an operand, `distance` elements apart after packed distances are filled in. Checks that CheckPitch
// accepts the distance and that the operand has at most 2^46 elements, so that every address in bytes is in the range
// of a device and no sum of them overflows.
Status CheckFootprint(std::string_view key, int64_t count, int64_t distance);
// count * distance; if that exceeds all that CheckFootprint accepts, some value that does, too.
int64_t BoundedProduct(int64_t count, int64_t distance);
// A power of two from one element to 256 bytes.
Status CheckAlignment(std::string_view key, int64_t value, DataType type);
// Both operands of the MMA.
Status CheckOperandTypes(std::string_view left, DataType left_type, std::string_view right, DataType right_type,
                         Scaling scale);
// The type of a D that is quantised in blocks, under the key `d`.
Status CheckOutputScaling(DataType d, OutputScaling scale);
// Of D and C; C of an s32 D is never read.
Status CheckResultType(std::string_view key, DataType type);
Status CheckAddendType(std::string_view key, DataType type, DataType d);
// How products are summed, and scale factors, are choices of some operand types.
Status CheckPrecision(DataType left, DataType right, SumPrecision sum, Scaling scale);
// Only the scale factors of blocks of 128 have a choice.
Status CheckScaleType(ScaleFactorType type, Scaling scale);
// What happens to a sum on its way to D, `result` by the name of `key`.
struct SumTerms {
  DataType operand{}, result{};
  std::string_view key{};
  double alpha = 1, beta = 0;
  bool bias = false;
  Scaling scale = Scaling::kNone;
  const Epilogue* epilogue = nullptr;
};
// A D of s32 is the sum itself, of integers.
Status CheckSum(const SumTerms& sum);

}  // namespace laneshift::ir
