// JSON through nlohmann_json, as the runtime uses it: no exceptions, no iostream, one-line output.
#pragma once

#ifndef JSON_NO_IO
#define JSON_NO_IO 1
#endif
#include <nlohmann/json.hpp>

#include <string>

namespace mcc::runtime {

/// Returns `value` on one line (indent -1) or indented; bytes that are not UTF-8 become U+FFFD.
template <typename Json>
std::string dumpJson(const Json &value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

} // namespace mcc::runtime
