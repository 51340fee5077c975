// Formats that checkpoints are stored in and no kernel computes with: importers read them as f32.
//
// A format that earns a kernel moves to kernels/FormatTable.def and Dequantize.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace mcc {

/// One format; blocks lie along the contiguous dimension.
struct StoredFormat {
  std::string_view name; ///< lower case ("q2_k")
  uint32_t ggufId;       ///< ggml_type number
  int64_t blockElems, blockBytes;
  void (*dequantizeBlock)(const uint8_t *in, float *out); ///< bit-equal to ggml's
};

/// Returns the format with ggml_type number `id`, or null; the result is in static storage.
const StoredFormat *storedFormatFromGguf(uint32_t id);

/// Returns the format whose name is `name`, or null.
const StoredFormat *parseStoredFormat(std::string_view name);

/// Writes the `elems` numbers stored in `in` as floats; `elems` must be a whole number of blocks.
void dequantizeStored(const StoredFormat &format, const uint8_t *in, float *out, int64_t elems);

} // namespace mcc
