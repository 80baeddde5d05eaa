// mma.sync against an H200: 400 tiles of random and adversarial operands per form. The GPU's 51,200 result words of
// each form are kept as one hash, the operands are regenerated.

#include <random>

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

constexpr int kTiles = 400;

struct Format {
  int exponent, mantissa, position;
};
constexpr Format kF16{5, 10, 0}, kBf16{8, 7, 0}, kTf32{8, 10, 13}, kE4m3{4, 3, 0}, kE5m2{5, 2, 0}, kF32{8, 23, 0};

struct FormCase {
  const char* shape_and_types;
  int a, b, d;  // registers
  Format format_a, format_b;
  int bits;  // of an operand's element; 0: integers, any bits do
  Format format_c;
  int bits_c;
  uint64_t hash;  // of the words that an H200 gave
};

const FormCase kForms[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, kF16, kF16, 16, kF32, 32, 0x6249c75cf8146904},
    {"m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, kF16, kF16, 16, kF32, 32, 0x00189a43efa8dfee},
    {"m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, kF16, kF16, 16, kF16, 16, 0xacd84cb97a7e8648},
    {"m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, kF16, kF16, 16, kF16, 16, 0xe05cba92d3ab76e6},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, kBf16, kBf16, 16, kF32, 32, 0x8fb0af0ca69f1878},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, kBf16, kBf16, 16, kF32, 32, 0x174bf949aa171f60},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, kTf32, kTf32, 32, kF32, 32, 0x82e261799a73de83},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, kTf32, kTf32, 32, kF32, 32, 0x9b205bd1ac5ce728},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 2, 4, kE4m3, kE4m3, 8, kF32, 32, 0x2f1768121420ea04},
    {"m16n8k32.row.col.f32.e5m2.e4m3.f32", 4, 2, 4, kE5m2, kE4m3, 8, kF32, 32, 0xee9c5897dc4827e9},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 4, 2, 4, kE5m2, kE5m2, 8, kF32, 32, 0xb22b055e4fd8bdc1},
    {"m16n8k16.row.col.f32.e4m3.e4m3.f32", 2, 1, 4, kE4m3, kE4m3, 8, kF32, 32, 0x31624b4db9fd935f},
    {"m16n8k32.row.col.f16.e4m3.e4m3.f16", 4, 2, 2, kE4m3, kE4m3, 8, kF16, 16, 0x213c7d878470e090},
    {"m16n8k32.row.col.f16.e5m2.e5m2.f16", 4, 2, 2, kE5m2, kE5m2, 8, kF16, 16, 0x961bc13ea9688123},
    {"m16n8k32.row.col.s32.s8.u8.s32", 4, 2, 4, kE4m3, kE4m3, 0, kF32, 0, 0x3aeb1f3abedde650},
    {"m16n8k32.row.col.satfinite.s32.u8.s8.s32", 4, 2, 4, kE4m3, kE4m3, 0, kF32, 0, 0x8d75271b17103167},
    {"m16n8k64.row.col.s32.s4.u4.s32", 4, 2, 4, kE4m3, kE4m3, 0, kF32, 0, 0x2aedeab0f3faaf00},
    {"m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 2, 4, kE4m3, kE4m3, 0, kF32, 0, 0x1fcf101dce338c25},
};

// The sequence of operands as recorded: one generator over all forms. Ten words per lane: A, B, C.
class Operands {
 public:
  std::vector<uint32_t> Next(const FormCase& form) {
    std::vector<uint32_t> words(kTiles * 320);
    for (int tile = 0; tile < kTiles; ++tile) Tile(form, tile % 8, &words[static_cast<size_t>(tile) * 320]);
    return words;
  }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  // An exponent from low to high, truncated to the format's; sometimes zero.
  uint32_t Element(const Format& format, int low, int high) {
    if (Below(10) == 0) return 0;
    int exponent = low + static_cast<int>(Below(static_cast<uint32_t>(high - low + 1)));
    exponent = std::clamp(exponent, 0, (1 << format.exponent) - 2);
    const uint32_t mantissa = Below(4) == 0 ? 0 : Below(1u << format.mantissa);
    const uint32_t sign = Below(2) << (format.exponent + format.mantissa);
    return (sign | static_cast<uint32_t>(exponent) << format.mantissa | mantissa) << format.position;
  }

  void Tile(const FormCase& form, int family, uint32_t* words) {
    static constexpr int kWidths[] = {120, 0, 2, 5, 9, 14, 30, 120};
    const auto bias = [](const Format& f) { return (1 << (f.exponent - 1)) - 1; };
    const int width = kWidths[family];
    const int shift_a = static_cast<int>(Below(7)) - 3, shift_b = static_cast<int>(Below(7)) - 3;
    const int centre_c = bias(form.format_c) + shift_a + shift_b + static_cast<int>(Below(60)) - 30;
    for (int i = 0; i < 320; ++i) {
      const int reg = i % 10;
      uint32_t& word = words[i];
      if (family == 0 || form.bits == 0) {  // any bits
        word = static_cast<uint32_t>(random_());
        if (form.bits == 0 && reg >= 6 && family < 6)
          word = static_cast<uint32_t>(static_cast<int32_t>(word) >> (family * 4));
        continue;
      }
      const Format& format = reg < 4 ? form.format_a : reg < 6 ? form.format_b : form.format_c;
      const int bits = reg < 6 ? form.bits : form.bits_c;
      const int centre = reg < 4 ? bias(format) + shift_a : bias(format) + shift_b;
      word = 0;
      for (int at = 0; at < 32; at += bits) {
        if (reg < 6) {
          word |= Element(format, centre - width, centre + width) << at;
        } else if (family == 7 && Below(2) != 0) {
          word |= Element(format, 0, 400) << at;
        } else {
          word |= Element(format, centre_c - 3, centre_c + 3) << at;
        }
      }
    }
  }

  std::mt19937_64 random_{7};
};

std::string Registers(const char* name, int count) {
  std::string text = "{";
  for (int r = 0; r < count; ++r) text += base::Cat(r == 0 ? "" : ", ", "%", name, r);
  return text + "}";
}

std::string KernelText(const FormCase& form) {
  std::string text =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in) {\n"
      ".reg .b32 %a<4>, %b<2>, %c<4>, %t, %n; .reg .b64 %o, %i;\nld.param.u64 %o, [out];\nld.param.u64 %i, [in];\n"
      "mov.u32 %t, %tid.x;\nmov.u32 %n, %ctaid.x;\nmad.lo.u32 %t, %n, 32, %t;\nmad.wide.u32 %i, %t, 40, %i;\n"
      "mad.wide.u32 %o, %t, 16, %o;\n";
  for (int r = 0; r < 4; ++r) text += base::Cat("ld.global.b32 %a", r, ", [%i+", 4 * r, "];\n");
  for (int r = 0; r < 2; ++r) text += base::Cat("ld.global.b32 %b", r, ", [%i+", 16 + 4 * r, "];\n");
  for (int r = 0; r < 4; ++r) text += base::Cat("ld.global.b32 %c", r, ", [%i+", 24 + 4 * r, "];\n");
  const std::string d = Registers("c", form.d);
  text += base::Cat("mma.sync.aligned.", form.shape_and_types, " ", d, ", ", Registers("a", form.a), ", ",
                    Registers("b", form.b), ", ", d, ";\n");
  for (int r = 0; r < form.d; ++r) text += base::Cat("st.global.b32 [%o+", 4 * r, "], %c", r, ";\n");
  return text + "ret;\n}\n";
}

uint64_t Hash(const std::vector<uint32_t>& words, size_t registers) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i % 4 < registers) hash = (hash ^ words[i]) * 0x100000001b3;
  }
  return hash;
}

TEST(MmaSync, GivesTheWordsOfAnH200) {
  Options options;
  options.profile = Profile::kH200;
  TestDevice device(options);
  Operands operands;
  for (const FormCase& form : kForms) {
    const device::CuFunction kernel = device.Load(KernelText(form), "k");
    ASSERT_NE(kernel, nullptr) << form.shape_and_types << ": " << device.log;
    device::CuDevicePtr in = device.Upload(operands.Next(form));
    device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(kTiles * 128, 0));
    ASSERT_EQ(device.Launch(kernel, {kTiles, 1, 1}, 32, 0, {&out, &in}), device::kCuSuccess);
    EXPECT_EQ(Hash(device.Download<uint32_t>(out, kTiles * 128), static_cast<size_t>(form.d)), form.hash)
        << form.shape_and_types;
  }
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << report.Print();
}

TEST(MmaSync, RefusesWhatDoesNotExist) {
  Options options;
  options.profile = Profile::kH200;
  TestDevice device(options);
  const auto error = [&](const char* form, int a, int b, int d) {
    device.Load(KernelText({form, a, b, d, kF16, kF16, 16, kF32, 32, 0}), "k");
    return device.log;
  };
  EXPECT_NE(error("m8n8k4.row.col.f32.f16.f16.f32", 2, 2, 4).find("is not a shape of .f16"), std::string::npos);
  EXPECT_NE(error("m16n8k16.row.col.f32.f16.bf16.f32", 4, 2, 4).find("the same type"), std::string::npos);
  EXPECT_NE(error("m16n8k16.row.col.f32.f16.f16.f32", 2, 2, 4).find("operand 2 has 2 registers, not 4"),
            std::string::npos);
  EXPECT_NE(error("m16n8k32.row.col.satfinite.f32.e4m3.e4m3.f32", 4, 2, 4).find(".satfinite is for integers"),
            std::string::npos);
}

}  // namespace
}  // namespace laneshift::emulator
