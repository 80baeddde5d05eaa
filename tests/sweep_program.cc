#include "tests/sweep_program.h"

#include "autotune/ranking.h"
#include "compiler/compile.h"

namespace laneshift::sweep {

Result<ir::Program> ProgramOf(const Case& c, std::string_view constraint) {
  const ScheduleConstraint wanted = constraint.empty() ? c.constraint : *ParseSchedule(constraint);
  const bool as_stated = constraint.empty() && c.multiprocessors() > 0;
  LS_ASSIGN(const Schedule schedule,
            autotune::ChooseSchedule(c.problem, wanted, *c.target,
                                     as_stated ? c.multiprocessors() : c.target->default_sm_count));
  return compiler::BuildProgram(c.problem, schedule, *c.target);
}

}  // namespace laneshift::sweep
