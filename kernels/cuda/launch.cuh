// Starting a kernel with programmatic dependent launch, and the limits that launchers rely on.
#pragma once

#include "kernels/cuda/Launch.h"

#include <cuda_runtime.h>

namespace mcc::cuda {

/// Launches `kernel` in clusters of so many blocks (1: none) so that it may start before its predecessor has ended.
/// Returns the launch's error. Every kernel asks for all of a multiprocessor's memory to be shared memory, needed or not: a
/// kernel that prefers another division makes its successor wait until the multiprocessor is empty.
template <class... Parameters, class... Arguments>
Status launchInClusters(unsigned clusterBlocks, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                        size_t sharedBytes, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute attributes[3] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[1].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
  attributes[2].id = cudaLaunchAttributeClusterDimension;
  attributes[2].val.clusterDim.x = clusterBlocks;
  attributes[2].val.clusterDim.y = attributes[2].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = sharedBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = clusterBlocks > 1 ? 3 : 2;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

/// The same without clusters.
template <class... Parameters, class... Arguments>
Status launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t sharedBytes, cudaStream_t stream,
              Arguments... arguments) {
  return launchInClusters(1, kernel, grid, block, sharedBytes, stream, arguments...);
}

/// Lets `kernel` take `bytes` of dynamic shared memory. Cheap enough to repeat at every launch.
template <class Kernel>
Status allowShared(Kernel kernel, size_t bytes) {
  if (bytes <= 48 * 1024)
    return cudaSuccess;
  return cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

/// Returns ceil(value / step).
__host__ __device__ constexpr int64_t divideUp(int64_t value, int64_t step) { return (value + step - 1) / step; }

} // namespace mcc::cuda
