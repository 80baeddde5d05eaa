#include "measure/peer.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "measure/cublas.h"
#include "measure/cudnn.h"

namespace laneshift::measure {
namespace {

using base::Cat;
using Directories = std::vector<std::string>;

Result<std::vector<PeerCall>> OpenCublas(const Directories& directories, const device::Device& device,
                                         const device::Stream& stream, const Problem& problem,
                                         const Arguments& /*arguments*/) {
  const GemmProblem* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm == nullptr) return MakeError(ErrorCode::kUnsupported, "cuBLAS has no convolution; compare with --vs cudnn");
  LS_ASSIGN(Cublas opened, Cublas::Open(directories, device, stream));
  auto cublas = std::make_shared<Cublas>(std::move(opened));
  PeerCall call{"cublas", [cublas, own = *gemm](const Arguments& arguments) {
                  return cublas->Multiply(own, std::get<GemmArguments>(arguments));
                }};
  if (gemm->bias != BiasAxis::kNone) call.notes.push_back("cuBLAS runs without the bias");
  return std::vector<PeerCall>{std::move(call)};
}

Result<std::vector<PeerCall>> OpenCudnn(const Directories& directories, const device::Device& device,
                                        const device::Stream& stream, const Problem& problem,
                                        const Arguments& arguments) {
  const ConvProblem* conv = std::get_if<ConvProblem>(&problem);
  if (conv == nullptr) return MakeError(ErrorCode::kUnsupported, "cuDNN is for convolutions; compare with --vs cublas");
  LS_ASSIGN(Cudnn opened, Cudnn::Open(directories, device, stream, *conv, std::get<ConvArguments>(arguments)));
  auto cudnn = std::make_shared<Cudnn>(std::move(opened));
  PeerCall call{"cudnn", [cudnn](const Arguments& own) { return cudnn->Convolve(std::get<ConvArguments>(own)); }};
  call.notes.push_back(Cat("cuDNN: ", cudnn->choice()));
  if (conv->bias != ConvBias::kNone || conv->beta != 0) call.notes.push_back("cuDNN runs without beta and bias");
  return std::vector<PeerCall>{std::move(call)};
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
