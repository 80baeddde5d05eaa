#include "measure/chain.h"

#include <algorithm>
#include <utility>

#include "measure/operand_memory.h"
#include "measure/reference/host_reference.h"
#include "measure/runnable.h"
#include "runtime/engine_parts.h"

namespace laneshift::measure {

Result<Chain> Chain::Make(const Engine& engine, const device::Stream& stream, const std::vector<Problem>& problems,
                          const ScheduleConstraint& constraint, int layers, uint64_t seed) {
  Chain chain(engine, stream, problems);
  chain.operands_.resize(static_cast<size_t>(layers));
  std::vector<Contender> calls;
  for (const Problem& problem : problems) {
    LS_TRY(CheckHostMemory(problem, HostCopies::kOnce));
    LS_ASSIGN(DeviceOperands first,
              DeviceOperands::Upload(stream.context(), stream, problem, HostOperands::Random(problem, seed)));
    for (size_t layer = 1; layer < chain.operands_.size(); ++layer) {
      LS_ASSIGN(DeviceOperands clone, first.Clone(stream.context(), stream));
      chain.operands_[layer].push_back(std::move(clone));
    }
    chain.operands_[0].push_back(std::move(first));
    LS_ASSIGN(const auto plan, Runnable::Make(engine, stream, problem, constraint, 0));
    chain.reports_.push_back(plan->report());
    calls.push_back([&stream, plan](const Arguments& arguments) { return plan->Execute(stream, arguments); });
  }
  LS_TRY(stream.Synchronize());
  LS_TRY(chain.AddWay("laneshift", calls, {}));
  return chain;
}

Status Chain::AddPeer(Peer peer, const std::vector<std::string>& library_directories) {
  std::vector<std::vector<PeerCall>> by_problem;
  for (size_t i = 0; i < problems_.size(); ++i) {
    LS_ASSIGN(auto calls, OpenPeer(peer, library_directories, engine_.parts().device, stream_, problems_[i],
                                   operands_[0][i].arguments()));
    by_problem.push_back(std::move(calls));
  }
  for (const PeerCall& way : by_problem.front()) {
    std::vector<Contender> calls;
    std::vector<std::string> notes;
    for (const auto& of_problem : by_problem) {
      const auto same = std::find_if(of_problem.begin(), of_problem.end(),
                                     [&](const PeerCall& call) { return call.name == way.name; });
      if (same == of_problem.end()) break;
      calls.push_back(same->call);
      for (const std::string& note : same->notes) {
        if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
      }
    }
    if (calls.size() == problems_.size()) LS_TRY(AddWay(way.name, calls, std::move(notes)));
  }
  return Ok();
}

Status Chain::AddWay(const std::string& name, const std::vector<Contender>& calls, std::vector<std::string> notes) {
  const auto enqueue = [&]() -> Status {
    for (const auto& of_layer : operands_) {
      for (size_t i = 0; i < calls.size(); ++i) LS_TRY(calls[i](of_layer[i].arguments()));
    }
    return Ok();
  };
  // Libraries prepare themselves in their first call, which a capture does not allow.
  LS_TRY(enqueue());
  LS_TRY(stream_.Synchronize());
  LS_ASSIGN(device::LaunchGraph graph, device::LaunchGraph::Capture(stream_, enqueue));
  ways_.push_back({name, std::move(graph), std::move(notes)});
  calls_.push_back(calls);
  return Ok();
}

Result<std::vector<std::vector<store::Sample>>> Chain::Time(int rounds, const ReadConditions& read_conditions) const {
  std::vector<Call> calls;
  for (const Way& way : ways_) calls.push_back([&] { return way.graph.Launch(stream_); });
  return TimeCalls(engine_.parts().device, stream_, calls, kMinWarmUpPasses, rounds, read_conditions);
}

}  // namespace laneshift::measure
