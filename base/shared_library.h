// SharedLibrary: a library that may or may not be installed, opened at run time. Never closed: libraries of CUDA do not
// survive being unloaded.
//
// Thread-safety: immutable once opened.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "laneshift/result.h"

namespace laneshift::base {

class SharedLibrary {
 public:
  // The first of `names` that opens, in `directories` and then where the loader looks. kUnsupported lists the names.
  static Result<SharedLibrary> Open(const std::vector<std::string>& names, const std::vector<std::string>& directories);

  const std::string& name() const { return name_; }
  // Opens the libraries in the same directory whose names begin with `prefix`, for a library that opens them itself by
  // name. Does nothing where this one was found by the loader, which then finds them, too.
  void OpenNeighbours(std::string_view prefix) const;
  // Points `function` at the symbol; kUnsupported if the library has none of that name.
  template <typename Function>
  Status Bind(const char* symbol, Function** function) const {
    LS_ASSIGN(void* address, Find(symbol));
    *function = reinterpret_cast<Function*>(address);
    return Ok();
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  Result<void*> Find(const char* symbol) const;

  void* handle_;
  std::string name_;
};

// The directory of the shared library or program that `function` is part of, links resolved; empty where unknown.
std::string DirectoryOfCode(const void* function);

}  // namespace laneshift::base
