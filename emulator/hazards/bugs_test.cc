// Published synchronisation bugs (tests/emulator/bugs): each is reported at its line, and its fix has no report.

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "emulator/emulated_test_device.h"

namespace laneshift::emulator {
namespace {

using base::Cat;

enum class Noticed : uint8_t { kAlways, kManual, kNever };

struct Bug {
  friend void PrintTo(const Bug& bug, std::ostream* out) { *out << bug.file; }
  const char* file;
  const char* project;
  int thread;
  const char* url;
  const char* kind;
  Noticed noticed;
  const char* what;
  const char* why_not;
};

const Bug kBugs[] = {
#define BUG(file, project, thread, url, kind, noticed, what, why_not) \
  {#file, project, thread, url, kind, Noticed::k##noticed, what, why_not},
#include "emulator/hazards/published_bugs.def"
};

// A launch of the program's first comment.
struct Step {
  std::string kernel;
  unsigned grid = 1, block = 1, cluster = 1;
  bool programmatic = false;
};

// One variant of a program, and the expected reports of its bug.
struct Variant {
  std::string text;
  std::vector<Step> steps;
  std::vector<std::pair<int, std::vector<std::string>>> expected;  // PTX line, names of hazards
};

std::vector<Step> ReadSteps(const std::string& text) {
  std::vector<Step> steps;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream words(part);
    Step& step = steps.emplace_back();
    words >> step.kernel;
    for (std::string word; words >> word;) {
      if (word == "programmatic") {
        step.programmatic = true;
        continue;
      }
      const size_t at = word.find('=');
      EXPECT_NE(at, std::string::npos) << word;
      const std::string key = word.substr(0, at);
      unsigned& field = key == "grid" ? step.grid : key == "block" ? step.block : step.cluster;
      EXPECT_TRUE(key == "grid" || key == "block" || key == "cluster") << word;
      field = static_cast<unsigned>(std::stoul(word.substr(at + 1)));
    }
  }
  return steps;
}

Variant ReadVariant(const std::string& file, std::string_view variant) {
  Variant read;
  std::istringstream lines(ReadTestFile(Cat("bugs/", file, ".ptx")));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("// launch: ")) read.steps = ReadSteps(line.substr(11));
    if (const size_t mark = line.find("// <- "); mark != std::string::npos) {
      std::istringstream names(line.substr(mark + 6));
      auto& [at, kinds] = read.expected.emplace_back(number, std::vector<std::string>());
      for (std::string name; names >> name;) kinds.push_back(name);
    }
    const std::string tag = Cat("//", variant, " ");
    if (const size_t at = line.find(tag); at != std::string::npos) line.erase(at, tag.size());
    read.text += line + "\n";
  }
  return read;
}

struct Setting {
  Completion completion;
  uint64_t seed;
  const char* profile;
};

// A tensor map over the first four rows of eight words.
device::CuDevicePtr UploadMap(TestDevice& device, device::CuDevicePtr data) {
  device::CuTensorMap map{};
  const uint64_t dims[] = {8, 4}, strides[] = {32};
  const uint32_t box[] = {8, 4}, steps[] = {1, 1};
  EXPECT_EQ(device.api.TensorMapEncodeTiled(&map, device::kCuTensorMapUint32, 2, reinterpret_cast<void*>(data), dims,
                                            strides, box, steps, device::kCuInterleaveNone, device::kCuSwizzleNone,
                                            device::kCuL2None, device::kCuOobZero),
            device::kCuSuccess);
  return device.Upload(std::vector<device::CuTensorMap>{map});
}

Report RunVariant(const Variant& variant, const Setting& setting) {
  Options options;
  options.profile = variant.text.find(".target sm_90a") != std::string::npos ? Profile::kH200 : Profile::kB200;
  options.completion = setting.completion;
  options.seed = setting.seed;
  options.host_threads = 1;
  EXPECT_TRUE(SetPolicyProfile(options.policies, setting.profile).has_value());
  TestDevice device(options);
  device::CuDevicePtr data = device.Upload(std::vector<uint32_t>(16384, 1));
  device::CuDevicePtr maps = UploadMap(device, data);
  std::vector<void*> parameters = {&data, &maps};
  for (const Step& step : variant.steps) {
    const device::CuFunction kernel = device.Load(variant.text, step.kernel.c_str());
    EXPECT_NE(kernel, nullptr) << device.log;
    if (kernel == nullptr) return {};
    std::array<device::CuLaunchAttribute, 2> attributes{};
    attributes[0].id = device::kCuLaunchClusterDimension;
    attributes[0].value.cluster_dim = {step.cluster, 1, 1};
    attributes[1].id = device::kCuLaunchProgrammaticStreamSerialization;
    attributes[1].value.programmatic_stream_serialization = 1;
    const device::CuLaunchConfig config{step.grid, 1, 1,       step.block,        1,
                                        1,         0, nullptr, attributes.data(), step.programmatic ? 2u : 1u};
    EXPECT_EQ(device.api.LaunchKernelEx(&config, kernel, parameters.data(), nullptr), device::kCuSuccess);
  }
  (void)device.api.CtxSynchronize();  // a fault, if one is expected
  return TakeReport();
}

bool IsReported(const Variant& variant, const Report& report) {
  const auto reports = [&](int line, const std::string& name) {
    if (name == "deadlock") {
      return std::any_of(report.faults.begin(), report.faults.end(), [&](const Fault& fault) {
        return std::any_of(fault.waits.begin(), fault.waits.end(),
                           [&](const WaitingPath& wait) { return wait.who.line == line; });
      });
    }
    return std::any_of(report.hazards.begin(), report.hazards.end(),
                       [&](const Hazard& hazard) { return NameOf(hazard.kind) == name && hazard.place.line == line; });
  };
  return std::any_of(variant.expected.begin(), variant.expected.end(), [&](const auto& expected) {
    return std::any_of(expected.second.begin(), expected.second.end(),
                       [&](const std::string& name) { return reports(expected.first, name); });
  });
}

class Bugs : public testing::TestWithParam<Bug> {};

TEST_P(Bugs, AreReportedWhereTheyAreAndTheirFixIsSilent) {
  const Variant bug = ReadVariant(GetParam().file, "bug"), fix = ReadVariant(GetParam().file, "fix");
  ASSERT_NE(bug.text, fix.text);
  ASSERT_FALSE(bug.expected.empty());
  ASSERT_FALSE(bug.steps.empty());
  for (const char* profile : {"hardware", "manual"}) {
    const bool noticed = GetParam().noticed == Noticed::kAlways ||
                         (GetParam().noticed == Noticed::kManual && std::string_view(profile) == "manual");
    for (const auto& [completion, seeds] :
         {std::pair{Completion::kEager, 1}, {Completion::kLate, 1}, {Completion::kRandom, 4}}) {
      // A random order shows a bug for at least one of the seeds.
      int reported = 0;
      std::string last;
      for (int seed = 1; seed <= seeds; ++seed) {
        const Setting setting{completion, static_cast<uint64_t>(seed), profile};
        const Report wrong = RunVariant(bug, setting);
        reported += IsReported(bug, wrong) ? 1 : 0;
        last = wrong.Print();
        const Report right = RunVariant(fix, setting);
        EXPECT_TRUE(right.Clean()) << profile << " order " << static_cast<int>(completion)
                                   << ", the fix: " << right.Print();
      }
      EXPECT_EQ(reported != 0, noticed) << profile << " order " << static_cast<int>(completion) << ": " << last;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Published, Bugs, testing::ValuesIn(kBugs),
                         [](const auto& bug) { return std::string(bug.param.file); });

int64_t CountOf(Noticed noticed) {
  return std::count_if(std::begin(kBugs), std::end(kBugs), [&](const Bug& bug) { return bug.noticed == noticed; });
}

// The lines of docs/emulator-bugs.md after its introduction.
std::string BugTable() {
  std::string text =
      Cat("Of ", std::size(kBugs), " bugs ", CountOf(Noticed::kAlways), " are reported in both profiles, and ",
          CountOf(Noticed::kManual), " more with `--profile manual`.\n\n");
  text += "| bug | class | what it was | reported as | noticed |\n|---|---|---|---|---|\n";
  for (const Bug& bug : kBugs) {
    std::vector<std::string> names;
    for (const auto& [line, kinds] : ReadVariant(bug.file, "bug").expected) {
      for (const std::string& kind : kinds) {
        if (std::find(names.begin(), names.end(), Cat("`", kind, "`")) == names.end())
          names.push_back(Cat("`", kind, "`"));
      }
    }
    const std::string noticed = bug.noticed == Noticed::kAlways   ? "yes"
                                : bug.noticed == Noticed::kManual ? Cat("with `--profile manual`: ", bug.why_not)
                                                                  : Cat("no: ", bug.why_not);
    text += Cat("| [", bug.project, " ", bug.thread, "](", bug.url, ") | ", bug.kind, " | ", bug.what, " | ",
                bug.noticed == Noticed::kNever ? std::string("-") : base::Join(names, ", "), " | ", noticed, " |\n");
  }
  return text;
}

TEST(PublishedBugs, StandInTheManual) {
  std::ifstream file(LANESHIFT_SOURCE_DIR "/docs/emulator-bugs.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(BugTable()), std::string::npos) << "docs/emulator-bugs.md should have:\n" << BugTable();
}

TEST(PublishedBugs, AreNoticedInNineOfTenCases) {
  const auto bugs = static_cast<int64_t>(std::size(kBugs));
  EXPECT_GE(bugs, 52);
  EXPECT_GE(10 * CountOf(Noticed::kAlways), 9 * bugs);
}

}  // namespace
}  // namespace laneshift::emulator
