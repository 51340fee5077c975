// mcc's own form of a model: {"kind": "decoder", ...the fields of ModelSpec}. What `mcc inspect` prints and `mcc`
// compiles; printing what was read gives the same text, byte for byte.
#pragma once

#include "compiler/Import/ModelSpec.h"
#include "compiler/Support/LocatedJson.h"

#include "llvm/Support/Error.h"

#include <string>

namespace mcc {

/// Whether `document` is a spec of mcc's own (it has a "kind"), as opposed to a config.json.
bool isSpecJson(const JsonDocument &document);

/// Reads a spec. Unknown fields, wrong types, values out of range and contradictions between fields are errors at
/// file:line:column that name the field's path.
llvm::Expected<ModelSpec> readSpec(const JsonDocument &document);

/// Prints `spec` as JSON: fields in a fixed order, those at their default left out, numbers in their shortest form,
/// a newline at the end.
std::string printSpec(const ModelSpec &spec);

/// Returns the text that `mcc inspect` prints about a model beside its spec: parameters, bytes per dtype, and
/// cache bytes per position, one fact a line.
std::string describeSize(const ModelSpec &spec);

/// Returns the JSON Schema (draft 2020-12) of specs; compiler/Import/spec.schema.json is this text.
std::string specSchema();

} // namespace mcc
