#include "api/prompt/prompt_limits.h"

#include <algorithm>

#include "api/exchange/api_error.h"

namespace weir::api {

Error context_error(const std::string& field, int64_t tokens_max, int64_t tokens,
                    bool counted_all) {
  return Error{ErrorCode::kContextLength,
               "This model's maximum context length is " + std::to_string(tokens_max) +
                   " tokens. However, your " + field + " resulted in " +
                   (counted_all ? "" : "at least ") + std::to_string(tokens) +
                   " tokens, which exceeds the context window (context_length_exceeded). Please "
                   "reduce the length of the " +
                   field + ". The " + prompt_too_long(tokens, std::min(tokens_max, tokens - 1)),
               field, "context_length_exceeded"};
}

// A beginning shows whether the text fits. One that does (long runs of spaces) proves nothing.
Result<void> check_text_length(const ApiConfig& config, const std::string& field,
                               int32_t tokens_max, std::string_view text,
                               const text::EncodeOptions& options) {
  // Tokens of text have 3 to 5 bytes on average; 16 leaves no doubt.
  const size_t certain_bytes = static_cast<size_t>(tokens_max) * 16;
  if (text.size() <= 2 * certain_bytes) return {};
  const auto tokens =
      static_cast<int64_t>(config.tokenizer->encode(text.substr(0, certain_bytes), options).size());
  if (tokens <= tokens_max) return {};
  return tl::unexpected<Error>(context_error(field, tokens_max, tokens, /*counted_all=*/false));
}

Result<std::vector<int32_t>> tokenise(const ApiConfig& config, const std::string& field,
                                      int32_t tokens_max, std::string_view text,
                                      const text::EncodeOptions& options) {
  WEIR_TRY(check_text_length(config, field, tokens_max, text, options));
  return config.tokenizer->encode(text, options);
}

Result<void> check_prompt_length(const ApiConfig& config, const std::string& field, int64_t length,
                                 int32_t output_min, int32_t tokens_max) {
  if (length + output_min > tokens_max)
    return tl::unexpected<Error>(context_error(field, tokens_max, length));
  if (config.prompt_max > 0 && length > config.prompt_max)
    return fail(ErrorCode::kContextLength,
                "Input tokens exceed the configured limit of " + std::to_string(config.prompt_max) +
                    " tokens: this prompt has " + std::to_string(length) +
                    " (context_length_exceeded). The " + prompt_too_long(length, config.prompt_max),
                field);
  return {};
}

}  // namespace weir::api
