#include "ir/program_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/text.h"

namespace laneshift::ir {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> GoldenPrograms() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(LANESHIFT_SOURCE_DIR "/tests/golden/ir")) {
    if (entry.path().extension() == ".tir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

constexpr SharedLayout kOddLayout{.type = DataType::kF16,
                                  .outer_axis = Axis::kK,
                                  .inner_axis = Axis::kN,
                                  .outer = 24,
                                  .inner = 96,
                                  .swizzle = Swizzle::k64,
                                  .padded = true,
                                  .step = 16};

// A value of each type that no default has and that prints.
void Odd(int& value, Meaning meaning) { value = meaning == Meaning::kNumber || meaning == Meaning::kOffset ? 17 : 1; }
void Odd(bool& value, Meaning) { value = true; }
void Odd(std::string& value, Meaning) { value = "odd"; }
void Odd(SharedLayout& value, Meaning) { value = kOddLayout; }
void Odd(Binding& value, Meaning) { value = value == Binding::kMapB ? Binding::kMapA : Binding::kMapB; }
template <typename Enum>
requires std::is_enum_v<Enum>
void Odd(Enum& value, Meaning) { value = static_cast<Enum>(value == static_cast<Enum>(1) ? 0 : 1); }
template <typename Struct, typename T>
void SetOdd(Struct& value, const Field<Struct, T>& field) {
  Odd(value.*field.member, field.meaning);
}
template <typename Struct, size_t kCount>
void SetOdd(Struct& value, const JoinedField<Struct, kCount>& field) {
  int next = 3;
  for (const auto member : field.members) value.*member = next++;
}

// An op of this kind with odd attributes; slot operands are %0, which is of channel 1.
Op OddOp(OpKind kind, Program& program) {
  const OpInfo& row = InfoOf(kind);
  Op op;
  op.kind = kind;
  op.attrs = DefaultAttrs(kind);
  for (const char letter : row.operands) op.operands.push_back(letter == 's' ? 0 : 7);
  std::visit([]<typename A>(A& attrs) { ForEachField<A>([&](const auto& field) { SetOdd(attrs, field); }); }, op.attrs);
  const int values = row.body >= 0 ? op.BodyArguments() : row.result == ValueType::kNone ? 0 : 1;
  if (values > 0) op.result = static_cast<ValueId>(program.values.size());
  program.values.insert(program.values.end(), static_cast<size_t>(values),
                        row.body >= 0 ? ValueType::kIndex : row.result);
  return op;
}

TEST(ProgramText, EveryGoldenProgramPrintsAsItReads) {
  const auto paths = GoldenPrograms();
  ASSERT_EQ(paths.size(), 118u) << "a golden program was added or lost: change the count here";
  for (const auto& path : paths) {
    const std::string text = ReadFile(path);
    const auto program = ParseProgram(text);
    ASSERT_TRUE(program.has_value()) << path << ":" << program.error().message;
    EXPECT_EQ(PrintProgram(*program), text) << path;
    EXPECT_EQ(*ParseProgram(PrintProgram(*program)), *program) << path;
  }
}

// Every attribute at a value that is not its default: a field that the printer or the parser forgets would be lost.
TEST(ProgramText, EveryFieldSurvivesTheRoundTrip) {
  Program program;
  ForEachField<Program>([&](const auto& field) { SetOdd(program, field); });
  program.channels.emplace_back();
  ForEachField<Channel>([&](const auto& field) { SetOdd(program.channels[0], field); });
  program.channels[0].tiles.resize(2);
  for (TileSlot& tile : program.channels[0].tiles) {
    ForEachField<TileSlot>([&](const auto& field) { SetOdd(tile, field); });
  }
  program.channels[0].tiles[0].name = "other";
  program.params.push_back({.binding = Binding::kMapB, .box = kOddLayout});
  program.buffers.emplace_back();
  ForEachField<Buffer>([&](const auto& field) { SetOdd(program.buffers[0], field); });
  program.buffers.insert(program.buffers.begin(), Buffer{.name = "other"});
  program.roles.emplace_back();
  ForEachField<Role>([&](const auto& field) { SetOdd(program.roles[0], field); });
  program.channels.insert(program.channels.begin(), Channel())->name = "other";

  program.roles[0].body.push_back(OddOp(OpKind::kPut, program));
  for (int i = 0; i < kOpCount; ++i) program.roles[0].body.push_back(OddOp(static_cast<OpKind>(i), program));

  const std::string text = PrintProgram(program);
  const auto parsed = ParseProgram(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message << "\n" << text;
  EXPECT_EQ(*parsed, program) << text;
  EXPECT_EQ(PrintProgram(*parsed), text);
}

TEST(ProgramText, CommentsAreSkipped) {
  const auto program =
      ParseProgram("; run: nothing\nprogram p target=t stage=scheduled threads=1 tile=1x1x1 operands=f16 { ; x\n}");
  ASSERT_TRUE(program.has_value()) << program.error().message;
  EXPECT_EQ(program->name, "p");
}

struct BadText {
  const char* role_body;
  const char* message;
};

std::string InRole(std::string_view body) {
  return base::Cat(
      "program p target=t stage=scheduled threads=32 tile=1x1x1 operands=f16 {\n"
      "  channel ab shared stages=2 {\n    tile a f16[m:8 k:16] swizzle=32\n  }\n"
      "  role r kind=load warps=0+1 {\n",
      body, "\n  }\n}\n");
}

TEST(ProgramText, ErrorsNameThePlaceAndTheRemedy) {
  const BadText cases[] = {
      {"    %0 = putt ab", "6:10: unknown op 'putt'; did you mean 'put'?"},
      {"    put ab", "6:5: put defines a value; write %N = put"},
      {"    %0 = send %0", "6:10: send defines no value"},
      {"    %0 = put abc", "6:14: no channel 'abc'; did you mean 'ab'?"},
      {"    %0 = put ab ab", "6:17: expected the end of the line, not 'ab'"},
      {"    %0 = const 1\n    %0 = const 2", "7:5: %0 is defined twice"},
      {"    %0 = const 4294967296", "6:16: number 4294967296 does not fit into 32 bits"},
      {"    %0 = const 007", "6:16: expected a number, not '007'"},
      {"    %0 = add %1", "6:5: add has 2 operands, not 1"},
      {"    %01 = const 1", "6:5: expected a value such as %7, not '%01'"},
      {"    %4000000 = const 1", "6:5: expected a value such as %7"},
      {"    send %0 step=1", "6:13: expected the end of the line, not 'step'"},
      {"    for %0 = %1, %2 {", "6:21: key 'step=' is missing"},
      {"    for %0 = %1, %2 step=1 step=1 {", "6:28: key 'step' is given twice"},
      {"    for %0 = %1, %2 stp=1 {", "6:21: unknown key 'stp'; known keys: step; did you mean 'step'?"},
      {"    work %0, %1, %2 = %4, %5, %6, %7 raster=1 slices=2 {",
       "6:5: work of 4 operands has 8 arguments of its body, not 3"},
      {"    work %0, %2, %3 = %4, %5, %6 raster=1 {", "6:14: the arguments of a body are consecutive; expected %1"},
      {"    %0 = put ab\n    tma.load %0, %1, %2, %3 tile=b operand=a", "7:34: no tile 'b'"},
      {"    %0 = put ab\n    tma.load %0, %1, %2, %3 tile=a operand=e", "'e' is not a known operand; use a, b, c, d"},
      {"    %0 = const 1 %1 = const 2", "6:18: expected the end of the line, not '%1'"},
      {"    \t", "6:5: unexpected byte 0x09"},
      {"    \xc3\xa9", "6:5: unexpected byte 0xc3"},
      {"    }\n  }\n}", "expected the end of the text, not '}'"},
      {"    if %0 {", "9:1: expected"},
      {"  }\n  param m\n  role s kind=mma warps=1+1 {", "declarations come before the roles"},
      {"  }\n  role s kind=mma warps=1 {", "warps= needs 2 numbers with '+' between them, not '1'"},
  };
  for (const BadText& bad : cases) {
    const auto program = ParseProgram(InRole(bad.role_body));
    ASSERT_FALSE(program.has_value()) << bad.role_body;
    EXPECT_EQ(program.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(program.error().message.find(bad.message), std::string::npos)
        << program.error().message << " is not: " << bad.message;
  }
}

TEST(ProgramText, DeepNestingIsRefused) {
  std::string body;
  for (int i = 0; i < 100000; ++i) body += "if %0 {\n";
  const auto program = ParseProgram(InRole(body));
  ASSERT_FALSE(program.has_value());
  EXPECT_NE(program.error().message.find("nested more than 32 deep"), std::string::npos) << program.error().message;
}

std::string Mutated(std::string text, std::mt19937& random) {
  constexpr std::string_view kAlphabet = "{}[]=,:%@;0123456789abkmn._ \n-+x/\t\xff";
  const int edits = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    const size_t length = 1 + random() % 8;
    switch (random() % 5) {
      case 0:
        text[at] = kAlphabet[random() % kAlphabet.size()];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      case 4:
        text.resize(at);
        break;
    }
  }
  return text;
}

// Whatever is done to a program's text: an error with a place, or a program that prints and parses to itself and that
// the verifier judges without falling over.
TEST(ProgramText, MutatedTextsAreReadOrRefused) {
  std::mt19937 random(20240607);
  int read = 0, refused = 0;
  for (const auto& path : GoldenPrograms()) {
    const std::string whole = ReadFile(path);
    for (int i = 0; i < 3000; ++i) {
      const std::string text = Mutated(whole, random);
      const auto program = ParseProgram(text);
      if (!program) {
        ++refused;
        ASSERT_EQ(program.error().code, ErrorCode::kInvalidArgument) << text;
        ASSERT_GE(std::count(program.error().message.begin(), program.error().message.end(), ':'), 2)
            << program.error().message;
        continue;
      }
      ++read;
      const auto again = ParseProgram(PrintProgram(*program));
      ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << text;
      ASSERT_EQ(*again, *program) << text;
      for (const target::Target& target : target::Targets()) {
        const Status status = VerifyProgram(*program, target);
        ASSERT_TRUE(status || status.error().code == ErrorCode::kInternal);
      }
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace laneshift::ir
