// Published kernels: facts about kernels of other projects, one line of key=value words each, and their pipelines.
//
// clang-format off
//   m n k           the GEMM;  bits: of an operand's element
//   tile            MxNxK of a CTA, or of a pair;  stages, cta_group, acc: as in a Schedule
//   ws              1: loads, MMAs and epilogue are separate warps; 0: one thread does one after the other
//   persistent      1: CTAs loop over tiles
//   wait            with ws=0: `each`: an MMA is waited for when it is issued; `before`: before the next one is issued,
//                   after the wait for its operands; `late`: when the next one is issued; `slot`: never, and a slot of
//                   the ring is loaded again when its MMA has completed
//   ahead           with ws=0: blocks that loads run ahead of MMAs; default: stages - 1
//   overlap         with ws=0, persistent: 1: loads of the next tile are in flight during the epilogue; accumulators
//                   are staged in slots of the ring, so that loads after the first MMA wait for their stores
//   ctas            per SM at once; default: as many as shared memory and Tensor Memory hold
//   raster, sms     tile rows of a band (1: row after row of tiles, all of them: column after column); SMs in use
//   order           with persistent=1: `runs`: each CTA has a run of neighbouring tiles; `taken`: a CTA that is done
//                   takes the next (CLC work stealing; so does every kernel of persistent=0); default: strided over all CTAs
//   row, copies     bytes of a row of a bulk copy; bulk copies per operand block; default: 128, one per 128 bytes of K
//   panel           columns that an epilogue processes at once; default: 64
//   out             `ring`: accumulators are staged where the ring was, which is no longer used; default: next to it
//   store_row       threads store this many bytes of a row each; default: bulk stores
//   scales          of block-scaled kernels: how scale factors are loaded to Tensor Memory: `threads`, `tma` or `cp`
//   kstep           bytes of K of one instruction; default: 32
//   cold            0: the operands are in the L2 cache
//   node            the machine, a line of nodes.txt;  series, name: what is compared; source;  tflops: the result
// clang-format on
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "bench/timing_samples.h"
#include "laneshift/result.h"
#include "target/target.h"

namespace laneshift::bench {

// `path` is a file of such lines; a line `common …` gives words that the lines after it share. nodes.txt is next to it.
Result<std::vector<TimingSample>> ReadPublished(const std::string& path, const target::Target& target);

}  // namespace laneshift::bench
