// AdapterCard: what the files of a low-rank adapter (LoRA) say, read once as values: for each module
// of the model that it is for, the tensors that change it. Read are the files of PEFT, of mlx-lm, and
// GGUF files.
//
// An adapted linear layer computes y = W x + s B (A x), A [rank, in], B [out, rank]; DoRA gives each
// row of the sum W + s B A a length of its own. Some adapters bring whole weights or biases in place
// of the model's. Adapters that mean something else are refused by name.
//
// The files are not trusted: shapes, types and names are checked here as far as they can be without
// the model; model/adapter.h checks the rest. Reading maps the tensors and touches none of them.
//
// Threads: immutable once read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "card/checkpoint.h"

namespace weir::card {

// Eight times the largest rank in common use.
inline constexpr int32_t kAdapterRankMax = 512;

// What an adapter has of one module. Null: it has none of that.
struct AdapterPart {
  std::string module;  // As the model's published checkpoint names it.
  const StoredTensor* a = nullptr;
  const StoredTensor* b = nullptr;
  // The tensor is the transpose of [rank, in], or of [out, rank].
  bool a_turned = false, b_turned = false;
  // A's columns are the vocabulary: the module is an embedding, whose rows are looked up.
  bool table = false;
  int32_t rank = 0;
  double scale = 1;                           // Of B A.
  const StoredTensor* magnitude = nullptr;    // DoRA: the lengths of rows, [out].
  const StoredTensor* added_bias = nullptr;   // Times the scale, beside the module's own.
  const StoredTensor* whole = nullptr;        // In place of the module's weight.
  const StoredTensor* whole_bias = nullptr;   // In place of the module's bias.
};

class AdapterCard {
 public:
  enum class Layout : uint8_t { kPeft, kMlx, kGguf };

  // A folder of adapter_config.json and adapter_model.safetensors (PEFT) or adapters.safetensors
  // (mlx-lm), a GGUF file, or a folder with one such file. Errors name the file.
  static Result<AdapterCard> open(const std::string& path);
  // The same of what the files hold. `config`: the text of adapter_config.json; a GGUF file has none.
  static Result<AdapterCard> read(std::string_view config, FileView weights);

  Layout layout() const { return layout_; }
  const Checkpoint& tensors() const { return tensors_; }
  const std::vector<AdapterPart>& parts() const { return parts_; }
  // Of the largest; 0: it has whole weights alone.
  int32_t rank() const;
  // Rows of q and k, which B gives, lie so that neighbours turn together.
  bool paired_rows() const { return paired_rows_; }
  // What the files take, which is at least what their tensors take in memory at half the width.
  uint64_t bytes() const;

 private:
  explicit AdapterCard(std::string name) : tensors_(std::move(name)) {}
  friend class AdapterReader;

  Layout layout_ = Layout::kPeft;
  Checkpoint tensors_;
  std::vector<AdapterPart> parts_;
  bool paired_rows_ = false;
};

}  // namespace weir::card
