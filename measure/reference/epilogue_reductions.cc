#include "measure/reference/epilogue_reductions.h"

#include <algorithm>
#include <cmath>

#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"

namespace laneshift::measure {

EpilogueReductions::EpilogueReductions(const Problem& problem) {
  const Epilogue& epilogue = ir::EpilogueOf(problem);
  const std::vector<ir::EpilogueTensor> tensors = ir::EpilogueTensors(problem);
  const ir::StoredTensor output = ir::Stored(problem, ir::OperandRole::kD);
  output_elements_ = output.Elements();
  size_t place = 0;
  for (const EpilogueStep& step : epilogue) {
    const size_t own = ir::TensorsOf(step, output.type).size();
    if (!ir::IsReduction(ir::InfoOf(step.kind).operand)) {
      place += own;
      offsets_.insert(offsets_.end(), own, -1);
      continue;
    }
    const ir::EpilogueTensor& operand = tensors[place++];
    const int64_t elements = operand.tensor.Elements();
    offsets_.push_back(static_cast<int64_t>(values_.size()));
    values_.resize(values_.size() + static_cast<size_t>(elements));
  }
  dilations_.resize(values_.size());
  magnitudes_.resize(values_.size());
}

void EpilogueReductions::Compare(const std::vector<HostTensor>& epilogue, double value_error, Comparison& into) const {
  for (size_t operand = 0; operand < epilogue.size(); ++operand) {
    if (offsets_[operand] < 0) continue;
    Comparison own;
    const auto elements = static_cast<double>(epilogue[operand].shape.Elements());
    const double adding = ReductionErrorFactor(static_cast<double>(output_elements_) / elements);
    for (int64_t i = 0; i < epilogue[operand].shape.Elements(); ++i) {
      const auto place = static_cast<size_t>(offsets_[operand] + i);
      const double reference = values_[place];
      const double out = epilogue[operand].At(0, i);
      ++into.compared;
      if (!std::isfinite(reference)) continue;
      if (!std::isfinite(out)) {
        ++into.not_finite;
        if (into.first_not_finite < 0) into.first_not_finite = 0;
        continue;
      }
      const double allowed = dilations_[place] + (value_error + adding) * magnitudes_[place];
      const double error = std::max(0.0, std::abs(out - reference) - allowed);
      own.error_squares += error * error;
      own.reference_squares += reference * reference;
    }
    into.reductions_error = std::max(into.reductions_error, own.RelativeError());
  }
}

}  // namespace laneshift::measure
