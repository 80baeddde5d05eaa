// Peer: a library of NVIDIA's that we compare times with, opened for one problem.
//
// Thread-safety: none; one thread and one stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/stream.h"
#include "laneshift/engine.h"
#include "measure/gpu_timing.h"

namespace laneshift::measure {

enum class Peer : uint8_t { kCublas, kCudnn };
std::string_view PeerName(Peer peer);  // "cublas", "cudnn"
// kInvalidArgument lists the known names.
Result<Peer> ParsePeer(std::string_view name);

// One way of calling a peer.
struct PeerCall {
  std::string name;  // "cublas", "cublas_best", "cudnn"
  Contender call;
  std::vector<std::string> notes{};  // for people: what was chosen, and what of the problem is left out
};

// The ways that are worth timing, the usual one first. kUnsupported: the peer has no such operation, or is not
// installed. Peers that try their algorithms overwrite the output of `arguments`. REQUIRES: `problem` is complete; the
// device and the stream outlive the calls.
Result<std::vector<PeerCall>> OpenPeer(Peer peer, const std::vector<std::string>& library_directories,
                                       const device::Device& device, const device::Stream& stream,
                                       const Problem& problem, const Arguments& arguments);

}  // namespace laneshift::measure
