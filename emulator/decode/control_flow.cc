#include "emulator/decode/control_flow.h"

#include <algorithm>
#include <span>

#include "emulator/decode/binders.h"

namespace laneshift::emulator {
namespace {

constexpr int kUnknown = -1;

bool Leaves(const Instruction& i) { return i.ends_function || i.handler == ExecuteExit; }
bool Ends(const Instruction& i) { return i.is_branch || i.never_returns || Leaves(i); }

// Where a branch may go.
std::span<const uint32_t> TargetsOf(const DecodedKernel& kernel, const Instruction& i) {
  return i.table == kNoTarget ? std::span(&i.target, 1) : std::span(kernel.jump_tables[i.table]);
}

}  // namespace

ControlGraph BuildControlGraph(const DecodedKernel& kernel) {
  const std::vector<Instruction>& code = kernel.code;
  std::vector<uint8_t> leader(code.size() + 1, 0);
  if (!code.empty()) leader[0] = 1;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].is_branch) {
      for (const uint32_t target : TargetsOf(kernel, code[i])) leader[target] = 1;
    }
    if (Ends(code[i])) leader[i + 1] = 1;
  }
  ControlGraph graph;
  std::vector<int> block_of(code.size(), 0);
  for (size_t i = 0; i < code.size(); ++i) {
    if (leader[i]) graph.first.push_back(static_cast<uint32_t>(i));
    block_of[i] = static_cast<int>(graph.first.size()) - 1;
  }
  graph.exit = static_cast<int>(graph.first.size());
  graph.successors.resize(graph.first.size() + 1);
  graph.predecessors.resize(graph.first.size() + 1);
  for (int b = 0; b < graph.exit; ++b) {
    const size_t end = b + 1 < graph.exit ? graph.first[static_cast<size_t>(b) + 1] : code.size();
    const Instruction& last = code[end - 1];
    auto& to = graph.successors[static_cast<size_t>(b)];
    const bool conditional = last.guard != kNoSlot;
    if (last.is_branch) {
      for (const uint32_t target : TargetsOf(kernel, last)) to.push_back(block_of[target]);
    }
    if (Leaves(last)) to.push_back(graph.exit);
    if ((!Ends(last) || conditional) && end < code.size()) to.push_back(block_of[end]);
    // Lanes that trap do not meet the others again: a path to a trap is no way around a meeting point.
    if (to.empty() && !last.never_returns) to.push_back(graph.exit);
    for (const int s : to) graph.predecessors[static_cast<size_t>(s)].push_back(b);
  }
  return graph;
}

namespace {

// Blocks from which the exit can be reached, in postorder of the reversed graph.
std::vector<int> ReversePostorder(const ControlGraph& graph, std::vector<int>& number) {
  std::vector<int> order;
  std::vector<std::pair<int, size_t>> stack = {{graph.exit, 0}};
  std::vector<uint8_t> seen(graph.successors.size(), 0);
  seen[static_cast<size_t>(graph.exit)] = 1;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    const auto& before = graph.predecessors[static_cast<size_t>(block)];
    if (next == before.size()) {
      number[static_cast<size_t>(block)] = static_cast<int>(order.size());
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const int to = before[next++];
    if (seen[static_cast<size_t>(to)]) continue;
    seen[static_cast<size_t>(to)] = 1;
    stack.push_back({to, 0});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

// Cooper, Harvey and Kennedy's dominator iteration on the reversed graph.
void FindReconvergence(DecodedKernel& kernel) {
  std::vector<Instruction>& code = kernel.code;
  const ControlGraph graph = BuildControlGraph(kernel);
  std::vector<int> number(graph.successors.size(), kUnknown);
  const std::vector<int> order = ReversePostorder(graph, number);
  std::vector<int> meet(graph.successors.size(), kUnknown);
  meet[static_cast<size_t>(graph.exit)] = graph.exit;
  const auto common = [&](int a, int b) {
    while (a != b) {
      while (number[static_cast<size_t>(a)] < number[static_cast<size_t>(b)]) a = meet[static_cast<size_t>(a)];
      while (number[static_cast<size_t>(b)] < number[static_cast<size_t>(a)]) b = meet[static_cast<size_t>(b)];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const int block : order) {
      if (block == graph.exit) continue;
      int found = kUnknown;
      for (const int s : graph.successors[static_cast<size_t>(block)]) {
        if (meet[static_cast<size_t>(s)] == kUnknown) continue;
        found = found == kUnknown ? s : common(found, s);
      }
      if (found != kUnknown && meet[static_cast<size_t>(block)] != found) {
        meet[static_cast<size_t>(block)] = found;
        changed = true;
      }
    }
  }
  for (int b = 0; b < graph.exit; ++b) {
    const size_t end = b + 1 < graph.exit ? graph.first[static_cast<size_t>(b) + 1] : code.size();
    Instruction& last = code[end - 1];
    const int at = meet[static_cast<size_t>(b)];
    if (last.is_branch)
      last.reconvergence = at == kUnknown || at == graph.exit ? kNoTarget : graph.first[static_cast<size_t>(at)];
  }
}

}  // namespace laneshift::emulator
