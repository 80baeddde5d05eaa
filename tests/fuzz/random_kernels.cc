// Random problems with random schedules on the emulator: each must be right or refused by name.
//
//   build/random_kernels --seconds 600 --seed 1             both targets, for ten minutes
//   build/random_kernels --draws 100 --target sm_90a --kind conv_wgrad --json
//   build/random_kernels --only "gemm m=16 n=16 k=16; tile=64x16; sm_100a; late; 8"
//
// Every draw runs in a separate process, so that one that aborts or hangs is a finding like any other. A finding is
// reduced and printed as the `laneshift run` command that repeats it. Exit code: 0 nothing found, 1 findings, 2 usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/subprocess.h"
#include "base/text.h"
#include "ir/grammar.h"
#include "target/target.h"
#include "tests/fuzz/draw_check.h"
#include "tests/fuzz/random_draw.h"
#include "tests/fuzz/shrink.h"

namespace laneshift::fuzz {
namespace {

using base::Cat;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnded = "ended by ";

struct Options {
  double seconds = 0;
  int64_t draws = 0;
  uint64_t seed = 1;
  std::string target, kind;  // empty: any
  int jobs = 0;
  int64_t assemble = 4;  // one in so many draws
  int timeout_s = 120;
  int attempts = 150;  // at making a finding smaller
  bool json = false;
  std::string only;
  int64_t child = -1;  // the draw that this process is to make and judge
};

uint64_t SeedOf(const Options& options, int64_t draw) {
  return options.seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(draw);
}

Assembly AssemblyOf(const Options& options, int64_t draw) {
  return options.assemble > 0 && draw % options.assemble == 0 ? Assembly::kPtxas : Assembly::kNone;
}

// What a process that judges a draw prints: the draw, and what came of it.
int PrintJudged(const Draw& draw, Assembly assembly) {
  std::printf("%s\n", draw.Print().c_str());
  std::fflush(stdout);  // before anything can abort
  const Judgement judged = Judge(draw, assembly);
  std::printf("%s %s\n", std::string(VerdictName(judged.verdict)).c_str(), judged.reason.c_str());
  return judged.verdict == DrawVerdict::kFinding ? 1 : 0;
}

int JudgeHere(const Options& options) {
  if (options.child >= 0) {
    Dice dice(SeedOf(options, options.child));
    return PrintJudged(MakeDraw(dice, options.target, options.kind), AssemblyOf(options, options.child));
  }
  const auto draw = ParseDraw(options.only);
  if (!draw) {
    std::fprintf(stderr, "random_kernels: %s\n", draw.error().message.c_str());
    return 2;
  }
  return PrintJudged(*draw, options.assemble > 0 ? Assembly::kPtxas : Assembly::kNone);
}

struct Judged {
  std::string draw;  // as printed; empty: it did not get that far
  Judgement judgement;
};

// This program again, with these options.
Judged JudgeElsewhere(const Options& options, const std::vector<std::string>& what) {
  base::Executable program{.argv = {"/proc/self/exe"}, .timeout = std::chrono::seconds(options.timeout_s)};
  program.argv.insert(program.argv.end(), what.begin(), what.end());
  const auto ended = base::RunProgram(program);
  if (!ended) return {"", {DrawVerdict::kFinding, Cat("process: ", ended.error().message)}};
  const std::vector<std::string_view> lines = base::Split(ended->output, '\n');
  Judged judged{std::string(lines[0]), {}};
  if (ended->signal == 0 && lines.size() >= 2) {
    const std::string_view verdict = lines[1].substr(0, lines[1].find(' '));
    judged.judgement.reason = base::Trim(lines[1].substr(verdict.size()));
    for (const DrawVerdict known : {DrawVerdict::kRight, DrawVerdict::kRefused, DrawVerdict::kFinding}) {
      if (VerdictName(known) != verdict) continue;
      judged.judgement.verdict = known;
      return judged;
    }
  }
  const std::vector<std::string_view> messages = base::Split(base::Trim(ended->messages), '\n');
  judged.judgement = {
      DrawVerdict::kFinding,
      Cat(kEnded, ended->signal != 0 ? Cat("signal ", ended->signal) : Cat("exit code ", ended->exit_code), ": ",
          messages.back())};
  return judged;
}

Judged JudgeDraw(const Options& options, const Draw& draw, Assembly assembly) {
  Judged judged = JudgeElsewhere(
      options, {"--only", draw.Print(), "--in-process", "--assemble", assembly == Assembly::kPtxas ? "1" : "0"});
  judged.draw = draw.Print();
  return judged;
}

// The kind of a finding, which identifies it: the text before the first colon.
std::string_view KindOf(const Judgement& judgement) {
  return std::string_view(judgement.reason).substr(0, judgement.reason.find(':'));
}

// All draws of a run, made by several threads.
class Search {
 public:
  explicit Search(const Options& options) : options_(options), begin_(Clock::now()) {}

  int Run() {
    std::vector<std::thread> threads;
    const int jobs = options_.jobs > 0 ? options_.jobs : static_cast<int>(std::thread::hardware_concurrency());
    for (int i = 0; i < std::max(1, jobs); ++i) threads.emplace_back([this] { Work(); });
    for (std::thread& thread : threads) thread.join();
    PrintSummary();
    return findings_ == 0 ? 0 : 1;
  }

 private:
  void Work() {
    for (;;) {
      int64_t draw = 0;
      {
        const std::lock_guard lock(mutex_);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
        if ((options_.draws > 0 && next_ >= options_.draws) || (options_.seconds > 0 && seconds >= options_.seconds)) {
          return;
        }
        draw = next_++;
      }
      Take(draw);
    }
  }

  void Take(int64_t draw) {
    const Judged judged =
        JudgeElsewhere(options_, {"--in-process", "--seed", Cat(options_.seed), "--draw", Cat(draw), "--target",
                                  options_.target, "--kind", options_.kind, "--assemble", Cat(options_.assemble)});
    {
      const std::lock_guard lock(mutex_);
      ++counts_[judged.judgement.verdict];
    }
    if (judged.judgement.verdict != DrawVerdict::kFinding) return;
    // What ends a process in the same words is the same finding, and was made smaller before.
    if (judged.judgement.reason.starts_with(kEnded) && !IsNew(judged.judgement.reason)) return;
    const auto made = ParseDraw(judged.draw);
    if (!made) return Report(draw, "", judged.judgement);
    const Assembly assembly = AssemblyOf(options_, draw);
    Judgement last = judged.judgement;
    const Draw smallest = Shrink(
        *made,
        [&](const Draw& smaller) {
          const Judgement now = JudgeDraw(options_, smaller, assembly).judgement;
          const bool same = now.verdict == DrawVerdict::kFinding && KindOf(now) == KindOf(judged.judgement);
          if (same) last = now;
          return same;
        },
        options_.attempts);
    Report(draw, smallest.Command(), last);
  }

  bool IsNew(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return known_.insert(text).second;
  }

  void Report(int64_t draw, const std::string& command, const Judgement& judgement) {
    if (!command.empty() && !IsNew(command)) return;
    const std::lock_guard lock(mutex_);
    ++findings_;
    std::string repeat = command;
    if (command.empty()) {
      repeat = Cat("random_kernels --seed ", options_.seed, " --draw ", draw);
      if (!options_.target.empty()) repeat += Cat(" --target ", options_.target);
      if (!options_.kind.empty()) repeat += Cat(" --kind ", options_.kind);
    }
    if (options_.json) {
      const nlohmann::ordered_json object = {{"draw", draw}, {"reason", judgement.reason}, {"command", repeat}};
      std::printf("%s\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
      std::printf("finding (draw %lld): %s\n  %s\n", static_cast<long long>(draw), judgement.reason.c_str(),
                  repeat.c_str());
    }
    std::fflush(stdout);
  }

  void PrintSummary() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    if (options_.json) {
      const nlohmann::ordered_json object = {{"draws", next_},
                                             {"right", counts_[DrawVerdict::kRight]},
                                             {"refused", counts_[DrawVerdict::kRefused]},
                                             {"findings", findings_},
                                             {"seconds", seconds}};
      std::printf("%s\n", object.dump().c_str());
      return;
    }
    std::printf("random_kernels: %lld draws in %.0f s, %lld right, %lld refused by name, %lld findings\n",
                static_cast<long long>(next_), seconds, static_cast<long long>(counts_[DrawVerdict::kRight]),
                static_cast<long long>(counts_[DrawVerdict::kRefused]), static_cast<long long>(findings_));
  }

  const Options& options_;
  const Clock::time_point begin_;
  std::mutex mutex_;  // of what follows
  int64_t next_ = 0, findings_ = 0;
  std::map<DrawVerdict, int64_t> counts_;
  std::set<std::string> known_;  // findings: reasons and commands
};

int Main(int argc, char** argv) {
  Options options;
  bool in_process = false;
  CLI::App app("Random problems with random schedules, compiled, assembled, run on the emulator and checked");
  app.add_option("--seconds", options.seconds, "how long draws are begun; 0: until --draws are made")
      ->capture_default_str();
  app.add_option("--draws", options.draws, "how many; 0: until --seconds have passed")->capture_default_str();
  app.add_option("--seed", options.seed, "equal seeds draw alike")->capture_default_str();
  app.add_option("--target", options.target, "only this one; else both");
  app.add_option("--kind", options.kind, "only problems of this kind; else all");
  app.add_option("--jobs", options.jobs, "draws at one time; 0: as many as there are cores")->capture_default_str();
  app.add_option("--assemble", options.assemble, "one kernel in so many goes through ptxas; 0: none")
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "seconds after which a draw counts as hung")->capture_default_str();
  app.add_option("--attempts", options.attempts, "at making a finding smaller")->capture_default_str();
  app.add_flag("--json", options.json, "one JSON object a finding, then one of the counts");
  app.add_option("--only", options.only, "judges one draw: PROBLEM; SCHEDULE; TARGET; ORDER; MULTIPROCESSORS");
  app.add_option("--draw", options.child, "judges the draw of this number of --seed")->check(CLI::NonNegativeNumber);
  app.add_flag("--in-process", in_process, "judges in this process, where an abort ends it")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!options.target.empty()) {
    if (const auto known = target::FindTarget(options.target); !known) {
      std::fprintf(stderr, "random_kernels: %s\n", known.error().message.c_str());
      return 2;
    }
  }
  const std::vector<std::string_view> known_kinds = ir::ProblemKinds();
  const std::vector<std::string> kinds(known_kinds.begin(), known_kinds.end());
  if (!options.kind.empty() && std::find(kinds.begin(), kinds.end(), options.kind) == kinds.end()) {
    std::fprintf(stderr, "random_kernels: --kind: '%s' is none of %s\n", options.kind.c_str(),
                 base::Join(kinds, ", ").c_str());
    return 2;
  }
  if (in_process || options.child >= 0 || !options.only.empty()) return JudgeHere(options);
  if (options.draws <= 0 && options.seconds <= 0) {
    std::fprintf(stderr, "random_kernels: nothing to do; give --seconds or --draws\n");
    return 2;
  }
  return Search(options).Run();
}

}  // namespace
}  // namespace laneshift::fuzz

int main(int argc, char** argv) { return laneshift::fuzz::Main(argc, argv); }
