// What is known about config keys that a family did not read.
//
// Harmless keys concern training, bookkeeping, generation settings or the speed of somebody's code. Feature keys change
// what some family computes; where a family does not read one and it is set, the config means another model.
// A key in neither list is ignored, as transformers does, unless it looks like a misspelt one.
#include "compiler/Import/Families/Family.h"

#include "llvm/ADT/StringSet.h"

namespace mcc {

KeyMeaning keyMeaning(llvm::StringRef key) {
  static const llvm::StringSet<> harmless = {
      // Bookkeeping.
      "_name_or_path", "_attn_implementation_autoset", "architectures", "auto_map", "model_type", "name_or_path",
      "torchscript", "transformers_version", "unsloth_fixed", "unsloth_version", "tokenizer_class",
      "task_specific_params", "id2label", "label2id", "num_labels", "problem_type", "finetuning_task",
      "model_max_length", "seq_length", "verbose", "prefix", "return_dict", "return_dict_in_generate",
      "chunk_size_feed_forward", "pruned_heads", "tf_legacy_loss", "transformers.js_config",
      // Training.
      "attention_dropout", "attn_dropout", "attn_pdrop", "embd_pdrop", "embed_dropout", "emb_pdrop", "dropout",
      "hidden_dropout", "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "resid_dropout",
      "residual_dropout", "classifier_dropout", "activation_dropout", "layerdrop", "ffn_dropout", "initializer_range",
      "init_std", "initializer_factor", "router_aux_loss_coef", "router_z_loss_coef", "output_router_logits",
      "router_jitter_noise", "aux_loss_alpha", "seq_aux", "ep_size", "pretraining_tp", "gradient_checkpointing",
      "embd_layer_norm_pdrop", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
      "summary_use_proj",
      // How somebody's code runs, not what it computes.
      "use_cache", "cache_implementation", "output_attentions", "output_hidden_states", "attn_implementation",
      "_attn_implementation", "use_flash_attn", "flash_attn", "fused_dense", "fused_rotary", "use_mambapy",
      "use_associative_scan", "slow_but_exact", "chunk_size", "num_logits_to_keep", "reorder_and_upcast_attn",
      "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
      // Generation settings, which are the caller's.
      "pad_token_id", "sep_token_id", "unk_token_id", "decoder_start_token_id", "forced_bos_token_id",
      "forced_eos_token_id", "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
      "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
      "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
      "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"};
  static const llvm::StringSet<> features = {"alibi",
                                             "attention_bias",
                                             "attention_chunk_size",
                                             "attention_multiplier",
                                             "attention_out_bias",
                                             "attn_logit_softcapping",
                                             "attn_config",
                                             "clip_qkv",
                                             "embedding_multiplier",
                                             "final_logit_softcapping",
                                             "kv_lora_rank",
                                             "layer_types",
                                             "logit_scale",
                                             "logits_scaling",
                                             "mlp_bias",
                                             "no_rope_layers",
                                             "num_experts",
                                             "num_local_experts",
                                             "n_routed_experts",
                                             "partial_rotary_factor",
                                             "qk_layernorm",
                                             "qk_norm",
                                             "quantization_config",
                                             "query_pre_attn_scalar",
                                             "residual_multiplier",
                                             "rope_parameters",
                                             "rope_scaling",
                                             "rotary_pct",
                                             "scale_attn_by_inverse_layer_idx",
                                             "scale_depth",
                                             "scale_emb",
                                             "dim_model_base",
                                             "sliding_window",
                                             "sliding_window_pattern",
                                             "use_parallel_residual",
                                             "use_qk_norm",
                                             "use_qkv_bias",
                                             "word_embed_proj_dim"};
  return harmless.contains(key)   ? KeyMeaning::Harmless
         : features.contains(key) ? KeyMeaning::Feature
                                  : KeyMeaning::Unknown;
}

} // namespace mcc
