// Packing weight rows into the panels that kernels/cpu reads.
//
// `panel16`: rows in panels of 16, lane = row, columns in order; the last panel's missing rows are zero. Quants keep
// their bits and each format its size: a panel takes 16 times a row's bytes, rounded up to 64. Byte layouts are
// described beside their decoders in kernels/cpu/PanelFormats.h.
#pragma once

#include "kernels/Format.h"

namespace mcc {

/// Rows in a panel.
inline constexpr int64_t kPackRows = 16;

/// Returns the bytes of one packed panel of `cols` columns, a multiple of 64. `cols` is a whole number of blocks.
int64_t packedPanelBytes(Format format, int64_t cols);

/// Returns the bytes of `rows` packed rows of `cols` columns.
int64_t packedBytes(Format format, int64_t rows, int64_t cols);

/// Returns the bytes of a packed gated pair: `rows` gate rows and `rows` up rows, their panels alternating.
int64_t packedGatedBytes(Format format, int64_t rows, int64_t cols);

/// Packs `rows` rows of `cols` columns into whole panels at `out`, packedBytes(format, rows, cols) bytes.
/// Row r is at rowsData + r * rowBytes, in the checkpoint's format. Pure: calls for different panels may run on
/// different threads, and a tensor may be packed a few panels at a time (a multiple of 16 rows each but the last).
void packPanels(Format format, const uint8_t *rowsData, int64_t rowBytes, int64_t rows, int64_t cols, uint8_t *out);

/// Packs a gated pair into alternating panels, gate first; otherwise as packPanels.
void packGatedPanels(Format format, const uint8_t *gateRows, const uint8_t *upRows, int64_t rowBytes, int64_t rows,
                     int64_t cols, uint8_t *out);

/// Returns the floats of a gated pair's packed bias.
constexpr int64_t packedGatedBiasFloats(int64_t rows) { return (rows + kPackRows - 1) / kPackRows * kPackRows * 2; }

/// Interleaves a gate and an up bias (either may be null: zeros) by panels of 16, zero-padded.
void packGatedBias(const float *gate, const float *up, int64_t rows, float *out);

} // namespace mcc
