#include "measure/peers/peer.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "ir/element_type.h"
#include "ir/epilogue_steps.h"
#include "ir/stored_tensor.h"
#include "measure/peers/cublas.h"
#include "measure/peers/cublaslt.h"
#include "measure/peers/cudnn.h"
#include "measure/peers/cudnn_convolution.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using Directories = std::vector<std::string>;

// Most programs get what cublasGemmEx chooses; the lower-level interface supports more types and algorithms.
Result<std::vector<PeerCall>> OpenCublas(const Directories& directories, const device::Device& device,
                                         const device::Stream& stream, const Problem& problem,
                                         const Arguments& arguments) {
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  if (std::holds_alternative<GroupedGemmProblem>(problem))
    return MakeError(ErrorCode::kUnsupported,
                     "cuBLAS has no groups whose sizes only the device knows; run without --vs");
  if (gemm == nullptr) return MakeError(ErrorCode::kUnsupported, "cuBLAS has no convolution; compare with --vs cudnn");
  for (const DataType type : {gemm->a, gemm->b}) {
    const auto kind = ir::MmaKindOf(gemm->a, gemm->b, gemm->scale);
    if (kind && ir::IsPadded(*kind, type)) {
      return MakeError(ErrorCode::kUnsupported, Cat("cuBLAS does not multiply ", DataTypeName(gemm->a), " by ",
                                                    DataTypeName(gemm->b), "; run without --vs"));
    }
  }
  std::vector<PeerCall> calls;
  std::vector<std::string> notes;
  if (ir::IsGated(gemm->epilogue)) {
    return MakeError(ErrorCode::kUnsupported,
                     "cuBLAS has no gated linear units; compare with an epilogue without them");
  }
  if (gemm->bias != BiasAxis::kNone) notes.push_back("cuBLAS runs without the bias");
  if (!gemm->epilogue.empty()) notes.push_back("cuBLAS runs without the epilogue");
  if (!ir::IsFloat8(gemm->a)) {
    LS_ASSIGN(Cublas opened, Cublas::Open(directories, device, stream));
    auto cublas = std::make_shared<Cublas>(std::move(opened));
    calls.push_back(
        {"cublas",
         [cublas, own = *gemm](const Arguments& a) { return cublas->Multiply(own, std::get<GemmArguments>(a)); },
         notes});
  }
  auto opened = Cublaslt::Open(directories, device, stream, *gemm, std::get<GemmArguments>(arguments));
  if (!opened) {
    if (calls.empty()) return opened.error();
    calls.front().notes.push_back(opened.error().message);
    return calls;
  }
  auto cublaslt = std::make_shared<Cublaslt>(std::move(*opened));
  const bool fused = cublaslt->fuses() && (!gemm->epilogue.empty() || gemm->bias != BiasAxis::kNone);
  if (fused) notes = {"cuBLASLt runs with the epilogue"};
  notes.push_back(Cat("cuBLASLt: ", cublaslt->choice()));
  PeerCall best{calls.empty() ? "cublas" : "cublas_best",
                [cublaslt](const Arguments& a) { return cublaslt->MultiplyByBest(std::get<GemmArguments>(a)); }, notes};
  // For 8-bit types the fastest algorithm represents the library, and for an epilogue the interface that supports it.
  if (fused && !calls.empty()) {
    calls.front().name = "cublas_plain";
    best.name = "cublas";
    calls.insert(calls.begin(), std::move(best));
  } else {
    calls.push_back(std::move(best));
  }
  calls.push_back({"cublas_first",
                   [cublaslt](const Arguments& a) { return cublaslt->MultiplyByFirst(std::get<GemmArguments>(a)); },
                   {}});
  return calls;
}

Result<std::vector<PeerCall>> OpenCudnn(const Directories& directories, const device::Device& device,
                                        const device::Stream& stream, const Problem& problem,
                                        const Arguments& arguments) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return MakeError(ErrorCode::kUnsupported, "cuDNN is for convolutions; compare with --vs cublas");
  if (ir::IsGated(conv->epilogue)) {
    return MakeError(ErrorCode::kUnsupported, "cuDNN has no gated linear units; compare with an epilogue without them");
  }
  const auto open = [&](cudnn::GraphScope scope, std::string name) -> Result<PeerCall> {
    LS_ASSIGN(Cudnn opened, Cudnn::Open(directories, device, stream, *conv, arguments, scope));
    auto shared = std::make_shared<Cudnn>(std::move(opened));
    PeerCall call{std::move(name), [shared](const Arguments& own) { return shared->Execute(own); }};
    call.notes.push_back(Cat("cuDNN: ", shared->choice()));
    return call;
  };
  if (!cudnn::HasMoreThanProduct(*conv)) {
    LS_ASSIGN(PeerCall product, open(cudnn::GraphScope::kProduct, "cudnn"));
    return std::vector<PeerCall>{std::move(product)};
  }
  // The whole problem in one plan, and the product by itself, for what the rest costs.
  auto whole = open(cudnn::GraphScope::kWhole, "cudnn");
  LS_ASSIGN(PeerCall product, open(cudnn::GraphScope::kProduct, whole ? "cudnn_plain" : "cudnn"));
  if (!whole) {
    product.notes.push_back(Cat("cuDNN runs without beta, bias and epilogue: ", whole.error().message));
    return std::vector<PeerCall>{std::move(product)};
  }
  whole->notes.push_back("cuDNN runs with beta, bias and epilogue");
  return std::vector<PeerCall>{std::move(*whole), std::move(product)};
}

}  // namespace

std::string_view PeerName(Peer peer) {
  switch (peer) {
    case Peer::kCublas:
      return "cublas";
    case Peer::kCudnn:
      return "cudnn";
  }
  LS_CHECK(false, "peer out of range: ", static_cast<int>(peer));
}

Result<Peer> ParsePeer(std::string_view name) {
  for (const Peer peer : {Peer::kCublas, Peer::kCudnn}) {
    if (name == PeerName(peer)) return peer;
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   Cat("--vs ", name, " is unknown; use --vs cublas (gemm) or --vs cudnn (conv)"));
}

Result<std::vector<PeerCall>> OpenPeer(Peer peer, const std::vector<std::string>& library_directories,
                                       const device::Device& device, const device::Stream& stream,
                                       const Problem& problem, const Arguments& arguments) {
  switch (peer) {
    case Peer::kCublas:
      return OpenCublas(library_directories, device, stream, problem, arguments);
    case Peer::kCudnn:
      return OpenCudnn(library_directories, device, stream, problem, arguments);
  }
  LS_CHECK(false, "peer out of range: ", static_cast<int>(peer));
}

}  // namespace laneshift::measure
