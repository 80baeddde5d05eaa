// Every row of the instruction table is executed by a program under tests/emulator/rows/, whose results are compared.

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "emulator/emulated_test_device.h"
#include "emulator/ptx/ptx_instructions.h"
#include "emulator/row_programs.h"

namespace laneshift::emulator {
namespace {

namespace fs = std::filesystem;

// One full warp and a partial one: handlers have a path for each.
constexpr unsigned kThreads = 52;

std::vector<std::string> FilesOf(std::string_view extension) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(LANESHIFT_SOURCE_DIR "/tests/emulator/rows")) {
    if (entry.path().extension() == extension) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Executions per row, over all programs.
class Coverage {
 public:
  void Add(const Report& report) {
    if (rows_.size() < report.counters.rows.size()) rows_.resize(report.counters.rows.size());
    for (size_t r = 0; r < report.counters.rows.size(); ++r) rows_[r] += report.counters.rows[r];
  }
  bool Has(size_t row) const { return row < rows_.size() && rows_[row] != 0; }

 private:
  std::vector<uint64_t> rows_;
};

Options OptionsFor(bool is_hopper) {
  Options options;
  options.profile = is_hopper ? Profile::kH200 : Profile::kB200;
  options.host_threads = 1;
  return options;
}

std::string Print(const std::vector<uint32_t>& words) {
  char text[40];
  std::snprintf(text, sizeof text, "%08x %08x %08x %08x", words[3], words[2], words[1], words[0]);
  return text;
}

uint32_t KeptBits(char kind, size_t word) {
  if (kind == 'h') return word == 0 ? 0xffffu : 0;
  return word < (kind == 'q' ? 4u : kind == 'd' ? 2u : 1u) ? 0xffffffffu : 0;
}

void RunCase(TestDevice& device, const std::string& name, device::CuModule module, const rows::RowCase& c) {
  device::CuFunction kernel = nullptr;
  ASSERT_EQ(device.api.ModuleGetFunction(&kernel, module, base::Cat("case", c.line).c_str()), device::kCuSuccess);
  std::vector<uint32_t> given;
  for (const auto& words : c.inputs) given.insert(given.end(), words.begin(), words.end());
  given.resize(std::max<size_t>(given.size(), 4));
  const size_t count = std::max<size_t>(4, 4 * c.expected.size());
  device::CuDevicePtr in = device.Upload(given);
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(count * kThreads, 0));
  ASSERT_EQ(device.Launch(kernel, {1, 1, 1}, kThreads, 0, {&out, &in}), device::kCuSuccess)
      << name << ":" << c.line << ": " << c.code;
  const auto words = device.Download<uint32_t>(out, count * kThreads);
  for (size_t k = 0; k < c.expected.size(); ++k) {
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      std::vector<uint32_t> got(4);
      for (size_t w = 0; w < 4; ++w) got[w] = words[count * thread + 4 * k + w] & KeptBits(c.expected[k].kind, w);
      ASSERT_EQ(Print(got), Print(c.outputs[k]))
          << name << ":" << c.line << ": " << c.code << "register " << c.expected[k].name << " of thread " << thread;
    }
  }
}

void RunCases(const std::string& name, Coverage& coverage) {
  std::vector<std::string> complaints;
  const rows::CaseFile file = rows::ParseCases(ReadTestFile("rows/" + name), complaints);
  for (const std::string& complaint : complaints) ADD_FAILURE() << name << ": " << complaint;
  TestDevice device(OptionsFor(file.target.starts_with("sm_90")));
  for (const rows::RowCase& c : file.cases) {
    rows::CaseFile single = file;
    single.cases = {c};
    device::CuModule module = nullptr;
    std::array<char, 512> log{};
    std::array<device::CuJitOption, 2> options = {device::kCuJitErrorLogBuffer, device::kCuJitErrorLogBufferSizeBytes};
    std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(log.size())};
    const auto loaded =
        device.api.ModuleLoadDataEx(&module, rows::ModuleOf(single).c_str(), 2, options.data(), values.data());
    EXPECT_EQ(loaded, device::kCuSuccess) << name << ":" << c.line << ": " << c.code << log.data();
    if (loaded != device::kCuSuccess) continue;
    RunCase(device, name, module, c);
    EXPECT_EQ(device.api.ModuleUnload(module), device::kCuSuccess);
  }
  const Report report = TakeReport();
  EXPECT_TRUE(report.Clean()) << name << "\n" << report.Print();
  coverage.Add(report);
}

// The maps of a program over its buffers.
std::vector<TensorMapBytes> Encode(const rows::RowProgram& program, const std::string& name, device::CuDevicePtr out,
                                   device::CuDevicePtr in) {
  const auto dialect = program.is_hopper ? TensorMapDialect::kHopper : TensorMapDialect::kBlackwell;
  std::vector<TensorMapBytes> encoded;
  for (const rows::RowTensorMap& row : program.maps) {
    TensorMap map = row.map;
    map.address = (row.of_out ? out : in) + 4 * row.at;
    const Status valid = ValidateTensorMap(map, dialect);
    EXPECT_TRUE(valid.has_value()) << name << ": map " << encoded.size() << ": " << valid.error().message;
    encoded.push_back(EncodeTensorMap(map));
  }
  return encoded;
}

void RunProgram(const std::string& name, Completion completion, Coverage& coverage) {
  const rows::RowProgram program = rows::ParseProgram(ReadTestFile("rows/" + name));
  for (const std::string& complaint : program.complaints) ADD_FAILURE() << name << ": " << complaint;
  Options options = OptionsFor(program.is_hopper);
  options.completion = completion;
  TestDevice device(options);
  const device::CuFunction kernel = device.Load(program.text, "k");
  ASSERT_NE(kernel, nullptr) << name << ": " << device.log;
  std::vector<uint32_t> counting(std::max<size_t>(program.words, 1024));
  std::iota(counting.begin(), counting.end(), 0u);
  device::CuDevicePtr in = device.Upload(counting);
  device::CuDevicePtr out = device.Upload(std::vector<uint32_t>(counting.size(), 0));
  std::vector<TensorMapBytes> maps = Encode(program, name, out, in);
  std::vector<void*> parameters = {&out, &in};
  for (TensorMapBytes& map : maps) parameters.push_back(&map);
  const auto result = device.Launch(kernel, program.grid, program.block, program.shared, parameters, program.cluster);
  const Report report = TakeReport();
  coverage.Add(report);
  EXPECT_TRUE(report.hazards.empty()) << name << "\n" << report.Print();
  if (!program.faults.empty()) {
    EXPECT_NE(result, device::kCuSuccess) << name;
    ASSERT_EQ(report.faults.size(), 1u) << name;
    EXPECT_NE(report.faults[0].message.find(program.faults), std::string::npos) << name << report.faults[0].Print();
    return;
  }
  ASSERT_EQ(result, device::kCuSuccess) << name << "\n" << report.Print();
  const auto words = device.Download<uint32_t>(out, program.expected.size());
  for (size_t w = 0; w < words.size(); ++w) {
    ASSERT_EQ(Print({words[w], 0, 0, 0}), Print({program.expected[w], 0, 0, 0})) << name << ": word " << w;
  }
  EXPECT_FALSE(words.empty()) << name << " expects nothing";
}

TEST(InstructionRows, EveryRowIsExecuted) {
  Coverage coverage;
  const auto cases = FilesOf(".cases"), programs = FilesOf(".ptx");
  ASSERT_GE(cases.size(), 1u);
  for (const std::string& name : cases) RunCases(name, coverage);
  for (const std::string& name : programs) {
    for (const Completion completion : {Completion::kEager, Completion::kLate}) RunProgram(name, completion, coverage);
  }
  for (size_t r = 0; r < InstructionTable().size(); ++r)
    EXPECT_TRUE(coverage.Has(r)) << InstructionTable()[r].pattern
                                 << " is executed by no program under tests/emulator/rows";
}

}  // namespace
}  // namespace laneshift::emulator
