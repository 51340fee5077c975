// How numbers are stored: the element and block formats of checkpoints, packed weights and buffers.
//
// One table, `FormatTable.def`, names every format, its block and its GGUF id; this header turns it
// into an enum and a few constant-time queries. Plain C++20, no dependency: importers, the dialects'
// types, packing and the kernels all speak of formats through it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mcc {

/// A storage format. Values are dense and may change between versions; files name formats by text.
enum class Format : uint8_t {
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId) enumerator,
#include "kernels/FormatTable.def"
};

/// The facts of one format.
struct FormatInfo {
  std::string_view name; ///< lower case, as printed and parsed ("q4_0")
  int64_t blockElems;    ///< elements in one block along the contiguous dimension
  int64_t blockBytes;    ///< bytes of one block
  int ggufId;            ///< ggml_type number, or -1 where GGUF has none
};

/// Returns the facts of `format`; the reference is to static storage.
const FormatInfo &formatInfo(Format format);

/// Returns the format whose lower-case name is `name`.
std::optional<Format> parseFormat(std::string_view name);

/// Returns the format with ggml_type number `id`.
std::optional<Format> formatFromGguf(uint32_t id);

/// Returns the bytes of `elems` contiguous elements; `elems` must be a whole number of blocks.
inline int64_t formatBytes(Format format, int64_t elems) {
  const FormatInfo &info = formatInfo(format);
  return elems / info.blockElems * info.blockBytes;
}

} // namespace mcc
