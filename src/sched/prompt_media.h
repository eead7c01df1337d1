// PromptMedia: the pictures of a prompt, as they cross from the API to the engine: which tokens stand
// for them, what a tower reads of them, and what they are known by.
//
// A prompt's ids hold the placeholders, expanded (media::placeholder_text()): one token for each row
// of features, and marks between them that stay tokens.
//
// Threads: values, made on a pool thread and never changed once the request is submitted. Several
// requests may share them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "model/batch.h"
#include "model/spec.h"
#include "sched/text_index.h"

namespace weir::sched {

// 128 bits that stand for a picture's features: pictures of equal hashes have the same ones, and
// share what is computed of them.
using MediaHash = std::array<uint64_t, 2>;

// What a tower reads.
struct PictureInput {
  media::ImagePlan plan{};
  media::PixelValues pixels{};
};

// Of everything that a tower reads: so of the decoded pixels and of what the processor's settings
// have made of them.
MediaHash hash_of(const PictureInput& input);

// Of the same picture as a moment of a video that goes on, so much later than the first one.
MediaHash hash_at(const MediaHash& hash, int32_t step);

// Tokens [first, first + count) of the prompt begin with the picture's next `count` rows of features.
struct FeatureRun {
  int32_t first = 0;
  int32_t count = 0;
};

struct Picture {
  // Tokens [first, first + tokens) of the prompt, from the first to the last that begins with a row
  // of features, marks between them among them.
  int32_t first = 0;
  int32_t tokens = 0;
  // Ascending; together as many rows as the picture has (media::token_count()). Neighbours have
  // marks between them.
  std::vector<FeatureRun> runs{};
  // Rows and columns of features of a picture that is one view (media::token_grid()), by which
  // positions of three numbers are counted; where there are several views, or a family has no such
  // positions, they may be 0.
  int32_t grid_rows = 0;
  int32_t grid_columns = 0;
  // Moments of a video whose tokens follow each other without marks: all but the first `go_on`, which
  // says that their positions begin where those of the picture before do, `step` further in time.
  bool goes_on = false;
  int32_t step = 0;
  MediaHash hash{};
  std::shared_ptr<const PictureInput> input{};  // Not null.

  int32_t end() const { return first + tokens; }
  int32_t features() const;
};

struct PromptMedia {
  std::vector<Picture> pictures{};  // Ascending; no two share a token.
};

// What an engine takes of pictures; written before it is open for requests.
struct MediaLimits {
  bool taken = false;              // It has an encoder.
  int64_t row_bytes = 0;           // Of a row of features, with all its levels.
  int64_t features_bytes_max = 0;  // Of a prompt.
  model::BothWays both_ways = model::BothWays::kNone;
  int32_t span_tokens_max = 0;     // That see each other, for they are computed in one step.
  bool three_positions = false;    // A picture is one view, of which the grid is said.
};

// kInvalid where it is not as said above, for a prompt of so many tokens, or beyond the limits.
Result<void> check_media(const PromptMedia& media, int64_t prompt_tokens,
                         const MediaLimits& limits);

// What is seen beside the tokens [begin, end) of a prompt, as kv::BlockTokens has it: which pictures
// reach into them, and where. Zero: none.
MediaHash hash_within(const PromptMedia& media, int32_t begin, int32_t end);
// The same pictures at the same places before `end`. Either may be null.
bool same_before(const PromptMedia* a, const PromptMedia* b, int32_t end);

// Of the spans of a prompt that see both ways, the first that reaches beyond `from`; or an empty one.
model::Mask span_after(const PromptMedia& media, model::BothWays both_ways, int32_t prompt_tokens,
                       int32_t from);

// Adds a prompt to what its answer may be copied from: its tokens, but those that stand for rows of
// pictures as no token. `media` may be null.
void append_prompt(std::span<const int32_t> tokens, const PromptMedia* media, TextIndex& text);

// Where positions are three numbers: a picture's tokens have those of their row and column, and what
// follows goes on after the larger of its sides; after a video after the larger of its time and
// sides. So a text has positions of one number, by which
// later tokens lie so much further on: shift_of() after all pictures.
int32_t shift_of(const PromptMedia& media);
// Of the tokens from `first` on, as many as `positions` holds.
void rope_positions(const PromptMedia& media, int32_t first,
                    std::span<model::RopePosition> positions);

}  // namespace weir::sched
