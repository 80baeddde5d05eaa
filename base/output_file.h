// OutputFile: a file that is written from its beginning to its end, and known to be whole, or an error says why not.
//
// Errors are kept until Close, which therefore has to be called: what a file system takes with write(2) it may refuse
// with close(2). A write beyond a limit on file sizes is an error and no signal. Thread-safety: none.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "laneshift/result.h"

namespace laneshift::base {

class OutputFile {
 public:
  // Made, or cut to nothing where it is there. kInvalidArgument: "PATH: cannot be written: WHY".
  static Result<OutputFile> Create(std::string path);

  void Write(std::string_view bytes);
  // kDriver: not everything could be written, in the same words. Then what lies at the path is not to be used.
  Status Close();

 private:
  OutputFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  void Flush();

  std::string path_;
  Descriptor file_;
  std::string pending_;
  int failure_ = 0;  // errno of the first call that failed
};

// All of it, as Create, Write and Close do.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace laneshift::base
