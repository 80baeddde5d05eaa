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
  for (const size_t i : Larger(more, std::max(0.01, kShownShare / 2 * from.us)))
    trades.push_back(Cat(Us(std::abs(more[i])), more[i] > 0 ? " more " : " less ", NameOf(i)));
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
          {"floor",
           {{"us", a.floor.Us()},
            {"by", autotune::BoundName(a.floor.By())},
            {"tensor_us", a.floor.tensor_us},
            {"memory_us", a.floor.memory_us},
            {"launch_us", a.floor.launch_us}}},
          {"times_floor", a.TimesFloor()},
          {"weaknesses", std::move(weaknesses)},
          {"rival", std::move(rival)},
          {"a_faster_kernel_needs", autotune::RemedyOf(p.bound)}};
}

std::string AdviceText(const AdvisedSchedule& advised) {
  const autotune::ScheduleAdvice& a = advised.advice;
  const Prediction& p = a.prediction;
  const double least = std::min(kSecondShare * p.us, p.by_us[static_cast<size_t>(p.bound)]);
  const std::vector<size_t> causes = Larger(p.by_us, least);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(causes.size(), 2); ++i) {
    const std::string share = Percent(p.by_us[causes[i]] / p.us);
    const std::string_view doc = autotune::BoundDoc(static_cast<Bound>(causes[i]));
    text += i == 0 ? Cat(NameOf(causes[i]), " binds, for ", share, " of ", Us(p.us), ": ", doc, ".\n")
                   : Cat("Then ", NameOf(causes[i]), ", ", share, ": ", doc, ".\n");
  }
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
  for (size_t i = 0; i < std::min<size_t>(causes.size(), 2); ++i)
    text += Cat("Less ", NameOf(causes[i]), " needs ", autotune::RemedyOf(static_cast<Bound>(causes[i])), ".\n");
  return text;
}

}  // namespace laneshift::tools
