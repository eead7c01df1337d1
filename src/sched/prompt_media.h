// PromptMedia: the pictures and sounds of a prompt, as they cross from the API to the engine: which
// tokens stand for them, what an encoder reads of them, and what they are known by.
//
// A prompt's ids hold the placeholders, expanded (media::placeholder_text()): one token for each row
// of features, and marks between them that stay tokens. A sound that a decoder attends to by itself
// (cross attention, Whisper's) stands for no token of a prompt and is none of its media: what the
// request has of it is beside these.
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
#include "media/features/sound_features.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "model/batch.h"
#include "model/spec.h"
#include "sched/text_index.h"

namespace weir::sched {

// 128 bits that stand for a medium's features: media of equal hashes have the same ones, and share
// what is computed of them.
using MediaHash = std::array<uint64_t, 2>;

// What an encoder reads.
struct PictureInput {
  media::ImagePlan plan{};
  media::PixelValues pixels{};
};
using SoundInput = media::SoundFeatures;

// Of everything that an encoder reads: so of the decoded pixels or samples, and of what the settings
// of the processor or front end have made of them. A picture and a sound never have the same.
MediaHash hash_of(const PictureInput& input);
MediaHash hash_of(const SoundInput& input);

// Of a picture or of a sound: one of the two is not null.
struct MediumInput {
  std::shared_ptr<const PictureInput> picture{};
  std::shared_ptr<const SoundInput> sound{};

  explicit operator bool() const { return picture != nullptr || sound != nullptr; }
  void reset() { *this = {}; }
};

// Tokens [first, first + count) of the prompt begin with the medium's next `count` rows of features.
struct FeatureRun {
  int32_t first = 0;
  int32_t count = 0;
};

// A picture or a sound.
struct Medium {
  // Tokens [first, first + tokens) of the prompt, from the first to the last that begins with a row
  // of features, marks between them among them.
  int32_t first = 0;
  int32_t tokens = 0;
  // Ascending; together as many rows as the medium has (media::token_count(), media::SoundPlan::rows).
  // Neighbours have marks between them.
  std::vector<FeatureRun> runs{};
  // Rows and columns of features of a picture that is one view (media::token_grid()), by which
  // positions of three numbers are counted; where there are several views, or a family has no such
  // positions, they may be 0. Of a sound they are 0.
  int32_t grid_rows = 0;
  int32_t grid_columns = 0;
  MediaHash hash{};
  MediumInput input{};

  bool is_sound() const { return input.sound != nullptr; }
  int32_t end() const { return first + tokens; }
  int32_t features() const;  // Rows of them.
};

struct PromptMedia {
  std::vector<Medium> items{};  // Ascending; no two share a token.
};

// What an engine takes of media; written before it is open for requests.
struct MediaLimits {
  bool pictures = false;           // It has an encoder of them,
  bool sounds = false;             // or of these.
  int64_t row_bytes = 0;           // Of a row of features, with all its levels.
  int64_t features_bytes_max = 0;  // Of a prompt.
  model::BothWays both_ways = model::BothWays::kNone;
  int32_t span_tokens_max = 0;     // That see each other, for they are computed in one step.
  bool three_positions = false;    // A picture is one view, of which the grid is said.

  bool any() const { return pictures || sounds; }
};

// kInvalid where it is not as said above, for a prompt of so many tokens, or beyond the limits.
Result<void> check_media(const PromptMedia& media, int64_t prompt_tokens,
                         const MediaLimits& limits);

// What there is beside the tokens [begin, end) of a prompt, as kv::BlockTokens has it: which media
// reach into them, and where. Zero: none.
MediaHash hash_within(const PromptMedia& media, int32_t begin, int32_t end);
// The same media at the same places before `end`. Either may be null.
bool same_before(const PromptMedia* a, const PromptMedia* b, int32_t end);

// Of the spans of a prompt that see both ways, the first that reaches beyond `from`; or an empty one.
// The tokens of a sound see those before them alone, but where all of a prompt sees both ways.
model::Mask span_after(const PromptMedia& media, model::BothWays both_ways, int32_t prompt_tokens,
                       int32_t from);

// Adds a prompt to what its answer may be copied from: its tokens, but those that stand for rows of
// features as no token. `media` may be null.
void append_prompt(std::span<const int32_t> tokens, const PromptMedia* media, TextIndex& text);

// Where positions are three numbers: a picture's tokens have those of their row and column, and what
// follows goes on after the larger of its sides. A sound's are counted as text. So a text has
// positions of one number, by which later tokens lie so much further on: shift_of() after all media.
int32_t shift_of(const PromptMedia& media);
// Of the tokens from `first` on, as many as `positions` holds.
void rope_positions(const PromptMedia& media, int32_t first,
                    std::span<model::RopePosition> positions);

}  // namespace weir::sched
