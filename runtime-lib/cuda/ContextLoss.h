// Losing the device's context on purpose.
#pragma once

typedef struct CUstream_st *cudaStream_t;

namespace mcc::runtime {

/// Starts a kernel that makes an illegal access: every later call of the process fails.
void loseContext(cudaStream_t stream);

} // namespace mcc::runtime
