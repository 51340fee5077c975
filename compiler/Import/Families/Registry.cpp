// The list of families.
#include "compiler/Import/Families/Family.h"

namespace mcc {

const std::vector<Family> &allFamilies() {
  static const std::vector<Family> families = [] {
    std::vector<Family> list;
    addLlamaFamilies(list);
    addQwenFamilies(list);
    addGemmaFamilies(list);
    addOlmoFamilies(list);
    addMixtureFamilies(list);
    addDeepseekFamilies(list);
    addGptFamilies(list);
    addAlibiFamilies(list);
    addPhiFamilies(list);
    addRecurrentFamilies(list);
    return list;
  }();
  return families;
}

const Family *findFamily(llvm::StringRef modelType) {
  for (const Family &family : allFamilies())
    if (family.modelType == modelType || llvm::is_contained(family.aliases, modelType))
      return &family;
  return nullptr;
}

void Family::nameInLayers(std::initializer_list<std::pair<std::string, std::string>> names, const std::string &prefix) {
  for (const auto &[role, name] : names)
    tensors.emplace_back(role, prefix + name);
}

void Family::unname(std::initializer_list<std::string> roles) {
  for (const std::string &role : roles)
    std::erase_if(tensors, [&](const auto &entry) { return entry.first == role; });
}

} // namespace mcc
