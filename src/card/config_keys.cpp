#include "card/config_keys.h"

#include <algorithm>
#include <array>

namespace weir::card {

namespace {

// Keys that mean nothing to the forward pass whatever they say, with what they are instead. Sorted.
struct Bookkeeping {
  std::string_view key, what;
};
constexpr std::string_view kAnswer = "how answers are sampled: generation_config.json's business";
constexpr std::string_view kFile = "who wrote the file, and with what";
constexpr std::string_view kHead = "of a classifier's head";
constexpr std::string_view kKernel = "which kernels to compute with";
constexpr std::string_view kOutput = "what a Python call returns";
constexpr std::string_view kToken = "a token: the tokenizer's business";
constexpr std::string_view kTraining = "of training only";
constexpr std::string_view kType = "how the weights are stored, which their file says";
constexpr std::array kBookkeeping = {
    Bookkeeping{"_attn_implementation", kKernel},
    Bookkeeping{"_attn_implementation_autoset", kKernel},
    Bookkeeping{"_attn_implementation_internal", kKernel},
    Bookkeeping{"_commit_hash", kFile},
    Bookkeeping{"_flash_attn_2_enabled", kKernel},
    Bookkeeping{"_name_or_path", kFile},
    Bookkeeping{"architectures", kFile},
    Bookkeeping{"attention_dropout", kTraining},
    Bookkeeping{"attention_probs_dropout_prob", kTraining},
    Bookkeeping{"attn_implementation", kKernel},
    Bookkeeping{"attn_pdrop", kTraining},
    Bookkeeping{"audio_token_id", kToken},
    Bookkeeping{"auto_map", kFile},
    Bookkeeping{"bad_words_ids", kAnswer},
    Bookkeeping{"base_model_pp_plan", kKernel},
    Bookkeeping{"base_model_tp_plan", kKernel},
    Bookkeeping{"begin_suppress_tokens", kAnswer},
    Bookkeeping{"bos_token_id", kToken},
    Bookkeeping{"cache_implementation", kKernel},
    Bookkeeping{"chunk_size_feed_forward", kKernel},
    Bookkeeping{"classifier_dropout", kTraining},
    Bookkeeping{"decoder_start_token_id", kToken},
    Bookkeeping{"diversity_penalty", kAnswer},
    Bookkeeping{"do_sample", kAnswer},
    Bookkeeping{"dropout", kTraining},
    Bookkeeping{"dtype", kType},
    Bookkeeping{"early_stopping", kAnswer},
    Bookkeeping{"embd_pdrop", kTraining},
    Bookkeeping{"embed_dropout", kTraining},
    Bookkeeping{"embedding_dropout", kTraining},
    Bookkeeping{"encoder_no_repeat_ngram_size", kAnswer},
    Bookkeeping{"eos_token_id", kToken},
    Bookkeeping{"exponential_decay_length_penalty", kAnswer},
    Bookkeeping{"finetuning_task", kFile},
    Bookkeeping{"forced_bos_token_id", kAnswer},
    Bookkeeping{"forced_eos_token_id", kAnswer},
    Bookkeeping{"gradient_checkpointing", kTraining},
    Bookkeeping{"hidden_dropout", kTraining},
    Bookkeeping{"hidden_dropout_prob", kTraining},
    Bookkeeping{"id2label", kHead},
    Bookkeeping{"image_token_id", kToken},
    Bookkeeping{"initializer_range", kTraining},
    Bookkeeping{"is_decoder", kFile},
    Bookkeeping{"is_encoder_decoder", kFile},
    Bookkeeping{"is_llama_config", kFile},
    Bookkeeping{"keys_to_ignore_at_inference", kOutput},
    Bookkeeping{"label2id", kHead},
    Bookkeeping{"language", kFile},
    Bookkeeping{"length_penalty", kAnswer},
    Bookkeeping{"license", kFile},
    Bookkeeping{"loss_type", kTraining},
    Bookkeeping{"max_length", kAnswer},
    Bookkeeping{"min_length", kAnswer},
    Bookkeeping{"mlp_dropout", kTraining},
    Bookkeeping{"model_max_length", kToken},
    Bookkeeping{"model_name", kFile},
    Bookkeeping{"model_type", kFile},
    Bookkeeping{"no_repeat_ngram_size", kAnswer},
    Bookkeeping{"num_beam_groups", kAnswer},
    Bookkeeping{"num_beams", kAnswer},
    Bookkeeping{"num_labels", kHead},
    Bookkeeping{"num_return_sequences", kAnswer},
    Bookkeeping{"output_attentions", kOutput},
    Bookkeeping{"output_hidden_states", kOutput},
    Bookkeeping{"output_router_logits", kOutput},
    Bookkeeping{"output_scores", kOutput},
    Bookkeeping{"pad_token_id", kToken},
    Bookkeeping{"prefix", kToken},
    Bookkeeping{"problem_type", kHead},
    Bookkeeping{"remove_invalid_values", kAnswer},
    Bookkeeping{"repetition_penalty", kAnswer},
    Bookkeeping{"resid_pdrop", kTraining},
    Bookkeeping{"residual_dropout", kTraining},
    Bookkeeping{"return_dict", kOutput},
    Bookkeeping{"return_dict_in_generate", kOutput},
    Bookkeeping{"rope_interleaved", kKernel},
    Bookkeeping{"router_aux_loss_coef", kTraining},
    Bookkeeping{"router_jitter_noise", kTraining},
    Bookkeeping{"router_z_loss_coef", kTraining},
    Bookkeeping{"sep_token_id", kToken},
    Bookkeeping{"suppress_tokens", kAnswer},
    Bookkeeping{"task_specific_params", kAnswer},
    Bookkeeping{"temperature", kAnswer},
    Bookkeeping{"tf_legacy_loss", kTraining},
    Bookkeeping{"tie_encoder_decoder", kFile},
    Bookkeeping{"tokenizer_class", kToken},
    Bookkeeping{"top_k", kAnswer},
    Bookkeeping{"top_p", kAnswer},
    Bookkeeping{"torch_dtype", kType},
    Bookkeeping{"torchscript", kFile},
    Bookkeeping{"transformers.js_config", kFile},
    Bookkeeping{"transformers_version", kFile},
    Bookkeeping{"typical_p", kAnswer},
    Bookkeeping{"unsloth_fixed", kFile},
    Bookkeeping{"unsloth_version", kFile},
    Bookkeeping{"use_bfloat16", kType},
    Bookkeeping{"use_cache", kKernel},
    Bookkeeping{"use_flash_attention", kKernel},
    Bookkeeping{"use_flash_attention_2", kKernel},
    Bookkeeping{"use_flash_attn", kKernel},
    Bookkeeping{"video_token_id", kToken},
    Bookkeeping{"vision_end_token_id", kToken},
    Bookkeeping{"vision_start_token_id", kToken},
    Bookkeeping{"vision_token_id", kToken},
};
static_assert(std::ranges::is_sorted(kBookkeeping, {}, &Bookkeeping::key));

// Options that would change what is computed, with the value that says they do not. A list says so
// if each of its entries does.
struct Neutral {
  std::string_view key, value, reason;
};
constexpr std::array kNeutral = {
    Neutral{"add_cross_attention", "false", "nothing is attended to but the text itself"},
    Neutral{"alibi", "false", "attention has no bias by distance"},
    Neutral{"attention_bias", "false", "attention has no biases"},
    Neutral{"attn_logit_softcapping", "0", "scores have no cap"},
    Neutral{"attn_temperature_tuning", "false", "scores are not scaled by position"},
    Neutral{"embedding_multiplier", "1", "embeddings are multiplied by 1"},
    Neutral{"final_logit_softcapping", "0", "logits have no cap"},
    Neutral{"layer_types", "\"full_attention\"", "every layer attends to everything"},
    Neutral{"logits_scaling", "1", "logits are divided by 1"},
    Neutral{"mlp_bias", "false", "the feed-forward layers have no biases"},
    Neutral{"num_nextn_predict_layers", "0", "there are no layers that predict further tokens"},
    Neutral{"partial_rotary_factor", "1", "every dimension is rotated"},
    Neutral{"pretraining_tp", "1", "matrices are multiplied in one piece"},
    Neutral{"qk_layernorm", "false", "queries and keys are not normalised"},
    Neutral{"qk_norm", "false", "queries and keys are not normalised"},
    Neutral{"residual_multiplier", "1", "what is added is multiplied by 1"},
    Neutral{"rotary_pct", "1", "every dimension is rotated"},
    Neutral{"sliding_window", "0", "there is no window"},
    Neutral{"use_mrope", "false", "positions are those of the text, not of images"},
    Neutral{"use_parallel_residual", "false", "attention comes before the feed-forward layer"},
    Neutral{"use_qk_norm", "false", "queries and keys are not normalised"},
    Neutral{"use_sliding_window", "false", "there is no window"},
};
static_assert(std::ranges::is_sorted(kNeutral, {}, &Neutral::key));

// `neutral` is true, false, a number or a string in JSON; 1 is also 1.0.
bool equals(JsonValue value, std::string_view neutral) {
  double number = 0;
  if (value.is_number() && value.get(number) == simdjson::SUCCESS)
    return number == (neutral == "1" ? 1 : 0) && (neutral == "1" || neutral == "0");
  return json_excerpt(value) == neutral;
}

}  // namespace

std::string_view why_neutral(std::string_view path, std::string_view key, JsonValue value) {
  JsonArray list;
  JsonObject object;
  const bool is_list = value.get(list) == simdjson::SUCCESS;
  if (value.is_null()) return "null says that there is no such thing";
  if (is_list && list.size() == 0) return "the list is empty";
  if (value.get(object) == simdjson::SUCCESS && object.size() == 0) return "the object is empty";
  // A model within another has its keys in an object of their own.
  constexpr std::array<std::string_view, 5> kModels = {"", "audio_config.", "llm_config.",
                                                       "text_config.", "vision_config."};
  if (std::ranges::find(kModels, path) == kModels.end()) return {};
  if (const auto found = std::ranges::lower_bound(kBookkeeping, key, {}, &Bookkeeping::key);
      found != kBookkeeping.end() && found->key == key)
    return found->what;
  const auto neutral = std::ranges::lower_bound(kNeutral, key, {}, &Neutral::key);
  if (neutral == kNeutral.end() || neutral->key != key) return {};
  const bool holds =
      is_list ? std::ranges::all_of(list, [&](JsonValue v) { return equals(v, neutral->value); })
              : equals(value, neutral->value);
  return holds ? neutral->reason : std::string_view();
}

}  // namespace weir::card
