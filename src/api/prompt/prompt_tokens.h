// A request's prompts as tokens: the chat template's text, texts, ids, texts with a hole in them;
// cut where the request asks for it.
//
// Threads: any; slow work for a pool thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/prompt/media_tokens.h"
#include "api/prompt/prepare.h"
#include "api/request/generate_request.h"
#include "base/result.h"

namespace weir::api {

// The media that the request's messages show; none: it shows none. kCancelled: they must be read
// first. `only_counted`: their tokens are all that is wanted of them.
Result<std::span<const SeenMedium>> see_media(const ServingContext& serving,
                                                  const PrepareInput& in,
                                                  const GenerateRequest& request,
                                                  bool only_counted = false);

// The tokens of a conversation with its media, for endpoints that count them or show them.
Result<PromptTokens> count_chat(const ServingContext& serving, const PrepareInput& in,
                                const std::string& field, const GenerateRequest& request);

// A prompt for each of the request's; errors name the field. `chat_end`: the end of a chat's
// prompt; enough of it to see what it has opened.
Result<std::vector<PromptTokens>> tokenise_prompts(const ServingContext& serving,
                                                   const PrepareInput& in,
                                                   const ProtocolTraits& protocol,
                                                   const GenerateRequest& request,
                                                   std::string& chat_end);

// How long a prompt may be before it is cut: reading all of a text whose end is wanted is work.
int32_t uncut_tokens_max(const Truncation& truncation, int32_t tokens_max);
// What a prompt that is cut to the context leaves to an answer of `asked` tokens: at most a quarter
// of the context, as answers may be asked to be longer than all of it.
int32_t answer_room(int64_t asked, int32_t tokens_max);
// `room`: what -1 leaves.
void truncate(const Truncation& truncation, int64_t room, std::vector<int32_t>& prompt);

}  // namespace weir::api
