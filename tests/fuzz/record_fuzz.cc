// Any text as a line of exported records: refused in one line, or a record whose own line reads back as the same one.
#include "tests/fuzz/fuzz_target.h"
#include "tools/record_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  const std::string line = fuzz::TextOf(data, size);
  if (const Status header = tools::CheckRecordHeader(line); !header) fuzz::DemandReason(header.error());
  if (const auto bytes = tools::DecodeBase64(line)) {
    fuzz::Demand(tools::DecodeBase64(tools::EncodeBase64(*bytes)).value() == *bytes, "base64 loses bytes");
  }
  const auto record = tools::ParseRecord(line);
  if (!record) {
    fuzz::DemandReason(record.error());
    return 0;
  }
  const std::string text = tools::PrintRecord(*record);
  fuzz::Demand(text.find('\n') == std::string::npos, "a record of several lines: " + text);
  const auto again = tools::ParseRecord(text);
  fuzz::Demand(again.has_value(), "a printed record is refused: " + text);
  fuzz::Demand(*again == *record, "a printed record reads back as another one: " + text);
  return 0;
}
