// FamilyFixture: a tiny checkpoint with the reference's answers, and the comparison of a loaded
// model with them. Of a fixture with images or sound it is the answers to text alone, or those to its
// images or its sound. Used by weir-check and by the tests.
//
// Threads: one, with the team's help.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "model/model.h"
#include "model/session.h"

namespace weir::check {

// To what the answers are.
enum class Answers : uint8_t { kText, kImages, kSound };

struct FamilyFixture {
  std::string name;
  std::vector<int32_t> input_ids;
  std::vector<int32_t> gen_ids;
  std::vector<float> logits;      // [input_ids, vocab]: one pass without a cache.
  std::vector<float> gen_logits;  // [gen_ids, vocab]: row i chose gen_ids[i].
  float bound = 1e-3f;            // Largest difference that rounding explains.
  // It asks of text alone what others ask of images or sound too.
  bool beside_media = false;
  // By token of the prompt: the row of features that it begins with in place of its embedding, with
  // its levels, or null. Empty: none of it has one.
  std::vector<model::VectorRows> rows{};
  // By token of the prompt what its angles are those of, and how much more than their positions
  // those of later tokens are. Empty: none of it.
  std::vector<model::RopePosition> rope_positions{};
  int32_t rope_shift = 0;
  // The encoder's rows that all tokens attend to, [rows, hidden_size], of a model with cross attention.
  std::vector<float> heard{};
  // Spans of the prompt whose tokens see those after them too. Ascending.
  std::vector<model::Mask> spans{};

  // expected.safetensors and meta.json of a fixture's folder. kUnsupported where all answers are to
  // images or sound; of others, where there are none to such.
  static Result<FamilyFixture> open(const std::string& folder, Answers answers = Answers::kText);

  // Tokens [begin, begin + `most`) of the prompt as one slice of sequence 0: it ends where a span
  // ends, and begins or ends within none.
  model::Session::Slice piece(size_t begin, size_t most) const;
};

struct FamilyComparison {
  double pass_difference = 0;    // Of the logits of one pass, the largest.
  double pass_error = 0;         // Of the same, the root mean square, relative to the reference's.
  double divergence = 0;         // Of the same, in nats (mean_divergence).
  double greedy_difference = 0;  // Of the logits of greedy decoding, as far as the tokens agree.
  int32_t greedy_equal = 0;      // Tokens before the first that differs.
  bool chunked_equal = false;    // To the last bit, the prompt in chunks.
  bool batched_equal = false;    // To the last bit, beside other sequences.
  std::vector<float> logits;     // All that were compared: of the pass, and of greedy decoding.
};

// How many sequences run side by side.
inline constexpr int32_t kFamilySequences = 5;

// With which of the model's adapters the fixture is computed; what runs beside it has any of them.
struct FamilyAdapters {
  const model::Adapter* adapter = nullptr;
  std::span<const std::shared_ptr<const model::Adapter>> others{};
};

Result<FamilyComparison> compare_family(const FamilyFixture& fixture, model::Model& model,
                                        ThreadTeam& team, kv::Format kv_format,
                                        const FamilyAdapters& with = {});

// What is wrong, or nothing. `exact`: the logits must agree within the fixture's bound; otherwise
// within what int8 activations and 16-bit keys and values explain.
std::string family_failure(const FamilyFixture& fixture, const FamilyComparison& comparison,
                           bool exact);

}  // namespace weir::check
