#include "tools/record_files.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "store/location.h"
#include "store/store.h"
#include "tools/record_text.h"

namespace laneshift::tools {
namespace {

using base::Cat;
namespace fs = std::filesystem;

Error Unreadable(const std::string& name) {
  return MakeError(ErrorCode::kDriver, Cat(name, ": cannot be read: ", std::strerror(errno)));
}

// As much as a row of the store may have (store/database.cc): a device without end of line is no file of records.
constexpr size_t kMaxLine = size_t{256} << 20;

// As std::getline, but it stops within a line of more than kMaxLine bytes.
bool ReadLine(std::istream& lines, std::string& line) {
  line.clear();
  std::array<char, 1 << 14> part;
  while (line.size() <= kMaxLine) {
    lines.getline(part.data(), part.size());
    const auto count = static_cast<size_t>(lines.gcount());
    if (lines.good()) {  // with the end of the line, which is counted
      line.append(part.data(), count - 1);
      return true;
    }
    line.append(part.data(), count);
    if (lines.bad() || lines.eof()) return !lines.bad() && !line.empty();
    lines.clear();  // the part is full
  }
  return true;
}

Status VisitLines(std::istream& lines, const std::string& name, const store::RecordVisitor& visit) {
  std::string line;
  bool begun = false;
  for (int64_t number = 1; ReadLine(lines, line); ++number) {
    const auto within = [&](const Error& error) { return error.Within(Cat(name, ":", number)); };
    if (line.size() > kMaxLine) {
      return within(MakeError(ErrorCode::kCorrupt, Cat("the line has more than ", kMaxLine, " bytes; no record has")));
    }
    if (base::Trim(line).empty()) continue;
    if (!begun) {
      if (Status header = CheckRecordHeader(line); !header) return within(header.error());
      begun = true;
      continue;
    }
    auto record = ParseRecord(line);
    if (!record) return within(record.error());
    if (Status visited = visit(*record); !visited) return within(visited.error());
  }
  if (lines.bad()) return Unreadable(name);
  if (begun) return Ok();
  return MakeError(ErrorCode::kCorrupt, Cat(name, ": there is not even the first line of a file of records"));
}

// A file that is not a regular file, such as a pipe, is text: it can be read only once.
Result<bool> IsDatabase(const std::string& path) {
  std::error_code unreadable;
  if (!fs::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path, std::ios::binary);
  char magic[16] = {};
  file.read(magic, sizeof magic);
  if (!file.is_open() || file.bad()) return Unreadable(path);
  return std::string_view(magic, sizeof magic) == std::string_view("SQLite format 3\0", 16);
}

}  // namespace

Result<std::string> DatabasePath(const std::string& path, const Settings& settings) {
  const std::string& given = path.empty() ? settings.store_directory : path;
  if (given == store::kInMemory) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "there is no store: neither LANESHIFT_CACHE_DIR nor HOME is set; name a file");
  }
  std::error_code unreadable;
  const bool directory = path.empty() || fs::is_directory(given, unreadable);
  return directory ? (fs::path(given) / store::kStoreFileName).string() : given;
}

Result<store::RecordSource> OpenRecords(const std::string& path, const Settings& settings) {
  if (path == "-") {
    return store::RecordSource(
        [](const store::RecordVisitor& visit) { return VisitLines(std::cin, "standard input", visit); });
  }
  LS_ASSIGN(const std::string file, DatabasePath(path, settings));
  std::error_code unreadable;
  if (!fs::exists(file, unreadable)) {
    return MakeError(ErrorCode::kNotFound, Cat(file, ": there is no such file"));
  }
  // A store, or what has the name of one in a directory, is never text: a FIFO in its place would be waited for.
  const bool named = file == path;
  LS_ASSIGN(const bool is_database, named ? IsDatabase(file) : Result<bool>(true));
  if (!is_database) {
    return store::RecordSource([file](const store::RecordVisitor& visit) {
      std::ifstream lines(file);
      if (!lines) return Status(Unreadable(file));
      return VisitLines(lines, file, visit);
    });
  }
  LS_ASSIGN(store::Archive opened, store::Archive::Open(file, store::Archive::Mode::kRead));
  const auto archive = std::make_shared<store::Archive>(std::move(opened));
  return store::RecordSource([archive](const store::RecordVisitor& visit) { return archive->Visit(visit); });
}

Result<std::vector<store::Record>> ReadRecords(const store::RecordSource& source) {
  std::vector<store::Record> records;
  const auto add = [&](const store::Record& record) {
    records.push_back(record);
    return Ok();
  };
  LS_TRY(source(add));
  return records;
}

}  // namespace laneshift::tools
