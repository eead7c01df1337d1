// EmbeddingRequest: the body of /v1/embeddings as native types.
//
// Threads: pure functions; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/request.h"
#include "api/reference/endpoint_table.h"
#include "api/request/ignored.h"
#include "api/request/request_field.h"
#include "base/result.h"

namespace weir::api::vectors {

// Inputs of one request: OpenAI's limit.
inline constexpr size_t kEmbeddingInputsMax = 2048;

// Which norm of a vector becomes 1, as llama.cpp numbers them in embd_normalize.
inline constexpr int32_t kNormNone = -1;  // The vector as it is.
inline constexpr int32_t kNormMax = 0;    // The largest entry becomes 32760.
inline constexpr int32_t kNormEuclid = 2;
inline constexpr int32_t kNormHighest = 64;  // Norms p beyond that are the largest entry.

struct EmbeddingRequest {
  std::string model;
  std::string_view field = "input";     // Where the inputs stand, for errors.
  std::vector<Prompt> inputs;           // At least one, or none where there is
  std::optional<openai::Request> chat;  // a conversation.
  Truncation truncation;
  bool base64 = false;  // Else a list of numbers.
  std::optional<int64_t> dimensions;
  std::optional<std::string> prompt_name;
  std::optional<int32_t> norm;  // Absent: the model's.
  Ignored ignored;
};

// Errors name the field (`input[3][0]`). `width`: most dimensions there are.
Result<EmbeddingRequest> parse_embedding(std::string_view body, int32_t width,
                                         const RequestLimits& limits);

// Its fields, for the reference.
std::vector<FieldDoc> embedding_fields();

}  // namespace weir::api::vectors
