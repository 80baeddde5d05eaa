#include "tools/npy.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "base/message.h"
#include "base/output_file.h"
#include "base/text.h"
#include "ir/element_type.h"

namespace laneshift::tools {
namespace {

using base::Cat;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;  // of the array inside the file
constexpr size_t kMaxHeader = 1 << 20;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

Error Bad(const std::string& path, const std::string& why) {
  return MakeError(ErrorCode::kInvalidArgument, Cat(path, ": ", why));
}

// As Python prints a tuple.
std::string PrintDimensions(const std::vector<int64_t>& dimensions) {
  std::string text = "(";
  for (size_t i = 0; i < dimensions.size(); ++i) text += Cat(i == 0 ? "" : ", ", dimensions[i]);
  return text + (dimensions.size() == 1 ? ",)" : ")");
}

std::string_view DescrOf(DataType type) { return ir::InfoOf(type).npy; }

// Of the array that holds the tensor: of elements of fewer than eight bits the bytes of each row.
std::vector<int64_t> ArrayShape(const StoredTensor& tensor) {
  std::vector<int64_t> shape = tensor.Shape();
  if (DataTypeBits(tensor.type) < 8) shape.back() = ir::BytesOf(tensor.type, shape.back());
  return shape;
}

// One byte has no order, so that NumPy writes '|' where others write '<'.
std::string_view Unordered(std::string_view descr) { return descr.substr(descr.empty() ? 0 : 1); }

// A type that NumPy lacks is its bits, or, as the packages that add it write it, so many bytes of void.
bool Accepts(DataType type, std::string_view descr) {
  if (descr.starts_with(">")) return false;
  if (Unordered(descr) == Unordered(DescrOf(type))) return true;
  return IsUnknownToNumpy(type) && Unordered(descr) == Cat("V", ir::BytesOf(type, 1));
}

// The text after `'key':` in the header's Python dictionary.
std::optional<std::string_view> ValueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(Cat("'", key, "'"));
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) return std::nullopt;
  return base::Trim(header.substr(colon + 1));
}

std::optional<Header> ParseHeader(std::string_view text) {
  Header header;
  const auto descr = ValueOf(text, "descr"), order = ValueOf(text, "fortran_order"), shape = ValueOf(text, "shape");
  if (!descr || !order || !shape || descr->size() < 2 || (*descr)[0] != '\'') return std::nullopt;
  const size_t quote = descr->find('\'', 1);
  const size_t close = shape->find(')');
  if (quote == std::string_view::npos || !shape->starts_with('(') || close == std::string_view::npos)
    return std::nullopt;
  header.descr = descr->substr(1, quote - 1);
  header.fortran_order = order->starts_with("True");
  for (const std::string_view field : base::Split(shape->substr(1, close - 1), ',')) {
    const std::string_view word = base::Trim(field);
    if (word.empty()) continue;
    const auto extent = base::ParseInt(word);
    if (!extent || *extent < 0) return std::nullopt;
    header.shape.push_back(*extent);
  }
  return header;
}

// What the stream did not give: it could not, or there is no more.
Error Short(const std::string& path, const std::ifstream& stream, std::string_view why) {
  if (stream.bad()) return Bad(path, Cat("cannot be read: ", std::strerror(errno)));
  return Bad(path, Cat(why, "; write it again with numpy.save"));
}

struct OpenFile {
  std::ifstream stream;
  Header header;
};

Result<OpenFile> OpenNpy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Bad(path, Cat("cannot be opened: ", std::strerror(errno)));
  char preamble[8] = {};
  file.read(preamble, sizeof preamble);
  if (file.bad()) return Short(path, file, {});
  if (!file || std::string_view(preamble, kMagic.size()) != kMagic) {
    return Bad(path, "is not an .npy file; write one with numpy.save");
  }
  const int version = preamble[6];
  if (version < 1 || version > 3) return Bad(path, Cat("has .npy version ", version, "; versions 1 to 3 are read"));
  unsigned char length[4] = {};
  file.read(reinterpret_cast<char*>(length), version == 1 ? 2 : 4);
  const size_t bytes = length[0] | length[1] << 8 | length[2] << 16 | static_cast<size_t>(length[3]) << 24;
  if (!file || bytes > kMaxHeader) return Short(path, file, "has a damaged .npy header");
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  auto header = ParseHeader(text);
  if (!file || !header) return Short(path, file, "has a damaged .npy header");
  return OpenFile{std::move(file), std::move(*header)};
}

Status CheckHeader(const std::string& path, const Header& header, const StoredTensor& shape, std::string_view name) {
  if (!Accepts(shape.type, header.descr)) {
    return Bad(path, Cat("holds elements of type '", base::Escape(header.descr), "', but ", name, " is ",
                         DataTypeName(shape.type), "; convert it to '", DescrOf(shape.type), "'",
                         IsUnknownToNumpy(shape.type) ? Cat(" (the bits of ", DataTypeName(shape.type), ")") : ""));
  }
  if (header.fortran_order) return Bad(path, "is in Fortran order; save numpy.ascontiguousarray of it");
  const std::vector<int64_t> wanted = ArrayShape(shape);
  if (header.shape != wanted) {
    return Bad(path, Cat("has shape ", PrintDimensions(header.shape), ", but ", name, " of this problem is ",
                         PrintDimensions(wanted), "; reshape or transpose it"));
  }
  return Ok();
}

void WriteHeader(base::OutputFile& file, std::string_view descr, const std::string& dimensions) {
  std::string header = Cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", dimensions, ", }");
  const size_t preamble = kMagic.size() + 4;
  header.append(kAlignment - 1 - (preamble + header.size()) % kAlignment, ' ');
  header += '\n';
  const char version_and_length[4] = {1, 0, static_cast<char>(header.size() & 0xff),
                                      static_cast<char>(header.size() >> 8)};
  file.Write(kMagic);
  file.Write({version_and_length, sizeof version_and_length});
  file.Write(header);
}

}  // namespace

bool IsUnknownToNumpy(DataType type) { return Unordered(DescrOf(type)).starts_with("u"); }

Result<HostTensor> ReadNpy(const std::string& path, const StoredTensor& shape, std::string_view name) {
  LS_ASSIGN(OpenFile file, OpenNpy(path));
  LS_TRY(CheckHeader(path, file.header, shape, name));
  HostTensor result = HostTensor::Poisoned(shape);
  for (int64_t row = 0; row < shape.Rows(); ++row) {
    const int64_t first = ir::BytesOf(shape.type, shape.RowStart(row));
    file.stream.read(reinterpret_cast<char*>(result.bytes.data() + first), ir::BytesOf(shape.type, shape.Inner()));
    if (!file.stream) return Short(path, file.stream, Cat("ends in row ", row));
  }
  return result;
}

Result<NpyArray> DescribeNpy(const std::string& path) {
  LS_ASSIGN(OpenFile file, OpenNpy(path));
  if (file.header.fortran_order) return Bad(path, "is in Fortran order; save numpy.ascontiguousarray of it");
  return NpyArray{std::move(file.header.descr), std::move(file.header.shape)};
}

Result<std::vector<uint8_t>> ReadNpyArray(const std::string& path, std::string_view descr,
                                          const std::vector<int64_t>& shape, size_t bytes) {
  LS_ASSIGN(OpenFile file, OpenNpy(path));
  if (Unordered(file.header.descr) != Unordered(descr) || file.header.descr.starts_with(">"))
    return Bad(path,
               Cat("holds elements of type '", base::Escape(file.header.descr), "', but '", descr, "' is needed"));
  if (file.header.fortran_order) return Bad(path, "is in Fortran order; save numpy.ascontiguousarray of it");
  if (file.header.shape != shape) {
    return Bad(path, Cat("has shape ", PrintDimensions(file.header.shape), ", but ", PrintDimensions(shape),
                         " is needed; reshape it"));
  }
  std::vector<uint8_t> data(bytes);
  file.stream.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes));
  if (!file.stream) return Short(path, file.stream, "ends early");
  return data;
}

Status WriteNpyArray(const std::string& path, std::string_view descr, const std::vector<int64_t>& shape,
                     const std::vector<uint8_t>& bytes) {
  LS_ASSIGN(base::OutputFile file, base::OutputFile::Create(path));
  WriteHeader(file, descr, PrintDimensions(shape));
  file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return file.Close();
}

Status WriteNpy(const std::string& path, const HostTensor& tensor) {
  const StoredTensor& shape = tensor.shape;
  LS_ASSIGN(base::OutputFile file, base::OutputFile::Create(path));
  WriteHeader(file, DescrOf(shape.type), PrintDimensions(ArrayShape(shape)));
  for (int64_t row = 0; row < shape.Rows(); ++row) {
    const int64_t first = ir::BytesOf(shape.type, shape.RowStart(row));
    file.Write({reinterpret_cast<const char*>(tensor.bytes.data() + first),
                static_cast<size_t>(ir::BytesOf(shape.type, shape.Inner()))});
  }
  return file.Close();
}

}  // namespace laneshift::tools
