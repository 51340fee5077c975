// Building short texts, without iostream (which would add a megabyte to every executable).
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace mcc::runtime {

inline void appendText(std::string &out, std::string_view text) { out += text; }
inline void appendText(std::string &out, const char *text) { out += text; }
inline void appendText(std::string &out, char character) { out += character; }
inline void appendText(std::string &out, std::integral auto number) { out += std::to_string(number); }
inline void appendText(std::string &out, double number) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", number);
  out += buffer;
}

/// Returns the arguments one after the other: text, characters, integers, and floats with six digits.
template <typename... Parts>
std::string concat(const Parts &...parts) {
  std::string out;
  (appendText(out, parts), ...);
  return out;
}

/// Returns `bytes` in lower-case hexadecimal.
inline std::string hex(std::span<const uint8_t> bytes) {
  std::string out;
  for (uint8_t byte : bytes) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

} // namespace mcc::runtime
