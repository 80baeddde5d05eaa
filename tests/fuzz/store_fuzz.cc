// Any bytes as a store's database: opened, read, written to and read again. What is no database is put aside, what is
// damaged is a miss; what was put is found again, in the file or in memory.
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "store/archive.h"
#include "store/store.h"
#include "tests/fuzz/fuzz_target.h"

namespace laneshift::store {
namespace {

// One directory for all inputs, emptied between them.
class Directory {
 public:
  Directory() {
    base::SetLogLevel(base::LogLevel::kOff);  // every damaged file has its warning
    std::string pattern = std::filesystem::temp_directory_path() / "laneshift-fuzz-XXXXXX";
    fuzz::Demand(mkdtemp(pattern.data()) != nullptr, "no temporary directory");
    path_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string Holding(const std::string& bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
    std::ofstream(File(), std::ios::binary) << bytes;
    return path_;
  }
  std::string File() const { return path_ + "/" + kStoreFileName; }

 private:
  std::string path_;
};

void ReadAndWrite(Store& store) {
  const KernelRecord kernel{
      .key = "fuzz", .target = "t", .problem = "p", .schedule = "s", .generator = "g", .ptx = "ptx"};
  for (const char* key : {"k", "k1", "fuzz"}) {
    const auto found = store.GetKernel(key);
    if (!found) fuzz::DemandReason(found.error());
  }
  (void)store.GetChoices("p", "t", "d");
  (void)store.GetTrials("p", "t", "d");
  (void)store.GetFacts("d");
  fuzz::Demand(store.PutKernel(kernel).has_value(), "a kernel cannot be put");
  const auto found = store.GetKernel("fuzz");
  fuzz::Demand(found && *found && !(*found)->ptx.empty(), "a kernel that was put is not found");
  (void)store.Stat();
}

// Whoever looks after the file reads all of it.
void Verify(const std::string& path) {
  auto archive = Archive::Open(path, Archive::Mode::kRead);
  if (!archive) return fuzz::DemandReason(archive.error());
  const Status visited = archive->Visit([](const Record&) { return Ok(); });
  if (!visited) fuzz::DemandReason(visited.error());
  (void)archive->Verify();
}

}  // namespace
}  // namespace laneshift::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace laneshift;
  using namespace laneshift::store;
  static const Directory directory;
  const std::string path = directory.Holding(fuzz::TextOf(data, size));
  Verify(directory.File());
  Store store = Store::Open({.directory = path, .busy_timeout_ms = 50});
  ReadAndWrite(store);
  return 0;
}
