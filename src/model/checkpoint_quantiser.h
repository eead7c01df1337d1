// CheckpointQuantiser: writes a checkpoint anew with its matrices quantised by MLX's rule, in
// safetensors that MLX's readers and this server read. The source may be in any format that can be
// read; what is not a matrix is copied.
//
// A file gets its name once it is whole: a run that was broken off goes on with the first file
// that is missing, where the source and the numbers are the same.
//
// Threads: one, with the team's help.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/name_pattern.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "card/model_card.h"
#include "model/bound_module.h"

namespace weir::model {

// Bits and group of a quantised matrix.
struct QuantisedAs {
  int32_t bits = 4;
  int32_t group = 64;

  bool operator==(const QuantisedAs&) const = default;
};

// Which module becomes what.
class QuantiseRules {
 public:
  // Each rule is 'REGEX=BITS:GROUP' or 'REGEX=skip'; the first whose expression is found in a
  // module's path counts. Other modules get `usual`; routers of experts 8 bits in groups of 64.
  static Result<QuantiseRules> make(QuantisedAs usual, const std::vector<std::string>& rules);
  // The numbers of another checkpoint's `quantization`, by path.
  static Result<QuantiseRules> like(const std::string& folder);

  // Nothing: the module stays in floats.
  std::optional<QuantisedAs> of(const BoundModule& module) const;
  const QuantisedAs& usual() const { return usual_; }

 private:
  struct Rule {
    NamePattern pattern;
    std::optional<QuantisedAs> numbers;
  };

  QuantisedAs usual_;
  std::vector<Rule> rules_;
  std::shared_ptr<const card::WeightFormat> like_;  // Or null.
  std::vector<std::string> left_;                   // With like_: modules that are `false` there.
};

// `modules`: those of the model that the card describes (Decoder::modules). The folder is made;
// what lies in it besides is left. `progress(done, total)` in bytes, from the calling thread.
Result<void> quantise_checkpoint(const card::ModelCard& card, std::vector<BoundModule> modules,
                                 const QuantiseRules& rules, const std::string& folder,
                                 ThreadTeam& team,
                                 const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace weir::model
