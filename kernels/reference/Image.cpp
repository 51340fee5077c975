#include "kernels/reference/Image.h"

#include "kernels/reference/Reference.h"

#include <cmath>
#include <limits>

namespace mcc::reference {

namespace {

bool inside(const WindowAxis &axis, int64_t cell) { return cell >= 0 && cell < axis.in; }

// Calls use(ky, kx, row, column) for the cells of a window that are inside of the image.
template <class Use>
void forCells(const WindowAxis &height, const WindowAxis &width, int64_t i, int64_t j, Use use) {
  for (int64_t ky = 0; ky < height.kernel; ++ky)
    for (int64_t kx = 0; kx < width.kernel; ++kx)
      if (const int64_t row = height.cell(i, ky), column = width.cell(j, kx);
          inside(height, row) && inside(width, column))
        use(ky, kx, row, column);
}

double sumOf(const Conv2d &c, int64_t image, int64_t out, int64_t i, int64_t j) {
  const int64_t perGroup = c.channels / c.groups, first = out / (c.outChannels / c.groups) * perGroup;
  double sum = 0;
  for (int64_t channel = 0; channel < perGroup; ++channel) {
    const float *plane = c.x + (image * c.channels + first + channel) * c.height.in * c.width.in;
    const float *weight = c.weight + (out * perGroup + channel) * c.height.kernel * c.width.kernel;
    forCells(c.height, c.width, i, j, [&](int64_t ky, int64_t kx, int64_t row, int64_t column) {
      sum += double(weight[ky * c.width.kernel + kx]) * plane[row * c.width.in + column];
    });
  }
  return sum;
}

// The pads belong to the window's mean; what lies beyond them, where the last window is not whole, does not.
int64_t cellsWithPads(const WindowAxis &axis, int64_t i) {
  int64_t count = 0;
  for (int64_t k = 0; k < axis.kernel; ++k)
    count += axis.cell(i, k) < axis.in + axis.padEnd;
  return count;
}

} // namespace

void conv2d(const Conv2d &c, float *y) {
  for (int64_t image = 0; image < c.batch; ++image)
    for (int64_t out = 0; out < c.outChannels; ++out)
      for (int64_t i = 0; i < c.height.out; ++i)
        for (int64_t j = 0; j < c.width.out; ++j) {
          const int64_t at = ((image * c.outChannels + out) * c.height.out + i) * c.width.out + j;
          double value = sumOf(c, image, out, i, j);
          value = value * (c.scale ? c.scale[out] : 1.0f) + (c.bias ? c.bias[out] : 0.0f);
          value += c.residual ? c.residual[at] : 0.0f;
          y[at] = static_cast<float>(activate(value, c.activation));
        }
}

void pool2d(const Pool2d &p, float *y) {
  for (int64_t plane = 0; plane < p.planes; ++plane)
    for (int64_t i = 0; i < p.height.out; ++i)
      for (int64_t j = 0; j < p.width.out; ++j) {
        const float *x = p.x + plane * p.height.in * p.width.in;
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        int64_t count = 0;
        forCells(p.height, p.width, i, j, [&](int64_t, int64_t, int64_t row, int64_t column) {
          const double value = x[row * p.width.in + column];
          largest = std::isnan(value) || value > largest ? value : largest;
          sum += value;
          ++count;
        });
        if (p.includePad)
          count = cellsWithPads(p.height, i) * cellsWithPads(p.width, j);
        y[(plane * p.height.out + i) * p.width.out + j] =
            static_cast<float>(p.kind == Pool2d::Max ? largest : sum / static_cast<double>(count));
      }
}

} // namespace mcc::reference
