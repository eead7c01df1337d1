// GgufConfig: from a GGUF file's metadata to the text of the config.json that its checkpoint was
// published with, as far as it says what is computed.
//
// The first thing that is wrong is kept and reported by finish(), so that what writes keys is a
// straight line.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"
#include "card/gguf.h"
#include "card/gguf_architecture.h"

namespace weir::card {

// A file of a model, which may have several.
struct GgufPart {
  FileView file;
  GgufHeader header;
};

class GgufConfig {
 public:
  // The first of `parts` has the metadata. REQUIRES: there is one.
  GgufConfig(std::span<const GgufPart> parts, const GgufArchitecture& architecture);

  // The text, or the error.
  Result<std::string> finish();

  // Of the key ARCHITECTURE.`key`; nullopt where there is none. A list whose numbers are all the
  // same counts as one.
  std::optional<int64_t> integer(std::string_view key);
  std::optional<float> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::string_view> text(std::string_view key);
  // Empty where there is none.
  std::vector<int64_t> integers(std::string_view key);
  int64_t require_integer(std::string_view key);

  // Writes `name` with the value of `key`, if there is one.
  void copy_integer(std::string_view key, std::string_view name);
  void copy_number(std::string_view key, std::string_view name);
  void require_copied(std::string_view key, std::string_view name);

  JsonWriter& out() { return writer_; }
  const GgufTensor* tensor(std::string_view name) const;  // Null: none.
  // The numbers of a vector stored as F32; ones where they are not here.
  std::vector<float> floats(const GgufTensor& tensor);
  int64_t layers() const { return layers_; }
  int64_t head_dim() const { return head_dim_; }

  // How many experts there are, under that name, and how many each token meets.
  void expert_keys(std::string_view count_name);
  // rope_parameters, once; finish() writes them where nothing has. `partial`: of an architecture
  // whose heads turn only some of their dimensions, the share.
  void rope(bool partial = true);
  // The caller writes them.
  void own_rope() { rope_written_ = true; }
  // Within them: how frequencies are scaled by a formula.
  void rope_scaling();

  void reject(std::string message);

 private:
  void common_keys();
  void rope_factors(const GgufTensor& slow, const GgufTensor& fast);
  const GgufValue* find(std::string_view key) const;
  void wrong(std::string_view key, std::string_view expected, const GgufValue* found);

  const std::span<const GgufPart> parts_;
  const GgufArchitecture& architecture_;
  const std::string prefix_;
  std::string text_;
  JsonWriter writer_;
  int64_t layers_ = 0;
  int64_t head_dim_ = 0;
  bool rope_written_ = false;
  std::optional<Error> error_;
};

}  // namespace weir::card
