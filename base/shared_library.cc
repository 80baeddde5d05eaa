#include "base/shared_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/text.h"

namespace laneshift::base {

Result<SharedLibrary> SharedLibrary::Open(const std::vector<std::string>& names,
                                          const std::vector<std::string>& directories) {
  for (const std::string& name : names) {
    for (const std::string& directory : directories) {
      const std::string path = directory + "/" + name;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, path);
    }
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle, name);
  }
  return MakeError(ErrorCode::kUnsupported, Cat("none of ", base::Join(names, ", "), " can be opened"));
}

Result<void*> SharedLibrary::Find(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (address == nullptr) return MakeError(ErrorCode::kUnsupported, Cat(name_, " has no function ", symbol));
  return address;
}

void SharedLibrary::OpenNeighbours(std::string_view prefix) const {
  const size_t slash = name_.rfind('/');
  if (slash == std::string::npos) return;
  std::error_code unreadable;
  std::filesystem::directory_iterator file(name_.substr(0, slash), unreadable);
  for (; !unreadable && file != std::filesystem::directory_iterator(); file.increment(unreadable)) {
    const std::filesystem::path& path = file->path();
    // A library that does not open is missed by the one that needs it, which says so.
    if (path.filename().native().starts_with(prefix)) (void)dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

std::string DirectoryOfCode(const void* function) {
  namespace fs = std::filesystem;
  Dl_info found{};
  if (dladdr(function, &found) == 0 || found.dli_fname == nullptr) return {};
  std::error_code unreadable;
  fs::path file = fs::canonical(found.dli_fname, unreadable);
  // The loader knows a program by the name that it was called by, which may be no path, or relative to another
  // directory.
  if (unreadable) file = fs::read_symlink("/proc/self/exe", unreadable);
  return file.parent_path().string();
}

}  // namespace laneshift::base
