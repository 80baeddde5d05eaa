#include "measure/worker.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>

#include "base/text.h"
#include "base/threads.h"
#include "measure/parallel_for.h"
#include "runtime/engine_parts.h"
#include "store/trial_table.h"

namespace laneshift::measure {
namespace {

using autotune::Message;
using autotune::Trial;
using base::Cat;
using store::Verdict;

constexpr int kExitContextLost = 3;

// Lines, as they arrive.
class Inbox {
 public:
  void Put(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
    arrived_.notify_one();
  }
  std::string Take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !lines_.empty(); });
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
};

// Reads to the end of the input, then ends the process: a kernel that hangs must not keep it.
void Watch(int input, Inbox& inbox) {
  std::string unread;
  char chunk[1 << 14];
  for (;;) {
    const ssize_t count = read(input, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) std::_Exit(0);
    unread.append(chunk, static_cast<size_t>(count));
    for (size_t end; (end = unread.find('\n')) != std::string::npos; unread.erase(0, end + 1)) {
      inbox.Put(unread.substr(0, end));
    }
  }
}

void Send(int output, const Message& message) {
  const std::string line = autotune::PrintMessage(message) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = write(output, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) std::_Exit(0);
    rest.remove_prefix(static_cast<size_t>(count));
  }
}

Result<std::vector<Schedule>> SchedulesOf(const Message& request) {
  std::vector<Schedule> schedules;
  for (const std::string_view text : request.All("schedule")) {
    LS_ASSIGN(const ScheduleConstraint parsed, ParseSchedule(text));
    schedules.push_back(parsed.value);
  }
  return schedules;
}

class Server {
 public:
  Server(const Engine& engine, const BenchOptions& options) : engine_(engine), options_(options) {}

  Message Hello() const {
    const Engine::Parts& parts = engine_.parts();
    // One error now is better than a refusal of every candidate.
    const auto assembler = parts.find_assembler();
    if (!assembler) return autotune::EncodeError(assembler.error());
    return autotune::Encode(autotune::WorkerHello{.target = std::string(parts.target.name),
                                                  .device_key = parts.device_key,
                                                  .device_name = engine_.device_name(),
                                                  .driver = parts.device.facts().Driver(),
                                                  .assembler = *assembler,
                                                  .sm_count = parts.device.facts().sm_count,
                                                  .emulated = parts.emulated});
  }

  // Sets `context_lost` if the process cannot be used any more.
  Result<Message> Answer(const Message& request) {
    LS_ASSIGN(const Problem problem, ParseProblem(request.Find("problem")));
    LS_ASSIGN(const Problem complete, CompleteProblem(problem));
    LS_ASSIGN(const std::vector<Schedule> schedules, SchedulesOf(request));
    if (request.kind == "compile") return Compile(complete, schedules);
    LS_TRY(Open(complete));
    if (request.kind == "open") return Message{"opened"};
    if (request.kind == "check" && schedules.size() == 1) {
      const Trial trial = bench_->Check(schedules.front());
      context_lost = trial.verdict == Verdict::kCrashed;
      // The next kernel must not be blamed for what a wrong kernel wrote: everything is recreated.
      if (trial.verdict == Verdict::kWrong) bench_.reset();
      return autotune::EncodeVerdicts("checked", {trial});
    }
    if (request.kind == "time" && !schedules.empty()) return Time(schedules, request);
    return MakeError(ErrorCode::kInternal, Cat("a worker does not know how to ", request.kind));
  }

  bool context_lost = false;

 private:
  Message Compile(const Problem& problem, const std::vector<Schedule>& schedules) const {
    std::vector<Trial> trials(schedules.size());
    ParallelFor(static_cast<int64_t>(schedules.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const auto whole = ParseSchedule(PrintSchedule(schedules[at]));
      const auto plan = engine_.MakePlan(problem, *whole);
      if (!plan) trials[at] = {.verdict = Verdict::kRefused, .detail = plan.error().message};
    });
    return autotune::EncodeVerdicts("compiled", trials);
  }

  Status Open(const Problem& problem) {
    if (bench_ != nullptr && opened_ == problem) return Ok();
    bench_.reset();  // its memory first
    LS_ASSIGN(bench_, ProblemBench::Open(engine_, problem, options_));
    opened_ = problem;
    return Ok();
  }

  Result<Message> Time(const std::vector<Schedule>& schedules, const Message& request) {
    const std::string_view rounds = request.Find("rounds"), name = request.Find("order");
    const auto count = base::ParseInt(rounds);
    if (!count || *count < 1) return MakeError(ErrorCode::kInternal, Cat("'", rounds, "' is no number of rounds"));
    const auto order = store::TimingOrderFrom(name);
    if (!order) return MakeError(ErrorCode::kInternal, Cat("'", name, "' is no order of timing"));
    auto samples = bench_->Time(schedules, static_cast<int>(*count), *order);
    if (samples) return autotune::EncodeSamples(*samples);
    // Which of the schedules it was is unknown; the owner finds out.
    std::fprintf(stderr, "%s\n", samples.error().message.c_str());
    std::_Exit(kExitContextLost);
  }

  const Engine& engine_;
  const BenchOptions& options_;
  std::unique_ptr<ProblemBench> bench_;
  Problem opened_;
};

}  // namespace

int ServeWorker(const Result<Engine>& engine, const BenchOptions& options, int input, int output) {
  if (!engine) {
    Send(output, autotune::EncodeError(engine.error()));
    return 1;
  }
  Inbox inbox;
  auto watcher = base::Thread::Start([input, &inbox] { Watch(input, inbox); });
  if (!watcher) {
    Send(output, autotune::EncodeError(watcher.error()));
    return 1;
  }
  watcher->Detach();
  Server server(*engine, options);
  Send(output, server.Hello());
  for (;;) {
    const auto request = autotune::ParseMessage(inbox.Take());
    const auto answer = request ? server.Answer(*request) : Result<Message>(request.error());
    Send(output, answer ? *answer : autotune::EncodeError(answer.error()));
    // Not through destructors, which would ask a lost context to free its memory.
    if (server.context_lost) std::_Exit(kExitContextLost);
  }
}

}  // namespace laneshift::measure
