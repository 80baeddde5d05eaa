// The records of a store as JSON lines: one object per line, the first one naming the format (docs/store.md has the
// keys).
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "store/archive.h"

namespace laneshift::tools {

enum class Code { kWhole, kLeftOut };

// The first line of a file.
std::string PrintRecordHeader();
// kCorrupt: not the first line of such a file, or of a later version of the format.
Status CheckRecordHeader(std::string_view line);

// One line, without its end. ParseRecord(PrintRecord(r)) == r unless the code of a kernel is left out.
std::string PrintRecord(const store::Record& record, Code code = Code::kWhole);
// kCorrupt names the key that is missing or of a wrong type. Unknown keys are ignored.
Result<store::Record> ParseRecord(std::string_view line);

// "+/=" alphabet, padded.
std::string EncodeBase64(std::string_view bytes);
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace laneshift::tools
