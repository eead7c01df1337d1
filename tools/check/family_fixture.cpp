#include "family_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "card/safetensors.h"
#include "difference.h"

namespace weir::check {

namespace {

using card::Checkpoint;
using model::Session;

// Of logits with int8 activations and 16-bit keys and values. The fixtures have 64 channels, which
// rounding hits harder than a real model's: up to 0.049 (mlxconv_gemma4_text_e2b), 0.10 where a
// near tie chooses another expert (mlx_qwen3_moe_q3_g64), and 0.37 where many do
// (mlxconv_gemma4_text_moe). A wrong layer gives 0.5 and more.
constexpr double kInexactErrorMax = 0.4;

Result<std::vector<int32_t>> read_ids(const Checkpoint& file, std::string_view name) {
  const card::StoredTensor* stored = file.find(name);
  if (stored == nullptr || stored->tensor.type != DType::kI64)
    return fail(ErrorCode::kConfig,
                file.name() + ": expected I64 '" + std::string(name) + "', found none");
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < stored->tensor.elements(); ++i) {
    int64_t id;
    std::memcpy(&id, stored->tensor.data + i * 8, 8);
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Result<std::vector<float>> read_floats(const Checkpoint& file, std::string_view name) {
  const card::StoredTensor* stored = file.find(name);
  if (stored == nullptr || stored->tensor.type != DType::kF32)
    return fail(ErrorCode::kConfig,
                file.name() + ": expected F32 '" + std::string(name) + "', found none");
  std::vector<float> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(float));
  return values;
}

// What the model was given beside text.
Answers media_of(const Checkpoint& expected) {
  if (expected.find("pixel_values") != nullptr) return Answers::kImages;
  return expected.find("input_features") != nullptr ? Answers::kSound : Answers::kText;
}

const char* name_of(Answers answers) { return answers == Answers::kImages ? "images" : "sound"; }

// Greedy decoding of one sequence; logits of each step in a row.
class Greedy {
 public:
  Greedy(const FamilyFixture& fixture, size_t vocab) : fixture_(fixture), vocab_(vocab) {}

  bool done() const { return ids_.size() == fixture_.gen_ids.size(); }
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<float>& logits() const { return logits_; }

  // The next tokens to compute: about `chunk` of the prompt, or the last sampled one.
  Session::Slice next(size_t chunk) {
    if (fed_ < fixture_.input_ids.size()) return fixture_.piece(fed_, chunk);
    return {.tokens = std::span(ids_).last(1), .rope_shift = fixture_.rope_shift};
  }
  void took(size_t tokens, std::span<const float> logits) {
    fed_ += tokens;
    if (fed_ < fixture_.input_ids.size()) return;
    logits_.insert(logits_.end(), logits.begin(), logits.end());
    ids_.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }
  size_t vocab() const { return vocab_; }

 private:
  const FamilyFixture& fixture_;
  size_t vocab_;
  size_t fed_ = 0;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
};

// Sequence 0 hears the fixture's sound, and each of the others one of its own.
void hear(const FamilyFixture& fixture, Session& session, int32_t others) {
  std::vector<float> rows = fixture.heard;
  for (int32_t s = 0; s <= others && !rows.empty(); ++s) {
    session.hear(s, rows);
    std::ranges::rotate(rows, rows.begin() + 1);
  }
}

// Decodes in sequence 0; `others` run beside it, each fed one more token a step.
Greedy run_greedy(const FamilyFixture& fixture, Session& session, size_t vocab, size_t chunk,
                  int32_t others, const FamilyAdapters& with) {
  const auto of_other = [&](int32_t s) -> const model::Adapter* {
    const size_t which = static_cast<size_t>(s) % (with.others.size() + 1);
    return which == 0 ? nullptr : with.others[which - 1].get();
  };
  Greedy greedy(fixture, vocab);
  const auto prompt = static_cast<int32_t>(fixture.input_ids.size());
  for (int32_t s = 0; s <= others; ++s) session.begin(s, s == 0 ? prompt : 1);
  hear(fixture, session, others);
  const std::span<const int32_t> ids(fixture.input_ids);
  std::vector<float> row(vocab);
  for (size_t step = 0; !greedy.done(); ++step) {
    Session::Slice next = greedy.next(chunk);
    next.adapter = with.adapter;
    std::vector<Session::Slice> slices;
    // Others before and after, so that our rows begin at another place in every pass.
    for (int32_t s = 1; s <= others; ++s) {
      const size_t count = s % 2 == 1 ? 1 + step % 3 : 1;
      if (s % 2 == 1)
        slices.push_back(
            {.sequence = s,
             .tokens = ids.subspan((step + static_cast<size_t>(s) * 7) % (ids.size() - 3), count),
             .adapter = of_other(s)});
    }
    const size_t own = slices.size();
    slices.push_back(next);
    for (int32_t s = 2; s <= others; s += 2)
      slices.push_back({.sequence = s,
                        .tokens = ids.subspan((step * 5 + static_cast<size_t>(s)) % ids.size(), 1),
                        .adapter = of_other(s)});
    session.forward(slices, [&](size_t slice, size_t, std::span<float> logits) {
      if (slice == own) std::ranges::copy(logits, row.begin());
    });
    greedy.took(next.tokens.size(), row);
  }
  return greedy;
}

}  // namespace

Result<FamilyFixture> FamilyFixture::open(const std::string& folder, Answers answers) {
  FamilyFixture fixture;
  fixture.name = folder.substr(folder.find_last_of('/') + 1);
  WEIR_ASSIGN(FileView view, FileView::map(folder + "/expected.safetensors"));
  WEIR_ASSIGN(const Checkpoint expected, card::open_safetensors(std::move(view)));
  const Answers media = media_of(expected);
  const bool text = answers == Answers::kText;
  if (!text && media != answers)
    return fail(ErrorCode::kUnsupported,
                std::string("none of its answers are to ") + name_of(answers));
  fixture.beside_media = text && expected.find("text_input_ids") != nullptr;
  if (text && media != Answers::kText && !fixture.beside_media)
    return fail(ErrorCode::kUnsupported, std::string("all its answers are to ") + name_of(media));
  const std::string prefix = fixture.beside_media ? "text_" : "";
  // Of an encoder and a decoder the latter's.
  const char* ids = expected.find("decoder_input_ids") != nullptr ? "decoder_input_ids" : "input_ids";
  WEIR_ASSIGN(fixture.input_ids, read_ids(expected, prefix + ids));
  WEIR_ASSIGN(fixture.gen_ids, read_ids(expected, prefix + "gen_ids"));
  WEIR_ASSIGN(fixture.logits, read_floats(expected, prefix + "logits"));
  WEIR_ASSIGN(fixture.gen_logits, read_floats(expected, prefix + "gen_logits"));
  WEIR_ASSIGN(const std::string meta_text, read_file(folder + "/meta.json", size_t{1} << 20));
  WEIR_ASSIGN(const JsonDoc meta, JsonDoc::parse(meta_text));
  double noise = 0;
  const std::string noise_key = prefix + "noise_1e-6";
  // It was not measured where mlx-vlm is the reference.
  if (meta.root()[noise_key].get(noise) != simdjson::SUCCESS && text)
    return fail(ErrorCode::kConfig,
                folder + "/meta.json: expected a number '" + noise_key + "', found none");
  fixture.bound = std::max(1e-3f, 10 * static_cast<float>(noise));
  const size_t prompt = fixture.input_ids.size(), generated = fixture.gen_ids.size();
  if (!text) return fixture;  // Its prompt is not expanded in every case.
  if (prompt < 8 || generated == 0 || fixture.logits.size() % prompt != 0 ||
      fixture.logits.size() / prompt != fixture.gen_logits.size() / generated)
    return fail(ErrorCode::kConfig,
                folder + "/expected.safetensors: expected logits for each token, found " +
                    std::to_string(fixture.logits.size()) + " numbers for " +
                    std::to_string(prompt) + " tokens");
  return fixture;
}

Session::Slice FamilyFixture::piece(size_t begin, size_t most) const {
  size_t end = std::min(begin + most, input_ids.size());
  model::Mask mask;
  for (const model::Mask& span : spans)
    if (std::cmp_greater_equal(span.begin, begin) && std::cmp_less(span.begin, end)) {
      mask = span;
      end = static_cast<size_t>(span.end);
      break;
    }
  Session::Slice slice = {.tokens = std::span(input_ids).subspan(begin, end - begin), .mask = mask};
  if (!rows.empty()) slice.rows = std::span(rows).subspan(begin, end - begin);
  if (!rope_positions.empty())
    slice.rope_positions = std::span(rope_positions).subspan(begin, end - begin);
  return slice;
}

Result<FamilyComparison> compare_family(const FamilyFixture& fixture, model::Model& model,
                                        ThreadTeam& team, kv::Format kv_format,
                                        const FamilyAdapters& with) {
  const auto vocab = static_cast<size_t>(model.spec().vocab_size);
  const size_t prompt = fixture.input_ids.size();
  if (fixture.logits.size() != prompt * vocab)
    return fail(ErrorCode::kConfig, fixture.name + ": expected logits for a vocabulary of " +
                                        std::to_string(vocab) + ", found " +
                                        std::to_string(fixture.logits.size() / prompt));
  WEIR_ASSIGN(
      Session session,
      Session::create(model, team,
                      {.sequences = kFamilySequences,
                       .tokens_max = static_cast<int32_t>(prompt + fixture.gen_ids.size()) * 3,
                       .kv_format = kv_format}));
  FamilyComparison out;
  std::vector<float> logits(prompt * vocab);
  session.begin(0, static_cast<int32_t>(prompt));
  hear(fixture, session, 0);
  for (size_t begin = 0; begin < prompt;) {
    Session::Slice slice = fixture.piece(begin, prompt);
    slice.all_logits = true;
    slice.adapter = with.adapter;
    session.forward(std::span(&slice, 1), [&](size_t, size_t token, std::span<float> row) {
      std::ranges::copy(row, logits.begin() + static_cast<std::ptrdiff_t>((begin + token) * vocab));
    });
    begin += slice.tokens.size();
  }
  out.pass_difference = largest_difference(logits, fixture.logits);
  out.pass_error = relative_rms(logits, fixture.logits);
  out.divergence = mean_divergence(logits, fixture.logits, vocab);

  const Greedy alone = run_greedy(fixture, session, vocab, prompt, 0, with);
  const Greedy chunked = run_greedy(fixture, session, vocab, 7, 0, with);
  const Greedy batched = run_greedy(fixture, session, vocab, 11, kFamilySequences - 1, with);
  const auto differ = std::ranges::mismatch(alone.ids(), fixture.gen_ids);
  out.greedy_equal = static_cast<int32_t>(differ.in1 - alone.ids().begin());
  const size_t rows = std::min(static_cast<size_t>(out.greedy_equal) + 1, fixture.gen_ids.size());
  out.greedy_difference = largest_difference(std::span(alone.logits()).first(rows * vocab),
                                             std::span(fixture.gen_logits).first(rows * vocab));
  const auto same_bits = [&](const Greedy& g) {
    return std::memcmp(g.logits().data(), alone.logits().data(),
                       alone.logits().size() * sizeof(float)) == 0;
  };
  out.chunked_equal = same_bits(chunked);
  out.batched_equal = same_bits(batched);
  out.logits = std::move(logits);
  out.logits.insert(out.logits.end(), alone.logits().begin(), alone.logits().end());
  return out;
}

std::string family_failure(const FamilyFixture& fixture, const FamilyComparison& c, bool exact) {
  const auto number = [](double value) { return std::to_string(value); };
  if (!c.chunked_equal) return "logits with the prompt in chunks differ from those in one piece";
  if (!c.batched_equal) return "logits beside other sequences differ from those alone";
  if (!exact) {
    if (c.pass_error < kInexactErrorMax) return {};
    return "one pass: expected logits within " + number(kInexactErrorMax) +
           " of the reference's by their root mean square, found " + number(c.pass_error);
  }
  const std::string bound = "expected logits within " + number(static_cast<double>(fixture.bound)) +
                            " of the reference's, found a difference of ";
  const auto limit = static_cast<double>(fixture.bound);
  if (!(c.pass_difference < limit)) return "one pass: " + bound + number(c.pass_difference);
  if (!(c.greedy_difference < limit)) return "greedy: " + bound + number(c.greedy_difference);
  if (c.greedy_equal < static_cast<int32_t>(fixture.gen_ids.size()))
    return "greedy: expected " + std::to_string(fixture.gen_ids.size()) + " equal tokens, found " +
           std::to_string(c.greedy_equal);
  return {};
}

}  // namespace weir::check
