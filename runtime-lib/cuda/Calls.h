// Calls of the CUDA runtime, checked and named. Every one that a program makes goes through here, so that each can be
// made to fail.
#pragma once

#include "runtime-lib/src/Result.h"

#include <cuda_runtime_api.h>

namespace mcc::runtime {

/// Returns "NAME: cudaErrorX (in words)", or success.
Status statusOf(const char *name, cudaError_t error);

/// Returns the error that MCC_GPU_FAULT wants of this call, or cudaSuccess. Counts calls.
///
/// MCC_GPU_FAULT=CALL[:N[:ERROR]] makes the N-th call (default 1) of the CUDA function CALL fail with the error number
/// ERROR (default cudaErrorUnknown, 999) in place of being made. CALL may also be `kernel`: the N-th launch of a kernel
/// outside a graph; and `context`: before the N-th step an illegal access is made, which loses the context as a faulty
/// kernel would.
cudaError_t injectedFault(const char *name);

/// Makes one call: `call(CUDA_NAME(cudaMalloc), &pointer, bytes)`.
template <class Function, class... Arguments>
Status call(const char *name, Function function, Arguments... arguments) {
  cudaError_t error = injectedFault(name);
  if (error == cudaSuccess)
    error = function(arguments...);
  return error == cudaSuccess ? Status() : statusOf(name, error);
}
/// A function with its name, for call().
#define CUDA_NAME(function) #function, function

/// Returns a failure of the enclosing function where `expression` is one.
#define RETURN_IF_FAILED(expression)                                                                                   \
  if (::mcc::runtime::Status failed = (expression); !failed.ok())                                                      \
  return ::mcc::runtime::Failure { failed.message() }

} // namespace mcc::runtime
