#include "nvrtc/compile_worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/message.h"
#include "base/subprocess.h"
#include "base/text.h"

namespace laneshift::nvrtc {
namespace {

using base::Cat;
using base::Message;

// Limit of NVRTC's log: an error in a recursive template repeats it at every level.
constexpr size_t kMaxLogBytes = 256 << 10;
constexpr std::string_view kCause = "do its macros, templates or includes expand without end?";

Message Encode(const FunctionLimits& limits, const NvrtcPlace& place, const CompileJob& job) {
  Message message{"compile"};
  message.Add("memory_bytes", Cat(limits.memory_bytes));
  message.Add("cpu_seconds", Cat(limits.cpu_seconds));
  message.Add("nvrtc", place.path);
  for (const std::string& directory : place.library_directories) message.Add("library_directory", directory);
  message.Add("source", job.source);
  message.Add("file", job.file);
  message.Add("arch", job.arch);
  message.Add("form", job.form == CodeForm::kPtx ? "ptx" : "cubin");
  for (const std::string& option : job.options) message.Add("option", option);
  for (const Header& header : job.headers) {
    message.Add("header", header.name);
    message.Add("header_text", header.text);
  }
  return message;
}

CompileJob JobOf(const Message& message) {
  CompileJob job{.source = std::string(message.Find("source")),
                 .file = std::string(message.Find("file")),
                 .arch = std::string(message.Find("arch")),
                 .form = message.Find("form") == "ptx" ? CodeForm::kPtx : CodeForm::kCubin};
  for (const std::string_view option : message.All("option")) job.options.emplace_back(option);
  const auto names = message.All("header"), texts = message.All("header_text");
  for (size_t i = 0; i < std::min(names.size(), texts.size()); ++i) {
    job.headers.push_back({std::string(names[i]), std::string(texts[i])});
  }
  return job;
}

Error PassedLimit(std::string what) {
  return MakeError(ErrorCode::kResourceExhausted, Cat("NVRTC ", what, "; ", kCause));
}

// How a worker without an answer ended.
Error DescribeEnd(const base::ProgramResult& ended, const FunctionLimits& limits) {
  if (ended.signal == SIGXCPU || ended.signal == SIGKILL) {
    return PassedLimit(
        Cat("was ended after ", limits.cpu_seconds, " s of processor time (FunctionLimits::cpu_seconds)"));
  }
  const std::string how = ended.signal != 0 ? Cat("signal ", ended.signal, ", ", strsignal(ended.signal))
                                            : Cat("exit code ", ended.exit_code);
  const std::string_view messages = base::Trim(ended.messages);
  return PassedLimit(Cat("ended without an answer (", how, messages.empty() ? "" : ": ",
                         messages.substr(messages.rfind('\n') + 1), "), perhaps for lack of memory within its ",
                         limits.memory_bytes >> 20, " MiB (FunctionLimits::memory_bytes)"));
}

bool Limit(int resource, int64_t value) {
  rlimit now = {};
  if (getrlimit(resource, &now) != 0) return false;
  // Limits that are already stricter stay.
  const rlimit wanted = {std::min(static_cast<rlim_t>(value), now.rlim_max), now.rlim_max};
  return setrlimit(resource, &wanted) == 0;
}

Status LimitThisProcess(const Message& message) {
  const auto memory = base::ParseInt(message.Find("memory_bytes")),
             seconds = base::ParseInt(message.Find("cpu_seconds"));
  if (!memory || !seconds) return MakeError(ErrorCode::kInternal, "a job without limits");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (Limit(RLIMIT_CORE, 0) && Limit(RLIMIT_AS, *memory) && Limit(RLIMIT_CPU, *seconds)) return Ok();
  return MakeError(ErrorCode::kResourceExhausted, Cat("limits cannot be set: ", std::strerror(errno)));
}

Result<NvrtcCompilation> CompileHere(const Message& message) {
  LS_TRY(LimitThisProcess(message));
  std::vector<std::string> directories;
  for (const std::string_view directory : message.All("library_directory")) directories.emplace_back(directory);
  LS_ASSIGN(const Nvrtc nvrtc, Nvrtc::Open(directories, std::string(message.Find("nvrtc"))));
  return nvrtc.Run(JobOf(message));
}

Result<std::string> ReadToEnd(int input) {
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t count = read(input, chunk, sizeof chunk);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return MakeError(ErrorCode::kDriver, Cat("reading a job: ", std::strerror(errno)));
    text.append(chunk, static_cast<size_t>(count));
  }
}

Message Answer(int input) {
  const auto line = ReadToEnd(input);
  if (!line) return base::EncodeError(line.error());
  const auto job = base::ParseMessage(*line);
  if (!job) return base::EncodeError(job.error());
  auto compiled = CompileHere(*job);
  if (!compiled) return base::EncodeError(compiled.error());
  if (compiled->log.size() > kMaxLogBytes) {
    compiled->log.resize(kMaxLogBytes);
    compiled->log += "\n(and more)";
  }
  Message answer{"compiled"};
  answer.Add("failure", Cat(compiled->failure));
  answer.Add("log", compiled->log);
  answer.Add("code", compiled->code);
  return answer;
}

}  // namespace

Result<NvrtcCompilation> RunInWorker(const std::string& program, const FunctionLimits& limits, const NvrtcPlace& place,
                                     const CompileJob& job) {
  const std::string input = base::PrintMessage(Encode(limits, place, job));
  const auto ended = base::RunProgram(
      {.argv = {program, "compile-function"}, .input = input, .timeout = std::chrono::seconds(limits.wall_seconds)});
  if (!ended && ended.error().code == ErrorCode::kTimeout) {
    return PassedLimit(Cat("was not done after ", limits.wall_seconds, " s (FunctionLimits::wall_seconds)"));
  }
  if (!ended) return ended.error();
  const auto answer = base::ParseMessage(ended->output.substr(0, ended->output.find('\n')));
  if (!ended->Succeeded() || !answer) return DescribeEnd(*ended, limits);
  if (auto error = base::ErrorOf(*answer)) return std::move(*error);
  const auto failure = base::ParseInt(answer->Find("failure"));
  if (answer->kind != "compiled" || !failure) return DescribeEnd(*ended, limits);
  // NVRTC reports a failed allocation like an error in the source.
  if (*failure != 0 && answer->Find("log").find("error: out of memory") != std::string_view::npos) {
    return PassedLimit(
        Cat("needs more than ", limits.memory_bytes >> 20, " MiB of memory (FunctionLimits::memory_bytes)"));
  }
  return NvrtcCompilation{.failure = static_cast<int>(*failure),
                          .code = std::string(answer->Find("code")),
                          .log = std::string(answer->Find("log"))};
}

int ServeCompilation(int input, int output) {
  const std::string line = base::PrintMessage(Answer(input)) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = write(output, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return 1;
    rest.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace laneshift::nvrtc
