#include "device/scratch_directory.h"

#include <cstdlib>

#include "base/text.h"

namespace laneshift::device {

namespace fs = std::filesystem;

Result<ScratchDirectory> ScratchDirectory::Create() {
  std::error_code failure;
  const fs::path parent = fs::temp_directory_path(failure);
  std::string pattern = (failure ? fs::path("/tmp") : parent) / "laneshift-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    return MakeError(ErrorCode::kResourceExhausted, base::Cat("cannot make a temporary directory like ", pattern));
  }
  return ScratchDirectory(pattern);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace laneshift::device
