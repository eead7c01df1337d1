#include "api/openai/vllm_fields.h"

#include "api/request/json_fields.h"
#include "api/request/request_values.h"
#include "sched/request.h"

namespace weir::api::openai {

Result<void> parse_bad_words(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray array, as_array(in.path, in.value));
  if (array.size() > kBadWordsMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kBadWordsMax) +
                                     " texts, found " + std::to_string(array.size()));
  size_t index = 0;
  for (const JsonValue value : array) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const std::string_view text, as_string(path, value));
    if (text.size() > kBadWordBytesMax)
      return out_of_range(path, "expected at most " + std::to_string(kBadWordBytesMax) +
                                    " bytes, found " + std::to_string(text.size()));
    // An empty one, or of spaces only, would forbid nothing that anybody means.
    if (text.find_first_not_of(' ') != std::string_view::npos) out.bad_words.emplace_back(text);
  }
  return {};
}

Result<void> parse_allowed_token_ids(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray array, as_array(in.path, in.value));
  if (array.size() == 0) return out_of_range(in.path, "expected at least one token id, found none");
  const auto vocabulary = static_cast<size_t>(in.limits.vocab_size);
  if (array.size() > vocabulary)
    return out_of_range(in.path, "expected at most " + std::to_string(vocabulary) +
                                     " token ids, found " + std::to_string(array.size()));
  return parse_token_ids(in.path, array, in.limits, out.allowed_token_ids.emplace());
}

Result<void> parse_truncation(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  if (count == 0) return out_of_range(in.path, "expected -1 or at least 1, found 0");
  WEIR_TRY(check_range(in.path, static_cast<double>(count), -1, INT32_MAX));
  out.truncation.tokens_max = count;
  return {};
}

Result<void> parse_truncation_side(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view side, as_string(in.path, in.value));
  if (side != "left" && side != "right")
    return out_of_range(in.path,
                        "expected left or right, found \"" + std::string(shown(side)) + "\"");
  out.truncation.keep_beginning = side == "right";
  return {};
}

// vLLM's -1, the whole vocabulary for each token, is more than an answer should hold.
Result<void> parse_prompt_logprobs(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), 0, sched::kTopLogprobsMax));
  out.prompt_logprobs = count;
  return {};
}

Result<void> check_vllm_fields(const GenerateRequest& request) {
  if (request.prompt_logprobs && request.stream)
    return out_of_range("prompt_logprobs", "expected stream to be false beside it");
  return {};
}

}  // namespace weir::api::openai
