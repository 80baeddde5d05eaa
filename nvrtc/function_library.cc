#include "nvrtc/function_library.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/text.h"
#include "compiler/functions/function_length.h"
#include "compiler/functions/function_module.h"
#include "ir/epilogue_steps.h"
#include "ir/function_call.h"
#include "nvrtc/binding_source.h"
#include "nvrtc/compile_worker.h"
#include "nvrtc/include_closure.h"
#include "nvrtc/signature.h"

namespace laneshift::nvrtc {
namespace {

using base::Cat;
namespace fs = std::filesystem;

// How the log names the text appended to the user's source.
constexpr std::string_view kBindingFile = "laneshift-binding";
constexpr std::string_view kOperandsFile = "laneshift/function_operands.h";
constexpr std::string_view kOptions[] = {"--std=c++17", "--relocatable-device-code=true",
                                         "--device-as-default-execution-space"};
// Leaves out textures and the runtime's declarations, a quarter of the time of a small source. Supported by NVRTC 13.
constexpr std::string_view kMinimal = "--minimal";
constexpr int kMinimalSince = 13000;
// As long as NVRTC takes for most sources.
constexpr int kFlightWaitMs = 60000;
// Per function: some hundred thousand instructions.
constexpr size_t kMaxCodeBytes = 16 << 20;

Error BadSource(std::string what) { return MakeError(ErrorCode::kInvalidArgument, std::move(what)); }

// The directory of a file. Sources without a file have none.
std::string DirectoryOf(const std::string& file) {
  std::error_code unreadable;
  if (file.empty() || !fs::exists(file, unreadable)) return {};
  return fs::absolute(file, unreadable).parent_path();
}

std::string NameOf(const FunctionSource& source) { return source.file.empty() ? "function.cu" : source.file; }

std::string LineDirective(const std::string& file) {
  std::string quoted;
  for (const char c : file) {
    if (c == '\\' || c == '"') quoted += '\\';
    quoted += c;
  }
  return Cat("#line 1 \"", quoted, "\"\n");
}

// "sm_90a" -> "compute_90a".
std::string ArchitectureOf(const target::Target& target) { return Cat("compute_", target.name.substr(3)); }

std::string KeyOf(const std::string& digest, const target::Target& target) {
  return base::Fingerprinter().Text("function", digest).Text("target", target.name).Finish().Hex();
}

// The binding's beginning, followed by the user's source if `bound`.
std::string TextFor(const FunctionSource& source, bool bound) {
  std::string text = Cat("#include <", kOperandsFile, ">\n", LineDirective(NameOf(source)), source.text, "\n");
  if (!bound) return text;
  text += Cat(LineDirective(std::string(kBindingFile)), kBinding);
  text +=
      Cat("namespace laneshift::binding {\nusing Bound = Call<&", source.function, ", decltype(&", source.function,
          ")>;\n}\n", "extern \"C\" __device__ const auto laneshift_signature = laneshift::binding::Bound::kWords;\n",
          "extern \"C\" __device__ auto laneshift_entry = laneshift::binding::Bound::Entry();\n");
  return text;
}

// Whether all errors of the log are in the text appended to the user's source.
bool OnlyBindingFailed(std::string_view log) {
  bool failed = false;
  for (const std::string_view line : base::Split(log, '\n')) {
    if (line.find("): error") == std::string_view::npos && line.find("): catastrophic error") == std::string_view::npos)
      continue;
    if (!line.starts_with(kBindingFile)) return false;
    failed = true;
  }
  return failed;
}

// Without messages that the user cannot fix: warnings of unused functions, and our own lines.
std::string OwnLines(std::string_view log) {
  std::string text;
  bool own = true;
  for (const std::string_view line : base::Split(log, '\n')) {
    const bool begins = line.find("): ") != std::string_view::npos && !line.starts_with(' ');
    if (begins) own = !line.starts_with(kBindingFile) && line.find("#177-D") == std::string_view::npos;
    if (line.starts_with("Remark:") || base::Trim(line).empty()) continue;
    if (own) text += Cat(line, "\n");
  }
  return std::string(base::Trim(text));
}

bool IsOf(const ir::FunctionInput& asked, const FunctionParameter& compiled) {
  return asked.kind == compiled.operand && asked.count == compiled.count &&
         (!compiled.type || asked.type == compiled.type);
}

// Whether a program calls the compiled function.
bool IsOf(const ir::ProgramFunction& called, const Signature& compiled) {
  return (called.is_gated) == compiled.is_gated &&
         std::equal(called.inputs.begin(), called.inputs.end(), compiled.parameters.begin(), compiled.parameters.end(),
                    [](const auto& asked, const auto& parameter) { return IsOf(asked, parameter); });
}

}  // namespace

FunctionLibrary::Toolkit FunctionLibrary::Look(const LibraryOptions& options) {
  Toolkit toolkit;
  std::vector<std::string> directories = Nvrtc::SearchedDirectories(options.library_directories);
  std::error_code unreadable;
  if (!options.nvrtc.empty()) {
    if (fs::exists(options.nvrtc, unreadable)) toolkit.compiler = fs::canonical(options.nvrtc, unreadable).filename();
    directories = {fs::path(options.nvrtc).parent_path()};
  }
  for (const std::string& directory : directories) {
    for (const std::string& name : Nvrtc::LibraryNames()) {
      const fs::path file = fs::path(directory) / name;
      if (!toolkit.compiler.empty() || !fs::exists(file, unreadable)) continue;
      toolkit.compiler = fs::canonical(file, unreadable).filename();
    }
    // A toolkit has its headers next to its libraries; packages of single libraries have them in a separate package.
    for (const char* headers : {"../include", "../../cuda_runtime/include"}) {
      const fs::path found = fs::path(directory) / headers;
      if (fs::exists(found / "cuda_fp16.h", unreadable)) {
        const std::string real = fs::canonical(found, unreadable);
        auto& known = toolkit.include_directories;
        if (std::find(known.begin(), known.end(), real) == known.end()) known.push_back(real);
      }
    }
  }
  return toolkit;
}

FunctionLibrary::FunctionLibrary(store::Store& store, const target::Target& target, LibraryOptions options)
    : store_(store), target_(target), options_(std::move(options)), toolkit_(Look(options_)) {}

int FunctionLibrary::compilations() const {
  const std::lock_guard lock(mutex_);
  return compilations_;
}

Result<std::string> FunctionLibrary::DigestOf(const FunctionSource& source) const {
  base::Fingerprinter digest;
  digest.Text("operands", kFunctionOperands).Text("binding", kBinding);
  for (const std::string_view option : kOptions) digest.Text("option", option);
  digest.Text("function", source.function).Text("source", source.text);
  std::vector<std::string> own = source.include_directories;
  own.insert(own.end(), options_.include_directories.begin(), options_.include_directories.end());
  const Status added = AddIncludes(digest, source.text, {DirectoryOf(source.file), own, toolkit_.include_directories});
  if (!added) return added.error().Within(NameOf(source));
  return digest.Finish().Hex();
}

std::optional<std::string> FunctionLibrary::Stored(const std::string& digest, bool any_compiler) {
  auto stored = store_.GetKernel(KeyOf(digest, target_));
  if (!stored || !stored->has_value()) return std::nullopt;
  const store::KernelRecord& record = **stored;
  // Another NVRTC generates other code; if there is none, the stored function is used.
  if (!any_compiler && !toolkit_.compiler.empty() && record.generator != toolkit_.compiler) return std::nullopt;
  if (!compiler::FunctionModule::Parse(record.ptx)) return std::nullopt;
  return record.ptx;
}

void FunctionLibrary::Keep(const std::string& digest, const FunctionSource& source, const std::string& text) {
  texts_[digest] = text;
  const std::string compiler = toolkit_.compiler.empty() ? (*nvrtc_)->name() : toolkit_.compiler;
  const Status kept = store_.PutKernel({.key = KeyOf(digest, target_),
                                        .target = std::string(target_.name),
                                        .problem = Cat("function ", source.function, "@", digest),
                                        .schedule = NameOf(source),
                                        .generator = compiler,
                                        .ptx = text});
  if (!kept) LS_LOG(kRuntime, warn, "function ", source.function, " is not stored: ", kept.error().message);
}

Result<NvrtcCompilation> FunctionLibrary::Run(const CompileJob& job) {
  if (!options_.program.empty()) {
    return RunInWorker(options_.program, options_.limits, {options_.library_directories, options_.nvrtc}, job);
  }
  if (options_.in_process) return (*nvrtc_)->Run(job);
  return MakeError(ErrorCode::kNotFound,
                   "there is no program laneshift to compile it in with limits on memory and time; install it, give "
                   "its path in EngineOptions::tuner (laneshift_options.tuner in C), or set functions_in_process to "
                   "have it compiled in this process without limits");
}

Error FunctionLibrary::Explain(const FunctionSource& source, const CompileJob& job, const NvrtcCompilation& failed) {
  const std::string file = NameOf(source);
  if (!OnlyBindingFailed(failed.log)) {
    const bool headers = failed.log.find("source file") != std::string::npos && toolkit_.include_directories.empty();
    return BadSource(
        Cat(file, " does not compile:\n", OwnLines(failed.log),
            headers ? "\nno headers of CUDA were found next to NVRTC; set CUDA_HOME, or use --include" : ""));
  }
  CompileJob unbound = job;
  unbound.source = TextFor(source, /*bound=*/false);
  const auto compiled = Run(unbound);
  std::vector<std::string> functions, alike;
  if (compiled && compiled->failure == 0) functions = FunctionsOf(compiled->code);
  std::copy_if(functions.begin(), functions.end(), std::back_inserter(alike),
               [&](const std::string& function) { return NameOfFunction(function) == source.function; });
  if (alike.size() > 1) {
    return BadSource(Cat(file, ": ", source.function, " is overloaded: ", base::Join(alike, "; "),
                         "; give the one that is meant a unique name"));
  }
  if (alike.empty()) {
    return BadSource(Cat(file, " has no __device__ function ", source.function, "; ",
                         functions.empty() ? "it has none" : "it has " + base::Join(functions, "; ")));
  }
  return BadSource(Cat(file, ": ", alike[0], " cannot be called:\n", failed.log));
}

Result<std::string> FunctionLibrary::CompileText(const FunctionSource& source) {
  if (!nvrtc_) nvrtc_ = Nvrtc::Open(options_.library_directories, options_.nvrtc);
  if (!*nvrtc_) {
    return nvrtc_->error().Within(Cat("the function ", source.function, " of ", NameOf(source), " needs NVRTC"));
  }
  CompileJob job{.source = TextFor(source, /*bound=*/true),
                 .file = NameOf(source),
                 .arch = ArchitectureOf(target_),
                 .options = {std::begin(kOptions), std::end(kOptions)},
                 .headers = {{std::string(kOperandsFile), std::string(kFunctionOperands)}},
                 .form = CodeForm::kPtx};
  if ((*nvrtc_)->version() >= kMinimalSince) job.options.emplace_back(kMinimal);
  const auto add = [&](const std::string& directory) { job.options.push_back("-I" + directory); };
  if (const std::string directory = DirectoryOf(source.file); !directory.empty()) add(directory);
  for (const std::string& directory : source.include_directories) add(directory);
  for (const std::string& directory : options_.include_directories) add(directory);
  for (const std::string& directory : toolkit_.include_directories) add(directory);
  ++compilations_;
  const auto ran = Run(job);
  if (!ran) return ran.error().Within(Cat("the function ", source.function, " of ", NameOf(source)));
  const NvrtcCompilation& compiled = *ran;
  if (compiled.failure != 0) return Explain(source, job, compiled);
  if (compiled.code.size() > kMaxCodeBytes) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        Cat("the function ", source.function, " of ", NameOf(source), " makes ", compiled.code.size() >> 20,
            " MiB of PTX, more than the ", kMaxCodeBytes >> 20, " MiB that a kernel may hold of it"));
  }
  const auto within = [&](const Error& error) {
    std::string name = source.function;
    for (const std::string& function : FunctionsOf(compiled.code)) {
      if (NameOfFunction(function) == source.function) name = function;
    }
    return error.Within(Cat(NameOf(source), ": ", name));
  };
  const auto module = compiler::FunctionModule::Parse(compiled.code);
  if (!module) return within(module.error());
  if (const auto signature = SignatureOf(module->signature()); !signature) return within(signature.error());
  return module->Text();
}

Result<FunctionCall> FunctionLibrary::Find(const FunctionSource& source) {
  if (source.function.empty()) return BadSource(Cat(NameOf(source), ": which function is not said"));
  if (static_cast<int64_t>(source.text.size()) > kMaxSourceBytes) {
    return BadSource(Cat(NameOf(source), " has more than ", kMaxSourceBytes >> 20, " MiB"));
  }
  FunctionCall call{.name = source.function, .digest = "", .numbers = source.numbers};
  LS_ASSIGN(call.digest, DigestOf(source));
  const std::lock_guard lock(mutex_);
  if (!texts_.contains(call.digest)) {
    auto stored = Stored(call.digest, /*any_compiler=*/false);
    if (!stored) {
      const store::FlightLock flight = store_.BeginFlight(Cat("function ", call.digest), kFlightWaitMs);
      if (flight.waited()) stored = Stored(call.digest, /*any_compiler=*/false);
      if (!stored) {
        LS_ASSIGN(stored, CompileText(source));
        Keep(call.digest, source, *stored);
      }
    }
    texts_[call.digest] = *stored;
  }
  LS_ASSIGN(const auto module, compiler::FunctionModule::Parse(texts_[call.digest]));
  LS_ASSIGN(Signature signature, SignatureOf(module.signature()));
  call.is_gated = signature.is_gated;
  call.length = compiler::LengthOf(module);
  call.parameters = std::move(signature.parameters);
  LS_TRY(ir::CheckFunctionCall(call));
  return call;
}

Result<Problem> FunctionLibrary::ReadProblem(std::string_view text) {
  constexpr std::string_view kKey = "epilogue=";
  std::vector<std::string> words;
  for (const std::string_view word : base::Words(text)) {
    words.emplace_back(word);
    if (!word.starts_with(kKey)) continue;
    std::vector<std::string> steps;
    for (const std::string_view step : base::Split(word.substr(kKey.size()), '+')) {
      steps.emplace_back(step);
      if (!ir::NamesFile(step)) continue;
      LS_ASSIGN(const ir::FunctionReference reference, ir::ParseFunctionReference(step));
      const auto source = ReadSource(reference.file);
      if (!source) return BadSource(Cat("epilogue: ", source.error().message));
      LS_ASSIGN(
          const FunctionCall call,
          Find(
              {.text = *source, .file = reference.file, .function = reference.function, .numbers = reference.numbers}));
      LS_ASSIGN(const EpilogueStep step_of_call, ir::StepOf(call, reference.pairs));
      steps.back() = ir::PrintStep(step_of_call, ir::kGemmLetters);
    }
    words.back() = Cat(kKey, base::Join(steps, "+"));
  }
  LS_ASSIGN(Problem problem, ParseProblem(base::Join(words, " ")));
  return WithLengths(std::move(problem));
}

Problem FunctionLibrary::WithLengths(Problem problem) {
  Epilogue& epilogue = ir::EpilogueOf(problem);
  for (EpilogueStep& step : epilogue) {
    if (!step.function || step.function->length.operations > 0) continue;
    const auto text = TextOf(step.function->name, step.function->digest);
    if (!text) continue;
    const auto module = compiler::FunctionModule::Parse(*text);
    if (!module) continue;
    FunctionCall call = *step.function;
    call.length = compiler::LengthOf(*module);
    step.function = FunctionStep(std::move(call));
  }
  return problem;
}

Result<std::string> FunctionLibrary::Text(const std::string& name, const std::string& digest) {
  if (const auto known = texts_.find(digest); known != texts_.end()) return known->second;
  auto stored = Stored(digest, /*any_compiler=*/true);
  if (!stored) {
    return MakeError(ErrorCode::kNotFound,
                     Cat("the function ", name, "@", digest,
                         " is known neither here nor to the store; name its source again (FILE.cu:", name,
                         ", or Engine::MakeStep)"));
  }
  texts_[digest] = *stored;
  return std::move(*stored);
}

Result<std::string> FunctionLibrary::TextOf(const std::string& name, const std::string& digest) {
  const std::lock_guard lock(mutex_);
  return Text(name, digest);
}

Result<compiler::FunctionTexts> FunctionLibrary::TextsOf(const ir::Program& program) {
  compiler::FunctionTexts texts;
  const std::lock_guard lock(mutex_);
  for (const ir::ProgramFunction& function : program.functions) {
    LS_ASSIGN(const std::string text, Text(function.name, function.digest));
    LS_ASSIGN(const auto module, compiler::FunctionModule::Parse(text));
    LS_ASSIGN(const Signature signature, SignatureOf(module.signature()));
    if (!IsOf(function, signature)) {
      return BadSource(Cat("the function ", function.name, "@", function.digest,
                           " has other parameters than the problem says; name its source again"));
    }
    texts[function.digest] = text;
  }
  return texts;
}

}  // namespace laneshift::nvrtc
