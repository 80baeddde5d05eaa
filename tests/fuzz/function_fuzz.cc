// Any text as what NVRTC made of a user's epilogue function: refused in one line, or a module whose own text reads back
// as the same one.
#include "compiler/functions/function_module.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  using namespace laneshift::compiler;
  const auto module = FunctionModule::Parse(fuzz::TextOf(data, size));
  if (!module) {
    fuzz::DemandReason(module.error());
    return 0;
  }
  for (const ModuleItem& item : module->items()) {
    (void)IdentifiersOf(item.text);
    if (item.has_body) (void)StatementsOf(item);
  }
  const std::string text = module->Text();
  const auto again = FunctionModule::Parse(text);
  fuzz::Demand(again.has_value(), "a module's own text is refused:\n" + text);
  fuzz::Demand(
      again->Text() == text && again->signature() == module->signature() && again->entry().name == module->entry().name,
      "a module's own text reads back as another one:\n" + text);
  return 0;
}
