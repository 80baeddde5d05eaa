// The C interface. It catches, since no exception may cross into C.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/host_memory.h"
#include "base/text.h"
#include "ir/function_call.h"
#include "ir/problem_keys.h"
#include "laneshift/c.h"
#include "laneshift/device_memory.h"
#include "laneshift/engine.h"
#include "laneshift/quantize.h"
#include "laneshift/sparsity.h"
#include "runtime/argument_roles.h"
#include "runtime/live_handles.h"
#include "store/one_line.h"

struct laneshift_engine {
  laneshift::Engine engine;
};

struct laneshift_plan {
  laneshift::Plan plan;
  laneshift::Problem problem;
  std::string cache, choice;
};

struct laneshift_memory {
  laneshift::DeviceMemory memory;
};

namespace {

using laneshift::Error;
using laneshift::ErrorCode;
using laneshift::Status;
using laneshift::base::Cat;

laneshift_status StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return LANESHIFT_INVALID_ARGUMENT;
    case ErrorCode::kUnsupported:
      return LANESHIFT_UNSUPPORTED;
    case ErrorCode::kResourceExhausted:
      return LANESHIFT_RESOURCE_EXHAUSTED;
    case ErrorCode::kNotFound:
      return LANESHIFT_NOT_FOUND;
    case ErrorCode::kCorrupt:
      return LANESHIFT_CORRUPT;
    case ErrorCode::kDriver:
      return LANESHIFT_DRIVER;
    case ErrorCode::kTimeout:
      return LANESHIFT_TIMEOUT;
    case ErrorCode::kWrongResult:
      return LANESHIFT_WRONG_RESULT;
    case ErrorCode::kInternal:
      return LANESHIFT_INTERNAL;
  }
  return LANESHIFT_INTERNAL;
}

void WriteText(std::string_view text, char* to, size_t bytes) {
  if (to == nullptr || bytes == 0) return;
  const size_t length = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// An error quotes what was given, of any length and of any bytes; only as much of it as fits is converted.
void WriteError(std::string_view message, char* to, size_t bytes) {
  WriteText(laneshift::store::OneLine(message.substr(0, bytes)), to, bytes);
}

std::string TextOf(const char* text) { return text == nullptr ? std::string() : std::string(text); }

// Runs `call`, and converts its outcome into a status and a line of text.
template <typename Call>
laneshift_status Guarded(char* error, size_t error_bytes, const Call& call) {
  WriteText("", error, error_bytes);
  try {
    const Status status = laneshift::base::WithinHostMemory(call);
    if (status) return LANESHIFT_OK;
    WriteError(status.error().message, error, error_bytes);
    return StatusOf(status.error().code);
  } catch (const std::exception& exception) {
    WriteError(exception.what(), error, error_bytes);
    return LANESHIFT_INTERNAL;
  }
}

Error Invalid(std::string message) { return laneshift::MakeError(ErrorCode::kInvalidArgument, std::move(message)); }

// A problem with a sparse A, and the bytes of what it has in memory.
struct SparseSizes : laneshift::SparseBytes {
  laneshift::Problem problem;
};
laneshift::Result<SparseSizes> SizesOf(const char* text) {
  LS_ASSIGN(const laneshift::Problem problem, laneshift::ParseProblem(text));
  LS_ASSIGN(const laneshift::SparseBytes bytes, laneshift::SparseBytesOf(problem));
  return SparseSizes{bytes, problem};
}

// Converts the caller's version of a struct to this version's: members that it lacks are null, and later members must
// be zero. `first` bytes: of the first version.
template <typename Struct>
laneshift::Result<Struct> KnownVersion(const Struct& given, size_t first, std::string_view name) {
  const size_t bytes = given.struct_bytes;
  // More members than any version will have: a number that was never set, and too many bytes to look at.
  constexpr size_t kMostMembers = 512;
  if (bytes < first || bytes > kMostMembers * sizeof(char*) || (bytes - first) % sizeof(char*) != 0) {
    return Invalid(Cat(name, ".struct_bytes is ", bytes, ", which is the size of no version of laneshift_", name,
                       "; use sizeof(laneshift_", name, "), here ", sizeof(Struct)));
  }
  const auto* raw = reinterpret_cast<const unsigned char*>(&given);
  for (size_t i = sizeof(Struct); i < bytes; ++i) {
    if (raw[i] == 0) continue;
    return Invalid(Cat(name, " says something at byte ", i,
                       ", which is a member that this version of laneshift does not have (it has ", sizeof(Struct),
                       " bytes); leave it zero, or use a later laneshift"));
  }
  Struct known = {};
  std::memcpy(&known, &given, std::min(bytes, sizeof known));
  return known;
}

laneshift::Result<laneshift_options> OptionsOf(const laneshift_options& given) {
  return KnownVersion(given, offsetof(laneshift_options, tuner) + sizeof(char*), "options");
}

Error Missing(std::string_view what) {
  return laneshift::MakeError(ErrorCode::kInvalidArgument, std::string(what) + " is null");
}

// The handle of a call: open, and of this kind.
template <typename Handle>
Status CheckHandle(const Handle* handle, std::string_view name) {
  if (handle == nullptr) return Missing(name);
  if (laneshift::runtime::LiveHandles<Handle>::Get().Has(handle)) return laneshift::Ok();
  return Invalid(Cat(name, " is no open ", name, "; it was given back, or did not come from this library"));
}
template <typename Handle>
bool IsOpen(const Handle* handle) {
  return handle != nullptr && laneshift::runtime::LiveHandles<Handle>::Get().Has(handle);
}
template <typename Handle>
Handle* Opened(Handle handle) {
  return laneshift::runtime::LiveHandles<Handle>::Get().Add(std::make_unique<Handle>(std::move(handle)));
}
template <typename Handle>
void GiveBack(Handle* handle) {
  if (handle != nullptr) laneshift::runtime::LiveHandles<Handle>::Get().Remove(handle);
}

// A quantised tensor as C describes it.
struct Described {
  laneshift::QuantizedTensor tensor{};
  float scale = 1;
};
laneshift::Result<Described> DescribedBy(const laneshift_quantized* given) {
  if (given == nullptr) return Missing("tensor");
  LS_ASSIGN(const laneshift_quantized known, KnownVersion(*given, sizeof(laneshift_quantized), "quantized"));
  Described described{.tensor = {.batch = known.batch, .rows = known.rows, .columns = known.columns},
                      .scale = known.scale};
  LS_ASSIGN(described.tensor.type, laneshift::ir::ParseTypeValue("type", TextOf(known.type)));
  LS_ASSIGN(described.tensor.scaling, laneshift::ir::ParseOutputScalingValue("scaling", TextOf(known.scaling)));
  return described;
}

}  // namespace

extern "C" {

laneshift_status laneshift_engine_open(const char* device, const char* target, const char* store_directory,
                                       laneshift_engine** engine, char* error, size_t error_bytes) {
  laneshift_options options = {};
  options.struct_bytes = sizeof options;
  options.device = device;
  options.target = target;
  options.store_directory = store_directory;
  return laneshift_engine_open_with(&options, engine, error, error_bytes);
}

laneshift_status laneshift_engine_open_with(const laneshift_options* options, laneshift_engine** engine, char* error,
                                            size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (engine == nullptr) return Missing("engine");
    *engine = nullptr;
    if (options == nullptr) return Missing("options");
    LS_ASSIGN(const laneshift_options known, OptionsOf(*options));
    laneshift::EngineOptions chosen;
    if (!TextOf(known.device).empty()) chosen.device = known.device;
    chosen.target = TextOf(known.target);
    chosen.store_directory = TextOf(known.store_directory);
    chosen.system_store = TextOf(known.system_store);
    chosen.tuner = TextOf(known.tuner);
    if (known.functions_in_process > 1) return Invalid("options.functions_in_process is neither 0 nor 1");
    chosen.functions_in_process = known.functions_in_process == 1;
    const std::string include = TextOf(known.include_directories);
    for (const std::string_view directory : laneshift::base::Split(include, ':')) {
      if (!directory.empty()) chosen.include_directories.emplace_back(directory);
    }
    if (const std::string policy = TextOf(known.on_miss); !policy.empty()) {
      LS_ASSIGN(chosen.on_miss, laneshift::ParseMissPolicy(policy));
    }
    LS_ASSIGN(laneshift::Engine opened, laneshift::Engine::Open(chosen));
    *engine = Opened(laneshift_engine{std::move(opened)});
    return laneshift::Ok();
  });
}

laneshift_status laneshift_engine_prepare(laneshift_engine* engine, const char* const* problems, size_t count,
                                          char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    if (problems == nullptr && count > 0) return Missing("problems");
    std::vector<laneshift::Problem> parsed;
    for (size_t i = 0; i < count; ++i) {
      if (problems[i] == nullptr) return Missing("a problem");
      LS_ASSIGN(laneshift::Problem problem, engine->engine.ReadProblem(problems[i]));
      parsed.push_back(std::move(problem));
    }
    return engine->engine.Prepare(parsed);
  });
}

void laneshift_engine_finish_tuning(laneshift_engine* engine) {
  (void)Guarded(nullptr, 0, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    engine->engine.FinishTuning();
    return laneshift::Ok();
  });
}

laneshift_status laneshift_engine_take_report(laneshift_engine* engine, size_t* faults, size_t* hazards, char* report,
                                              size_t report_bytes, char* error, size_t error_bytes) {
  WriteText("", report, report_bytes);
  for (size_t* count : {faults, hazards}) {
    if (count != nullptr) *count = 0;
  }
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    const auto taken = engine->engine.TakeReport();
    if (!taken) return laneshift::MakeError(ErrorCode::kUnsupported, "a GPU reports no hazards; use the emulator");
    std::string text;
    for (const std::string& fault : taken->faults) text += Cat("fault: ", fault, "\n");
    for (const std::string& hazard : taken->hazards) text += Cat("hazard: ", hazard, "\n");
    for (const std::string& policy : taken->policies) text += Cat("policy: ", policy, "\n");
    if (!taken->output.empty()) text += Cat("output: ", taken->output);
    if (faults != nullptr) *faults = taken->faults.size();
    if (hazards != nullptr) *hazards = taken->hazards.size();
    WriteText(text, report, report_bytes);
    return laneshift::Ok();
  });
}

void laneshift_engine_close(laneshift_engine* engine) { GiveBack(engine); }

laneshift_status laneshift_step_make(laneshift_engine* engine, const char* source, const char* file,
                                     const char* function, const double* numbers, size_t count, char* step,
                                     size_t step_bytes, char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    if (source == nullptr) return Missing("source");
    if (function == nullptr) return Missing("function");
    if (step == nullptr) return Missing("step");
    if (count > 0 && numbers == nullptr) return Missing("numbers");
    if (count > laneshift::kMaxFunctionParameters) {
      return Invalid(Cat(count, " numbers; a function has at most ", laneshift::kMaxFunctionParameters, " parameters"));
    }
    laneshift::FunctionSource given{.text = source, .file = TextOf(file), .function = function};
    given.numbers.assign(numbers, numbers + count);
    LS_ASSIGN(const laneshift::EpilogueStep made, engine->engine.MakeStep(given));
    const std::string text = laneshift::ir::PrintFunctionCall(*made.function);
    if (text.size() >= step_bytes) {
      return laneshift::MakeError(ErrorCode::kInvalidArgument, Cat("the step needs ", text.size() + 1, " bytes"));
    }
    WriteText(text, step, step_bytes);
    return laneshift::Ok();
  });
}

laneshift_status laneshift_plan_make(laneshift_engine* engine, const char* problem, const char* schedule,
                                     laneshift_plan** plan, char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    if (problem == nullptr) return Missing("problem");
    if (plan == nullptr) return Missing("plan");
    *plan = nullptr;
    LS_ASSIGN(const laneshift::Problem parsed, engine->engine.ReadProblem(problem));
    laneshift::ScheduleConstraint constraint;
    if (schedule != nullptr && *schedule != '\0') {
      LS_ASSIGN(constraint, laneshift::ParseSchedule(schedule));
    }
    LS_ASSIGN(laneshift::Plan made, engine->engine.MakePlan(parsed, constraint));
    std::string cache(laneshift::CacheStateName(made.report().cache));
    std::string choice(laneshift::ChoiceOriginName(made.report().choice));
    *plan = Opened(laneshift_plan{std::move(made), parsed, std::move(cache), std::move(choice)});
    return laneshift::Ok();
  });
}

const char* laneshift_plan_schedule(const laneshift_plan* plan) {
  return IsOpen(plan) ? plan->plan.report().schedule.c_str() : "";
}
const char* laneshift_plan_cache(const laneshift_plan* plan) { return IsOpen(plan) ? plan->cache.c_str() : ""; }
const char* laneshift_plan_choice(const laneshift_plan* plan) { return IsOpen(plan) ? plan->choice.c_str() : ""; }
size_t laneshift_plan_workspace_bytes(const laneshift_plan* plan) {
  return IsOpen(plan) ? plan->plan.workspace_bytes() : 0;
}
void laneshift_plan_free(laneshift_plan* plan) { GiveBack(plan); }

laneshift_status laneshift_plan_execute(const laneshift_plan* plan, CUstream_st* stream, const void* a, const void* b,
                                        const void* c, void* d, const void* bias, void* workspace, char* error,
                                        size_t error_bytes) {
  return laneshift_plan_execute_fused(plan, stream, a, b, c, d, bias, nullptr, nullptr, nullptr, nullptr, 0, workspace,
                                      error, error_bytes);
}

laneshift_status laneshift_plan_execute_scaled(const laneshift_plan* plan, CUstream_st* stream, const void* a,
                                               const void* b, const void* c, void* d, const void* bias,
                                               const void* scale_a, const void* scale_b, const void* scale_d,
                                               void* workspace, char* error, size_t error_bytes) {
  return laneshift_plan_execute_fused(plan, stream, a, b, c, d, bias, scale_a, scale_b, scale_d, nullptr, 0, workspace,
                                      error, error_bytes);
}

laneshift_status laneshift_plan_execute_fused(const laneshift_plan* plan, CUstream_st* stream, const void* a,
                                              const void* b, const void* c, void* d, const void* bias,
                                              const void* scale_a, const void* scale_b, const void* scale_d,
                                              void* const* epilogue, size_t count, void* workspace, char* error,
                                              size_t error_bytes) {
  const laneshift_arguments arguments{.struct_bytes = sizeof(laneshift_arguments),
                                      .a = a,
                                      .b = b,
                                      .c = c,
                                      .d = d,
                                      .bias = bias,
                                      .scale_a = scale_a,
                                      .scale_b = scale_b,
                                      .scale_d = scale_d,
                                      .tensor_scale_a = nullptr,
                                      .tensor_scale_b = nullptr,
                                      .epilogue = epilogue,
                                      .epilogue_count = count,
                                      .workspace = workspace,
                                      .group_offsets = nullptr,
                                      .group_sizes = nullptr,
                                      .block_scale_d = nullptr,
                                      .metadata_a = nullptr,
                                      .a_row_indices = nullptr,
                                      .d_row_indices = nullptr};
  return laneshift_plan_execute_arguments(plan, stream, &arguments, error, error_bytes);
}

laneshift_status laneshift_plan_execute_arguments(const laneshift_plan* plan, CUstream_st* stream,
                                                  const laneshift_arguments* arguments, char* error,
                                                  size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(plan, "plan"));
    if (arguments == nullptr) return Missing("arguments");
    LS_ASSIGN(const laneshift_arguments known,
              KnownVersion(*arguments, offsetof(laneshift_arguments, block_scale_d), "arguments"));
    if (known.epilogue_count > 0 && known.epilogue == nullptr) return Missing("epilogue");
    laneshift::EpilogueArguments operands{};
    if (known.epilogue_count > operands.size()) {
      return laneshift::MakeError(
          laneshift::ErrorCode::kInvalidArgument,
          Cat(known.epilogue_count, " operands of an epilogue; there are at most ", laneshift::kMaxEpilogueOperands));
    }
    std::copy_n(known.epilogue, known.epilogue_count, operands.begin());
    const laneshift::GemmArguments roles{.a = known.a,
                                         .b = known.b,
                                         .c = known.c,
                                         .d = known.d,
                                         .bias = known.bias,
                                         .scale_a = known.scale_a,
                                         .scale_b = known.scale_b,
                                         .scale_d = known.scale_d,
                                         .tensor_scale_a = known.tensor_scale_a,
                                         .tensor_scale_b = known.tensor_scale_b,
                                         .epilogue = operands,
                                         .group_offsets = static_cast<const int32_t*>(known.group_offsets),
                                         .group_sizes = static_cast<const int32_t*>(known.group_sizes),
                                         .block_scale_d = known.block_scale_d,
                                         .metadata_a = known.metadata_a,
                                         .a_row_indices = static_cast<const int32_t*>(known.a_row_indices),
                                         .d_row_indices = static_cast<const int32_t*>(known.d_row_indices)};
    return plan->plan.Execute(stream, laneshift::runtime::ArgumentsOf(plan->problem, roles), known.workspace);
  });
}

laneshift_status laneshift_sparse_bytes(const char* problem, size_t* elements_bytes, size_t* metadata_bytes,
                                        size_t* dense_bytes, char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (problem == nullptr) return Missing("problem");
    LS_ASSIGN(const SparseSizes sizes, SizesOf(problem));
    if (elements_bytes != nullptr) *elements_bytes = sizes.elements;
    if (metadata_bytes != nullptr) *metadata_bytes = sizes.metadata;
    if (dense_bytes != nullptr) *dense_bytes = sizes.dense;
    return laneshift::Ok();
  });
}

laneshift_status laneshift_sparse_compress(const char* problem, const void* dense, void* elements, void* metadata,
                                           char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (problem == nullptr) return Missing("problem");
    if (dense == nullptr) return Missing("dense");
    if (elements == nullptr) return Missing("elements");
    if (metadata == nullptr) return Missing("metadata");
    LS_ASSIGN(const SparseSizes sizes, SizesOf(problem));
    LS_ASSIGN(const laneshift::SparseOperand sparse,
              laneshift::CompressSparse(sizes.problem, {static_cast<const std::byte*>(dense), sizes.dense}));
    std::copy(sparse.elements.begin(), sparse.elements.end(), static_cast<std::byte*>(elements));
    std::copy(sparse.metadata.begin(), sparse.metadata.end(), static_cast<std::byte*>(metadata));
    return laneshift::Ok();
  });
}

laneshift_status laneshift_sparse_expand(const char* problem, const void* elements, const void* metadata, void* dense,
                                         char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (problem == nullptr) return Missing("problem");
    if (elements == nullptr) return Missing("elements");
    if (metadata == nullptr) return Missing("metadata");
    if (dense == nullptr) return Missing("dense");
    LS_ASSIGN(const SparseSizes sizes, SizesOf(problem));
    LS_ASSIGN(const std::vector<std::byte> expanded,
              laneshift::ExpandSparse(sizes.problem, {static_cast<const std::byte*>(elements), sizes.elements},
                                      {static_cast<const std::byte*>(metadata), sizes.metadata}));
    std::copy(expanded.begin(), expanded.end(), static_cast<std::byte*>(dense));
    return laneshift::Ok();
  });
}

laneshift_status laneshift_memory_allocate(laneshift_engine* engine, size_t bytes, laneshift_memory** memory,
                                           char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (memory == nullptr) return Missing("memory");
    *memory = nullptr;
    LS_TRY(CheckHandle(engine, "engine"));
    LS_ASSIGN(laneshift::DeviceMemory allocated, laneshift::DeviceMemory::Allocate(engine->engine, bytes));
    *memory = Opened(laneshift_memory{std::move(allocated)});
    return laneshift::Ok();
  });
}

void* laneshift_memory_address(const laneshift_memory* memory) {
  return IsOpen(memory) ? memory->memory.data() : nullptr;
}

laneshift_status laneshift_memory_write(const laneshift_memory* memory, size_t offset, const void* from, size_t bytes,
                                        char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(memory, "memory"));
    return memory->memory.CopyFromHost(from, bytes, offset);
  });
}

laneshift_status laneshift_memory_read(const laneshift_memory* memory, size_t offset, void* to, size_t bytes,
                                       char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(memory, "memory"));
    return memory->memory.CopyToHost(to, bytes, offset);
  });
}

void laneshift_memory_free(laneshift_memory* memory) { GiveBack(memory); }

laneshift_status laneshift_quantized_bytes(const laneshift_quantized* tensor, size_t* elements, size_t* factors,
                                           char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    if (elements == nullptr || factors == nullptr) return Missing("elements or factors");
    LS_ASSIGN(const Described described, DescribedBy(tensor));
    LS_ASSIGN(const laneshift::QuantizedBytes bytes, laneshift::BytesOf(described.tensor));
    *elements = bytes.elements;
    *factors = bytes.factors;
    return laneshift::Ok();
  });
}

laneshift_status laneshift_quantize(const laneshift_quantized* tensor, const char* from_type, const void* from,
                                    void* elements, void* factors, char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_ASSIGN(const Described described, DescribedBy(tensor));
    LS_ASSIGN(const laneshift::DataType type, laneshift::ir::ParseTypeValue("from_type", TextOf(from_type)));
    return laneshift::Quantize(described.tensor, type, from, described.scale, elements, factors);
  });
}

laneshift_status laneshift_dequantize(const laneshift_quantized* tensor, const void* elements, const void* factors,
                                      const char* to_type, void* to, char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_ASSIGN(const Described described, DescribedBy(tensor));
    LS_ASSIGN(const laneshift::DataType type, laneshift::ir::ParseTypeValue("to_type", TextOf(to_type)));
    return laneshift::Dequantize(described.tensor, elements, factors, described.scale, type, to);
  });
}

laneshift_status laneshift_enqueue_quantize(laneshift_engine* engine, struct CUstream_st* stream,
                                            const laneshift_quantized* tensor, const char* from_type, const void* from,
                                            const float* scale, void* elements, void* factors, char* error,
                                            size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    LS_ASSIGN(const Described described, DescribedBy(tensor));
    LS_ASSIGN(const laneshift::DataType type, laneshift::ir::ParseTypeValue("from_type", TextOf(from_type)));
    return engine->engine.Quantize(stream, described.tensor, type, from, scale, elements, factors);
  });
}

laneshift_status laneshift_enqueue_dequantize(laneshift_engine* engine, struct CUstream_st* stream,
                                              const laneshift_quantized* tensor, const void* elements,
                                              const void* factors, const float* scale, const char* to_type, void* to,
                                              char* error, size_t error_bytes) {
  return Guarded(error, error_bytes, [&]() -> Status {
    LS_TRY(CheckHandle(engine, "engine"));
    LS_ASSIGN(const Described described, DescribedBy(tensor));
    LS_ASSIGN(const laneshift::DataType type, laneshift::ir::ParseTypeValue("to_type", TextOf(to_type)));
    return engine->engine.Dequantize(stream, described.tensor, elements, factors, scale, type, to);
  });
}

}  // extern "C"
