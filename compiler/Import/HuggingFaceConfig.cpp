// The entry of the config importer: finds the family, lets its table build the spec, adds the end-of-text tokens of
// generation_config.json, and passes the result through the same gate as a spec that was read from JSON.
#include "compiler/Import/HuggingFaceConfig.h"

#include "compiler/Import/Families/Family.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/Suggest.h"

namespace mcc {

std::vector<llvm::StringRef> knownModelTypes() {
  std::vector<llvm::StringRef> names;
  for (const Family &family : allFamilies()) {
    names.push_back(family.modelType);
    names.insert(names.end(), family.aliases.begin(), family.aliases.end());
  }
  llvm::sort(names);
  return names;
}

static llvm::Expected<const Family *> chooseFamily(const JsonDocument &config) {
  if (!config.root.isObject())
    return diagnose(config.where(config.root), "a config is an object; found {0}", describeKind(config.root));
  const JsonMember *type = config.root.find("model_type");
  std::vector<llvm::StringRef> known = knownModelTypes();
  if (!type)
    return diagnose(config.where(config.root), "field 'model_type' is missing; known are {0}", quotedList(known));
  if (!type->value.isString())
    return diagnose(config.where(type->value), "field 'model_type' is {0}; expected a string",
                    config.quoted(type->value));
  if (const Family *family = findFamily(type->value.string))
    return family;
  return diagnose(config.where(type->value), "field 'model_type' is {0}, which is not supported; known are {1}{2}",
                  config.quoted(type->value), quotedList(known), suggestName(type->value.string, known));
}

/// Adds the end-of-text tokens of generation_config.json that the model can produce.
static llvm::Error addGenerationTokens(const JsonDocument &generation, ModelSpec &spec) {
  if (!generation.root.isObject())
    return diagnose(generation.where(generation.root), "a generation config is an object; found {0}",
                    describeKind(generation.root));
  const JsonMember *eos = generation.root.find("eos_token_id");
  if (!eos || eos->value.isNull())
    return llvm::Error::success();
  llvm::ArrayRef<JsonValue> ids = eos->value.isArray() ? llvm::ArrayRef<JsonValue>(eos->value.elements) : eos->value;
  for (const JsonValue &id : ids) {
    if (id.kind != JsonValue::Kind::Integer)
      return diagnose(generation.where(id), "field 'eos_token_id' has {0}; expected an integer", generation.quoted(id));
    if (id.integer >= 0 && id.integer < spec.vocabulary && !llvm::is_contained(spec.eosTokens, id.integer))
      spec.eosTokens.push_back(static_cast<int32_t>(id.integer));
  }
  return llvm::Error::success();
}

void fitTensorPrefix(ModelSpec &spec, llvm::function_ref<bool(llvm::StringRef name)> has) {
  std::string embedding = spec.tensorName("embedding");
  size_t dot = embedding.find('.');
  if (dot == std::string::npos || has(embedding) || !has(llvm::StringRef(embedding).drop_front(dot + 1)))
    return;
  std::string prefix = embedding.substr(0, dot + 1);
  for (auto &[role, name] : spec.tensors)
    if (name.starts_with(prefix))
      name.erase(0, prefix.size());
}

llvm::Expected<ModelSpec> readHuggingFaceConfig(const JsonDocument &config, const JsonDocument *generation) {
  llvm::Expected<const Family *> family = chooseFamily(config);
  if (!family)
    return family.takeError();
  ConfigReader reader(config, config.root);
  ModelSpec spec = buildFromConfig(reader, **family);
  if (llvm::Error error = reader.takeError())
    return error;
  if (generation)
    if (llvm::Error error = addGenerationTokens(*generation, spec))
      return error;
  if (std::optional<SpecProblem> problem = findProblem(spec))
    return diagnose(config.file(), "the config makes a spec whose field '{0}' {1}", problem->field, problem->what);
  return spec;
}

} // namespace mcc
