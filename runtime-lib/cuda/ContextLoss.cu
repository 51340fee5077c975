// A kernel that loses the context, for tests of what a faulty kernel would do (MCC_GPU_FAULT=context).
#include "runtime-lib/cuda/ContextLoss.h"

namespace mcc::runtime {

static __global__ void access_illegally(int *nowhere) { *nowhere = 1; }

void loseContext(cudaStream_t stream) { access_illegally<<<1, 1, 0, stream>>>(reinterpret_cast<int *>(64)); }

} // namespace mcc::runtime
