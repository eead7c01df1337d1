// What a request costs in memory: its body while it is prepared, its prompt and log while it is
// open, its answer while it is collected. The API leases these, and the memory plan adds them up.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/memory/prompt_list.h"
#include "api/output/call_gate.h"
#include "sched/request.h"

namespace weir::api {

// What each byte of a body takes: itself, simdjson's padded copy and its strings, the fields of the
// request, the template's variables (a JSON document again) and the prompt. Measured with bodies of
// 30 MiB: a chat of one long text peaks at 7 to 8.6 bytes, a completion at 5.
inline constexpr size_t kPreparingPerByte = 9;
// What each JSON value takes beside: simdjson's index and tape (24), and an id or an element of
// the template's variables (16). Measured: 18 to 40.
inline constexpr size_t kPreparingPerValue = 40;

// An upper bound that needs no parsing: what opens or parts values is counted in strings, too.
inline size_t preparing_bytes(std::string_view body) {
  const auto values = std::count_if(body.begin(), body.end(), [](char c) {
    return (c == ',') | (c == ':') | (c == '[') | (c == '{');
  });
  return kPreparingPerByte * body.size() + kPreparingPerValue * static_cast<size_t>(values);
}

// A form is its body, of which the parts are views, and a text at most that is copied of it; what is
// made of its files is counted where that is made.
inline size_t form_bytes(std::string_view body) { return body.size() + (size_t{64} << 10); }

// One choice, from its submission to its end.
inline size_t request_bytes(size_t prompt_bytes, int32_t max_tokens, int32_t top_logprobs) {
  return sizeof(sched::Request) + prompt_bytes +
         static_cast<size_t>(max_tokens) * sizeof(TokenLogprob) *
             (1 + static_cast<size_t>(top_logprobs));
}

// What DRY keeps of a sequence: its tokens, and a number for each.
inline size_t history_bytes(size_t prompt_tokens, int32_t max_tokens) {
  return 2 * sizeof(int32_t) * (prompt_tokens + static_cast<size_t>(max_tokens) + 1);
}

// A place in a grammar, and what its stack grows by: it is compacted when a thousand calls more are
// open than after the last time, each a node and an edge or two of 16 bytes.
inline constexpr size_t kMatcherGrowth = size_t{3} * 1024 * 16;
inline size_t matcher_bytes(const grammar::Matcher& matcher) {
  return matcher.memory_bytes() + kMatcherGrowth;
}

// A vocabulary as a trie (TokenTrie), of each token. Measured on the heap: 164 (the tiny model's 8
// thousand), 180 (SmolLM2's 49 thousand), 210 to 236 (DeepSeek V3, gpt-oss, Llama 3, Qwen 3; 128 to
// 200 thousand), 244 (Gemma 3's 262 thousand). Two are made when they are needed first, without and
// with the markers of calls and reasoning, and stay.
inline constexpr size_t kTrieBytesPerToken = 256;
inline constexpr size_t kTries = 2;
inline size_t trie_bytes(int32_t vocab_size) {
  return kTries * kTrieBytesPerToken * static_cast<size_t>(vocab_size);
}

// The log-probabilities of a prompt's tokens, and their ranks.
inline size_t prompt_log_bytes(size_t prompt_tokens, int32_t top_logprobs) {
  return sizeof(TokenLog) +
         prompt_tokens *
             (sizeof(TokenLogprob) * (1 + static_cast<size_t>(top_logprobs)) + sizeof(int32_t));
}

// Requests of one batch answer that the engine has at once take at most so much together, or one of
// them alone: 256 of sentences, and a dozen steps' worth of long texts; where memory is short, a
// 16th of what all requests may take.
inline constexpr size_t kLentBytes = 2 << 20, kLentShare = 16;
inline size_t lent_bytes(const PromptList& prompts, size_t request_bytes, size_t budget_bytes) {
  const size_t all = prompts.size() * request_bytes + prompts.tokens() * sizeof(int32_t);
  return std::max(request_bytes + prompts.longest() * sizeof(int32_t),
                  std::min({all, kLentBytes, budget_bytes / kLentShare}));
}

// A batch answer's text beyond this is made and sent in pieces, each of them a few items long.
inline constexpr size_t kBatchPieceBytes = 256 << 10;
// A growing text has up to twice its length; one of a single piece is sent from a copy.
inline size_t batch_text_bytes(size_t text, size_t longest_item) {
  return 2 * std::min(text, kBatchPieceBytes + longest_item);
}

// A request for an embedding beside its prompt: with its vector.
inline size_t pooled_request_bytes(size_t width) {
  return sizeof(sched::Request) + width * sizeof(float);
}

// The JSON of a vector: four digits for three bytes, or a number such as -0.012345679 and its
// comma; and what stands around it.
inline size_t embedding_json_bytes(size_t dimensions, bool base64) {
  return 64 + (base64 ? (dimensions * sizeof(float) + 2) / 3 * 4 : dimensions * 16);
}
// The vectors of an answer, and its text as it is made.
inline size_t vectors_bytes(size_t inputs, size_t dimensions, bool base64) {
  const size_t item = embedding_json_bytes(dimensions, base64);
  return inputs * dimensions * sizeof(float) + batch_text_bytes(inputs * item, item);
}
// A whole request for embeddings, at most: also the prompts, and what the engine has of them.
inline size_t embeddings_bytes(size_t inputs, size_t tokens, size_t width) {
  return vectors_bytes(inputs, width, /*base64=*/false) + PromptList::bytes_of(inputs, tokens) +
         pooled_request_bytes(width) + tokens * sizeof(int32_t) + kLentBytes;
}

// What each token takes of an answer that is sent whole: its text, and the JSON of each
// log-probability (in chats, the longer shape, 70 to 80 bytes for a word).
inline constexpr size_t kTextPerToken = 8;
inline constexpr size_t kLogprobJson = 80;
// What a parser holds of a call until it is whole, and its arguments once more.
inline size_t held_call_bytes(int32_t max_tokens) {
  return 2 *
         std::min(output::CallGate::kHeldBytesMax, static_cast<size_t>(max_tokens) * kTextPerToken);
}

// A growing text has up to twice its length; the body is built beside it, and sent from a copy when
// it is gone.
inline constexpr size_t kAnswerCopies = 3;

// The answer of one choice, while it is collected to be sent whole.
inline size_t answer_bytes(int32_t max_tokens, bool logprobs, int32_t top_logprobs) {
  const size_t json = logprobs ? kLogprobJson * (1 + static_cast<size_t>(top_logprobs)) : 0;
  return static_cast<size_t>(max_tokens) * kAnswerCopies * (kTextPerToken + json);
}

// The settings that llama-server's answers repeat for each choice: the numbers (500 to 600 bytes),
// stop texts (a control character becomes six bytes), and of each biased token an object such as
// {"token":151643,"bias":-99.99999237060547}.
inline constexpr size_t kSettingsJson = 1024, kBiasJson = 64;
inline size_t settings_bytes(const std::vector<std::string>& stop, size_t biases) {
  size_t bytes = kSettingsJson + biases * kBiasJson;
  for (const std::string& text : stop) bytes += 6 * text.size() + sizeof R"("",)";
  return bytes;
}

// The ids of tokens in an answer that is sent whole: as they wait, and as JSON.
inline constexpr size_t kTokenIdJson = 8;
inline size_t token_ids_bytes(size_t tokens) {
  return tokens * (sizeof(int32_t) + kAnswerCopies * kTokenIdJson);
}

// The last events of one that is streamed and collected repeat the text four times, in a string
// that may have grown to twice that, until the client has taken them.
inline size_t last_events_bytes(int32_t max_tokens) {
  return static_cast<size_t>(max_tokens) * 8 * kTextPerToken;
}

}  // namespace weir::api
