// Every function of laneshift/c.h with every wrong argument that can be made of its parameters: null for each pointer,
// hostile text for each string, numbers at the ends of their types, structs of no version, handles that were given
// back. kRows has a row for each function, and a test fails if the header declares one without.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/threads.h"
#include "laneshift/c.h"

namespace laneshift {
namespace {

using base::Cat;

constexpr char kProblem[] = "gemm m=16 n=16 k=16 a=f16 d=f32";
constexpr char kSparse[] = "gemm m=2 n=8 k=8 a=s8 sparse=a";
constexpr size_t kMemoryBytes = 1 << 16;

// What the arguments of the table point to: a device with a plan and memory, and room for results.
struct Stage {
  laneshift_engine* engine = nullptr;
  laneshift_plan* plan = nullptr;
  laneshift_memory* memory = nullptr;
  void* address = nullptr;  // of the memory
  laneshift_engine* other_engine = nullptr;
  laneshift_plan* other_plan = nullptr;
  laneshift_memory* other_memory = nullptr;
  laneshift_options options = {};
  laneshift_arguments arguments = {};
  laneshift_quantized quantized = {sizeof(laneshift_quantized), 1, 2, 32, "e4m3", "mx", 1};
  const char* problem = kProblem;
  size_t counts[3] = {};
  std::array<unsigned char, 4096> host[3] = {};
  char step[256] = "";
  std::array<char, 512> error = {};

  Stage() {
    options = {.struct_bytes = sizeof options,
               .device = "emulator",
               .target = "sm_90a",
               .store_directory = ":memory:",
               .system_store = nullptr,
               .on_miss = "heuristic",
               .tuner = nullptr,
               .include_directories = nullptr,
               .functions_in_process = 0};
    EXPECT_EQ(laneshift_engine_open_with(&options, &engine, error.data(), error.size()), LANESHIFT_OK) << error.data();
    EXPECT_EQ(laneshift_plan_make(engine, kProblem, nullptr, &plan, error.data(), error.size()), LANESHIFT_OK)
        << error.data();
    EXPECT_EQ(laneshift_memory_allocate(engine, kMemoryBytes, &memory, error.data(), error.size()), LANESHIFT_OK)
        << error.data();
    address = laneshift_memory_address(memory);
    arguments.struct_bytes = sizeof arguments;
    arguments.a = arguments.b = address;
    arguments.d = static_cast<char*>(address) + 4096;
    // f16 and f32 take two and four bytes of this; 2:4 sparse rows take zeros.
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    laneshift_memory_free(memory);
    laneshift_plan_free(plan);
    laneshift_engine_close(engine);
  }

  // What a call made is given back.
  void GiveBack() {
    laneshift_memory_free(std::exchange(other_memory, nullptr));
    laneshift_plan_free(std::exchange(other_plan, nullptr));
    laneshift_engine_close(std::exchange(other_engine, nullptr));
  }
};

// Gets each wrong call of a row: what was changed, whether it must be refused, and the call.
using Visit = std::function<void(const std::string& what, bool refused, const std::function<void()>& call)>;

struct Row {
  std::string name;
  // Whether the call as the table has it succeeds; true where there is no status.
  std::function<bool(Stage&)> right;
  std::function<void(Stage&, const Visit&)> nulls, texts, numbers, stale;
};

// The status of a call, in which all that a function may return is one of those of the header.
struct Answer {
  bool has_status = false;
  laneshift_status status = LANESHIFT_OK;
  std::string text;
};

template <typename Function, typename Arguments>
Answer AnswerOf(Function function, const Arguments& arguments) {
  using Returned = decltype(std::apply(function, arguments));
  if constexpr (std::is_same_v<Returned, laneshift_status>) {
    return {true, std::apply(function, arguments), ""};
  } else if constexpr (std::is_same_v<Returned, void>) {
    std::apply(function, arguments);
    return {};
  } else if constexpr (std::is_same_v<Returned, const char*>) {
    const char* const text = std::apply(function, arguments);
    EXPECT_NE(text, nullptr);
    return {false, LANESHIFT_OK, text};
  } else {
    return {false, LANESHIFT_OK, std::apply(function, arguments) == Returned{} ? "" : "something"};
  }
}

// The error of a call that must be refused, or may be: one line, cut to its room.
void ExpectRefusal(Stage& stage, const Answer& answer, const std::string& what, bool must) {
  const std::string_view error(stage.error.data(), strnlen(stage.error.data(), stage.error.size()));
  ASSERT_LT(error.size(), stage.error.size()) << what;
  EXPECT_EQ(error.find_first_of("\n\r"), std::string_view::npos) << what << ": " << error;
  if (!answer.has_status) return;
  if (answer.status != LANESHIFT_OK) {
    EXPECT_FALSE(error.empty()) << what;
  }
  EXPECT_NE(answer.status, LANESHIFT_INTERNAL) << what << ": " << error;
  if (must) {
    EXPECT_NE(answer.status, LANESHIFT_OK) << what;
  }
}

// Text that no parser expects. Ten million bytes are more than any of them may copy often or search repeatedly.
const std::vector<std::pair<const char*, std::string>>& HostileTexts() {
  static const std::vector<std::pair<const char*, std::string>> texts = [] {
    std::string words, nested = "gemm m=16 n=16 k=16 epilogue=";
    while (words.size() < 10'000'000) words += "gemm m=1 ";
    nested.append(5'000'000, '(');
    return std::vector<std::pair<const char*, std::string>>{
        {"ten million letters", std::string(10'000'000, 'x')},
        {"ten million bytes that are no UTF-8", std::string(10'000'000, '\xff')},
        {"words without end", words},
        {"five million parentheses", nested},
        {"a key that is no UTF-8", "gemm m=16 n=16 \xc3\x28=16"},
        {"lines and control characters", "gemm\nm=16\r\n\x1b[2J n=16 k=16\tq=\x01"},
        {"formats", "%s%n%s%n %1000000d"},
        {"a number beyond 64 bits", "gemm m=99999999999999999999 n=1 k=1"},
        {"a negative size", "gemm m=-1 n=16 k=16"},
        {"blanks", "   "},
        {"an unknown word", "e9m9"}};
  }();
  return texts;
}

// `required`: for each parameter a letter, as LS_ROW says.
template <typename Function, typename Make>
Row RowOf(std::string name, Function function, const char* required, const Make& make) {
  using Arguments = decltype(make(std::declval<Stage&>()));
  constexpr size_t kCount = std::tuple_size_v<Arguments>;
  EXPECT_EQ(std::strlen(required), kCount) << name;
  // Calls `change(argument, index)` for each argument of a fresh tuple.
  const auto walk = [=](Stage& stage, const auto& change) {
    const auto each = [&]<size_t I>(std::integral_constant<size_t, I>) {
      Arguments arguments = make(stage);
      change(std::get<I>(arguments), I, arguments);
    };
    [&]<size_t... I>(std::index_sequence<I...>) { (each(std::integral_constant<size_t, I>{}), ...); }
    (std::make_index_sequence<kCount>{});
  };
  const auto call = [=](Stage& stage, const Arguments& arguments, const std::string& what, bool must) {
    stage.error.fill('?');
    stage.error.back() = '\0';
    const Answer answer = AnswerOf(function, arguments);
    if (!answer.has_status) stage.error.front() = '\0';
    ExpectRefusal(stage, answer, what, must);
    stage.GiveBack();
  };
  Row row;
  row.name = name;
  row.right = [=](Stage& stage) {
    const Answer answer = AnswerOf(function, make(stage));
    stage.GiveBack();
    return answer.status == LANESHIFT_OK;
  };
  row.nulls = [=](Stage& stage, const Visit& visit) {
    walk(stage, [&](auto& argument, size_t i, Arguments& arguments) {
      if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(argument)>>) {
        if (static_cast<const void*>(argument) == stage.error.data()) {
          argument = nullptr;
          visit(Cat(name, " without room for the error"), false, [&] {
            (void)AnswerOf(function, arguments);
            stage.GiveBack();
          });
          return;
        }
        argument = nullptr;
        const std::string what = Cat(name, " with null as parameter ", i);
        visit(what, required[i] == '!', [&] { call(stage, arguments, what, required[i] == '!'); });
      }
    });
  };
  row.texts = [=](Stage& stage, const Visit& visit) {
    walk(stage, [&](auto& argument, size_t i, Arguments& arguments) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(argument)>, const char*>) {
        for (const auto& [label, text] : HostileTexts()) {
          const std::string path = Cat("/dev/null/", text);
          argument = required[i] == '/' ? path.c_str() : text.c_str();
          const std::string what = Cat(name, " with ", label, " as parameter ", i);
          visit(what, false, [&] { call(stage, arguments, what, false); });
        }
      }
    });
  };
  row.numbers = [=](Stage& stage, const Visit& visit) {
    walk(stage, [&](auto& argument, size_t i, Arguments& arguments) {
      using Argument = std::remove_reference_t<decltype(argument)>;
      if constexpr (std::is_integral_v<Argument>) {
        // How much room there is for a result or an error, and how many pointers an array has, only the caller knows.
        if (required[i] == '#') return;
        for (const Argument number : {std::numeric_limits<Argument>::max(), std::numeric_limits<Argument>::max() / 2,
                                      static_cast<Argument>(std::numeric_limits<Argument>::max() - 7)}) {
          argument = number;
          const std::string what = Cat(name, " with ", number, " as parameter ", i);
          visit(what, true, [&] { call(stage, arguments, what, true); });
        }
      }
    });
  };
  row.stale = [=](Stage& stage, const Visit& visit) {
    walk(stage, [&](auto& argument, size_t i, Arguments& arguments) {
      using Argument = std::remove_cv_t<std::remove_pointer_t<std::remove_reference_t<decltype(argument)>>>;
      const auto with = [&](auto* gone) {
        argument = gone;
        const std::string what = Cat(name, " with a handle that was given back as parameter ", i);
        visit(what, true, [&] { call(stage, arguments, what, true); });
      };
      if constexpr (std::is_same_v<Argument, laneshift_engine>) {
        laneshift_engine* engine = nullptr;
        laneshift_engine_open_with(&stage.options, &engine, nullptr, 0);
        laneshift_engine_close(engine);
        with(engine);
      } else if constexpr (std::is_same_v<Argument, laneshift_plan>) {
        laneshift_plan* plan = nullptr;
        laneshift_plan_make(stage.engine, kProblem, nullptr, &plan, nullptr, 0);
        laneshift_plan_free(plan);
        with(plan);
      } else if constexpr (std::is_same_v<Argument, laneshift_memory>) {
        laneshift_memory* memory = nullptr;
        laneshift_memory_allocate(stage.engine, 16, &memory, nullptr, 0);
        laneshift_memory_free(memory);
        with(memory);
      }
    });
  };
  return row;
}

// A function, what its parameters are, and arguments that are right. For each parameter: '!' null is refused, '-' null
// is something else, '/' the same of a path to what may be created, '.' no pointer, '#' a number that the library
// cannot judge.
#define LS_ROW(function, required, ...) \
  RowOf(#function, function, required, [](Stage& s) { return std::make_tuple(__VA_ARGS__); })
#define LS_ERROR s.error.data(), s.error.size()

template <typename T>
const T* Const(const T* pointer) {
  return pointer;
}
CUstream_st* NoStream() { return nullptr; }
const char* NoText() { return nullptr; }
const void* NoOperand() { return nullptr; }

std::vector<Row> Rows() {
  return {
      LS_ROW(laneshift_engine_open, "--/!-#", Const("emulator"), Const("sm_90a"), Const(":memory:"), &s.other_engine,
             LS_ERROR),
      LS_ROW(laneshift_engine_open_with, "!!-#", Const(&s.options), &s.other_engine, LS_ERROR),
      LS_ROW(laneshift_engine_prepare, "!!#-#", s.engine, &s.problem, size_t{1}, LS_ERROR),
      LS_ROW(laneshift_engine_finish_tuning, "-", s.engine),
      LS_ROW(laneshift_engine_take_report, "!---#-#", s.engine, &s.counts[0], &s.counts[1], s.step, sizeof s.step,
             LS_ERROR),
      LS_ROW(laneshift_engine_close, "-", std::exchange(s.other_engine, nullptr)),
      LS_ROW(laneshift_step_make, "!!-!-.!#-#", s.engine, Const("__device__ float F(float x) { return x; }"),
             Const("f.cu"), Const("F"), Const<double>(nullptr), size_t{0}, s.step, sizeof s.step, LS_ERROR),
      LS_ROW(laneshift_plan_make, "!!-!-#", s.engine, Const(kProblem), NoText(), &s.other_plan, LS_ERROR),
      LS_ROW(laneshift_plan_schedule, "-", Const(s.plan)),
      LS_ROW(laneshift_plan_cache, "-", Const(s.plan)),
      LS_ROW(laneshift_plan_choice, "-", Const(s.plan)),
      LS_ROW(laneshift_plan_workspace_bytes, "-", Const(s.plan)),
      LS_ROW(laneshift_plan_free, "-", std::exchange(s.other_plan, nullptr)),
      LS_ROW(laneshift_plan_execute, "!-!!-!---#", Const(s.plan), NoStream(), s.arguments.a, s.arguments.b, NoOperand(),
             s.arguments.d, NoOperand(), s.arguments.workspace, LS_ERROR),
      LS_ROW(laneshift_plan_execute_scaled, "!-!!-!------#", Const(s.plan), NoStream(), s.arguments.a, s.arguments.b,
             NoOperand(), s.arguments.d, NoOperand(), NoOperand(), NoOperand(), NoOperand(), s.arguments.workspace,
             LS_ERROR),
      LS_ROW(laneshift_plan_execute_fused, "!-!!-!-----.--#", Const(s.plan), NoStream(), s.arguments.a, s.arguments.b,
             NoOperand(), s.arguments.d, NoOperand(), NoOperand(), NoOperand(), NoOperand(),
             static_cast<void* const*>(nullptr), size_t{0}, s.arguments.workspace, LS_ERROR),
      LS_ROW(laneshift_plan_execute_arguments, "!-!-#", Const(s.plan), NoStream(), Const(&s.arguments), LS_ERROR),
      LS_ROW(laneshift_sparse_bytes, "!----#", Const(kSparse), &s.counts[0], &s.counts[1], &s.counts[2], LS_ERROR),
      LS_ROW(laneshift_sparse_compress, "!!!!-#", Const(kSparse), Const<void>(s.host[0].data()),
             static_cast<void*>(s.host[1].data()), static_cast<void*>(s.host[2].data()), LS_ERROR),
      LS_ROW(laneshift_sparse_expand, "!!!!-#", Const(kSparse), Const<void>(s.host[1].data()),
             Const<void>(s.host[2].data()), static_cast<void*>(s.host[0].data()), LS_ERROR),
      LS_ROW(laneshift_memory_allocate, "!.!-#", s.engine, size_t{64}, &s.other_memory, LS_ERROR),
      LS_ROW(laneshift_memory_address, "-", Const(s.memory)),
      LS_ROW(laneshift_memory_write, "!.!.-#", Const(s.memory), size_t{64}, Const<void>(s.host[0].data()), size_t{64},
             LS_ERROR),
      LS_ROW(laneshift_memory_read, "!.!.-#", Const(s.memory), size_t{64}, static_cast<void*>(s.host[0].data()),
             size_t{64}, LS_ERROR),
      LS_ROW(laneshift_memory_free, "-", std::exchange(s.other_memory, nullptr)),
      LS_ROW(laneshift_quantized_bytes, "!!!-#", Const(&s.quantized), &s.counts[0], &s.counts[1], LS_ERROR),
      LS_ROW(laneshift_quantize, "!!!!!-#", Const(&s.quantized), Const("f32"), Const<void>(s.host[0].data()),
             static_cast<void*>(s.host[1].data()), static_cast<void*>(s.host[2].data()), LS_ERROR),
      LS_ROW(laneshift_dequantize, "!!!!!-#", Const(&s.quantized), Const<void>(s.host[1].data()),
             Const<void>(s.host[2].data()), Const("f32"), static_cast<void*>(s.host[0].data()), LS_ERROR),
      LS_ROW(laneshift_enqueue_quantize, "!-!!!-!!-#", s.engine, NoStream(), Const(&s.quantized), Const("f32"),
             Const<void>(s.address), Const<float>(nullptr), static_cast<void*>(static_cast<char*>(s.address) + 4096),
             static_cast<void*>(static_cast<char*>(s.address) + 8192), LS_ERROR),
      LS_ROW(laneshift_enqueue_dequantize, "!-!!!-!!-#", s.engine, NoStream(), Const(&s.quantized),
             Const<void>(static_cast<char*>(s.address) + 4096), Const<void>(static_cast<char*>(s.address) + 8192),
             Const<float>(nullptr), Const("f32"), s.address, LS_ERROR),
  };
}
#undef LS_ROW
#undef LS_ERROR

TEST(HostileC, EveryFunctionOfTheHeaderHasARow) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/include/laneshift/c.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string code = std::regex_replace(text.str(), std::regex(R"(/\*[^]*?\*/|//[^\n]*)"), "");
  std::multiset<std::string> declared, tested;
  const std::regex call(R"((laneshift_\w+)\s*\()");
  for (std::sregex_iterator found(code.begin(), code.end(), call), end; found != end; ++found)
    declared.insert((*found)[1]);
  for (const Row& row : Rows()) tested.insert(row.name);
  EXPECT_EQ(declared, tested);
}

TEST(HostileC, EveryRowIsRightAsItStands) {
  Stage stage;
  for (const Row& row : Rows()) {
    if (row.name == "laneshift_step_make") continue;  // needs NVRTC; its wrong arguments do not
    EXPECT_TRUE(row.right(stage)) << row.name << ": " << stage.error.data();
  }
}

TEST(HostileC, NullForEachPointer) {
  Stage stage;
  int calls = 0;
  for (const Row& row : Rows()) {
    row.nulls(stage, [&](const std::string&, bool, const std::function<void()>& call) {
      call();
      ++calls;
    });
  }
  EXPECT_GE(calls, 120);
}

TEST(HostileC, TextThatNobodyExpects) {
  Stage stage;
  for (const Row& row : Rows()) {
    if (row.name == "laneshift_step_make") continue;  // see ASourceThatIsNoText
    row.texts(stage, [&](const std::string& what, bool, const std::function<void()>& call) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(took.count(), 10) << what;
    });
  }
}

TEST(HostileC, NumbersAtTheEndsOfTheirTypes) {
  Stage stage;
  for (const Row& row : Rows())
    row.numbers(stage, [](const std::string&, bool, const std::function<void()>& call) { call(); });
}

TEST(HostileC, HandlesThatWereGivenBack) {
  Stage stage;
  for (const Row& row : Rows())
    row.stale(stage, [](const std::string&, bool, const std::function<void()>& call) { call(); });
}

// Handles of another kind, and memory that never was a handle, are refused.
TEST(HostileC, PointersThatAreNoHandles) {
  Stage stage;
  alignas(64) std::array<std::byte, 4096> bytes = {};
  auto* const no_plan = reinterpret_cast<laneshift_plan*>(bytes.data());
  EXPECT_EQ(
      laneshift_plan_execute_arguments(no_plan, nullptr, &stage.arguments, stage.error.data(), stage.error.size()),
      LANESHIFT_INVALID_ARGUMENT);
  EXPECT_STREQ(laneshift_plan_schedule(reinterpret_cast<laneshift_plan*>(stage.engine)), "");
  laneshift_plan_free(no_plan);
  laneshift_engine_close(reinterpret_cast<laneshift_engine*>(stage.memory));
  EXPECT_EQ(laneshift_memory_write(stage.memory, 0, bytes.data(), 16, nullptr, 0), LANESHIFT_OK);
}

TEST(HostileC, StructsOfNoVersion) {
  Stage stage;
  const auto refused = [&](laneshift_status status, size_t bytes) {
    EXPECT_EQ(status, LANESHIFT_INVALID_ARGUMENT) << bytes;
    EXPECT_NE(std::strstr(stage.error.data(), "struct_bytes is "), nullptr) << bytes << ": " << stage.error.data();
  };
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, size_t{1} << 20, SIZE_MAX / 2, SIZE_MAX - 7, SIZE_MAX}) {
    stage.options.struct_bytes = stage.arguments.struct_bytes = stage.quantized.struct_bytes = bytes;
    refused(laneshift_engine_open_with(&stage.options, &stage.other_engine, stage.error.data(), stage.error.size()),
            bytes);
    refused(
        laneshift_plan_execute_arguments(stage.plan, nullptr, &stage.arguments, stage.error.data(), stage.error.size()),
        bytes);
    refused(laneshift_quantized_bytes(&stage.quantized, &stage.counts[0], &stage.counts[1], stage.error.data(),
                                      stage.error.size()),
            bytes);
  }
}

TEST(HostileC, MembersOfStructs) {
  Stage stage;
  const auto refused = [&](const laneshift_quantized& tensor, const std::string& what) {
    EXPECT_EQ(
        laneshift_quantized_bytes(&tensor, &stage.counts[0], &stage.counts[1], stage.error.data(), stage.error.size()),
        LANESHIFT_INVALID_ARGUMENT)
        << what;
    EXPECT_EQ(laneshift_quantize(&tensor, "f32", stage.host[0].data(), stage.host[1].data(), stage.host[2].data(),
                                 stage.error.data(), stage.error.size()),
              LANESHIFT_INVALID_ARGUMENT)
        << what;
    EXPECT_EQ(laneshift_enqueue_quantize(stage.engine, nullptr, &tensor, "f32", stage.address, nullptr, stage.address,
                                         stage.address, stage.error.data(), stage.error.size()),
              LANESHIFT_INVALID_ARGUMENT)
        << what;
  };
  for (int64_t laneshift_quantized::*const extent :
       {&laneshift_quantized::batch, &laneshift_quantized::rows, &laneshift_quantized::columns}) {
    for (const int64_t number : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX, INT64_MAX / 2}) {
      laneshift_quantized tensor = stage.quantized;
      tensor.*extent = number;
      refused(tensor, Cat(number));
    }
  }
  for (const auto& [label, text] : HostileTexts()) {
    laneshift_quantized tensor = stage.quantized;
    tensor.type = text.c_str();
    refused(tensor, label);
    tensor = stage.quantized;
    tensor.scaling = text.c_str();
    refused(tensor, label);
  }
  for (const char* laneshift_options::*const member :
       {&laneshift_options::device, &laneshift_options::target, &laneshift_options::on_miss}) {
    for (const auto& [label, text] : HostileTexts()) {
      laneshift_options options = stage.options;
      options.*member = text.c_str();
      EXPECT_EQ(laneshift_engine_open_with(&options, &stage.other_engine, stage.error.data(), stage.error.size()),
                LANESHIFT_INVALID_ARGUMENT)
          << label;
      EXPECT_EQ(stage.other_engine, nullptr);
    }
  }
  // Paths may be any bytes: what is not there is not used.
  for (const char* laneshift_options::*const member :
       {&laneshift_options::store_directory, &laneshift_options::system_store, &laneshift_options::tuner,
        &laneshift_options::include_directories}) {
    for (const auto& [label, text] : HostileTexts()) {
      laneshift_options options = stage.options;
      const std::string absent = Cat("/dev/null/", text);
      options.*member = absent.c_str();
      const laneshift_status status =
          laneshift_engine_open_with(&options, &stage.other_engine, stage.error.data(), stage.error.size());
      EXPECT_TRUE(status == LANESHIFT_OK || stage.error[0] != '\0') << label;
      EXPECT_NE(status, LANESHIFT_INTERNAL) << label << ": " << stage.error.data();
      stage.GiveBack();
    }
  }
  laneshift_arguments arguments = stage.arguments;
  arguments.epilogue_count = SIZE_MAX;
  arguments.epilogue = &stage.address;
  EXPECT_EQ(laneshift_plan_execute_arguments(stage.plan, nullptr, &arguments, stage.error.data(), stage.error.size()),
            LANESHIFT_INVALID_ARGUMENT);
}

TEST(HostileC, ASourceThatIsNoText) {
  Stage stage;
  for (const auto& [label, text] : HostileTexts()) {
    EXPECT_NE(laneshift_step_make(stage.engine, "__device__ float F(float x) { return x; }", "f.cu", text.c_str(),
                                  nullptr, 0, stage.step, sizeof stage.step, stage.error.data(), stage.error.size()),
              LANESHIFT_OK)
        << label;
  }
}

// An error is cut to its room, of whatever size.
TEST(HostileC, RoomForTheError) {
  Stage stage;
  for (const size_t room : {size_t{0}, size_t{1}, size_t{2}, size_t{7}}) {
    stage.error.fill('?');
    EXPECT_EQ(laneshift_plan_make(stage.engine, "gemm q=1", nullptr, &stage.other_plan, stage.error.data(), room),
              LANESHIFT_INVALID_ARGUMENT);
    if (room > 0) {
      EXPECT_EQ(strnlen(stage.error.data(), room), room - 1);
    }
    EXPECT_EQ(stage.error[room], '?') << room;
  }
}

// Two threads with one engine, one plan and separate room.
TEST(HostileC, TwoThreadsMakeEveryCall) {
  Stage shared;
  const int threads = base::RunOnThreads(2, [&] {
    Stage own;
    laneshift_memory_free(own.memory);
    laneshift_plan_free(own.plan);
    laneshift_engine_close(own.engine);
    own.engine = shared.engine;
    own.plan = shared.plan;
    ASSERT_EQ(laneshift_memory_allocate(own.engine, kMemoryBytes, &own.memory, nullptr, 0), LANESHIFT_OK);
    own.address = laneshift_memory_address(own.memory);
    own.arguments.a = own.arguments.b = own.address;
    own.arguments.d = static_cast<char*>(own.address) + 4096;
    for (int i = 0; i < 3; ++i) {
      for (const Row& row : Rows()) {
        if (row.name == "laneshift_step_make") continue;
        EXPECT_TRUE(row.right(own)) << row.name << ": " << own.error.data();
      }
    }
    own.engine = nullptr;
    own.plan = nullptr;
  });
  EXPECT_GE(threads, 1);
}

}  // namespace
}  // namespace laneshift
