#include "runtime/probes/ptx_text.h"

#include "base/check.h"

namespace laneshift::runtime {
namespace {

using base::Cat;

constexpr std::string_view kPrefixes[] = {"%r", "%d", "%p", "%h"};
constexpr std::string_view kTypes[] = {".b32", ".b64", ".pred", ".b16"};
constexpr int kSharedAlignment = 1024;  // of the pattern of 128-byte swizzle

}  // namespace

PtxText::PtxText(const target::Target& target, int ptx_version, unsigned threads, unsigned cluster, int words, bool map)
    : threads_(threads) {
  header_ = Cat(".version ", ptx_version / 10, ".", ptx_version % 10, "\n.target ", target.name,
                "\n.address_size 64\n.extern .shared .align 128 .b8 dynamic[];\n.visible .entry ", kProbeEntry,
                "(.param .u64 clocks, .param .u64 out, .param .u64 in, .param .u32 repeats");
  for (int i = 0; i < words; ++i) header_ += Cat(", .param .u32 p", i);
  if (map) header_ += ", .param .align 64 .b8 map[128]";
  header_ += Cat(")\n.reqntid ", threads, ", 1, 1\n.minnctapersm 1\n");
  if (cluster > 1) header_ += Cat(".reqnctapercluster ", cluster, ", 1, 1\n");
  clocks_ = Wide("ld.param.u64", "[clocks]");
  out_ = Wide("ld.param.u64", "[out]");
  in_ = Wide("ld.param.u64", "[in]");
  repeats_ = Word("ld.param.u32", "[repeats]");
  for (int i = 0; i < words; ++i) words_.push_back(Word("ld.param.u32", Cat("[p", i, "]")));
  thread_ = Word("mov.u32", "%tid.x");
  cta_ = Word("mov.u32", "%ctaid.x");
  rank_ = Word("mov.u32", "%cluster_ctarank");
  not_first_ = Predicate("setp.ne.u32", thread_, 0);
}

void PtxText::Shared(std::string_view type, std::string_view name, int count, int align) {
  shared_ += Cat("  .shared .align ", align, " ", type, " ", name, "[", count, "];\n");
}

std::string PtxText::New(RegisterKind kind) {
  const auto index = static_cast<size_t>(kind);
  return Cat(kPrefixes[index], registers_[index]++);
}

std::vector<std::string> PtxText::NewWords(int count) {
  std::vector<std::string> made;
  for (int i = 0; i < count; ++i) made.push_back(New(RegisterKind::kWord));
  return made;
}

std::string PtxText::NewLabel() { return Cat("L", labels_++); }

void PtxText::Repeat(const std::string& count, const std::function<void(const std::string&)>& body) {
  ForEach("0", count, "1", body);
}

void PtxText::ForEach(std::string_view first, std::string_view end, std::string_view step,
                      const std::function<void(const std::string&)>& body) {
  const std::string index = Word("mov.u32", first), again = NewLabel();
  Place(again);
  body(index);
  Do("add.u32", index, index, step);
  BranchIf(Predicate("setp.lt.u32", index, end), again);
}

void PtxText::Unless(const std::string& predicate, const std::function<void()>& body) {
  const std::string after = NewLabel();
  BranchIf(predicate, after);
  body();
  Place(after);
}

void PtxText::Elected(const std::function<void()>& body) {
  const std::string after = NewLabel();
  const std::string warp = Word("shfl.sync.idx.b32", Word("shr.u32", thread_, 5), 0, 31, "0xffffffff");
  BranchIf(Predicate("setp.ne.u32", warp, 0), after);
  const std::string lane = New(RegisterKind::kWord), elected = New(RegisterKind::kPredicate);
  Do("elect.sync", Cat(lane, "|", elected), "0xffffffff");
  BranchIf(Cat("!", elected), after);
  body();
  Place(after);
}

std::string PtxText::MapAddress() {
  const std::string own = Wide("mov.b64", "map");
  return Wide("cvta.param.u64", own);
}

std::string PtxText::SharedStart() {
  const std::string start = Word("mov.u32", "dynamic");
  const std::string past = Word("add.u32", start, kSharedAlignment - 1);
  return Word("and.b32", past, Cat("0x", "fffffc00"));
}

void PtxText::StoreClocks(const std::string& begin, const std::string& end) {
  const std::string taken = Wide("sub.s64", end, begin);
  const std::string offset = Wide("mul.wide.u32", cta_, 8);
  Do("st.global.b64", Cat("[", Wide("add.s64", clocks_, offset), "]"), taken);
}

void PtxText::WaitFor(const std::string& barrier, const std::string& parity) {
  const std::string again = NewLabel();
  Place(again);
  const std::string done = New(RegisterKind::kPredicate);
  Do("mbarrier.try_wait.parity.shared::cta.b64", done, Cat("[", barrier, "]"), parity);
  BranchIf(Cat("!", done), again);
}

void PtxText::SyncCluster() {
  Line("barrier.cluster.arrive.release.aligned");
  Line("barrier.cluster.wait.acquire.aligned");
}

void PtxText::FillShared(const std::string& shared, const std::string& source, int words) {
  LS_CHECK(words % static_cast<int>(4 * threads_) == 0, words, " words cannot be shared by ", threads_, " threads");
  const std::string own = Word("shl.b32", thread_, 4);
  const std::string from = Wide("add.s64", source, Wide("cvt.u64.u32", own));
  const std::string to = Word("add.u32", shared, own);
  ForEach("0", Cat(words * 4), Cat(16 * threads_), [&](const std::string& at) {
    const auto piece = NewWords(4);
    Do("ld.global.v4.b32", Braced(piece), Cat("[", Wide("add.s64", from, Wide("cvt.u64.u32", at)), "]"));
    Do("st.shared.v4.b32", Cat("[", Word("add.u32", to, at), "]"), Braced(piece));
  });
}

void PtxText::DumpShared(const std::string& shared, const std::string& target, std::string_view bytes) {
  const std::string own = Word("shl.b32", thread_, 4), after = NewLabel(), again = NewLabel();
  const std::string at = Word("mov.u32", own);
  Place(again);
  BranchIf(Predicate("setp.ge.u32", at, bytes), after);
  const auto piece = NewWords(4);
  Do("ld.shared.v4.b32", Braced(piece), Cat("[", Word("add.u32", shared, at), "]"));
  Do("st.global.v4.b32", Cat("[", Wide("add.s64", target, Wide("cvt.u64.u32", at)), "]"), Braced(piece));
  Do("add.u32", at, at, 16 * threads_);
  Branch(again);
  Place(after);
}

std::string PtxText::OutOfCta(int words) { return Wide("add.s64", out_, Wide("mul.wide.u32", cta_, words * 4)); }

std::string PtxText::Finish() const {
  std::string text = Cat(header_, "{\n");
  for (size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i] > 0) text += Cat("  .reg ", kTypes[i], " ", kPrefixes[i], "<", registers_[i], ">;\n");
  }
  return Cat(text, shared_, text_, "  ret;\n}\n");
}

std::string Braced(const std::vector<std::string>& registers) { return Cat("{", base::Join(registers, ", "), "}"); }

}  // namespace laneshift::runtime
