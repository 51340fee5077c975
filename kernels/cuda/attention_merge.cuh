// How the splits of attention (attention_split.cuh) meet: every block publishes its own, the last to come merges all.
#pragma once

#include "kernels/cuda/attention_split.cuh"

namespace mcc::cuda {

/// Puts this block's split into the workspace; returns true in the block that comes last, for which all are visible.
template <int G, int kRow>
__device__ __forceinline__ bool publish(const AttentionLaunch &launch, const AttentionPlace &place,
                                        AttentionShared<G> &shared, float *partials, int32_t *counter, int split) {
  const int quads = rowOf<kRow>(launch) / 4, shares = kAttentionThreads / quads, stride = rowOf<kRow>(launch) + 4;
  float *to = partials + static_cast<int64_t>(split) * G * stride;
  for (int i = threadIdx.x; i < G * quads; i += kAttentionThreads) {
    const int head = i / quads, quad = i % quads;
    const float *from = shared.values + head * rowOf<kRow>(launch) + quad * 4;
    float4 sum = *reinterpret_cast<const float4 *>(from);
#pragma unroll 8
    for (int share = 1; share < shares; ++share) {
      const float4 v = *reinterpret_cast<const float4 *>(from + share * G * rowOf<kRow>(launch));
      sum.x = __fadd_rn(sum.x, v.x), sum.y = __fadd_rn(sum.y, v.y);
      sum.z = __fadd_rn(sum.z, v.z), sum.w = __fadd_rn(sum.w, v.w);
    }
    __stcg(reinterpret_cast<float4 *>(to + head * stride + 4 + quad * 4), sum);
  }
  if (threadIdx.x < G)
    __stcg(reinterpret_cast<float2 *>(to + threadIdx.x * stride),
           float2{shared.largest[threadIdx.x], shared.total[threadIdx.x]});
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    shared.last = atomicAdd(counter, 1) == min(place.chunks, launch.splits) - 1;
    if (shared.last)
      *counter = 0; // for the next launch
    __threadfence();
  }
  __syncthreads();
  return shared.last;
}

/// The splits' factors e^(largest of the split - largest of all) into shared.p, the sum of all into shared.total; each
/// warp takes whole heads. A head's sink, if there is one, is one more logit that has no value.
template <int G, int kRow>
__device__ __forceinline__ void weighSplits(const AttentionLaunch &launch, const AttentionPlace &place,
                                            AttentionShared<G> &shared, const float *partials, int splits) {
  const int lane = threadIdx.x % 32, stride = rowOf<kRow>(launch) + 4;
  const float *sinks = launch.attention.sinks;
  for (int i = threadIdx.x / 32; i < G; i += kAttentionThreads / 32) {
    const int64_t inGroup = place.tile * G + i;
    float2 states[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int split = lane + 32 * k;
      states[k] = split < splits ? __ldcg(reinterpret_cast<const float2 *>(partials + (split * G + i) * stride))
                                 : float2{-INFINITY, 0.0f};
    }
    const float sink = sinks && inGroup < launch.group ? sinks[place.kv * launch.group + inGroup] : -INFINITY;
    const float largest = fmaxf(sink, warp_max(fmaxf(states[0].x, states[1].x)));
    const float a = expf(states[0].x - largest), b = expf(states[1].x - largest);
    shared.p[lane][i] = a, shared.p[lane + 32][i] = b;
    const float total = warp_sum(fmaf(b, states[1].y, __fmul_rn(a, states[0].y)));
    if (lane == 0)
      shared.total[i] = __fadd_rn(total, expf(sink - largest));
  }
}

/// A thread's part of the merge: the splits share, share + shares, ... of four dimensions of a head, added in order.
template <int G, int kRow>
__device__ __forceinline__ float4 sumSplits(const AttentionLaunch &launch, const AttentionPlace &place,
                                            AttentionShared<G> &shared, const float *partials, int item, int share,
                                            int shares, bool first) {
  constexpr int kTogether = 10; // reads under way
  const int quads = rowOf<kRow>(launch) / 4, stride = rowOf<kRow>(launch) + 4, head = item / quads, quad = item % quads,
            splits = min(place.chunks, launch.splits);
  const bool mine = item < G * quads && share < shares;
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f}, v[kTogether];
#pragma unroll 1
  for (int base = 0; base < splits; base += kTogether * shares) {
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const int split = base + k * shares + share;
      v[k] = mine && split < splits
                 ? __ldcg(reinterpret_cast<const float4 *>(partials + (split * G + head) * stride + 4 + quad * 4))
                 : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
    if (first && base == 0) {
      weighSplits<G, kRow>(launch, place, shared, partials, splits);
      __syncthreads();
    }
    if (mine)
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        const int split = base + k * shares + share;
        const float factor = split < splits ? shared.p[split][head] : 0.0f;
        sum.x = fmaf(factor, v[k].x, sum.x), sum.y = fmaf(factor, v[k].y, sum.y);
        sum.z = fmaf(factor, v[k].z, sum.z), sum.w = fmaf(factor, v[k].w, sum.w);
      }
  }
  return sum;
}

/// y = the merged splits.
template <int G, int kRow>
__device__ __forceinline__ void mergePartials(const AttentionLaunch &launch, const AttentionPlace &place,
                                              AttentionShared<G> &shared, const float *partials) {
  const Attention &a = launch.attention;
  const int quads = rowOf<kRow>(launch) / 4, items = G * quads, shares = max(kAttentionThreads / items, 1);
  for (int round = 0; round < items; round += kAttentionThreads) {
    const int item = round + threadIdx.x % min(items, kAttentionThreads),
              share = threadIdx.x / min(items, kAttentionThreads);
    float4 sum = sumSplits<G, kRow>(launch, place, shared, partials, item, share, shares, round == 0);
    if (shares > 1) {
      float4 *sums = reinterpret_cast<float4 *>(shared.values);
      sums[threadIdx.x] = sum;
      __syncthreads();
      for (int other = 1; other < shares && share == 0; ++other) {
        const float4 v = sums[other * items + item];
        sum.x = __fadd_rn(sum.x, v.x), sum.y = __fadd_rn(sum.y, v.y), sum.z = __fadd_rn(sum.z, v.z),
        sum.w = __fadd_rn(sum.w, v.w);
      }
    }
    const int head = item / quads, quad = item % quads;
    if (share > 0 || item >= items || place.tile * G + head >= launch.group)
      continue;
    const float total = shared.total[head], result[4] = {sum.x / total, sum.y / total, sum.z / total, sum.w / total};
    float *y = a.y + place.token * a.yStride + (place.kv * launch.group + place.tile * G + head) * a.headDim;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (quad * 4 + k < a.headDim)
        y[quad * 4 + k] = result[k];
  }
}

} // namespace mcc::cuda
