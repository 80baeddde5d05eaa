#include "tools/npy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>

#include "base/text.h"

namespace laneshift::tools {
namespace {

const GemmProblem Parse(std::string_view text) { return std::get<GemmProblem>(*ParseProblem(text)); }

std::string TempFile(std::string_view name) { return testing::TempDir() + "laneshift_npy_" + std::string(name); }

void WriteFile(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A version 1 file, as numpy.save writes it.
std::string NpyBytes(const std::string& header, const std::string& content) {
  std::string padded = header;
  padded.append(63 - (10 + header.size()) % 64, ' ');
  padded += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += std::string("\x01\x00", 2);
  bytes += static_cast<char>(padded.size() & 0xff);
  bytes += static_cast<char>(padded.size() >> 8);
  return bytes + padded + content;
}

TEST(Npy, RoundTripsEveryTypeAndPitch) {
  for (const char* text :
       {"gemm m=3 n=5 k=7 a=f16", "gemm m=3 n=5 k=7 batch=2 lda=9 stride_a=40", "gemm m=4 n=4 k=4 a_major=m lda=6"}) {
    const GemmProblem problem = Parse(text);
    const StoredTensor shape = Stored(problem, OperandRole::kA);
    const HostTensor written = HostTensor::Random(shape, OperandRole::kA, 3);
    const std::string path = TempFile("round_trip.npy");
    ASSERT_TRUE(WriteNpy(path, written).has_value());
    const auto read = ReadNpy(path, shape, "a");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->bytes, written.bytes) << text;
  }
}

TEST(Npy, ReadsWhatNumPySaves) {
  const std::string path = TempFile("numpy.npy");
  const float values[] = {1, 2, 3, 4, 5, 6};
  WriteFile(path, NpyBytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                           std::string(reinterpret_cast<const char*>(values), sizeof values)));
  const auto read = ReadNpy(path, Stored(Parse("gemm m=2 n=3 k=1 d=f32"), OperandRole::kD), "d");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->At(1, 2), 6);
}

TEST(Npy, ReadsBf16AsItsBits) {
  const std::string path = TempFile("bf16.npy");
  const uint16_t bits[] = {0x3f80, 0xc000};
  const std::string content(reinterpret_cast<const char*>(bits), sizeof bits);
  for (const char* descr : {"<u2", "<V2", "|V2"}) {
    WriteFile(path,
              NpyBytes(base::Cat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (1, 2), }"), content));
    const auto read = ReadNpy(path, Stored(Parse("gemm m=1 n=1 k=2"), OperandRole::kA), "a");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->At(0, 0), 1.0f);
    EXPECT_EQ(read->At(0, 1), -2.0f);
  }
}

// Of elements of fewer than eight bits a file has the bytes of each row (docs/narrow-types.md).
TEST(Npy, ReadsPackedRowsAsTheirBytes) {
  const std::string path = TempFile("e3m2.npy");
  const std::string rows("\x4c\xf0\x43\x00\xf0\x43", 6);
  WriteFile(path, NpyBytes("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", rows));
  const auto read = ReadNpy(path, Stored(Parse("gemm m=2 n=1 k=4 lda=128 a=e3m2"), OperandRole::kA), "a");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const double wanted[] = {1, 0.0625, -28, 2};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read->At(0, i), wanted[i]);
  EXPECT_EQ(read->At(1, 0), 0);
  EXPECT_EQ(read->At(1, 3), 2);
}

TEST(Npy, ConvolutionsHaveTheirSpatialDimensions) {
  const struct {
    const char* problem;
    OperandRole role;
    const char* shape;
  } cases[] = {{"conv n=2 h=3 w=4 c=5 k=6 r=1 s=3 x_pixel=7", OperandRole::kA, "(2, 3, 4, 5)"},
               {"conv n=2 h=3 w=4 c=5 k=6 r=1 s=3 w_filter=20", OperandRole::kB, "(6, 1, 3, 5)"},
               {"conv n=1 h=3 w=4 c=5 k=6 r=1 s=3 y_row=20", OperandRole::kD, "(1, 3, 2, 6)"},
               {"conv n=2 w=4 c=5 k=6 s=3", OperandRole::kA, "(2, 4, 5)"},
               {"conv n=2 d=2 h=3 w=4 c=5 k=6 t=2 r=1 s=3", OperandRole::kD, "(2, 1, 3, 2, 6)"}};
  for (const auto& c : cases) {
    const auto problem = ParseProblem(c.problem);
    ASSERT_TRUE(problem.has_value()) << problem.error().message;
    const HostTensor written = HostTensor::Random(Stored(*problem, c.role), c.role, 3);
    const std::string path = TempFile("conv.npy");
    ASSERT_TRUE(WriteNpy(path, written).has_value());
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    EXPECT_NE(bytes.find(base::Cat("'shape': ", c.shape, ", ")), std::string::npos) << c.problem;
    const auto read = ReadNpy(path, written.shape, "x");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->bytes, written.bytes) << c.problem;
  }
}

TEST(Npy, BiasHasOneDimension) {
  const GemmProblem problem = Parse("gemm m=3 n=5 k=7 d=f32 bias=n");
  const StoredTensor shape = Stored(problem, OperandRole::kBias);
  const HostTensor written = HostTensor::Random(shape, OperandRole::kBias, 1);
  const std::string path = TempFile("bias.npy");
  ASSERT_TRUE(WriteNpy(path, written).has_value());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_NE(bytes.find("'shape': (5,)"), std::string::npos);
  EXPECT_TRUE(ReadNpy(path, shape, "bias").has_value());
}

struct BadFile {
  const char* header;  // null: `content` is the whole file
  std::string content;
  const char* message;
};

TEST(Npy, RefusesByName) {
  const std::string twelve(12, '\0');
  const BadFile cases[] = {
      {nullptr, "hello, this is text", "is not an .npy file"},
      {nullptr, "", "is not an .npy file"},
      {nullptr, std::string("\x93NUMPY\x09\x00\x10\x00", 10), "version 9"},
      {nullptr, std::string("\x93NUMPY\x01\x00\xff\xff", 10), "damaged .npy header"},
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", twelve,
       "type '<f8', but a is f16; convert it to '<f2'"},
      {"{'descr': '>f2', 'fortran_order': False, 'shape': (2, 3), }", twelve, "type '>f2'"},
      {"{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }", twelve, "Fortran order"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2), }", twelve,
       "shape (3, 2), but a of this problem is (2, 3)"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3, 1), }", twelve, "shape (2, 3, 1)"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (-2, 3), }", twelve, "damaged .npy header"},
      {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }", twelve.substr(0, 11), "ends in row 1"},
  };
  const StoredTensor shape = Stored(Parse("gemm m=2 n=1 k=3 a=f16"), OperandRole::kA);
  const std::string path = TempFile("bad.npy");
  for (const BadFile& bad : cases) {
    WriteFile(path, bad.header == nullptr ? bad.content : NpyBytes(bad.header, bad.content));
    const auto read = ReadNpy(path, shape, "a");
    ASSERT_FALSE(read.has_value()) << bad.message;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(read.error().message.find(bad.message), std::string::npos) << read.error().message;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

TEST(Npy, MissingFilesAreNamed) {
  const auto read = ReadNpy(TempFile("absent.npy"), Stored(Parse("gemm m=2 n=1 k=3"), OperandRole::kA), "a");
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("No such file"), std::string::npos) << read.error().message;
  const auto status = WriteNpy(TempFile("absent/d.npy"), HostTensor::Poisoned({}));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace laneshift::tools
