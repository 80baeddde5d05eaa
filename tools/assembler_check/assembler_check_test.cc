// verify-assembler with scripts as assemblers: what it finds, how it judges their answers, and how it ends.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/read_file.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "runtime/engine_parts.h"
#include "store/temporary_directory.h"
#include "tools/assembler_check/assembled_kernel.h"
#include "tools/assembler_check/device_run.h"
#include "tools/assembler_check/find_assemblers.h"
#include "tools/assembler_check/word_check.h"

namespace laneshift::tools {
namespace {

using base::Cat;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class VerifyAssembler : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return directory_.path() + "/" + name; }

  // A ptxas of this version: a script that ends with `rest`, in which $out is the path of the cubin.
  std::string Script(const std::string& name, const std::string& version, const std::string& rest) const {
    const std::string path = Path(name);
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'release, V" << version
                        << "'; exit 0; fi\nwhile [ \"$1\" != -o ]; do shift; done\nout=$2\n"
                        << rest;
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }
  std::string Takes(const std::string& name, const std::string& version, int registers, int spills) const {
    return Script(
        name, version,
        Cat("echo cubin > \"$out\"\necho 'ptxas info : 0 bytes stack frame, ", spills,
            " bytes spill stores, 0 bytes spill loads'\necho 'ptxas info : Used ", registers, " registers'\n"));
  }
  std::string Refuses(const std::string& name, const std::string& version, const std::string& message) const {
    return Script(name, version, Cat("echo \"", message, "\" >&2\nexit 1\n"));
  }
  std::string Ptx() const {
    const std::string path = Path("k.ptx");
    std::ofstream(path) << ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n";
    return path;
  }

  // The objects that `laneshift verify-assembler --json` prints; the last one is of all.
  std::vector<Json> Verify(std::vector<std::string> arguments, int exit_code) const {
    arguments.insert(arguments.begin(), {LANESHIFT_PROGRAM, "verify-assembler", "--device", "none", "--json"});
    const auto ran = base::RunProgram({.argv = arguments, .input = {}, .timeout = std::chrono::seconds(120)});
    EXPECT_TRUE(ran.has_value());
    if (!ran) return {};
    EXPECT_EQ(ran->exit_code, exit_code) << ran->output << ran->messages;
    std::vector<Json> objects;
    for (const std::string_view line : base::Split(ran->output, '\n')) {
      if (!line.empty()) objects.push_back(Json::parse(line, nullptr, false));
    }
    return objects;
  }

  store::TemporaryDirectory directory_;
};

TEST_F(VerifyAssembler, TellsWhatDiffersBetweenAssemblers) {
  const std::string wide = Takes("a/ptxas", "12.8.93", 168, 16), narrow = Takes("b/ptxas", "13.1.80", 152, 0);
  const auto objects = Verify({"--only-named", "--assembler", wide, "--assembler", narrow, Ptx()}, 0);
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["target"], "sm_90a");
  EXPECT_EQ(objects[0]["results"][0]["assembler"], "ptxas 12.8.93");
  EXPECT_EQ(objects[0]["results"][0]["spill_store_bytes"], 16) << "a user's own kernel may spill";
  EXPECT_EQ(objects[0]["results"][1]["registers"], 152);
  EXPECT_EQ(objects[0]["results"][1]["words"], "not compared");
  const Json differences = {"registers: 168 (ptxas 12.8.93), 152 (ptxas 13.1.80)",
                            "bytes of spills: 16 (ptxas 12.8.93), 0 (ptxas 13.1.80)"};
  EXPECT_EQ(objects[0]["differences"], differences);
  EXPECT_EQ(objects[1]["ok"], true);
  EXPECT_EQ(objects[1]["assemblers"][0]["spilled"], 1);
}

// Without the GPU that is asked for, one line says what works instead.
TEST_F(VerifyAssembler, SaysWhatToDoWithoutAGpu) {
  const std::string good = Takes("a/ptxas", "13.1.80", 8, 0);
  for (const auto& [device, exit_code] : {std::pair("cuda:99", 4), std::pair("emulator", 2)}) {
    const auto ran = base::RunProgram({.argv = {LANESHIFT_PROGRAM, "verify-assembler", "--device", device,
                                                "--only-named", "--assembler", good, Ptx()},
                                       .input = {},
                                       .timeout = std::chrono::seconds(120)});
    ASSERT_TRUE(ran.has_value());
    EXPECT_EQ(ran->exit_code, exit_code) << ran->messages;
    EXPECT_NE(ran->messages.find("--device emulator"), std::string::npos) << ran->messages;
    EXPECT_NE(ran->messages.find("--device none"), std::string::npos) << ran->messages;
    EXPECT_EQ(std::count(ran->messages.begin(), ran->messages.end(), '\n'), 1) << ran->messages;
  }
}

TEST_F(VerifyAssembler, TellsARefusalFromAnAssemblerThatIsTooOld) {
  const std::string good = Takes("a/ptxas", "13.1.80", 8, 0);
  const std::string old =
      Refuses("b/ptxas", "12.0.1", "ptxas k.ptx, line 1; fatal : Unsupported .version 8.7; current version is '8.0'");
  const std::string broken = Refuses("c/ptxas", "13.0.88", "ptxas fatal : Internal error");
  const auto passed = Verify({Ptx(), "--only-named", "--assembler", good, "--assembler", old}, 0);
  ASSERT_EQ(passed.size(), 2u);
  EXPECT_EQ(passed[0]["results"][1]["status"], "too old");
  const auto failed = Verify({Ptx(), "--only-named", "--assembler", good, "--assembler", broken}, 1);
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0]["results"][1]["status"], "refused");
  EXPECT_NE(std::string(failed[0]["results"][1]["failure"]).find("Internal error"), std::string::npos);
  EXPECT_EQ(failed[1]["ok"], false);
  Verify({Ptx(), "--only-named", "--assembler", old}, 1);  // nobody took it
}

TEST_F(VerifyAssembler, WantsItsOwnKernelsTidyAndDrawsThemAlike) {
  const std::string tidy = Takes("a/ptxas", "13.1.80", 8, 0), spills = Takes("b/ptxas", "12.8.93", 8, 4);
  const std::vector<std::string> draw = {"--only-named", "--count", "4", "--seed", "3", "--assembler"};
  const auto with = [&](const std::string& assembler) {
    std::vector<std::string> arguments = draw;
    arguments.push_back(assembler);
    return arguments;
  };
  const auto first = Verify(with(tidy), 0), second = Verify(with(tidy), 0), failed = Verify(with(spills), 1);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0]["target"], first[1]["target"]) << "both targets, alternating";
  EXPECT_NE(std::string(first[0]["kernel"]).find("--schedule"), std::string::npos);
  EXPECT_NE(std::string(failed[0]["results"][0]["failure"]).find("spills"), std::string::npos);
}

TEST_F(VerifyAssembler, FindsThoseOfPythonPackages) {
  const std::string cuda12 = Takes("v/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "12.8.93", 8, 0);
  const std::string cuda13 = Takes("v/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas", "13.0.88", 8, 0);
  const std::string triton =
      Takes("v/lib/python3.11/site-packages/triton/backends/nvidia/bin/ptxas-blackwell", "13.4.59", 8, 0);
  EXPECT_EQ(AssemblersIn(Path("v")), (std::vector<std::string>{cuda12, cuda13, triton}));
  // What pip --target made has no lib/python3.
  EXPECT_EQ(AssemblersIn(Path("v/lib/python3.11/site-packages")), (std::vector<std::string>{cuda12, cuda13, triton}));
  Settings settings;
  settings.program_directories = {Path("v/bin")};
  const auto found = FindAssemblers({cuda13}, AssemblerSearch::kMachine, settings);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->front().id(), "ptxas 13.0.88");
  size_t same = 0, other = 0;
  for (const device::PtxAssembler& one : *found) {
    same += one.id() == "ptxas 13.0.88";
    other += one.path() == cuda12 || one.path() == triton;
  }
  EXPECT_EQ(same, 1u) << "of one version one is enough";
  EXPECT_EQ(other, 2u);
}

TEST_F(VerifyAssembler, RefusesInOneLine) {
  const auto refused = [&](std::vector<std::string> arguments, int exit_code) {
    const auto objects = Verify(std::move(arguments), exit_code);
    EXPECT_EQ(objects.size(), 1u);
    return objects.empty() ? std::string() : std::string(objects[0]["error"]["message"]);
  };
  const std::string good = Takes("a/ptxas", "13.1.80", 8, 0);
  std::ofstream(Path("no.ptx")) << "hello\n";
  std::ofstream(Path("k.json")) << "{}\n";
  EXPECT_NE(refused({"--assembler", Path("none")}, 2).find("none"), std::string::npos);
  EXPECT_NE(refused({"--assembler", directory_.path()}, 2).find("has no ptxas"), std::string::npos);
  EXPECT_NE(refused({"--only-named"}, 4).find("--assembler"), std::string::npos);
  EXPECT_NE(refused({"--assembler", good, Path("no.ptx")}, 2).find("is it PTX?"), std::string::npos);
  EXPECT_NE(refused({"--assembler", good, Path("k.json")}, 2).find("follows the PTX file"), std::string::npos);
  EXPECT_NE(refused({"--assembler", good, "--count", "0"}, 2).find("nothing to assemble"), std::string::npos);
  EXPECT_NE(refused({"--assembler", good, "--target", "sm_80"}, 3).find("sm_80"), std::string::npos);
}

// The launches of a file repeated on another device: here an emulated one, which takes PTX instead of a cubin.
void ExpectRepeated(const std::string& directory, const std::string& name, const std::string& target) {
  const auto ptx = base::ReadFile(Cat(directory, "/", name, ".ptx"), 1 << 20);
  auto text = base::ReadFile(Cat(directory, "/", name, ".json"), 1 << 20);
  ASSERT_TRUE(ptx.has_value() && text.has_value());
  auto file = ParseLaunchFile(name + ".json", *text);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  file->outputs.clear();
  EmulationTrace trace;
  const auto profile = emulator::ProfileOfTarget(target);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  emulator::Options options;
  options.profile = *profile;
  const auto outcome = RunEmulation(name + ".ptx", *ptx, *file, {directory, false}, options, &trace);
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  ASSERT_EQ(trace.after.size(), file->buffers.size());
  ASSERT_EQ(trace.kernels.size(), file->launches.size());
  EXPECT_NE(trace.before, trace.after);
  const auto engine = Engine::Open({.device = "emulator", .target = target, .store_directory = ":memory:"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const device::Device& device = engine->parts().device;
  const auto module = device::Module::LoadPtx(device.context(), *ptx);
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const auto after = RunOnDevice(device, *module, *file, trace);
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(*after, trace.after);
  // Where memory lies is for a device to choose.
  file->buffers[0].address = uint64_t{1} << 45;
  EXPECT_FALSE(RunOnDevice(device, *module, *file, trace).has_value());
}

TEST(DeviceRun, DoesWhatTheEmulatedRunDid) {
  ExpectRepeated(LANESHIFT_SOURCE_DIR "/examples/emulate", "scale", "sm_100a");
  ExpectRepeated(LANESHIFT_SOURCE_DIR "/tests/assemblers", "wgmma_ring", "sm_90a");  // with tensor maps
}

// The words of a drawn kernel, as they are compared: D of two runs is the same.
TEST(DrawnKernel, LeavesTheSameWordsInEveryOrder) {
  const auto kernels = DrawKernels(2, 3, "sm_90a");
  ASSERT_TRUE(kernels.has_value()) << kernels.error().message;
  ASSERT_EQ(kernels->size(), 2u);
  for (const CheckedKernel& kernel : *kernels) {
    std::vector<std::vector<std::byte>> outputs;
    for (const AsyncOrder::Kind order : {AsyncOrder::kEager, AsyncOrder::kLate}) {
      const auto engine = Engine::Open(
          {.device = "emulator", .target = kernel.target, .store_directory = ":memory:", .async_order = {order, 0}});
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      RunSettings settings;
      settings.keep_output = true;
      settings.repeat = 0;
      settings.constraint = *ParseSchedule(PrintSchedule(kernel.drawn->schedule));
      const auto outcome = RunProblem(*engine, kernel.drawn->problem, settings);
      ASSERT_TRUE(outcome.has_value()) << kernel.name << ": " << outcome.error().message;
      EXPECT_EQ(outcome->plan.schedule, PrintSchedule(kernel.drawn->schedule));
      outputs.push_back(outcome->output);
    }
    EXPECT_FALSE(outputs[0].empty());
    EXPECT_EQ(outputs[0], outputs[1]) << kernel.name;
  }
}

TEST(WordDifference, NamesTheFirstByte) {
  const std::vector<std::pair<std::string, std::vector<uint8_t>>> wanted = {{"a", {1, 2}}, {"b", {1, 2, 3, 4}}};
  auto got = wanted;
  EXPECT_EQ(DifferenceOf(got, wanted, "the emulator's"), "");
  got[1].second = {1, 9, 3, 8};
  EXPECT_EQ(DifferenceOf(got, wanted, "the emulator's"),
            "2 of 4 bytes of b differ from the emulator's, first byte 1: 9, not 2");
}

}  // namespace
}  // namespace laneshift::tools
