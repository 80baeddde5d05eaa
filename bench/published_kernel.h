// Published kernels: facts about kernels of others, one line of key=value words each, and the pipelines that they are.
//
//   m n k           the GEMM;  bits: of an operand's element
//   tile            MxNxK of a CTA, or of a pair;  stages, cta_group, acc: as in a Schedule
//   ws              1: loads, products and epilogue are separate warps; 0: one thread does one after the other
//   persistent      1: CTAs stay and walk over tiles
//   wait            of ws=0: `each`: a product is waited for when it is issued; `before`: before the next one is,
//   behind
//                   the wait for its operands; `late`: when the next one is issued
//                   `slot`: never; a slot of the ring is loaded again when its product is done
//   ahead           of ws=0: blocks that loads are ahead of products; left out: stages - 1
//   overlap         of ws=0, persistent: 1: loads of the next tile are under way during the epilogue; the sums are
//   staged in
//                   slots of the ring, so that loads behind the first product wait for their stores
//   ctas            on an SM at once; left out: as many as shared memory and Tensor Memory hold
//   raster, sms     tile rows of a band (1: row after row of tiles, all of them: column after column); SMs in use
//   order           of persistent=1: `runs`: each CTA has a run of neighbouring tiles; `taken`: who is done has the
//   next
//                   (cluster launch control; so does every kernel of persistent=0); left out: strides of all CTAs
//   row, copies     bytes of a row of a bulk copy; bulk copies of an operand's block; left out: 128, one each 128 bytes
//   of K panel           columns that an epilogue treats at once; left out: 64 out             `ring`: the sums are
//   staged where the ring was, which is done by then; left out: beside it store_row       threads store so many bytes
//   in a row each; left out: bulk stores scales          of block-scaled products: how scales come to Tensor Memory:
//   `threads`, `tma` or `cp` kstep           bytes of K of one instruction; left out: 32 cold            0: the
//   operands are in the L2 cache node            the machine, a line of nodes.txt;  series, name: what is compared;
//   source;  tflops: the result
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "bench/timing_samples.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::bench {

// `path` is a file of such lines, a line `common …` gives words that those below it share. nodes.txt lies beside it.
Result<std::vector<TimingSample>> ReadPublished(const std::string& path, const target::Target& target);

}  // namespace laneshift::bench
