#include "tools/help_topics.h"

#include "base/text.h"
#include "emulator/driver/driver.h"
#include "ir/element_type.h"
#include "ir/grammar.h"
#include "ir/mma.h"
#include "laneshift/schedule.h"
#include "target/target.h"

namespace laneshift::tools {
namespace {

using base::Cat;

HelpPage KeysOf(std::string_view kind, std::string intro, std::string notes) {
  HelpPage page{
      .intro = std::move(intro), .columns = {"key", "default", "values and meaning"}, .rows = {}, .notes = {}};
  for (const ir::GrammarRow& row : ir::ProblemKeys(kind)) {
    page.rows.push_back({Cat(row.name, "="), row.usual, Cat(row.values, ": ", row.doc)});
  }
  page.notes = std::move(notes);
  return page;
}

HelpPage GemmPage() {
  return KeysOf("gemm",
                "D = alpha * A * B + beta * C + bias for each matrix of a batch, then the steps of the epilogue. A "
                "problem is a line of words, the kind and then key=value with blanks between them.",
                R"(
Examples:
  laneshift run gemm m=4096 n=4096 k=4096 a=bf16 b=bf16 d=bf16
  laneshift run gemm m=7 n=1000 k=129 batch=4 a=f16 a_major=m d=f32 alpha=0.5 beta=1 bias=n
  laneshift run gemm m=64 n=7168 k=2048 a=e4m3 b=e4m3 d=bf16 scale=block
  laneshift run gemm m=512 n=4096 k=4096 a=s8 b=u8 d=s32

A is m x k and B is k x n. Sizes, pitches (ld) and strides are in elements. See also: laneshift help epilogue, numerics, types, schedule.)");
}

HelpPage GroupedGemmPage() {
  return KeysOf(
      "grouped_gemm",
      "A GEMM whose rows are in groups, each with a separate B, as in a mixture of experts: D[i,j] = alpha * "
      "sum + beta * C[i,j] + bias for the rows of each group. Only the device knows how many rows a group has: "
      "groups + 1 offsets in its memory. With layout=k groups divide K, and each has a separate D: the gradient of B.",
      R"(
Examples:
  laneshift run grouped_gemm groups=8 m=512 n=256 k=128 --device emulator --check
  laneshift run grouped_gemm groups=64 m=8192 n=4096 k=7168 epilogue=bias_n+swiglu --group-sizes zipf:1
  laneshift run grouped_gemm groups=3 m=300 n=256 k=512 a=e4m3 scale=block --group-sizes 100,0,150
  laneshift run grouped_gemm groups=3 m=300 n=256 k=512 rows=gather+scatter a_rows=100 epilogue=swiglu+scale_m:f32
  laneshift run grouped_gemm groups=8 m=256 n=256 k=512 layout=k d=f32 --device emulator --check

A is m x k with the rows of all groups, B is groups x n x k. With layout=k A is k x m and B k x n with the rows of all
groups, and D is groups x m x n. docs/grouped-gemm.md explains it. See also: laneshift help gemm, epilogue, schedule.)");
}

HelpPage ConvPage() {
  return KeysOf(
      "conv",
      "A forward convolution y = alpha * sum + beta * z + bias, x being NHWC and the filters w KRSC. A problem "
      "that names h or r has two spatial dimensions, one that names d or t three, any other one.",
      R"(
Examples:
  laneshift run conv n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1
  laneshift run conv n=32 h=224 w=224 c=3 k=64 r=7 s=7 pad=3 stride=2 x=bf16 w=bf16 y=bf16
  laneshift run conv n=8 w=1000 c=64 k=64 s=9 pad=4:4 dilation=2 x=f16 w=f16 y=f32 bias=k

Lists are depth before height before width: stride=2,1. pad=1:2 is before:after. See also: laneshift help epilogue, numerics, types, schedule.)");
}

HelpPage DgradPage() {
  return KeysOf(
      "conv_dgrad",
      "The gradient of x: x = alpha * sum + beta * z, from the gradient of y and from w. All keys are those of "
      "the forward convolution.",
      R"(
Examples:
  laneshift run conv_dgrad n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1
  laneshift run conv_dgrad n=8 h=28 w=28 c=64 k=128 r=3 s=3 pad=1 y=bf16 w=bf16 x=f32 epilogue=drelu

Where bulk copies cannot read w in place, a kernel first packs it into the plan's workspace (b_load=pack). See also: laneshift help conv, epilogue, schedule.)");
}

HelpPage WgradPage() {
  return KeysOf(
      "conv_wgrad",
      "The gradient of w: w = alpha * sum + beta * z, from x and the gradient of y. All keys are those of the "
      "forward convolution.",
      R"(
Examples:
  laneshift run conv_wgrad n=1 h=56 w=56 c=64 k=64 r=3 s=3 pad=1
  laneshift run conv_wgrad n=8 h=28 w=28 c=64 k=128 r=3 s=3 pad=1 x=bf16 y=bf16 w=f32 beta=1

See also: laneshift help conv, schedule.)");
}

HelpPage SchedulePage() {
  HelpPage page{.intro = "How a problem is computed. Any keys in any order; the chooser decides the others.",
                .columns = {"key", "default", "values and meaning"},
                .rows = {},
                .notes = R"(
Examples:
  laneshift run gemm m=512 n=512 k=512 --schedule "tile=128x256 stages=4"
  laneshift explain gemm m=512 n=512 k=512 --schedule "tile=128x256 stages=9" --refused

docs/schedules.md explains them at length.)"};
  for (const ScheduleKey& key : ScheduleKeys()) {
    page.rows.push_back({Cat(key.name, "="), key.usual, Cat(key.values, ": ", key.doc)});
  }
  return page;
}

HelpPage EpiloguePage() {
  HelpPage page{.intro =
                    "What happens to v = alpha * sum + beta * C + bias, in f32, on its way to D: steps joined by +, in "
                    "order. s and r are operands.",
                .columns = {"step", "of a conv", "v becomes"},
                .rows = {},
                .notes = R"(
Examples:
  laneshift run gemm m=512 n=512 k=512 epilogue=bias_n+gelu_tanh --check
  laneshift run gemm m=512 n=512 k=512 epilogue=scale_m:f32+residual+clamp:0:6 --check
  laneshift run conv n=8 h=56 w=56 c=64 k=64 r=3 s=3 pad=1 epilogue=bias_k:f32+residual+relu

In a conv_dgrad _k is _c; a conv_wgrad has no steps. A type at the end of a step is that of its operand; without one it is that of D. docs/epilogues.md explains them at length.)"};
  for (ir::GrammarRow& row : ir::EpilogueSteps()) {
    page.rows.push_back({std::move(row.name), std::move(row.values), std::move(row.doc)});
  }
  return page;
}

HelpPage NumericsPage() {
  HelpPage page{.intro = "What a problem promises about its results beyond accuracy. Schedules have to honour it.",
                .columns = {"numerics=", "meaning"},
                .rows = {},
                .notes = R"(
Examples:
  laneshift run gemm m=512 n=512 k=512 numerics=batch_invariant --check)"};
  for (ir::GrammarRow& row : ir::NumericsRows()) page.rows.push_back({std::move(row.name), std::move(row.doc)});
  return page;
}

HelpPage TypesPage() {
  HelpPage page{
      .intro = "Types of elements.", .columns = {"type", "bytes", "in .npy", "may be"}, .rows = {}, .notes = R"(
A and B (x and w) are both f16, both bf16, both tf32, each e4m3 or e5m2, or each s8 or
u8. Of a gemm or grouped_gemm they are also each e4m3, e5m2, e3m2, e2m3 or e2m1. What an
.npy file has no type for are its bits; of types of less than a byte it has whole rows.)"};
  for (int i = 0; i < ir::kDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    const ir::DataTypeInfo& facts = ir::InfoOf(type);
    const bool operand = ir::CanMultiply(type, type);
    page.rows.push_back({std::string(facts.name), Cat(facts.bits / 8.0), std::string(facts.npy),
                         operand        ? (facts.result ? "an operand or a result" : "an operand")
                         : facts.result ? "a result"
                                        : "a scale factor"});
  }
  return page;
}

HelpPage TargetsPage() {
  HelpPage page{
      .intro =
          "The chips that code is generated for. A GPU knows its own; --target names that of the emulator and of "
          "the verbs that need no device.",
      .columns = {"target", "compute", "SMs", "shared memory", "matrix instruction"},
      .rows = {},
      .notes = R"(
Examples:
  laneshift compile gemm m=512 n=512 k=512 --target sm_90a)"};
  for (const target::Target& target : target::Targets()) {
    page.rows.push_back({std::string(target.name), Cat(target.compute_major, ".", target.compute_minor),
                         Cat(target.default_sm_count), Cat(target.smem_bytes, " bytes a CTA"),
                         std::string(target.mma.summary)});
  }
  return page;
}

HelpPage PoliciesPage() {
  HelpPage page{
      .intro =
          "The emulator's behaviour where the manual is silent: --policy NAME=ANSWER. The first answer is the "
          "usual one.",
      .columns = {"policy", "answers and question"},
      .rows = {},
      .notes = R"(
Examples:
  laneshift run gemm m=64 n=64 k=64 --device emulator --policy shift_scope=addressed)"};
  for (const emulator::PolicyRow& row : emulator::PolicyTable()) {
    page.rows.push_back({std::string(row.name), Cat(base::Join(row.answers, ", "), ": ", row.open)});
  }
  return page;
}

HelpPage StorePage() {
  return {.intro =
              "Kernels, choices of schedules and trials are kept in one SQLite file, laneshift.db, so that a second "
              "process "
              "compiles nothing. Deleting it costs time, never correctness.",
          .columns = {"variable", "meaning"},
          .rows = {{"LANESHIFT_CACHE_DIR", "the directory of the store"},
                   {"XDG_CACHE_HOME", "else: its subdirectory laneshift"},
                   {"HOME", "otherwise .cache/laneshift in it; without it everything is kept in memory"},
                   {"LANESHIFT_SYSTEM_STORE", "a sealed database that is read after the store (as --system-store)"}},
          .notes = R"(
Examples:
  laneshift db stat
  laneshift db show gemm m=4096 n=4096 k=4096
  laneshift db prune --older-than 90 --dry-run

docs/store.md says what a stored choice is worth.)"};
}

HelpPage ExitPage() {
  return {.intro = "How the program ends.",
          .columns = {"code", "meaning"},
          .rows = {{"0", "ok"},
                   {"1", "a wrong result or a failure, also: the output could not be written"},
                   {"2", "the command line or a problem is invalid"},
                   {"3", "valid, but this target, schedule or build cannot, or it does not fit"},
                   {"4", "no such device, or no such file of records"},
                   {"130", "Ctrl-C; measurements until then are stored"}},
          .notes = R"(
With --json a failure is an object {"error": {"code", "message", "exit_code"}} on standard output, too.)"};
}

}  // namespace

const std::vector<HelpTopic>& HelpTopics() {
  static const std::vector<HelpTopic> topics = {
      {"gemm", "the keys of a matrix product", GemmPage},
      {"conv", "the keys of a convolution", ConvPage},
      {"grouped_gemm", "the keys of a grouped matrix product", GroupedGemmPage},
      {"conv_dgrad", "the keys of the gradient of a convolution's input", DgradPage},
      {"conv_wgrad", "the keys of the gradient of its filters", WgradPage},
      {"schedule", "the keys of a schedule", SchedulePage},
      {"epilogue", "the steps from the accumulator to the result", EpiloguePage},
      {"numerics", "what numerics= asks for", NumericsPage},
      {"types", "types of elements", TypesPage},
      {"targets", "chips that code is generated for", TargetsPage},
      {"policies", "open questions of the manual that --policy answers", PoliciesPage},
      {"store", "where kernels and choices are stored", StorePage},
      {"exit-codes", "how the program ends", ExitPage},
  };
  return topics;
}

}  // namespace laneshift::tools
