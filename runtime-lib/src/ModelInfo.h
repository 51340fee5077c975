// What the compiled model says of itself.
#pragma once

#include "mcc/Model.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace mcc::runtime {

/// Returns the text field `key` of the model's info object, where there is one.
std::optional<std::string> infoText(const MccModel &model, const char *key);

/// Returns the object that --info prints: the compiler's info with the sizes and limits that the program has.
nlohmann::ordered_json describeModel(const MccModel &model);

} // namespace mcc::runtime
