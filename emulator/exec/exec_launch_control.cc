// Cluster launch control (CLC work stealing): a running cluster cancels one that has not started and does its work.
//
// The 16-byte response, opaque to programs: word 0 is 1 when a cluster was cancelled, words 1 to 3 are the index of its
// first CTA.

#include <bit>
#include <cstring>

#include "emulator/decode/binders.h"
#include "emulator/exec/async_effect.h"
#include "emulator/exec/lanes.h"

namespace laneshift::emulator {
namespace {

using Response = std::array<uint32_t, 4>;

// The answer to one request: decided when the first CTA's response is written, the same for all of them.
struct Request {
  bool answered = false;
  Response response{};
};

bool Answer(AsyncOp& self, Request& request, Cta& cta, uint32_t at, uint32_t barrier_at) {
  if (!request.answered) {
    request.answered = true;
    if (const auto first = self.warp->cta().cluster().CancelOne()) {
      request.response = {1, (*first)[0], (*first)[1], (*first)[2]};
    }
  }
  std::memcpy(cta.shared().At(at), request.response.data(), sizeof(Response));
  cta.shared().MarkWritten(at, sizeof(Response));
  return CompleteTransaction(self, cta, barrier_at, sizeof(Response));
}

Outcome TryCancel(Warp& w, const Instruction& i, uint32_t mask) {
  Cluster& cluster = w.cta().cluster();
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Located to, barrier;
    if (!LocateShared(w, i.space, w.AddressOf(i[0], lane), 16, 16, lane, false, to)) return Outcome::kFault;
    if (!LocateShared(w, i.space, w.AddressOf(i[1], lane), 8, 8, lane, false, barrier)) return Outcome::kFault;
    if (w.cta().saw_refused_cancellation)
      w.Report(HazardKind::kLaunchControl, lane, "try_cancel after a request of this CTA was seen to be refused");
    std::vector<Cta*> ctas = {&w.cta()};
    if (i.modifiers != 0) {
      ctas.clear();
      for (const auto& cta : cluster.ctas()) {
        if (cta->done())
          w.Report(HazardKind::kLaunchControl, lane, "multicast try_cancel after a CTA of the cluster has ended");
        ctas.push_back(cta.get());
      }
    }
    auto request = std::make_shared<Request>();
    for (Cta* cta : ctas) {
      OpHandle op = NewOperation(w, AsyncKind::kCancel, lane);
      op->shared.push_back({cta, {to.offset, to.offset + 16}, true});
      op->effect = [cta, request, at = to.offset, barrier_at = barrier.offset](AsyncOp& self) {
        return Answer(self, *request, *cta, at, barrier_at);
      };
      if (!cluster.Issue(op)) return Outcome::kFault;
    }
  }
  return Outcome::kNext;
}

Response ResponseOf(Warp& w, const DecodedOperand& operand, int lane) {
  Response response;
  std::memcpy(response.data(), w.At<uint64_t>(operand) + 2 * lane, sizeof(response));
  return response;
}

Outcome IsCanceled(Warp& w, const Instruction& i, uint32_t mask) {
  uint32_t bits = 0;
  ForLanes(mask, [&](int lane) { bits |= (ResponseOf(w, i[1], lane)[0] & 1) << lane; });
  if (bits != mask) w.cta().saw_refused_cancellation = true;
  w.SetPredicate(i[0], mask, bits);
  return Outcome::kNext;
}

// modifiers: the first dimension. A vector gets x, y, z and nothing.
Outcome FirstCtaid(Warp& w, const Instruction& i, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Response response = ResponseOf(w, i[1], lane);
    if ((response[0] & 1) == 0) {
      w.Report(HazardKind::kLaunchControl, lane, "the first CTA of a cluster that was not cancelled is undefined");
      response = {0, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    }
    const auto set = [&](const DecodedOperand& to, size_t d) {
      w.At<uint32_t>(to)[lane] = d < 3 ? response[1 + d] : 0;
    };
    if (i[0].count == 0) set(i[0], static_cast<size_t>(i.modifiers));
    for (uint32_t e = 0; e < i[0].count; ++e) {
      if (i[0].elements[e].slot != kNoSlot) set(i[0].elements[e], e);
    }
  }
  return Outcome::kNext;
}

}  // namespace

Result<Handler> BindTryCancel(const Match& match, Instruction& i) {
  i.space = match.Has("shared::cta") ? StateSpace::kShared : StateSpace::kGeneric;
  i.modifiers = match.Has("multicast::cluster::all") ? 1 : 0;
  return Handler(TryCancel);
}
Result<Handler> BindIsCanceled(const Match&, Instruction&) { return Handler(IsCanceled); }
Result<Handler> BindFirstCtaid(const Match& match, Instruction& i) {
  const std::string_view first = match("First");
  i.modifiers = first.empty() ? 0 : static_cast<uint64_t>(first.back() - 'x');
  if (first.empty() && i[0].count != 4) return Wrong("get_first_ctaid.v4 needs four registers");
  return Handler(FirstCtaid);
}

}  // namespace laneshift::emulator
