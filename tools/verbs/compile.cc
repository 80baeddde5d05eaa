#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "device/assembler.h"
#include "device/disassembler.h"
#include "tools/compilation.h"
#include "tools/device_options.h"
#include "tools/exit_code.h"
#include "tools/json_line.h"
#include "tools/reports/schedule_view.h"
#include "tools/table.h"
#include "tools/terminal.h"
#include "tools/verbs/verbs.h"

namespace laneshift::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompileExamples = R"(
Examples:
  laneshift compile gemm m=4096 n=4096 k=4096 --target sm_100a --emit ptx
  laneshift compile gemm m=512 n=512 k=512 --target sm_90a --emit cubin -o gemm.cubin
  laneshift compile gemm m=512 n=512 k=512 --emit sass
  laneshift compile gemm m=512 n=512 k=512 --schedule "tile=128x64 stages=4" --emit tile

Needs no GPU; cubin needs ptxas, sass also nvdisasm or cuobjdump. Sizes are kernel parameters: the code serves
every problem of the same class.)";

struct CompileOptions {
  std::vector<std::string> words, include;
  std::string target, schedule, emit = "ptx", output, ptxas;
  ScheduleView view = ScheduleView::kShort;
  bool json = false;
};

enum class Form { kPtx, kTile, kLlvm, kCubin, kSass };

Result<Form> ParseForm(const std::string& text) {
  if (text == "ptx") return Form::kPtx;
  if (text == "tile") return Form::kTile;
  if (text == "llvm") return Form::kLlvm;
  if (text == "cubin") return Form::kCubin;
  if (text == "sass") return Form::kSass;
  return MakeError(ErrorCode::kInvalidArgument,
                   base::Cat("--emit ", text, " is unknown; use ptx, tile, llvm, cubin or sass"));
}

// The form to write, and the kernel.
struct Output {
  Form form;
  std::string ptxas;
  const target::Target& target;

  Result<std::string> Of(const ir::Program& program, const compiler::PtxModule& module) const;
  Result<std::string> Cubin(const std::string& ptx) const;
  Result<std::string> Sass(const std::string& ptx) const;
};

Result<std::string> Output::Cubin(const std::string& ptx) const {
  auto assembler = device::PtxAssembler::Find({.path = ptxas});
  if (!assembler)
    return MakeError(ErrorCode::kUnsupported, base::Cat("machine code needs ptxas: ", assembler.error().message));
  LS_ASSIGN(device::AssembleResult result, assembler->Assemble(ptx, target.name));
  return std::move(result.cubin);
}

Result<std::string> Output::Sass(const std::string& ptx) const {
  auto disassembler = device::Disassembler::Find();
  if (!disassembler)
    return MakeError(ErrorCode::kUnsupported, base::Cat("SASS needs a disassembler: ", disassembler.error().message));
  LS_ASSIGN(const std::string cubin, Cubin(ptx));
  LS_ASSIGN(device::Sass sass, disassembler->Disassemble(cubin));
  return std::move(sass.text);
}

Result<std::string> Output::Of(const ir::Program& program, const compiler::PtxModule& module) const {
  switch (form) {
    case Form::kPtx:
      return module.ptx;
    case Form::kTile:
      return ir::PrintProgram(program);
    case Form::kLlvm:
      return module.llvm_ir;
    case Form::kCubin:
      return Cubin(module.ptx);
    case Form::kSass:
      return Sass(module.ptx);
  }
  return MakeError(ErrorCode::kInternal, "unknown form");
}

// A kernel in addition to the main one: written to a separate file if the main one is, otherwise its code is in the
// JSON.
Result<Json> WriteKernel(const CompiledKernel& kernel, const Output& output, const std::string& path) {
  LS_ASSIGN(const std::string code, output.Of(kernel.program, kernel.module));
  Json json = {{"entry", kernel.module.entry}, {"key", compiler::KernelKey(kernel.program)}, {"bytes", code.size()}};
  if (path.empty()) {
    json["text"] = code;
  } else {
    const std::string own = base::Cat(path, ".", kernel.program.name);
    json["output"] = own;
    LS_TRY(WriteOutput(own, code));
  }
  return json;
}

void PrintKernel(std::string_view what, const Json& kernel) {
  Inform(base::Cat(what, ", by kernel ", kernel["key"].get<std::string>(), ": ",
                   kernel.value("output", "its code is shown with --json, or written with -o FILE")));
}

Result<int> Compile(const CompileOptions& options, const Settings& settings) {
  ProblemReader reader = ProblemReader::ForLooking(options.target, SourceOptionsOf(settings, options.include));
  LS_ASSIGN(const std::vector<Problem> problems, CollectProblems(options.words, {}, reader));
  if (problems.size() != 1) return MakeError(ErrorCode::kInvalidArgument, "compile takes one problem at a time");
  LS_ASSIGN(const Form form, ParseForm(options.emit));
  LS_ASSIGN(
      const Compilation compilation,
      CompileProblem(problems[0], options.schedule, form == Form::kLlvm ? Keep::kPtxAndLlvm : Keep::kPtx, reader));
  const Output code{form, options.ptxas, *compilation.target};
  const CompiledKernel& product = compilation.Product();
  LS_ASSIGN(const std::string output, code.Of(product.program, product.module));
  if (options.output.empty() && form == Form::kCubin) {
    return MakeError(ErrorCode::kInvalidArgument, "a cubin is binary; say where to write it with -o FILE");
  }
  Json pack = nullptr, totals = Json::array();
  for (const CompiledKernel& kernel : compilation.kernels) {
    if (&kernel == &product) continue;
    LS_ASSIGN(Json written, WriteKernel(kernel, code, options.output));
    if (kernel.purpose == compiler::LaunchPurpose::kPack) {
      pack = std::move(written);
    } else {
      totals.push_back(std::move(written));
    }
  }
  if (!options.json) {
    LS_TRY(WriteOutput(options.output, output));
    Inform(base::Cat(PrintProblem(problems[0]), " for ", compilation.target->name, ", ",
                     ShowSchedule(PrintSchedule(compilation.schedule), options.view), ": ",
                     PrintBytes(static_cast<double>(output.size())), " in ", PrintDuration(compilation.ptx_ms)));
    if (!pack.is_null()) PrintKernel("operands are packed first", pack);
    for (const Json& kernel : totals) PrintKernel("partial rows of reductions are added afterwards", kernel);
    return kExitOk;
  }
  Json json = {{"problem", PrintProblem(problems[0])},
               {"target", compilation.target->name},
               {"schedule", PrintSchedule(compilation.schedule)},
               {"choice", ChoiceOriginName(compilation.choice)},
               {"entry", product.module.entry},
               {"key", compiler::KernelKey(product.program)},
               {"ptx_ms", compilation.ptx_ms},
               {"emit", options.emit},
               {"bytes", output.size()},
               {"pack", std::move(pack)},
               {"totals", std::move(totals)}};
  if (options.output.empty()) {
    json["text"] = output;
  } else {
    LS_TRY(WriteOutput(options.output, output));
    json["output"] = options.output;
  }
  std::printf("%s\n", JsonLine(json).c_str());
  return kExitOk;
}

}  // namespace

Verb AddCompile(CLI::App& app, const Settings& settings) {
  CLI::App* verb = app.add_subcommand("compile", "Compile one problem and write the code, without a device");
  auto options = std::make_shared<CompileOptions>();
  verb->add_option("problem", options->words, "one problem, as bare words")->type_name("WORD");
  AddTarget(*verb, options->target);
  AddInclude(*verb, options->include);
  verb->add_option("--schedule", options->schedule, "a complete or partial schedule")->type_name("SCHEDULE");
  verb->add_option("--emit", options->emit,
                   "ptx, tile (the tile program), llvm (LLVM IR), cubin or sass (its machine code as text)")
      ->type_name("ptx|tile|llvm|cubin|sass")
      ->capture_default_str();
  verb->add_option("-o,--output", options->output, "file to write; default: standard output")->type_name("FILE");
  verb->add_option("--ptxas", options->ptxas, "path of ptxas, for a cubin or SASS")->type_name("FILE");
  AddFull(*verb, options->view);
  verb->add_flag("--json", options->json, "one JSON object on stdout; the code is in it unless -o is given");
  verb->footer(kCompileExamples);
  return [options, settings] { return Compile(*options, settings); };
}

}  // namespace laneshift::tools
