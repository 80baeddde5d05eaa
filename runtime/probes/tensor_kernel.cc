#include "runtime/probes/tensor_kernel.h"

namespace laneshift::runtime {

using base::Cat;

TensorKernel::TensorKernel(PtxText& text, int ctas) : text_(text), ctas_(ctas) {
  text_.Shared(".b32", "slot", 1, 8);
  text_.Shared(".b64", "done", 1, 8);
  text_.Shared(".b64", "each", 1, 8);
  done_ = text_.Word("mov.u32", "done");
  each_ = text_.Word("mov.u32", "each");
  text_.Unless(text_.other_threads(), [&] {
    text_.Do("mbarrier.init.shared::cta.b64", "[done]", 1);
    text_.Do("mbarrier.init.shared::cta.b64", "[each]", 1);
    text_.Line("fence.mbarrier_init.release.cluster");
  });
  text_.Unless(text_.Predicate("setp.ge.u32", text_.thread(), 32), [&] {
    text_.Do(Cat(Grouped("tcgen05.alloc"), ".sync.aligned.shared::cta.b32"), "[slot]", kTensorColumns);
    text_.Line(Cat(Grouped("tcgen05.relinquish_alloc_permit"), ".sync.aligned"));
  });
  text_.Line("tcgen05.fence::before_thread_sync");
  text_.SyncCta();
  text_.Line("tcgen05.fence::after_thread_sync");
  tensor_ = text_.Word("ld.shared.b32", "[slot]");
  lanes_ = text_.Word("add.u32", tensor_, text_.Word("shl.b32", text_.Word("and.b32", text_.thread(), 0x60), 16));
}

std::string TensorKernel::Grouped(std::string_view instruction) const {
  return Cat(instruction, ".cta_group::", ctas_);
}

void TensorKernel::Fill(int column, int count, const std::function<std::vector<std::string>(int)>& words) {
  for (int first = 0; first < count; first += 16) {
    text_.Do("tcgen05.st.sync.aligned.32x32b.x16.b32", Cat("[", Column(lanes_, column + first), "]"),
             Braced(words(first)));
  }
}

void TensorKernel::Begin() {
  text_.Line("tcgen05.wait::st.sync.aligned");
  text_.Line("fence.proxy.async.shared::cta");
  text_.Line("tcgen05.fence::before_thread_sync");
  text_.SyncCluster();
  text_.Line("tcgen05.fence::after_thread_sync");
}

void TensorKernel::CommitAndWait(const std::string& parity) {
  text_.Do(Cat(Grouped("tcgen05.commit"), ".mbarrier::arrive::one.shared::cluster.b64"), Cat("[", each_, "]"));
  text_.WaitFor(each_, parity);
}

void TensorKernel::CommitForAll() {
  if (ctas_ == 1) {
    text_.Do(Cat(Grouped("tcgen05.commit"), ".mbarrier::arrive::one.shared::cluster.b64"), Cat("[", done_, "]"));
  } else {
    const std::string both = text_.Let(RegisterKind::kHalf, "mov.b16", 3);
    text_.Do(Cat(Grouped("tcgen05.commit"), ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"),
             Cat("[", done_, "]"), both);
  }
}

void TensorKernel::Measure(const std::function<void()>& body) {
  text_.Unless(text_.Predicate("setp.ne.u32", text_.rank(), 0), [&] {
    text_.Elected([&] {
      const std::string begin = text_.Clock();
      body();
      CommitForAll();
      text_.WaitFor(done_, "0");
      const std::string end = text_.Clock();
      text_.StoreClocks(begin, end);
    });
  });
  text_.WaitFor(done_, "0");
  text_.Line("tcgen05.fence::after_thread_sync");
}

void TensorKernel::Dump(const std::string& columns, int pitch) {
  const std::string own = text_.Wide("add.s64", text_.OutOfCta(static_cast<int>(kTensorThreads) * pitch),
                                     text_.Wide("mul.wide.u32", text_.thread(), pitch * 4));
  text_.ForEach("0", columns, "16", [&](const std::string& first) {
    const auto words = text_.NewWords(16);
    text_.Do("tcgen05.ld.sync.aligned.32x32b.x16.b32", Braced(words),
             Cat("[", text_.Word("add.u32", lanes_, first), "]"));
    text_.Line("tcgen05.wait::ld.sync.aligned");
    const std::string at = text_.Wide("add.s64", own, text_.Wide("mul.wide.u32", first, 4));
    for (size_t i = 0; i < 16; i += 4) {
      text_.Do("st.global.v4.b32", Cat("[", at, "+", i * 4, "]"),
               Braced({words[i], words[i + 1], words[i + 2], words[i + 3]}));
    }
  });
}

void TensorKernel::End() {
  text_.Line("tcgen05.fence::before_thread_sync");
  text_.SyncCluster();
  text_.Line("tcgen05.fence::after_thread_sync");
  text_.Unless(text_.Predicate("setp.ge.u32", text_.thread(), 32),
               [&] { text_.Do(Cat(Grouped("tcgen05.dealloc"), ".sync.aligned.b32"), tensor_, kTensorColumns); });
}

}  // namespace laneshift::runtime
