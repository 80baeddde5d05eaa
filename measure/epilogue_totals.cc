#include "measure/epilogue_totals.h"

#include <algorithm>
#include <cmath>

#include "ir/epilogue.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {

EpilogueTotals::EpilogueTotals(const Problem& problem) {
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem);
  const ir::StoredTensor output = ir::Stored(problem, ir::OperandRole::kD);
  size_t place = 0;
  for (const EpilogueStep& step : epilogue) {
    const size_t own = ir::TensorsOf(step, output.type).size();
    if (!ir::IsTotal(ir::InfoOf(step.kind).operand)) {
      place += own;
      offsets_.insert(offsets_.end(), own, -1);
      continue;
    }
    const ir::EpilogueTensor& operand = tensors[place++];
    const int64_t elements = operand.tensor.Elements();
    offsets_.push_back(static_cast<int64_t>(values_.size()));
    values_.resize(values_.size() + static_cast<size_t>(elements));
  }
}

void EpilogueTotals::Compare(const std::vector<HostTensor>& epilogue, Comparison& into) const {
  for (size_t operand = 0; operand < epilogue.size(); ++operand) {
    if (offsets_[operand] < 0) continue;
    Comparison own;
    for (int64_t i = 0; i < epilogue[operand].shape.Elements(); ++i) {
      const double reference = values_[static_cast<size_t>(offsets_[operand] + i)];
      const double out = epilogue[operand].At(0, i);
      ++into.compared;
      if (!std::isfinite(reference)) continue;
      if (!std::isfinite(out)) {
        ++into.not_finite;
        if (into.first_not_finite < 0) into.first_not_finite = 0;
        continue;
      }
      own.error_squares += (out - reference) * (out - reference);
      own.reference_squares += reference * reference;
    }
    into.totals_error = std::max(into.totals_error, own.RelativeError());
  }
}

}  // namespace laneshift::measure
