#include "tools/reports/advice_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "tools/table.h"

namespace laneshift::tools {
namespace {

using autotune::Bound;
using autotune::Prediction;
using base::Cat;
using Json = nlohmann::ordered_json;

constexpr double kShownShare = 0.03;   // of the time, below which a cause is left out of texts
constexpr double kSecondShare = 0.15;  // from which a second cause is named, too

std::string Us(double us) { return Cat(PrintFixed(us, us < 100 ? 2 : 0), " us"); }
std::string Percent(double share) { return Cat(PrintFixed(100 * share, 0), "%"); }

// The causes whose amounts, in any direction, are at least `least`; the largest first.
template <typename Amounts>
std::vector<size_t> Larger(const Amounts& amounts, double least) {
  std::vector<size_t> order;
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (std::abs(amounts[i]) >= least) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(amounts[a]) > std::abs(amounts[b]); });
  return order;
}

std::string NameOf(size_t cause) { return std::string(autotune::BoundName(static_cast<Bound>(cause))); }

}  // namespace

std::string DifferenceOf(const Schedule& from, const Schedule& to) {
  const std::string before = PrintSchedule(from), after = PrintSchedule(to);
  const std::vector<std::string_view> usual = base::Words(before);
  std::vector<std::string> words;
  for (const std::string_view word : base::Words(after)) {
    if (std::find(usual.begin(), usual.end(), word) == usual.end()) words.emplace_back(word);
  }
  return base::Join(words, " ");
}

std::string BreakdownText(const Prediction& p) {
  std::vector<std::string> causes;
  for (const size_t i : Larger(p.by_us, kShownShare * p.us))
    causes.push_back(Cat(NameOf(i), " ", Percent(p.by_us[i] / p.us)));
  return base::Join(causes, ", ");
}

Json BreakdownJson(const Prediction& p) {
  Json breakdown = Json::object();
  for (size_t i = 0; i < p.by_us.size(); ++i) {
    if (p.by_us[i] > 0) breakdown[NameOf(i)] = p.by_us[i];
  }
  return breakdown;
}

std::string TradeText(const Prediction& from, const Prediction& to) {
  std::array<double, autotune::kBoundCount> more{};
  for (size_t i = 0; i < more.size(); ++i) more[i] = to.by_us[i] - from.by_us[i];
  std::vector<std::string> trades;
  const auto add = [&](size_t i) {
    trades.push_back(Cat(Us(std::abs(more[i])), more[i] > 0 ? " more " : " less ", NameOf(i)));
  };
  for (const size_t i : Larger(more, std::max(0.01, kShownShare / 2 * from.us))) add(i);
  // Where all differences are small, the largest one.
  if (const std::vector<size_t> all = Larger(more, 0.005); trades.empty() && !all.empty()) add(all[0]);
  return base::Join(trades, ", ");
}

Json AdviceJson(const AdvisedSchedule& advised) {
  const autotune::ScheduleAdvice& a = advised.advice;
  const Prediction& p = a.prediction;
  Json weaknesses = Json::array();
  for (const autotune::Weakness& weakness : a.weaknesses) {
    weaknesses.push_back({{"name", weakness.name},
                          {"why", weakness.doc},
                          {"change", DifferenceOf(advised.schedule, weakness.better)},
                          {"schedule", PrintSchedule(weakness.better)},
                          {"predicted_us", weakness.prediction.us},
                          {"gain", 1 - weakness.prediction.us / p.us}});
  }
  Json rival = nullptr;
  if (advised.rival) {
    rival = {{"what", advised.rival->what},
             {"schedule", PrintSchedule(advised.rival->schedule)},
             {"change", DifferenceOf(advised.schedule, advised.rival->schedule)},
             {"predicted_us", advised.rival->prediction.us},
             {"breakdown_us", BreakdownJson(advised.rival->prediction)}};
  }
  return {{"predicted_us", p.us},
          {"bound", autotune::BoundName(p.bound)},
          {"bound_share", p.by_us[static_cast<size_t>(p.bound)] / p.us},
          {"busy", {{"tensor core", p.busy.tensor_core}, {"L2", p.busy.l2}, {"memory", p.busy.memory}}},
          {"last_wave",
           {{"waves", a.last_wave.waves},
            {"idle_sms", a.last_wave.idle_sms},
            {"sms", a.last_wave.sms},
            {"idle_share", a.last_wave.IdleShare()}}},
          {"floor",
           {{"us", a.floor.Us()},
            {"by", autotune::BoundName(a.floor.By())},
            {"tensor_us", a.floor.tensor_us},
            {"memory_us", a.floor.memory_us},
            {"launch_us", a.floor.launch_us}}},
          {"times_floor", a.TimesFloor()},
          {"weaknesses", std::move(weaknesses)},
          {"rival", std::move(rival)},
          {"a_faster_kernel_needs", autotune::RemedyOf(p.bound, advised.schedule, *advised.target)}};
}

namespace {

// How much of the time the unit works that binds: nothing if no unit does.
std::optional<double> BusyOfBound(const Prediction& p) {
  switch (p.bound) {
    case Bound::kTensorCore:
    case Bound::kSharedMemory:
      return p.busy.tensor_core;
    case Bound::kL2:
      return p.busy.l2;
    case Bound::kMemory:
      return p.busy.memory;
    default:
      return std::nullopt;
  }
}

// The causes that the text explains: the bound, and the largest other one.
std::vector<size_t> ExplainedCauses(const Prediction& p) {
  std::vector<size_t> causes = {static_cast<size_t>(p.bound)};
  for (const size_t cause : Larger(p.by_us, kSecondShare * p.us)) {
    if (cause != causes[0] && causes.size() < 2) causes.push_back(cause);
  }
  return causes;
}

std::string BoundText(const Prediction& p, const std::vector<size_t>& causes) {
  const auto share_of = [&](size_t cause) { return p.by_us[cause] / p.us; };
  const std::optional<double> busy = BusyOfBound(p);
  // A saturated unit binds even where the critical path goes mostly through latencies.
  if (busy && *busy >= autotune::kSaturated && causes.size() > 1 && share_of(causes[1]) > share_of(causes[0])) {
    return Cat(NameOf(causes[0]), " binds: it works for ", Percent(*busy), " of ", Us(p.us),
               ". The critical path alternates meanwhile: ", BreakdownText(p), ".\n");
  }
  std::string text = Cat(NameOf(causes[0]), " binds, for ", Percent(share_of(causes[0])), " of ", Us(p.us), ": ",
                         autotune::BoundDoc(p.bound), ".\n");
  if (causes.size() > 1) {
    text += Cat("Then ", NameOf(causes[1]), ", ", Percent(share_of(causes[1])), ": ",
                autotune::BoundDoc(static_cast<Bound>(causes[1])), ".\n");
  }
  return text;
}

std::string LastWaveText(const autotune::LastWave& wave) {
  if (wave.IdleShare() < autotune::kAdviceGain) return {};
  const std::string where = wave.waves > 1 ? Cat("In the last of ", wave.waves, " waves ") : std::string();
  return Cat(where, wave.idle_sms, " of ", wave.sms, " SMs have no tile: ", Percent(wave.IdleShare()),
             " of the time of all SMs.\n");
}

}  // namespace

std::string AdviceText(const AdvisedSchedule& advised) {
  const autotune::ScheduleAdvice& a = advised.advice;
  const Prediction& p = a.prediction;
  const std::vector<size_t> causes = ExplainedCauses(p);
  std::string text = BoundText(p, causes) + LastWaveText(a.last_wave);
  text += Cat("It takes ", PrintFixed(a.TimesFloor(), 2), " times the floor of ", Us(a.floor.Us()),
              ": all MMAs at the full rate take ", Us(a.floor.tensor_us), ", operands and output once through memory ",
              Us(a.floor.memory_us), ", the launch ", Us(a.floor.launch_us), ".\n");
  for (const autotune::Weakness& weakness : a.weaknesses) {
    text +=
        Cat(weakness.name, ": ", weakness.doc, ". ", DifferenceOf(advised.schedule, weakness.better), " would take ",
            Us(weakness.prediction.us), ", ", Percent(1 - weakness.prediction.us / p.us), " less.\n");
  }
  if (a.weaknesses.empty()) text += "No change of a single decision makes it faster by 2% or more.\n";
  if (advised.rival) {
    const RivalSchedule& rival = *advised.rival;
    const double change = rival.prediction.us / p.us - 1;
    const std::string trade = TradeText(p, rival.prediction);
    text += Cat(rival.what, " (", DifferenceOf(advised.schedule, rival.schedule), ") takes ", Us(rival.prediction.us),
                ", ", PrintFixed(std::abs(100 * change), 1), change < 0 ? "% less" : "% more",
                trade.empty() ? "" : ": ", trade, ".\n");
  }
  for (const size_t cause : causes)
    text += Cat("Against ", NameOf(cause), ": ",
                autotune::RemedyOf(static_cast<Bound>(cause), advised.schedule, *advised.target), ".\n");
  return text;
}

}  // namespace laneshift::tools
