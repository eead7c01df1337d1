// A model in a GGUF file, or in parts of one: what its metadata and tensors say, in the words of
// the files that published checkpoints have beside their weights.
//
// Threads: plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "card/checkpoint.h"
#include "card/embedding_settings.h"
#include "card/generation_settings.h"
#include "card/gguf_config.h"
#include "card/model_files.h"
#include "card/tokenizer_settings.h"

namespace weir::card {

struct GgufModel {
  std::string config;  // The text of config.json.
  Checkpoint tensors;  // By their published names.
  TokenizerSettings tokenizer{};
  GenerationSettings generation{};
  EmbeddingSettings embedding{};
};

// An error names the file and the key or tensor; kUnsupported for what is well-formed and not run:
// another architecture, a type of blocks, a file of adapters or of a projector.
// REQUIRES: `files` are a GGUF file's.
Result<GgufModel> open_gguf(const ModelFiles& files);
// The same of its parts, in their order. REQUIRES: there is one.
Result<GgufModel> read_gguf(std::vector<GgufPart> parts);

// The keys of tokenizer.ggml.* as JSON, for Tokenizer::load_file() of src/text.
Result<std::string> gguf_tokenizer(const ModelFiles& files);
// The same of the first part.
Result<std::string> read_gguf_tokenizer(const GgufPart& part);

}  // namespace weir::card
