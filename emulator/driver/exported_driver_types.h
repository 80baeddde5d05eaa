// Types of the CUDA driver API that programs use but laneshift itself does not: what device/driver_types.h leaves out.
//
// Laid out as cuda.h lays them out; emulator/driver_types_test.cc compares them where a toolkit is installed.
#pragma once

#include "device/driver_types.h"

struct CUlib_st;
struct CUkern_st;
struct CUgraphNode_st;
struct CUmemPoolHandle_st;

namespace laneshift::emulator::driver {

using CuLibrary = ::CUlib_st*;
using CuGraphNode = ::CUgraphNode_st*;
using CuMemoryPool = ::CUmemPoolHandle_st*;
using CuHostFunction = void (*)(void* user_data);
using CuStreamCallback = void (*)(device::CuStream stream, device::CuResult status, void* user_data);
using CuBlockToShared = size_t (*)(int block);

// Which laneshift uses, too.
using device::CuMemoryType;
using device::CuPointerAttribute;
using enum device::CuMemoryType;
using enum device::CuPointerAttribute;

struct CuUuid {
  unsigned char bytes[16];
};

// One end of a copy of up to three dimensions.
struct CuMemcpy2D {
  size_t from_x, from_y;
  CuMemoryType from_type;
  const void* from_host;
  device::CuDevicePtr from_device;
  void* from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  CuMemoryType to_type;
  void* to_host;
  device::CuDevicePtr to_device;
  void* to_array;
  size_t to_pitch;
  size_t width, height;
};

struct CuMemcpy3D {
  size_t from_x, from_y, from_z, from_level;
  CuMemoryType from_type;
  const void* from_host;
  device::CuDevicePtr from_device;
  void* from_array;
  void* reserved0;
  size_t from_pitch, from_height;
  size_t to_x, to_y, to_z, to_level;
  CuMemoryType to_type;
  void* to_host;
  device::CuDevicePtr to_device;
  void* to_array;
  void* reserved1;
  size_t to_pitch, to_height;
  size_t width, height, depth;
};

struct CuKernelNodeParams {
  device::CuFunction function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_mem_bytes;
  void** parameters;
  void** extra;
  device::CuFunction kernel;
  device::CuContext context;
};

struct CuMemsetNodeParams {
  device::CuDevicePtr to;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};

struct CuHostNodeParams {
  CuHostFunction function;
  void* user_data;
};

struct CuMemcpyNodeParams {
  int flags, reserved;
  device::CuContext context;
  CuMemcpy3D copy;
};

enum CuGraphNodeType : int {
  kCuNodeKernel = 0,
  kCuNodeMemcpy = 1,
  kCuNodeMemset = 2,
  kCuNodeHost = 3,
  kCuNodeGraph = 4,
  kCuNodeEmpty = 5,
  kCuNodeWaitEvent = 6,
  kCuNodeEventRecord = 7,
};

struct CuGraphNodeParams {
  CuGraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CuKernelNodeParams kernel;
    CuMemcpyNodeParams copy;
    CuMemsetNodeParams fill;
    CuHostNodeParams host;
    device::CuGraph graph;
    device::CuEvent event;
  };
  long long reserved2;
};

struct CuGraphEdge {
  unsigned char from_port, to_port, type, reserved[5];
};

struct CuGraphInstantiateParams {
  uint64_t flags;
  device::CuStream upload_stream;
  CuGraphNode error_node;
  int result;
};

struct CuGraphUpdateResult {
  int result;
  CuGraphNode error_node, error_from_node;
};

enum CuTensorMapWideMode : int { kCuWideW = 0, kCuWideW128 = 1 };

struct CuMemLocation {
  int type, id;
};

// What cuGetProcAddress says besides its result.
enum CuProcAddressStatus : int { kCuProcFound = 0, kCuProcNotFound = 1, kCuProcVersionTooOld = 2 };

}  // namespace laneshift::emulator::driver
