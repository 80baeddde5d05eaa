#include "tools/emulation/launch_directory.h"

#include <filesystem>

#include "base/message.h"
#include "base/read_file.h"
#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
namespace fs = std::filesystem;

Error Refused(const fs::path& path, std::string_view why) {
  return MakeError(ErrorCode::kInvalidArgument, Cat("the file ", path.string(), " ", why));
}

// The system would take what stands before the zero.
Status CheckName(const std::string& name) {
  if (name.find('\0') == std::string::npos) return Ok();
  return Refused(base::Escape(name), "has a zero byte in its name");
}

}  // namespace

Result<std::string> LaunchDirectory::ToRead(const std::string& name) const {
  LS_TRY(CheckName(name));
  std::string file = (fs::path(path) / name).string();
  LS_TRY(base::CheckRegularFile(file));
  return file;
}

Result<std::string> LaunchDirectory::ToWrite(const std::string& name) const {
  LS_TRY(CheckName(name));
  const fs::path file = fs::path(path) / name;
  if (allows_outside) return file.string();
  std::error_code failed;
  const fs::path root = fs::canonical(path.empty() ? "." : path, failed);
  if (failed) return Refused(path, "cannot be opened as a directory");
  const fs::path parent = fs::canonical(file.has_parent_path() ? file.parent_path() : fs::path("."), failed);
  if (failed) return Refused(file, "cannot be written: its directory does not exist");
  const fs::path inside = parent.lexically_relative(root);
  if (inside.empty() || *inside.begin() == "..")
    return Refused(file, Cat("lies outside of ", root.string(), ", where outputs go; --allow-outside permits it"));
  const fs::path last = file.filename();
  if (last.empty() || last == "." || last == "..") return Refused(file, "names no file");
  const fs::file_type there = fs::symlink_status(parent / last, failed).type();
  if (there != fs::file_type::not_found && there != fs::file_type::regular)
    return Refused(file, "is a directory, a link or a device; only regular files are replaced");
  return file.string();
}

}  // namespace laneshift::tools
