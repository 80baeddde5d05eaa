// Types of the CUDA runtime that programs pass to the functions of runtime_functions.h, laid out as CUDA 13 lays them
// out.
#pragma once

#include "emulator/driver/exported_driver_types.h"

namespace laneshift::emulator::runtime {

// Errors of the runtime have the driver's numbers, with a few exceptions.
using CudaError = int;
enum CudaOwnError : int {
  kCudaInvalidConfiguration = 9,
  kCudaInvalidSymbol = 13,
  kCudaInvalidCopyKind = 21,
  kCudaInvalidDeviceFunction = 98,
};

struct Dim3 {
  unsigned x, y, z;
};

enum CopyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kByAddress = 4 };

struct LaunchConfig {
  Dim3 grid, block;
  size_t shared_bytes;
  device::CuStream stream;
  device::CuLaunchAttribute* attributes;
  unsigned attribute_count;
};

struct DeviceProperties {
  char name[256];
  driver::CuUuid uuid;
  char luid[8];
  unsigned luid_mask;
  size_t total_global;
  size_t shared_per_block;
  int registers_per_block, warp_size;
  size_t pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid[3];
  size_t total_const;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int multiprocessors, integrated, can_map_host;
  int texture_and_surface_limits[39];
  size_t surface_alignment;
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, copy_engines, unified_addressing, bus_bits;
  int l2_bytes, persisting_l2_bytes, threads_per_multiprocessor, stream_priorities, global_l1, local_l1;
  size_t shared_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, board_group, native_atomics, pageable_access;
  int concurrent_managed, preemption, registered_host_pointers, cooperative_launch;
  size_t shared_per_block_optin;
  int pageable_by_host_tables, direct_managed, blocks_per_multiprocessor, access_window;
  size_t reserved_shared_per_block;
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;
  unsigned rdma_flush;
  int rdma_ordering;
  unsigned pool_handles;
  int deferred_arrays, ipc_events, cluster_launch, unified_functions;
  int rest[63];
};

struct FunctionAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode, max_dynamic_shared, carveout;
  int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, large_clusters;
  int reserved[16];
};

struct PointerAttributes {
  int type;  // 0 unknown, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};

}  // namespace laneshift::emulator::runtime
