// `quantization_config`: how a published checkpoint packs its weights. Each method's settings that change what the
// numbers mean are read; those that only concerned the making of the file are listed; any other is refused.
#include "compiler/Import/Families/Family.h"

namespace mcc {

using Method = QuantizationSpec::Method;

static void readGroups(ConfigReader &config, QuantizationSpec &quantization) {
  quantization.bits = config.integer("bits|w_bit", 4, 1);
  quantization.groupSize = config.integer("group_size|q_group_size", 128, -1);
  if (quantization.bits != 4 && quantization.bits != 8)
    config.refuse("bits|w_bit", "is {0}; known are 4 and 8", quantization.bits);
  if (quantization.groupSize == 0)
    config.refuse("group_size|q_group_size", "is 0; expected a number of inputs, or -1 for all");
}

static void readFp8(ConfigReader &config, QuantizationSpec &quantization) {
  if (std::string format = config.text("fmt", "e4m3"); format != "e4m3")
    config.refuse("fmt", "is {0}; only 'e4m3' is supported", quoteJson(format));
  config.ignore({"activation_scheme", "activation_scale_ub"});
  std::optional<std::vector<int64_t>> block = config.integers("weight_block_size");
  if (!block)
    return;
  if (block->size() != 2 || block->front() < 1 || block->back() < 1)
    return config.refuse("weight_block_size", "is not a number of rows and a number of columns");
  quantization.blockRows = block->front();
  quantization.blockCols = block->back();
}

static void readGptq(ConfigReader &config, QuantizationSpec &quantization) {
  readGroups(config, quantization);
  quantization.ordered = config.flag("desc_act", false);
  std::string format = config.text("checkpoint_format", "gptq");
  if (format != "gptq" && format != "gptq_v2")
    config.refuse("checkpoint_format", "is {0}; only 'gptq' and 'gptq_v2' are supported", quoteJson(format));
  quantization.zerosLessOne = format == "gptq";
  config.ignore({"sym",
                 "damp_percent",
                 "true_sequential",
                 "static_groups",
                 "dataset",
                 "model_name_or_path",
                 "model_file_base_name",
                 "model_seqlen",
                 "block_name_to_quantize",
                 "module_name_preceding_first_block",
                 "batch_size",
                 "pad_token_id",
                 "use_cuda_fp16",
                 "use_exllama",
                 "disable_exllama",
                 "exllama_config",
                 "max_input_length",
                 "cache_block_outputs",
                 "tokenizer",
                 "is_marlin_format",
                 "meta",
                 "backend",
                 "lm_head"});
}

static void readAwq(ConfigReader &config, QuantizationSpec &quantization) {
  readGroups(config, quantization);
  if (!config.flag("zero_point", true))
    config.refuse("zero_point", "is false, which is not supported");
  if (std::string version = config.text("version", "gemm"); llvm::StringRef(version).lower() != "gemm")
    config.refuse("version", "is {0}; only 'gemm' is supported", quoteJson(version));
  config.ignore({"backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config"});
}

std::optional<QuantizationSpec> readQuantization(ConfigReader &config) {
  static constexpr ConfigReader::Choice<Method> methods[] = {
      {"fp8", Method::Fp8}, {"fbgemm_fp8", Method::Fp8}, {"mxfp4", Method::Mxfp4}, {"gptq", Method::Gptq}, {"awq", Method::Awq}};
  std::optional<ConfigReader> keys = config.nested("quantization_config");
  if (!keys)
    return std::nullopt;
  QuantizationSpec quantization;
  if (!keys->has("quant_method"))
    keys->refuse("quant_method", "is missing; known are 'fp8', 'fbgemm_fp8', 'mxfp4', 'gptq' and 'awq'");
  quantization.method = keys->choice<Method>("quant_method", "fp8", methods);
  quantization.excluded = keys->texts("modules_to_not_convert").value_or(std::vector<std::string>());
  if (quantization.method == Method::Fp8)
    readFp8(*keys, quantization);
  if (quantization.method == Method::Gptq)
    readGptq(*keys, quantization);
  if (quantization.method == Method::Awq)
    readAwq(*keys, quantization);
  for (const JsonMember *member : keys->unread())
    if (!member->value.isNull())
      keys->refuse(member->key, "is not known for this 'quant_method'");
  config.adopt(*keys);
  return quantization;
}

} // namespace mcc
