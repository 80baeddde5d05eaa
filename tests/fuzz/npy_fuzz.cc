// Any bytes as an .npy file, read as operands of several shapes and types: refused in one line, or as many elements as
// were asked for.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "laneshift/problem.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/npy.h"

namespace laneshift::tools {
namespace {

// A file in memory, by the path under which a process finds what it has opened.
class FileInMemory {
 public:
  FileInMemory() : file_(memfd_create("npy", 0)) { fuzz::Demand(file_ >= 0, "no file in memory"); }
  ~FileInMemory() { close(file_); }
  FileInMemory(const FileInMemory&) = delete;
  FileInMemory& operator=(const FileInMemory&) = delete;
  std::string Holding(const uint8_t* data, size_t size) const {
    fuzz::Demand(ftruncate(file_, 0) == 0 && pwrite(file_, data, size, 0) == static_cast<ssize_t>(size),
                 "the file in memory cannot be written");
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  int file_;
};

}  // namespace
}  // namespace laneshift::tools

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  using namespace laneshift::tools;
  static const FileInMemory file;
  const std::string path = file.Holding(data, size);
  for (const char* text :
       {"gemm m=2 n=3 k=2 a=f16 d=f32", "gemm m=2 n=2 k=2 batch=2 a=bf16 lda=8", "conv w=3 c=2 k=2 s=2 x=e4m3"}) {
    const StoredTensor shape = Stored(*ParseProblem(text), OperandRole::kA);
    const auto read = ReadNpy(path, shape, "a");
    if (!read) fuzz::DemandReason(read.error());
  }
  const auto array = ReadNpyArray(path, "<i4", {2, 3}, 24);
  if (!array) fuzz::DemandReason(array.error());
  fuzz::Demand(!array || array->size() == 24, "an array of another size");
  return 0;
}
