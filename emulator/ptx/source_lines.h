// What a reader of a report knows a place by: the source that a line of PTX was compiled from, the line's own text, and
// names as C++ spells them (ReadableName of report.h).
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "emulator/hazards/report.h"
#include "emulator/ptx/ptx_syntax.h"

namespace laneshift::emulator {

// Fills in what only the text says of place.line: source, inlined_at, ptx. What the text does not say stays empty.
void Annotate(const ModuleSyntax& module, SourcePlace& place);
void Annotate(const ModuleSyntax& module, Fault& fault);

// "ns::k" for "void ns::k<float>(float*, int)": without result, parameters and template arguments.
std::string_view PlainName(std::string_view readable);

}  // namespace laneshift::emulator
