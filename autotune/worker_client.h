// WorkerClient: a Bench in another process. Whatever a candidate does to its device affects only the worker.
//
// The worker is started when it is first needed and again after a crash. A candidate that crashes the worker, or is not
// done by its deadline, gets a verdict; if several were in flight, each is tried once more by itself, so that the
// others are not blamed. Thread-safety: none; one client, one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/search.h"
#include "autotune/worker_protocol.h"
#include "base/line_process.h"

namespace laneshift::autotune {

struct WorkerOptions {
  std::vector<std::string> argv;                    // the program that serves, with its arguments
  std::chrono::milliseconds start_timeout{120000};  // opening a GPU
  std::chrono::milliseconds open_timeout{600000};   // operands and reference of one problem
  std::chrono::milliseconds compile_timeout{180000};
  // Of one check, and for each schedule of all rounds of a timing; zero: ten seconds on a GPU, an hour on an emulator.
  std::chrono::milliseconds trial_timeout{0};
  // Asked several times a second while the worker is waited for; then the worker is ended, and what it did has no
  // verdict: the call ends with kTimeout.
  std::function<bool()> stop = [] { return false; };
};

class WorkerClient {
 public:
  explicit WorkerClient(WorkerOptions options) : options_(std::move(options)) {}

  // The worker's device; starts the worker if it is not running. Errors: it cannot be started, or its own error.
  Result<WorkerHello> Hello();

  // As Bench, for one problem after the other.
  Result<std::vector<Trial>> Check(const std::string& problem, const std::vector<Schedule>& schedules);
  Result<std::vector<Trial>> Time(const std::string& problem, const std::vector<Schedule>& schedules, int rounds,
                                  store::TimingOrder order);

  // How many workers crashed because of candidates.
  int losses() const { return losses_; }

 private:
  // A reply, or how the worker ended.
  struct Answer {
    std::optional<Message> reply{};
    Trial loss{};
  };
  Result<Answer> Ask(const Message& request, std::chrono::milliseconds timeout);
  // Its next line, unless it is not there in time or nobody wants it any more.
  Result<std::string> Await(std::chrono::milliseconds timeout);
  Error Abandon();
  Trial Lose(store::Verdict verdict, std::string_view what);
  Status OpenProblem(const std::string& problem);
  Result<std::vector<Trial>> Compile(const std::string& problem, const std::vector<Schedule>& schedules);
  Result<Trial> CheckOne(const std::string& problem, const Schedule& schedule);
  std::chrono::milliseconds TrialTimeout() const;

  const WorkerOptions options_;
  std::optional<base::LineProcess> process_;
  std::optional<WorkerHello> hello_;
  std::string opened_;  // the problem that the worker has ready
  int losses_ = 0;
};

// The client as the Bench of one problem. REQUIRES: the client outlives it.
class WorkerBench : public Bench {
 public:
  WorkerBench(WorkerClient& client, std::string problem) : client_(client), problem_(std::move(problem)) {}
  Result<std::vector<Trial>> Check(const std::vector<Schedule>& schedules) override {
    return client_.Check(problem_, schedules);
  }
  Result<std::vector<Trial>> Time(const std::vector<Schedule>& schedules, int rounds,
                                  store::TimingOrder order) override {
    return client_.Time(problem_, schedules, rounds, order);
  }

 private:
  WorkerClient& client_;
  const std::string problem_;
};

}  // namespace laneshift::autotune
