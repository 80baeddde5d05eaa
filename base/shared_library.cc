#include "base/shared_library.h"

#include <dlfcn.h>

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

}  // namespace laneshift::base
