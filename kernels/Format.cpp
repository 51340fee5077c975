// The format table as data. See Format.h.
#include "kernels/Format.h"

namespace mcc {

static constexpr FormatInfo formatInfos[] = {
#define MCC_FORMAT(enumerator, text, elems, bytes, ggufId) {text, elems, bytes, ggufId},
#include "kernels/FormatTable.def"
};

const FormatInfo &formatInfo(Format format) { return formatInfos[static_cast<size_t>(format)]; }

std::optional<Format> parseFormat(std::string_view name) {
  for (size_t i = 0; i < std::size(formatInfos); ++i)
    if (formatInfos[i].name == name)
      return static_cast<Format>(i);
  return std::nullopt;
}

std::optional<Format> formatFromGguf(uint32_t id) {
  for (size_t i = 0; i < std::size(formatInfos); ++i)
    if (formatInfos[i].ggufId >= 0 && static_cast<uint32_t>(formatInfos[i].ggufId) == id)
      return static_cast<Format>(i);
  return std::nullopt;
}

} // namespace mcc
