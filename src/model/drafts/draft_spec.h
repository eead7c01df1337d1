// DraftSpec: a drafter as data, made of its config.json and of the model that it drafts for. A
// drafter is a small model of its own, or a head: layers that read what the model's own layers have
// computed (docs/drafters.md).
//
// Threads: free functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "card/model_card.h"
#include "model/spec.h"

namespace weir::model {

struct DraftSpec {
  enum Kind : uint8_t {
    kModel,   // A model with the same vocabulary, token after token.
    kEagle3,  // EAGLE-3 (arXiv 2503.01840): a layer over the streams of three layers.
    kMtp,     // A module that was trained with the model, over its last hidden state.
    kDflash,  // DFlash (arXiv 2602.06036): a block of tokens at once.
  } kind = kModel;
  ModelSpec net;                 // Its layers, what their rows begin with, and its head.
  std::vector<FeatureTap> taps;  // What of the model makes a feature, one after another.
  // Of kEagle3 and kMtp: which of its own rows is the feature of the next draft.
  FeatureTap chained{};
  bool own_embedding = false;  // Else the model's.
  bool own_head = false;
  // Token of each row of its own head; empty: row i is token i.
  bool head_has_table = false;  // "d2t", "t2d".
  int block = 0;                // Of kDflash: rows of a block, and what stands for unknown tokens.
  int mask_token = 0;
  std::string within;  // Of its checkpoint's tensors those are its own whose names begin so.

  bool reads_features() const { return !taps.empty(); }
  // A row has the feature of the position before it, which the first position lacks.
  bool shifted() const { return kind == kEagle3 || kind == kMtp; }
};

std::string_view kind_name(DraftSpec::Kind kind);  // "eagle3".
// The kind that a drafter's config.json is of, by its architecture.
DraftSpec::Kind draft_kind(JsonValue config);
// `files`: the drafter's; null: the module that `card`, the model's, has. kUnsupported: there is
// none. An error names the file and what was expected of it.
Result<DraftSpec> draft_spec(const ModelSpec& target, const card::ModelCard& card,
                             const card::ModelCard* files);
// The model's checkpoint has a module that drafts.
bool has_draft_module(const ModelSpec& target, const card::ModelCard& card);

// Each kind's own.
Result<DraftSpec> eagle3_spec(const ModelSpec& target, const card::ModelCard& files);
Result<DraftSpec> dflash_spec(const ModelSpec& target, const card::ModelCard& files);
Result<DraftSpec> mtp_spec(const ModelSpec& target, const card::ModelCard& card,
                           const card::ModelCard* files);

// Refuses what a drafter cannot sit on: several residual streams, another width or vocabulary.
Result<void> check_shared(const DraftSpec& draft, const ModelSpec& target);
// The residual stream as it enters the model's layer, or of their count as it leaves the last.
Result<FeatureTap> stream_into(const ModelSpec& target, int layer, std::string_view key);

}  // namespace weir::model
