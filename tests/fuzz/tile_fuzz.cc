// Any text as a tile program: refused in one line, or a program that prints and reads back as itself, and that the
// verifier judges for every target.
#include "ir/program.h"
#include "target/target.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  const auto program = ir::ParseProgram(fuzz::TextOf(data, size));
  if (!program) {
    fuzz::DemandReason(program.error());
    return 0;
  }
  const std::string text = ir::PrintProgram(*program);
  const auto again = ir::ParseProgram(text);
  fuzz::Demand(again.has_value(), "a printed program is refused:\n" + text);
  fuzz::Demand(ir::PrintProgram(*again) == text, "a printed program reads back as another one:\n" + text);
  for (const target::Target& target : target::Targets()) {
    const Status verified = ir::VerifyProgram(*program, target);
    if (!verified) fuzz::DemandReason(verified.error());
  }
  return 0;
}
