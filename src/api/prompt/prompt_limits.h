// How long a prompt may be. `field` names it in errors.
//
// Threads: any; slow work for a pool thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/api_config.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace weir::api {

// The error whose wording clients recognise. `counted_all`: false if counting stopped at `tokens`.
Error context_error(const std::string& field, int64_t tokens_max, int64_t tokens,
                    bool counted_all = true);
// Refuses a text of many times `tokens_max` without tokenising it to its end.
Result<void> check_text_length(const ApiConfig& config, const std::string& field,
                               int32_t tokens_max, std::string_view text,
                               const text::EncodeOptions& options);
// Makes tokens of a text that check_text_length() has passed.
Result<std::vector<int32_t>> tokenise(const ApiConfig& config, const std::string& field,
                                      int32_t tokens_max, std::string_view text,
                                      const text::EncodeOptions& options);
// `output_min`: tokens for which the context must leave room after the prompt.
Result<void> check_prompt_length(const ApiConfig& config, const std::string& field, int64_t length,
                                 int32_t output_min, int32_t tokens_max);

}  // namespace weir::api
