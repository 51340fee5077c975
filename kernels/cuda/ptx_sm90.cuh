// Wrappers of the PTX instructions that exist on sm_90a alone: warpgroup matrix products; and of clusters, which only
// such kernels use.
//
// Code that calls them is compiled under MCC_SM90A and picked at run time (launch_sm90.cuh).
#pragma once

#include "kernels/cuda/ptx.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define MCC_SM90A 1
#endif

namespace mcc::cuda::ptx {

/// How an operand of a matrix product lies in shared memory: 16-byte pieces are exchanged within rows of so many bytes.
/// 32 bytes: bit 4 of an address is exchanged by its bit 7. 128 bytes: bits 4 to 6 by bits 7 to 9.
enum class Swizzle : uint64_t { Bytes128 = 1, Bytes64 = 2, Bytes32 = 3 };

/// Descriptor of an operand at a shared address, a multiple of 16.
/// Depth consecutive (128-byte rows of 64 bf16): `stride` is from 8 rows to the next 8, `leading` is not read.
/// Rows consecutive (16 bf16 of 32 bytes, or 64 of 128): `leading` is from one such group of rows to the next, `stride`
/// from 8 deep to the next 8.
__device__ __forceinline__ uint64_t operand(uint32_t address, uint32_t leading, uint32_t stride, Swizzle swizzle) {
  return (address >> 4 & 0x3fffu) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(swizzle) << 62;
}

#ifdef MCC_SM90A

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `pending` of the warpgroup's groups are under way.
template <int pending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Keeps uses of numbers that a matrix product wrote behind the wait for it.
template <int count>
__device__ __forceinline__ void hold(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+f"(sums[i])::"memory");
}

/// Gives registers back, or takes them: executed by all warps of a warpgroup.
template <int registers>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Register lists of the instruction: %0 to %31, to %63, to %127, and the accumulators behind them.
#define MCC_REGISTERS32                                                                                                \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30," \
  "%31"
#define MCC_REGISTERS64                                                                                                \
  MCC_REGISTERS32                                                                                                      \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,"  \
  "%60,%61,%62,%63"
#define MCC_REGISTERS128                                                                                               \
  MCC_REGISTERS64                                                                                                      \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,"  \
  "%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,"   \
  "%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define MCC_SUMS8(i)                                                                                                   \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]),        \
      "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define MCC_SUMS32(i) MCC_SUMS8(i), MCC_SUMS8(i + 8), MCC_SUMS8(i + 16), MCC_SUMS8(i + 24)
#define MCC_SUMS64(i) MCC_SUMS32(i), MCC_SUMS32(i + 32)
#define MCC_SUMS128(i) MCC_SUMS64(i), MCC_SUMS64(i + 64)

// Both operands from shared memory: a's depth consecutive, b's rows consecutive.
#define MCC_WGMMA_SHARED(columns, registers, accumulators, a, b, add)                                                  \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" add ", 0; "                                                          \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" registers "}, %" a ", %" b           \
               ", p, 1, 1, 0, 1; }"                                                                                    \
               : accumulators                                                                                          \
               : "l"(left), "l"(right), "r"(keep))
// a from registers.
#define MCC_WGMMA_REGISTERS(columns, registers, accumulators, a0, a1, a2, a3, b, add)                                  \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %" add ", 0; "                                                          \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" registers "}, {%" a0 ", %" a1        \
               ", %" a2 ", %" a3 "}, %" b ", p, 1, 1, 1; }"                                                            \
               : accumulators                                                                                          \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(keep))

/// sums = (keep ? sums : 0) + a b for a warpgroup: a 64 x 16 with depth consecutive, b 16 x (2 `count`) with rows
/// consecutive, bf16, sums f32. Lane 4g + t of warp w holds at 4j + 2h + i the sum of row 16w + g + 8h, column
/// 8j + 2t + i.
template <int count>
__device__ __forceinline__ void wgmma(float (&sums)[count], uint64_t left, uint64_t right, int keep) {
  static_assert(count == 32 || count == 64 || count == 128, "a tile has 64, 128 or 256 columns");
  if constexpr (count == 32)
    MCC_WGMMA_SHARED(64, MCC_REGISTERS32, MCC_SUMS32(0), "32", "33", "34");
  else if constexpr (count == 64)
    MCC_WGMMA_SHARED(128, MCC_REGISTERS64, MCC_SUMS64(0), "64", "65", "66");
  else
    MCC_WGMMA_SHARED(256, MCC_REGISTERS128, MCC_SUMS128(0), "128", "129", "130");
}

/// As above with a in registers, as mma_m16n8k16 has it, 16 rows a warp.
template <int count>
__device__ __forceinline__ void wgmma(float (&sums)[count], const uint32_t (&left)[4], uint64_t right, int keep) {
  static_assert(count == 32 || count == 64 || count == 128, "a tile has 64, 128 or 256 columns");
  if constexpr (count == 32)
    MCC_WGMMA_REGISTERS(64, MCC_REGISTERS32, MCC_SUMS32(0), "32", "33", "34", "35", "36", "37");
  else if constexpr (count == 64)
    MCC_WGMMA_REGISTERS(128, MCC_REGISTERS64, MCC_SUMS64(0), "64", "65", "66", "67", "68", "69");
  else
    MCC_WGMMA_REGISTERS(256, MCC_REGISTERS128, MCC_SUMS128(0), "128", "129", "130", "131", "132", "133");
}

#undef MCC_REGISTERS32
#undef MCC_REGISTERS64
#undef MCC_REGISTERS128
#undef MCC_SUMS8
#undef MCC_SUMS32
#undef MCC_SUMS64
#undef MCC_SUMS128
#undef MCC_WGMMA_SHARED
#undef MCC_WGMMA_REGISTERS

/// This block's place in its cluster.
__device__ __forceinline__ uint32_t cluster_ctarank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The address that `shared` has in the block of that rank of the cluster.
__device__ __forceinline__ uint32_t mapa(uint32_t shared, uint32_t rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}

/// Waits for all threads of the cluster.
__device__ __forceinline__ void barrier_cluster() {
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

/// Arrives at a barrier of any block of the cluster (an address of mapa). Orders the thread's reads by matrix products,
/// which it has waited for, before the arrival, and nothing else: with .release.cluster the compiler puts a fence of the
/// whole device before it, near a microsecond each time.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// As cp_async_bulk, to the same address in every block of the cluster that `blocks` has a bit for; each one's barrier
/// counts.
__device__ __forceinline__ void cp_async_bulk_multicast(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier,
                                                        uint16_t blocks) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, "
               "[%3], %4;" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
               : "memory");
}

/// Makes the thread's ordinary writes to shared memory visible to matrix products and bulk copies.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// e^(x ln 2), of 2^-22 relative error.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif // MCC_SM90A

} // namespace mcc::cuda::ptx
