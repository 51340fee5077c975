// Convolution and pooling of images, [batch, channels, height, width].
//
// A sum runs over input channels, then the window's rows, then its columns, one multiply-add each, and cells outside of
// the image are left out or add a zero: the same bits for any number of threads. Threads share the rows of the output.
// Where the 16 channels of a weight panel belong to one group, lanes are output channels: a tile of kTile neighbouring
// outputs has one accumulator each, a weight vector meets the input cell of each. Otherwise (depthwise, small groups)
// lanes are neighbouring outputs of one channel. Either way a tile ends as rows of outputs, finished 16 at a time.
#include "kernels/cpu/Kernels.h"
#include "kernels/cpu/Sizes.h"
#include "kernels/cpu/VectorMath.h"
#include "kernels/cpu/Work.h"

using namespace mcc::cpu;

namespace {

// Outputs of a row that are computed together where lanes are channels.
constexpr int64_t kTile = 8;

struct Window {
  const float *x, *weight, *scale, *bias, *residual;
  float *y;
  int64_t channels, height, width, outChannels, outHeight, outWidth, kernelH, kernelW, strideH, strideW, padTop,
      padLeft, dilationH, dilationW, groups, activation;
};

// A tile: outputs [first, first + count) of row `row` of an image.
struct TilePlace {
  int64_t image, row, first, count;
};

// Calls use(k, input row) for every weight column k of the tile's row whose input row is inside of the image; k is that
// of the row's first cell. `channel` is the first input channel.
template <class Use>
MCC_INLINE void forRows(const Window &w, const TilePlace &tile, int64_t channel, Use use) {
  const int64_t perGroup = w.channels / w.groups;
  for (int64_t c = 0; c < perGroup; ++c) {
    const float *plane = w.x + (tile.image * w.channels + channel + c) * w.height * w.width;
    for (int64_t ky = 0; ky < w.kernelH; ++ky) {
      const int64_t row = tile.row * w.strideH + ky * w.dilationH - w.padTop;
      if (row >= 0 && row < w.height)
        use((c * w.kernelH + ky) * w.kernelW, plane + row * w.width);
    }
  }
}

// Finishes outputs of one channel that lie side by side.
MCC_INLINE void finish(const Window &w, const TilePlace &tile, int64_t channel, F32x16 sums) {
  const int64_t at = ((tile.image * w.outChannels + channel) * w.outHeight + tile.row) * w.outWidth + tile.first;
  if (w.scale)
    sums *= splat(w.scale[channel]);
  if (w.bias)
    sums += splat(w.bias[channel]);
  if (w.residual)
    sums += loadPart(w.residual + at, tile.count);
  storePart(w.y + at, activate(sums, w.activation), tile.count);
}

// Lanes are the channels of a panel, all of one group.
MCC_INLINE void tileOfPanel(const Window &w, const TilePlace &tile, int64_t panel, int64_t columns) {
  const int64_t first = panel * kLanes, left = w.outChannels - first;
  const float *weight = w.weight + panel * kLanes * columns;
  F32x16 acc[kTile] = {};
  forRows(w, tile, first / (w.outChannels / w.groups) * (w.channels / w.groups),
          [&](int64_t k, const float *row) __attribute__((always_inline)) {
            for (int64_t kx = 0; kx < w.kernelW; ++kx) {
              const F32x16 values = load(weight + (k + kx) * kLanes);
              const int64_t from = tile.first * w.strideW + kx * w.dilationW - w.padLeft,
                            last = from + (kTile - 1) * w.strideW;
              if (from >= 0 && last < w.width) {
                MCC_UNROLL
                for (int64_t p = 0; p < kTile; ++p)
                  acc[p] += values * row[from + p * w.strideW];
              } else {
                MCC_UNROLL
                for (int64_t p = 0; p < kTile; ++p)
                  if (const int64_t cell = from + p * w.strideW; cell >= 0 && cell < w.width)
                    acc[p] += values * row[cell];
              }
            }
          });
  float outputs[kTile][kLanes];
  MCC_UNROLL
  for (int64_t p = 0; p < kTile; ++p)
    store(outputs[p], acc[p]);
  for (int64_t lane = 0; lane < kLanes && lane < left; ++lane) {
    float side[kLanes] = {};
    for (int64_t p = 0; p < kTile; ++p)
      side[p] = outputs[p][lane];
    finish(w, tile, first + lane, load(side));
  }
}

// Sixteen cells of a row, `stride` apart, zeros outside of [0, width).
MCC_INLINE F32x16 cellsOf(const float *row, int64_t from, int64_t stride, int64_t width) {
  if (stride == 1 && from >= 0 && from + kLanes <= width)
    return load(row + from);
  float cells[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    const int64_t cell = from + i * stride;
    cells[i] = cell >= 0 && cell < width ? row[cell] : 0.0f;
  }
  return load(cells);
}

// Lanes are neighbouring outputs of one channel.
MCC_INLINE void tileOfChannel(const Window &w, const TilePlace &tile, int64_t channel, int64_t columns) {
  const float *weight = w.weight + channel / kLanes * kLanes * columns + channel % kLanes;
  F32x16 sum = splat(0.0f);
  forRows(w, tile, channel / (w.outChannels / w.groups) * (w.channels / w.groups),
          [&](int64_t k, const float *row) __attribute__((always_inline)) {
            for (int64_t kx = 0; kx < w.kernelW; ++kx)
              sum += splat(weight[(k + kx) * kLanes]) *
                     cellsOf(row, tile.first * w.strideW + kx * w.dilationW - w.padLeft, w.strideW, w.width);
          });
  finish(w, tile, channel, sum);
}

// One row of the output of a panel's channels.
MCC_INLINE void rowOfPanel(const Window &w, int64_t image, int64_t panel, int64_t row, int64_t columns) {
  const int64_t perGroup = w.outChannels / w.groups, first = panel * kLanes;
  const int64_t end = first + kLanes < w.outChannels ? first + kLanes : w.outChannels;
  const bool oneGroup = first / perGroup == (end - 1) / perGroup;
  const int64_t step = oneGroup ? kTile : kLanes;
  for (int64_t at = 0; at < w.outWidth; at += step) {
    const TilePlace tile = {image, row, at, w.outWidth - at < step ? w.outWidth - at : step};
    if (oneGroup)
      tileOfPanel(w, tile, panel, columns);
    else
      for (int64_t channel = first; channel < end; ++channel)
        tileOfChannel(w, tile, channel, columns);
  }
}

} // namespace

MCC_VECTOR void mcc_cpu_conv2d(const MccStep *step, int64_t, const float *x, const float *weight, const float *scale,
                               const float *bias, const float *residual, float *y, int64_t batch, int64_t channels,
                               int64_t height, int64_t width, int64_t outChannels, int64_t outHeight, int64_t outWidth,
                               int64_t kernelH, int64_t kernelW, int64_t strideH, int64_t strideW, int64_t padTop,
                               int64_t padLeft, int64_t dilationH, int64_t dilationW, int64_t groups,
                               int64_t activation) {
  const Window w = {x,      weight,      scale,     bias,      residual, y,         channels, height,
                    width,  outChannels, outHeight, outWidth,  kernelH,  kernelW,   strideH,  strideW,
                    padTop, padLeft,     dilationH, dilationW, groups,   activation};
  const int64_t panels = roundUp(outChannels, kLanes) / kLanes, columns = channels / groups * kernelH * kernelW;
  const Range rows = shareOf(step, batch * panels * outHeight);
  for (int64_t item = rows.begin; item < rows.end; ++item)
    rowOfPanel(w, item / outHeight / panels, item / outHeight % panels, item % outHeight, columns);
}

void mcc_cpu_pool2d(const MccStep *step, int64_t, const float *x, float *y, int64_t kind, int64_t planes,
                    int64_t height, int64_t width, int64_t outHeight, int64_t outWidth, int64_t kernelH,
                    int64_t kernelW, int64_t strideH, int64_t strideW, int64_t padTop, int64_t padLeft,
                    int64_t padBottom, int64_t padRight, int64_t dilationH, int64_t dilationW, int64_t includePad) {
  const Range rows = shareOf(step, planes * outHeight);
  for (int64_t item = rows.begin; item < rows.end; ++item)
    for (int64_t j = 0; j < outWidth; ++j) {
      const float *plane = x + item / outHeight * height * width;
      float largest = -__builtin_inff(), sum = 0.0f;
      int64_t cells = 0, rowsWithPads = 0, columnsWithPads = 0;
      for (int64_t ky = 0; ky < kernelH; ++ky) {
        const int64_t row = item % outHeight * strideH + ky * dilationH - padTop;
        rowsWithPads += row < height + padBottom;
        columnsWithPads = 0;
        for (int64_t kx = 0; kx < kernelW; ++kx) {
          const int64_t column = j * strideW + kx * dilationW - padLeft;
          columnsWithPads += column < width + padRight;
          if (row < 0 || row >= height || column < 0 || column >= width)
            continue;
          const float value = plane[row * width + column];
          largest = value != value || value > largest ? value : largest;
          sum += value;
          ++cells;
        }
      }
      const int64_t count = includePad ? rowsWithPads * columnsWithPads : cells;
      y[item * outWidth + j] = kind == 0 ? largest : sum / static_cast<float>(count);
    }
}
