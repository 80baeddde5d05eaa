#include "tools/first_contact/recorded_words.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "device/stream.h"
#include "runtime/probes/rate_run.h"
#include "runtime/probes/trial_kernel.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::ordered_json;

constexpr int kScaleA = 48, kScaleB = 56;  // columns of Tensor Memory
constexpr int kN = 16;

// How elements of a type lie in shared memory, and its code in the instruction descriptor of a kind.
struct TypeRow {
  std::string_view type;
  int bits;
  uint32_t code;
};
constexpr TypeRow kTypes[] = {{"f16", 16, 0}, {"bf16", 16, 1}, {"tf32", 32, 2}, {"e4m3", 8, 0}, {"e5m2", 8, 1},
                              {"e2m3", 6, 3}, {"e3m2", 6, 4},  {"e2m1", 4, 5},  {"u8", 8, 0},   {"s8", 8, 1}};
// Kinds: text after .kind::, and whether elements of 4 and 6 bits are padded to 16 in 16 bytes.
struct KindRow {
  std::string_view kind, suffix;
  bool padded;
};
constexpr KindRow kKinds[] = {{"f16", "f16", false},
                              {"tf32", "tf32", false},
                              {"f8f6f4", "f8f6f4", true},
                              {"i8", "i8", false},
                              {"mxf8f6f4", "mxf8f6f4.block_scale.block32", true},
                              {"mxf4", "mxf4.block_scale.block32", false},
                              {"mxf4nvf4", "mxf4nvf4.block_scale", false}};

const TypeRow* TypeNamed(std::string_view name) {
  const auto row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& t) { return t.type == name; });
  return row == std::end(kTypes) ? nullptr : row;
}
const KindRow* KindNamed(std::string_view name) {
  const auto row = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindRow& k) { return k.kind == name; });
  return row == std::end(kKinds) ? nullptr : row;
}

std::optional<std::vector<uint32_t>> HexWords(const std::vector<std::string_view>& texts) {
  std::vector<uint32_t> words;
  for (const std::string_view text : texts) {
    uint32_t word = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    words.push_back(word);
  }
  return words;
}

std::optional<RecordedWord> ParseLine(std::string_view text) {
  const auto parts = base::Split(text, '|');
  if (parts.size() != 5) return std::nullopt;
  const auto head = base::Words(parts[0]);
  if (head.size() < 5) return std::nullopt;
  RecordedWord word{.name = std::string(head[0]),
                    .a_type = std::string(head[1]),
                    .b_type = std::string(head[2]),
                    .d_type = std::string(head[3]),
                    .kind = {}};
  for (size_t i = 4; i < head.size(); ++i) {
    const auto option = base::Split(head[i], '=');
    if (option.size() != 2) return std::nullopt;
    if (option[0] == "kind") word.kind = std::string(option[1]);
    if (option[0] == "saturate") word.saturate = true;
    if (option[0] != "scales") continue;
    const auto fields = base::Split(option[1], ':');
    const auto a = fields.size() == 4 ? HexWords(base::Split(fields[2], ',')) : std::nullopt;
    const auto b = fields.size() == 4 ? HexWords(base::Split(fields[3], ',')) : std::nullopt;
    if (!a || !b) return std::nullopt;
    word.scale_type = std::string(fields[0]);
    word.scales_a = *a;
    word.scales_b = *b;
  }
  const auto a = HexWords(base::Words(parts[1])), b = HexWords(base::Words(parts[2]));
  const auto c = HexWords(base::Words(parts[3])), d = HexWords(base::Words(parts[4]));
  if (!a || !b || !c || !d || c->size() != 1 || d->size() != 1) return std::nullopt;
  if (TypeNamed(word.a_type) == nullptr || TypeNamed(word.b_type) == nullptr || KindNamed(word.kind) == nullptr)
    return std::nullopt;
  word.a = *a;
  word.b = *b;
  word.c = c->front();
  word.d = d->front();
  return word;
}

// Row 0 of an operand.
void PlaceElements(runtime::TrialKernel& trial, int start, const RecordedWord& word, const std::vector<uint32_t>& codes,
                   int bits) {
  const bool padded = KindNamed(word.kind)->padded && bits < 8;
  std::vector<uint32_t> row(8, 0);
  for (size_t i = 0; i < codes.size(); ++i) {
    // Padded: 16 elements begin every 16 bytes, packed.
    const size_t bit = padded ? i / 16 * 128 + i % 16 * static_cast<size_t>(bits) : i * static_cast<size_t>(bits);
    if (bit / 32 >= row.size()) return;
    row[bit / 32] |= codes[i] << bit % 32;
    if (bit % 32 + static_cast<size_t>(bits) > 32) row[bit / 32 + 1] |= codes[i] >> (32 - bit % 32);
  }
  for (int i = 0; i < 8; ++i) trial.PlaceWord(start, 0, i, row[static_cast<size_t>(i)]);
}

uint32_t DescriptorOf(const RecordedWord& word) {
  const uint32_t shape = kN >> 3 << 17;
  const TypeRow &a = *TypeNamed(word.a_type), &b = *TypeNamed(word.b_type);
  // Block scaling: M in bits 27 and up; of the 4-bit kinds e2m1 is type 1, and bit 23 is ue8m0.
  if (!word.scale_type.empty()) {
    const bool four_bits = word.kind != "mxf8f6f4";
    return shape | 1u << 27 | (word.scale_type == "ue8m0" ? 1u << 23 : 0) |
           (four_bits ? 1u << 7 | 1u << 10 : a.code << 7 | b.code << 10);
  }
  const uint32_t d = word.d_type == "s32" ? 2 : word.d_type == "f32" ? 1 : 0;
  return shape | 128 >> 4 << 24 | (word.saturate ? 8u : 0) | d << 4 | a.code << 7 | b.code << 10;
}

uint32_t FactorsWord(const std::vector<uint32_t>& factors) {
  uint32_t word = 0;
  for (size_t i = 0; i < factors.size(); ++i) word |= factors[i] << 8 * i;
  return word;
}

runtime::RateProbe KernelOf(const target::Target& target, const RecordedWord& word) {
  runtime::TrialKernel trial;
  PlaceElements(trial, 0, word, word.a, TypeNamed(word.a_type)->bits);
  PlaceElements(trial, runtime::kTrialBytesOfB, word, word.b, TypeNamed(word.b_type)->bits);
  trial.FillColumns(0, kN, [&](int lane, int column) { return lane == 0 && column == 0 ? word.c : 0; });
  trial.FillColumns(kScaleA, 8, [&](int, int) { return FactorsWord(word.scales_a); });
  trial.FillColumns(kScaleB, 8, [&](int, int) { return FactorsWord(word.scales_b); });
  const auto issue = [&word](runtime::PtxText& text, runtime::TensorKernel& tensor) {
    std::string operands =
        Cat("[", tensor.tensor(), "], ", runtime::TrialDescriptor(text, 0), ", ",
            runtime::TrialDescriptor(text, runtime::kTrialBytesOfB), ", ", text.Word("mov.b32", DescriptorOf(word)));
    std::string suffix(KindNamed(word.kind)->suffix);
    if (word.kind == "mxf4nvf4") suffix += word.scales_a.size() == 4 ? ".block16" : ".block32";
    if (!word.scale_type.empty()) {
      operands +=
          Cat(", [", tensor.Column(tensor.tensor(), kScaleA), "], [", tensor.Column(tensor.tensor(), kScaleB), "]");
    }
    text.Do(Cat("tcgen05.mma.cta_group::1.kind::", suffix), operands, runtime::TrialPredicate(text, true));
  };
  return trial.Build(target, {.issue = issue}, target.mma.block_scale_ptx_version);
}

std::string Hex(uint32_t word) {
  char digits[9] = {};
  return std::string(digits, std::to_chars(digits, digits + 8, word, 16).ptr);
}

}  // namespace

Result<std::vector<RecordedWord>> ParseRecordedWords(std::string_view text) {
  std::vector<RecordedWord> words;
  for (const std::string_view line : base::Split(text, '\n')) {
    if (base::Trim(line).empty() || line.starts_with('#')) continue;
    auto word = ParseLine(line);
    if (!word) return MakeError(ErrorCode::kCorrupt, Cat("no recorded word: ", line.substr(0, 80)));
    words.push_back(std::move(*word));
  }
  return words;
}

Status CompareRecordedWords(const Engine::Parts& parts, const ContactLine& line) {
  if (!parts.target.mma.ScalesBlocks()) {
    return MakeError(ErrorCode::kUnsupported,
                     Cat("the words were recorded with tcgen05.mma, which ", parts.target.name, " has not"));
  }
  LS_ASSIGN(const std::vector<RecordedWord> words, ParseRecordedWords(RecordedWordsText()));
  LS_ASSIGN(const device::ActiveContext active, parts.device.Activate());
  LS_ASSIGN(const device::Stream stream, device::Stream::Create(parts.device.context()));
  const runtime::ProbeDevice on{parts.device, stream, parts.target, runtime::ProbeClocks::kNone};
  for (const RecordedWord& word : words) {
    if (word.kind == "i8" && !parts.target.mma.integers) continue;
    LS_ASSIGN(const runtime::ProbeWords made, runtime::RunOnce(on, KernelOf(parts.target, word), 1));
    if (!made.fault.empty()) return MakeError(ErrorCode::kDriver, Cat(word.name, ": ", made.fault));
    const uint32_t here = word.d_type == "f16" ? made.out[0] & 0xffff : made.out[0];
    line({{"name", word.name}, {"recorded", Hex(word.d)}, {"here", Hex(here)}, {"equal", here == word.d}});
  }
  return Ok();
}

}  // namespace laneshift::tools
