// Packs rows into panels of 16, format by format.
//
// Every format is described by how it moves one block of one row into the panel's block: `lane` is the row's place.
// Bytes of absent rows stay zero: all formats decode an all-zero block to zeros. Nibbles, which the formats keep
// as halves of a block apart, become neighbours: column 2p in the low and 2p+1 in the high half of a byte.
#include "kernels/pack/Pack.h"

#include <cassert>
#include <cstring>

namespace mcc {

namespace {

constexpr int64_t kRows = kPackRows;

// Bytes of element `index` in an array [index][16 lanes] of `size`-byte elements.
uint8_t *laneAt(uint8_t *out, int64_t index, int64_t lane, int64_t size) { return out + (index * kRows + lane) * size; }

// Copies an array of `count` elements of `size` bytes into lane `lane` of [count][16].
void scatter(const uint8_t *from, int64_t count, int64_t size, int64_t lane, uint8_t *out) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(laneAt(out, i, lane, size), from + i * size, static_cast<size_t>(size));
}

// Writes 4-bit values q(0..count) as pairs [count/2][16].
template <class Quant>
void scatterNibbles(int64_t count, int64_t lane, uint8_t *out, Quant quant) {
  for (int64_t i = 0; i < count; i += 2)
    *laneAt(out, i / 2, lane, 1) = static_cast<uint8_t>((quant(i) & 15) | (quant(i + 1) & 15) << 4);
}

// Q4_0, Q4_1, Q5_0, Q5_1: `halves` f16 scales, 4 bytes of fifth bits or none, 16 bytes of nibbles (j low, j + 16 high).
void packBlock32(const uint8_t *block, int64_t halves, bool fifth, int64_t lane, uint8_t *out) {
  scatter(block, halves, 2, lane, out);
  block += halves * 2;
  out += halves * 2 * kRows;
  if (fifth) {
    scatter(block, 1, 4, lane, out);
    block += 4;
    out += 4 * kRows;
  }
  scatterNibbles(32, lane, out, [block](int64_t i) { return i < 16 ? block[i] & 15 : block[i - 16] >> 4; });
}

void packQ8_0(const uint8_t *block, int64_t lane, uint8_t *out) {
  scatter(block, 1, 2, lane, out);
  scatter(block + 2, 32, 1, lane, out + 2 * kRows);
}

void packF8(const uint8_t *block, int64_t lane, uint8_t *out) {
  scatter(block, 1, 4, lane, out);
  scatter(block + 4, 32, 1, lane, out + 4 * kRows);
}

// Q4_K and Q5_K: d, dmin, scales[12], (qh[32],) qs[128]; part s of 32 columns takes nibble s % 2 of qs[32 (s/2) ..]
// and bit s of qh.
void packSuperBlock(const uint8_t *block, bool fifth, int64_t lane, uint8_t *out) {
  scatter(block, 2, 2, lane, out);
  scatter(block + 4, 12, 1, lane, out + 4 * kRows);
  const uint8_t *high = block + 16, *quants = block + (fifth ? 48 : 16);
  out += 16 * kRows;
  for (int64_t part = 0; part < 8; ++part) {
    if (fifth) {
      uint32_t bits = 0;
      for (int64_t i = 0; i < 32; ++i)
        bits |= static_cast<uint32_t>(high[i] >> part & 1) << i;
      std::memcpy(laneAt(out, 0, lane, 4), &bits, 4);
      out += 4 * kRows;
    }
    const uint8_t *nibbles = quants + 32 * (part / 2);
    const int shift = part % 2 ? 4 : 0;
    scatterNibbles(32, lane, out, [=](int64_t i) { return nibbles[i] >> shift; });
    out += 16 * kRows;
  }
}

// Q6_K: ql[128], qh[64], int8 scales[16], d. Column c of a half of 128: quarter = c / 32, l = c % 32.
void packQ6_K(const uint8_t *block, int64_t lane, uint8_t *out) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  scatter(block + 208, 1, 2, lane, out);
  scatter(scales, 16, 1, lane, out + 2 * kRows);
  out += 18 * kRows;
  const auto quant = [=](int64_t column) {
    const int64_t half = column / 128, quarter = column % 128 / 32, l = column % 32;
    const int nibble = low[64 * half + 32 * (quarter % 2) + l] >> (quarter / 2 * 4) & 15;
    return nibble | (high[32 * half + l] >> (2 * quarter) & 3) << 4;
  };
  for (int64_t part = 0; part < 16; ++part) {
    uint32_t upper = 0;
    for (int64_t i = 0; i < 16; ++i)
      upper |= static_cast<uint32_t>(quant(16 * part + i) >> 4) << (2 * i);
    std::memcpy(laneAt(out, 0, lane, 4), &upper, 4);
    scatterNibbles(16, lane, out + 4 * kRows, [&](int64_t i) { return quant(16 * part + i); });
    out += 12 * kRows;
  }
}

// Moves one block of a row into the panel's block.
void packBlock(Format format, const uint8_t *block, int64_t lane, uint8_t *out) {
  switch (format) {
  case Format::F32:
    return scatter(block, 1, 4, lane, out);
  case Format::F16:
  case Format::BF16:
    return scatter(block, 1, 2, lane, out);
  case Format::Q4_0:
    return packBlock32(block, 1, false, lane, out);
  case Format::Q4_1:
    return packBlock32(block, 2, false, lane, out);
  case Format::Q5_0:
    return packBlock32(block, 1, true, lane, out);
  case Format::Q5_1:
    return packBlock32(block, 2, true, lane, out);
  case Format::Q8_0:
    return packQ8_0(block, lane, out);
  case Format::Q4_K:
    return packSuperBlock(block, false, lane, out);
  case Format::Q5_K:
    return packSuperBlock(block, true, lane, out);
  case Format::Q6_K:
    return packQ6_K(block, lane, out);
  case Format::F8:
    return packF8(block, lane, out);
  }
}

// Packs one panel of `rows` <= 16 rows.
void packPanel(Format format, const uint8_t *rowsData, int64_t rowBytes, int64_t rows, int64_t cols, uint8_t *out) {
  const FormatInfo &info = formatInfo(format);
  std::memset(out, 0, static_cast<size_t>(packedPanelBytes(format, cols)));
  for (int64_t block = 0; block < cols / info.blockElems; ++block)
    for (int64_t lane = 0; lane < rows; ++lane)
      packBlock(format, rowsData + lane * rowBytes + block * info.blockBytes, lane,
                out + block * info.blockBytes * kRows);
}

int64_t panelRows(int64_t rows, int64_t first) { return rows - first < kRows ? rows - first : kRows; }

} // namespace

int64_t packedPanelBytes(Format format, int64_t cols) {
  assert(cols % formatInfo(format).blockElems == 0 && "a row is a whole number of blocks");
  return (kRows * formatBytes(format, cols) + 63) / 64 * 64;
}

int64_t packedBytes(Format format, int64_t rows, int64_t cols) {
  return (rows + kRows - 1) / kRows * packedPanelBytes(format, cols);
}

int64_t packedGatedBytes(Format format, int64_t rows, int64_t cols) { return 2 * packedBytes(format, rows, cols); }

void packPanels(Format format, const uint8_t *rowsData, int64_t rowBytes, int64_t rows, int64_t cols, uint8_t *out) {
  const int64_t bytes = packedPanelBytes(format, cols);
  for (int64_t first = 0; first < rows; first += kRows, out += bytes)
    packPanel(format, rowsData + first * rowBytes, rowBytes, panelRows(rows, first), cols, out);
}

void packGatedPanels(Format format, const uint8_t *gateRows, const uint8_t *upRows, int64_t rowBytes, int64_t rows,
                     int64_t cols, uint8_t *out) {
  const int64_t bytes = packedPanelBytes(format, cols);
  for (int64_t first = 0; first < rows; first += kRows, out += 2 * bytes) {
    packPanel(format, gateRows + first * rowBytes, rowBytes, panelRows(rows, first), cols, out);
    packPanel(format, upRows + first * rowBytes, rowBytes, panelRows(rows, first), cols, out + bytes);
  }
}

void packGatedBias(const float *gate, const float *up, int64_t rows, float *out) {
  for (int64_t first = 0; first < rows; first += kRows, out += 2 * kRows)
    for (int64_t lane = 0; lane < kRows; ++lane) {
      const bool present = first + lane < rows;
      out[lane] = present && gate ? gate[first + lane] : 0.0f;
      out[kRows + lane] = present && up ? up[first + lane] : 0.0f;
    }
}

} // namespace mcc
