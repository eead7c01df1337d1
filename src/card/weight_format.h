// WeightFormat: how a checkpoint's matrices are stored, as config.json says it: floats, or numbers
// of a few bits in groups that share a scale; which module has which is said by its path.
//
// Read from `quantization` (MLX), `quantization_config` (GPTQ, AWQ, compressed-tensors, modelopt,
// FP8, OpenAI's MXFP4, BitNet), at the top or in what has the keys of a model of text, and
// hf_quant_config.json (modelopt). Which modules are quantised the file's tensors say; lists of
// exceptions in the config are not needed for it, and not read.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/name_pattern.h"
#include "base/result.h"
#include "card/config_reader.h"

namespace weir::card {

// What a quantised module's tensors are made of.
struct MatrixFormat {
  // Who lays the tensors out, and so which there are.
  enum class Layout : uint8_t {
    kMlx,         // Codes with scales and biases, row by row.
    kMlxFloats,   // Small floats with a byte of scale: mxfp4, mxfp8, nvfp4.
    kGptq,        // qweight, qzeros, scales, g_idx.
    kAwq,         // qweight, qzeros, scales.
    kCompressed,  // weight_packed or weight, weight_scale and more.
    kModelopt,    // weight, weight_scale, weight_scale_2.
    kFp8,         // weight, weight_scale_inv or weight_scale.
    kOpenAi,      // Experts as *_blocks and *_scales.
    kBitNet,      // weight and weight_scale.
  };
  Layout layout = Layout::kMlx;
  int32_t bits = 4;
  int32_t group = 64;  // Neighbouring inputs of a row that share a scale; 0: all.
  // Of compressed-tensors.
  bool floats = false;    // Numbers are small floats, not integers.
  bool symmetric = true;  // Groups have no zero points.
  // Of FP8: rows and columns that share a scale; 0: the scales' shape says it.
  int32_t block_rows = 0;
  int32_t block_columns = 0;
  int32_t zero_less = 0;  // Of GPTQ: what is taken off zero points before they are stored.
  bool divides = false;   // Of BitNet: numbers are divided by the scale.
  // Of GPTQ and compressed-tensors: where the groups of columns are stored, they are not those of
  // neighbours. For files whose numbers are not here; else those say it.
  bool reorders = false;

  // Of kMlx: 32-bit words of codes, and scales, in a row of k inputs. REQUIRES: k is a multiple of
  // `group`.
  int64_t row_words(int32_t k) const { return int64_t{k} * bits / 32; }
  int64_t row_scales(int32_t k) const { return k / group; }
  // "gptq", as a config has it, for messages.
  const char* layout_name() const;
};

class WeightFormat {
 public:
  // kUnsupported for formats that are not read.
  static Result<WeightFormat> from_config(JsonValue config);
  // Of hf_quant_config.json, which modelopt writes beside a config.json that says nothing.
  static Result<WeightFormat> from_modelopt(JsonValue config);

  bool quantised() const { return quantised_; }
  // Of modules of which the config says nothing else.
  const MatrixFormat& usual() const { return default_; }
  // The format of a module, by its path in the checkpoint, whose tensors say that it is quantised.
  // An error where the config has none for it.
  Result<MatrixFormat> of(std::string_view module) const;

 private:
  // Modules that have a format of their own.
  struct Rule {
    std::string text;  // As the config has it.
    NamePattern pattern;
    MatrixFormat format;
  };
  // One of compressed-tensors' groups.
  struct Group {
    MatrixFormat format;
    std::vector<std::string> names{};
    std::vector<NamePattern> patterns{};
    bool linear = false;     // All linear layers.
    bool embedding = false;  // All embeddings.
  };

  Result<void> read_mlx(JsonObject object, std::string_view where);
  // By quant_method (weight_methods.cpp).
  Result<void> read_method(JsonValue object, const std::string& method);
  Result<void> read_gptq(const ConfigReader& c);
  Result<void> read_dynamic(JsonValue rules);
  Result<void> read_awq(const ConfigReader& c);
  Result<void> read_compressed(const ConfigReader& c);
  Result<void> read_group(const ConfigReader& group, const std::string& key);
  Result<void> read_modelopt(const ConfigReader& c);
  Result<void> read_fp8(const ConfigReader& c);
  Result<void> read_bitnet(const ConfigReader& c);
  const Group* group_of(std::string_view module) const;

  bool quantised_ = false;
  MatrixFormat default_;
  std::map<std::string, MatrixFormat, std::less<>> overrides_;  // MLX's, by path.
  std::vector<Rule> rules_;                                     // GPTQ's; the first counts.
  std::vector<Group> groups_;
};

}  // namespace weir::card
