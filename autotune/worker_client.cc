#include "autotune/worker_client.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "store/trial_table.h"

namespace laneshift::autotune {
namespace {

using base::Cat;
using std::chrono::milliseconds;
using store::TimingOrder;
using store::Verdict;

constexpr milliseconds kPatience{100};  // between two questions whether to stop
constexpr milliseconds kGpuTrial{10000}, kEmulatedTrial{3600000};

Message Request(std::string_view kind, const std::string& problem, const std::vector<Schedule>& schedules) {
  Message request{std::string(kind)};
  request.Add("problem", problem);
  for (const Schedule& schedule : schedules) request.Add("schedule", PrintSchedule(schedule));
  return request;
}

}  // namespace

Result<WorkerHello> WorkerClient::Hello() {
  if (process_) return *hello_;
  opened_.clear();
  LS_ASSIGN(base::LineProcess process, base::LineProcess::Start(options_.argv));
  process_ = std::move(process);
  const auto line = Await(options_.start_timeout);
  if (!line) {
    if (options_.stop()) return Abandon();
    const std::string end = process_->End();
    const std::string messages = process_->LastMessages();
    process_.reset();
    return MakeError(line.error().code == ErrorCode::kTimeout ? ErrorCode::kTimeout : ErrorCode::kDriver,
                     Cat("the worker ", options_.argv.front(), " did not begin: it ", end, " ", messages));
  }
  const auto message = ParseMessage(*line);
  auto hello = message ? DecodeHello(*message) : Result<WorkerHello>(message.error());
  if (!hello) {
    process_.reset();
    return hello;
  }
  hello_ = std::move(*hello);
  return *hello_;
}

Result<std::string> WorkerClient::Await(milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    auto line = process_->Read(std::clamp(left, milliseconds(0), kPatience));
    if (line || line.error().code != ErrorCode::kTimeout) return line;
    if (left <= kPatience || options_.stop()) return line;
  }
}

Error WorkerClient::Abandon() {
  process_.reset();
  return MakeError(ErrorCode::kTimeout, "stopped");
}

Trial WorkerClient::Lose(Verdict verdict, std::string_view what) {
  const std::string end = process_->End();
  const std::string messages = process_->LastMessages();
  process_.reset();
  ++losses_;
  std::string detail = verdict == Verdict::kHung ? Cat("still ", what, " at its deadline; the worker ", end)
                                                 : Cat("the worker ", end, " while ", what);
  if (!messages.empty()) detail += Cat(": ", messages);
  return {.verdict = verdict, .detail = std::move(detail)};
}

Result<WorkerClient::Answer> WorkerClient::Ask(const Message& request, milliseconds timeout) {
  LS_TRY(Hello());
  const std::string what = request.kind == "time"      ? "timing"
                           : request.kind == "compile" ? "compiling"
                           : request.kind == "open"    ? "making operands"
                                                       : "running";
  if (!process_->Write(PrintMessage(request))) return Answer{std::nullopt, Lose(Verdict::kCrashed, what)};
  const auto line = Await(timeout);
  if (!line && options_.stop()) return Abandon();
  if (!line) {
    const bool hung = line.error().code == ErrorCode::kTimeout;
    return Answer{std::nullopt, Lose(hung ? Verdict::kHung : Verdict::kCrashed, what)};
  }
  LS_ASSIGN(Message message, ParseMessage(*line));
  return Answer{std::move(message), {}};
}

Status WorkerClient::OpenProblem(const std::string& problem) {
  LS_TRY(Hello());
  if (opened_ == problem) return Ok();
  LS_ASSIGN(const Answer answer, Ask(Request("open", problem, {}), options_.open_timeout));
  // No candidate runs yet: there is nobody to blame, and another attempt would end in the same way.
  if (!answer.reply) return MakeError(ErrorCode::kDriver, answer.loss.detail);
  if (answer.reply->kind != "opened") return DecodeError(*answer.reply, "opened");
  opened_ = problem;
  return Ok();
}

Result<std::vector<Trial>> WorkerClient::Compile(const std::string& problem, const std::vector<Schedule>& schedules) {
  LS_ASSIGN(const Answer answer, Ask(Request("compile", problem, schedules), options_.compile_timeout));
  if (answer.reply) {
    LS_ASSIGN(std::vector<Trial> trials, DecodeVerdicts("compiled", *answer.reply));
    if (trials.size() == schedules.size()) return trials;
    return MakeError(ErrorCode::kInternal, Cat(trials.size(), " verdicts for ", schedules.size(), " schedules"));
  }
  if (schedules.size() == 1) return std::vector<Trial>{answer.loss};
  std::vector<Trial> trials;
  for (const Schedule& schedule : schedules) {
    LS_ASSIGN(std::vector<Trial> single, Compile(problem, {schedule}));
    trials.push_back(std::move(single.front()));
  }
  return trials;
}

Result<Trial> WorkerClient::CheckOne(const std::string& problem, const Schedule& schedule) {
  LS_TRY(OpenProblem(problem));
  LS_ASSIGN(const Answer answer, Ask(Request("check", problem, {schedule}), TrialTimeout()));
  if (!answer.reply) return answer.loss;
  LS_ASSIGN(std::vector<Trial> trials, DecodeVerdicts("checked", *answer.reply));
  if (trials.size() != 1) return MakeError(ErrorCode::kInternal, "one check, but not one verdict");
  // The worker lives, but its context does not.
  if (trials.front().verdict == Verdict::kCrashed) {
    process_.reset();
    ++losses_;
  }
  // The worker makes its operands anew, which may take longer than a trial.
  if (trials.front().verdict == Verdict::kWrong) opened_.clear();
  return std::move(trials.front());
}

Result<std::vector<Trial>> WorkerClient::Check(const std::string& problem, const std::vector<Schedule>& schedules) {
  LS_ASSIGN(std::vector<Trial> trials, Compile(problem, schedules));
  for (size_t i = 0; i < schedules.size(); ++i) {
    if (trials[i].verdict != Verdict::kPassed) continue;
    LS_ASSIGN(trials[i], CheckOne(problem, schedules[i]));
  }
  return trials;
}

Result<std::vector<Trial>> WorkerClient::Time(const std::string& problem, const std::vector<Schedule>& schedules,
                                              int rounds, TimingOrder order) {
  LS_TRY(OpenProblem(problem));
  Message request = Request("time", problem, schedules);
  request.Add("rounds", Cat(rounds));
  request.Add("order", TimingOrderName(order));
  LS_ASSIGN(const Answer answer, Ask(request, TrialTimeout() * static_cast<int64_t>(schedules.size())));
  std::vector<Trial> trials(schedules.size());
  if (answer.reply) {
    LS_ASSIGN(SampleTable table, DecodeSamples(*answer.reply, schedules.size()));
    for (size_t i = 0; i < trials.size(); ++i) trials[i].samples = std::move(table[i]);
    return trials;
  }
  if (schedules.size() == 1) return std::vector<Trial>{answer.loss};
  for (size_t i = 0; i < trials.size(); ++i) {
    LS_ASSIGN(std::vector<Trial> single, Time(problem, {schedules[i]}, rounds, order));
    trials[i] = std::move(single.front());
  }
  return trials;
}

milliseconds WorkerClient::TrialTimeout() const {
  if (options_.trial_timeout.count() > 0) return options_.trial_timeout;
  return hello_ && hello_->emulated ? kEmulatedTrial : kGpuTrial;
}

}  // namespace laneshift::autotune
