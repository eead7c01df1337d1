#include "api/prompt/prompt_tokens.h"

#include <algorithm>
#include <utility>

#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_limits.h"
#include "api/request/fim.h"
#include "api/request/json_fields.h"

namespace weir::api {

namespace {

// A prompt that is to be cut may be so many contexts long.
constexpr int32_t kTruncatedContexts = 16;

// Longer than any marker, with the white space after it.
constexpr size_t kChatEndBytes = 256;

// Prompts with a suffix. Texts too long are refused before they are tokenised to their ends.
Result<std::vector<sched::Prompt>> tokenise_infills(const ServingContext& serving,
                                                    int32_t tokens_max,
                                                    const GenerateRequest& request) {
  if (!serving.infill)
    return unsupported("suffix", "this model's vocabulary has no fill-in-the-middle tokens");
  std::vector<sched::Prompt> prompts;
  WEIR_TRY(check_text_length(serving.config, "suffix", tokens_max, request.suffix,
                             {.parse_special = false}));
  for (const InfillFile& file : request.infill_files)
    WEIR_TRY(check_text_length(serving.config, "input_extra", tokens_max, file.text,
                               {.parse_special = false}));
  for (const Prompt& prompt : request.prompts) {
    const std::string& prefix = std::get<std::string>(prompt);
    WEIR_TRY(
        check_text_length(serving.config, "prompt", tokens_max, prefix, {.parse_special = false}));
    prompts.push_back(infill_prompt(*serving.config.tokenizer, *serving.infill, prefix,
                                    request.suffix, request.infill_files));
  }
  return prompts;
}

// One prompt of a completion.
Result<std::vector<int32_t>> tokenise_prompt(const ApiConfig& config, int32_t tokens_max,
                                             const Prompt& prompt) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  text::EncodeOptions options{.add_special = true, .parse_special = true};
  if (const auto* text = std::get_if<std::string>(&prompt))
    return tokenise(config, "prompt", tokens_max, *text, options);
  std::vector<int32_t> tokens;
  for (const auto& part : std::get<MixedPrompt>(prompt).parts) {
    if (const auto* text = std::get_if<std::string>(&part)) {
      WEIR_ASSIGN(const std::vector<int32_t> more,
                  tokenise(config, "prompt", tokens_max, *text, options));
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else {
      const auto& ids = std::get<std::vector<int32_t>>(part);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
    }
    options.add_special = false;  // Only a text at the beginning has a BOS.
  }
  return tokens;
}

}  // namespace

Result<std::span<const SeenMedium>> see_media(const ServingContext& serving,
                                                  const PrepareInput& in,
                                                  const GenerateRequest& request,
                                                  bool only_counted) {
  if (request.media.empty()) return std::span<const SeenMedium>();
  WEIR_TRY(check_media(serving.config, request.media));
  if (!in.media)
    return unsupported(request.media.front().field, "images and audio can stand in conversations only");
  if (auto seen = in.media->seen()) return *std::move(seen);
  return tl::unexpected<Error>(in.media->want(
      serving.config, request.media,
      {.tokens_max = in.tokens_max, .caller = in.caller, .only_counted = only_counted}));
}

Result<PromptTokens> count_chat(const ServingContext& serving, const PrepareInput& in,
                                const std::string& field, const GenerateRequest& request) {
  WEIR_ASSIGN(const std::span<const SeenMedium> media,
              see_media(serving, in, request, /*only_counted=*/true));
  WEIR_ASSIGN(const std::string text, render_chat(serving, request, in.now));
  return tokenise_media(serving, field, in.tokens_max, text, media);
}

Result<std::vector<PromptTokens>> tokenise_prompts(const ServingContext& serving,
                                                   const PrepareInput& in,
                                                   const ProtocolTraits& protocol,
                                                   const GenerateRequest& request,
                                                   std::string& chat_end) {
  std::vector<PromptTokens> prompts;
  const std::string field(protocol.prompt_field);
  const int32_t uncut_max = uncut_tokens_max(request.truncation, in.tokens_max);
  if (protocol.is_chat) {
    WEIR_ASSIGN(const std::span<const SeenMedium> media, see_media(serving, in, request));
    WEIR_ASSIGN(const std::string text, render_chat(serving, request, in.now));
    chat_end = text.substr(text.size() - std::min(text.size(), kChatEndBytes));
    // Templates write the BOS token themselves.
    WEIR_ASSIGN(prompts.emplace_back(),
                tokenise_media(serving, field, uncut_max, text, media));
  }
  if (request.infill) {
    WEIR_ASSIGN(std::vector<sched::Prompt> infills,
                tokenise_infills(serving, in.tokens_max, request));
    for (sched::Prompt& ids : infills) prompts.push_back({.ids = std::move(ids)});
    return prompts;
  }
  for (const Prompt& prompt : request.prompts) {
    WEIR_ASSIGN(prompts.emplace_back().ids, tokenise_prompt(serving.config, uncut_max, prompt));
  }
  const int32_t room =
      in.tokens_max - answer_room(request.token_limit().value_or(1), in.tokens_max);
  for (PromptTokens& prompt : prompts) {
    if (prompt.ids.empty())
      return out_of_range(field, "expected at least one token, found an empty text");
    if (!prompt.media) {
      truncate(request.truncation, room, prompt.ids);
    } else if (request.truncation.tokens_max.value_or(-1) > 0 &&
               std::ssize(prompt.ids) > *request.truncation.tokens_max) {
      // Media cannot be cut. One that is to be cut to the context is refused as too long for it.
      return unsupported(field, "a prompt with images or audio is not cut, and this one has " +
                                    std::to_string(prompt.ids.size()) + " tokens");
    }
  }
  return prompts;
}

int32_t uncut_tokens_max(const Truncation& truncation, int32_t tokens_max) {
  if (!truncation.tokens_max) return tokens_max;
  return static_cast<int32_t>(
      std::min<int64_t>(int64_t{tokens_max} * kTruncatedContexts, INT32_MAX));
}

int32_t answer_room(int64_t asked, int32_t tokens_max) {
  return static_cast<int32_t>(std::clamp<int64_t>(asked, 1, std::max(tokens_max / 4, 1)));
}

void truncate(const Truncation& truncation, int64_t room, std::vector<int32_t>& prompt) {
  if (!truncation.tokens_max) return;
  const int64_t asked = *truncation.tokens_max;
  const auto kept = static_cast<size_t>(asked > 0 ? asked : std::max<int64_t>(room, 1));
  if (prompt.size() <= kept) return;
  if (truncation.keep_beginning)
    prompt.resize(kept);
  else
    prompt.erase(prompt.begin(), prompt.end() - static_cast<ptrdiff_t>(kept));
}

}  // namespace weir::api
