#include "tools/emulation/launch_directory.h"

#include <filesystem>

#include "base/text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
namespace fs = std::filesystem;

std::string_view NameOf(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::symlink:
      return "a symbolic link";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "no regular file";
  }
}

Error Refused(const fs::path& path, std::string_view why) {
  return MakeError(ErrorCode::kInvalidArgument, Cat("the file ", path.string(), " ", why));
}

// A file that is not there may be said without an error.
std::errc NotFoundOr(const std::error_code& failed) {
  return failed ? static_cast<std::errc>(failed.value()) : std::errc::no_such_file_or_directory;
}

}  // namespace

Status CheckRegularFile(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found || status.type() == fs::file_type::none)
    return Refused(path, Cat("cannot be opened: ", std::make_error_code(NotFoundOr(failed)).message()));
  if (status.type() != fs::file_type::regular)
    return Refused(path, Cat("is ", NameOf(status.type()), "; only regular files are read"));
  return Ok();
}

Result<std::string> LaunchDirectory::ToRead(const std::string& name) const {
  std::string file = (fs::path(path) / name).string();
  LS_TRY(CheckRegularFile(file));
  return file;
}

Result<std::string> LaunchDirectory::ToWrite(const std::string& name) const {
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
    return Refused(file, Cat("is ", NameOf(there), "; only regular files are replaced"));
  return file.string();
}

}  // namespace laneshift::tools
