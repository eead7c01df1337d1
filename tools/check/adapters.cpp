#include "adapters.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "card/adapter_card.h"
#include "card/safetensors.h"
#include "difference.h"
#include "family_fixture.h"
#include "model/adapter.h"
#include "model/session.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;
using model::Session;

constexpr int32_t kRankMax = 64;
constexpr int64_t kBytesMax = int64_t{64} << 20;  // The fixtures' take some 100 KB.

struct Candidate {
  std::string folder;
  FamilyFixture fixture{};
  std::vector<float> base_prompt_logits{};  // Of the base's prompt; empty: not recorded.
};

std::vector<std::string> adapter_folders(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/adapters", error))
    if (entry.is_directory(error)) found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

Result<Candidate> open_candidate(const std::string& folder) {
  Candidate out{.folder = folder};
  WEIR_ASSIGN(out.fixture, FamilyFixture::open(folder));
  WEIR_ASSIGN(FileView view, FileView::map(folder + "/expected.safetensors"));
  WEIR_ASSIGN(const card::Checkpoint expected, card::open_safetensors(std::move(view)));
  const card::StoredTensor* stored = expected.find("base_prompt_logits");
  if (stored == nullptr || stored->tensor.type != DType::kF32) return out;
  out.base_prompt_logits.resize(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(out.base_prompt_logits.data(), stored->tensor.data,
              out.base_prompt_logits.size() * sizeof(float));
  return out;
}

// Prompts of several sequences in one pass, each with its adapter.
class Prompts {
 public:
  Prompts(model::Model& model, Session& session)
      : session_(session), vocab_(static_cast<size_t>(model.spec().vocab_size)) {}

  void add(std::span<const int32_t> ids, const model::Adapter* adapter) {
    const auto sequence = static_cast<int32_t>(slices_.size());
    session_.begin(sequence, static_cast<int32_t>(ids.size()));
    slices_.push_back(
        {.sequence = sequence, .tokens = ids, .all_logits = true, .adapter = adapter});
    logits_.emplace_back(ids.size() * vocab_);
  }
  void run() {
    session_.forward(slices_, [&](size_t slice, size_t token, std::span<float> row) {
      std::ranges::copy(row, logits_[slice].begin() + static_cast<std::ptrdiff_t>(token * vocab_));
    });
  }
  const std::vector<float>& logits(size_t i) const { return logits_[i]; }

 private:
  Session& session_;
  size_t vocab_;
  std::vector<Session::Slice> slices_;
  std::vector<std::vector<float>> logits_;
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class AdapterCheck {
 public:
  AdapterCheck(const std::string& folder, const Runtime& runtime, Report& report)
      : name_(folder_name(folder)), runtime_(runtime), report_(report) {}

  Result<void> load(const card::ModelCard& card, const std::vector<std::string>& folders) {
    const model::ModelOptions options = {
        .compute = runtime_.compute, .rows_max = 256, .context_max = 512, .adapter_rank = kRankMax};
    WEIR_ASSIGN(model_, model::Model::load(card, options, *runtime_.ops, *runtime_.team));
    for (const std::string& folder : folders) {
      WEIR_ASSIGN(Candidate candidate, open_candidate(folder));
      WEIR_ASSIGN(const card::AdapterCard adapter, card::AdapterCard::open(folder));
      WEIR_ASSIGN(auto bound, model_->bind_adapter(adapter, kBytesMax));
      candidates_.push_back(std::move(candidate));
      adapters_.push_back(std::move(bound));
    }
    return {};
  }

  // The model without an adapter, beside sequences with one.
  Result<void> check_base(const FamilyFixture& fixture, std::span<const float> base) {
    WEIR_ASSIGN(const FamilyComparison c, compare(fixture, nullptr));
    const std::string name = name_ + ", beside adapters";
    if (!same_bits(c.logits, base))
      report_.fail(name,
                   "expected the logits of the model that takes no adapters to the last bit, "
                   "found a difference");
    else if (!c.batched_equal || !c.chunked_equal)
      report_.fail(name, family_failure(fixture, c, false));
    else
      report_.pass(name, std::to_string(c.logits.size()) + " logits equal to the last bit");
    return {};
  }

  Result<void> check_each(const FamilyFixture& base) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const std::string name = name_ + "/" + candidate.fixture.name;
      WEIR_ASSIGN(const FamilyComparison c, compare(candidate.fixture, adapters_[i].get()));
      std::string failure = family_failure(candidate.fixture, c, exact());
      WEIR_ASSIGN(const double other, base_prompt_difference(base, i));
      if (failure.empty() && exact() && other > static_cast<double>(candidate.fixture.bound))
        failure = "the base's prompt: expected logits within the bound, found a difference of " +
                  std::to_string(other);
      char detail[160];
      std::snprintf(detail, sizeof detail,
                    "one pass %.1e, the base's prompt %.1e, greedy %.1e (bound %.1e), %d of %zu "
                    "tokens equal",
                    c.pass_difference, other, c.greedy_difference,
                    static_cast<double>(candidate.fixture.bound), c.greedy_equal,
                    candidate.fixture.gen_ids.size());
      failure.empty() ? report_.pass(name, detail) : report_.fail(name, failure + "; " + detail);
    }
    return {};
  }

  // The base's prompt with and without each adapter, in one batch and one by one.
  Result<void> check_batch(const FamilyFixture& base) {
    const std::string name = name_ + ", all adapters in one batch";
    const auto at = [&](size_t number) {
      return number == 0 ? nullptr : adapters_[number - 1].get();
    };
    const size_t count = adapters_.size();
    WEIR_ASSIGN(Session session, open_session(base));
    Prompts together(*model_, session);
    for (size_t number = 0; number <= count; ++number) together.add(base.input_ids, at(number));
    together.run();
    for (size_t number = 0; number <= count; ++number) {
      Prompts alone(*model_, session);
      alone.add(base.input_ids, at(number));
      alone.run();
      if (!same_bits(alone.logits(0), together.logits(number))) {
        report_.fail(name, "adapter " + std::to_string(number) +
                               ": expected the logits that it has alone to the last bit, found a "
                               "difference");
        return {};
      }
    }
    report_.pass(name, std::to_string(count) + " adapters and the model itself");
    return {};
  }

 private:
  bool exact() const {
    return runtime_.compute == model::Compute::kExact &&
           runtime_.kv_format == kernels::FloatType::kF32;
  }
  Result<FamilyComparison> compare(const FamilyFixture& fixture, const model::Adapter* adapter) {
    return compare_family(fixture, *model_, *runtime_.team, runtime_.kv_format,
                          {.adapter = adapter, .others = adapters_});
  }
  Result<Session> open_session(const FamilyFixture& base) {
    return Session::create(*model_, *runtime_.team,
                           {.sequences = static_cast<int32_t>(candidates_.size()) + 1,
                            .tokens_max = static_cast<int32_t>(base.input_ids.size()),
                            .kv_format = runtime_.kv_format});
  }
  Result<double> base_prompt_difference(const FamilyFixture& base, size_t i) {
    const std::vector<float>& expected = candidates_[i].base_prompt_logits;
    if (expected.empty()) return 0.0;
    WEIR_ASSIGN(Session session, open_session(base));
    Prompts prompt(*model_, session);
    prompt.add(base.input_ids, adapters_[i].get());
    prompt.run();
    if (prompt.logits(0).size() != expected.size())
      return fail(ErrorCode::kConfig, "base_prompt_logits: expected " +
                                          std::to_string(prompt.logits(0).size()) +
                                          " numbers, found " + std::to_string(expected.size()));
    return largest_difference(prompt.logits(0), expected);
  }

  std::string name_;
  const Runtime& runtime_;
  Report& report_;
  std::unique_ptr<model::Model> model_;
  std::vector<Candidate> candidates_;
  std::vector<std::shared_ptr<const model::Adapter>> adapters_;  // Of the candidates.
};

}  // namespace

Result<void> check_adapters(const std::string& folder, const card::ModelCard& card,
                            const Runtime& runtime, std::span<const float> base, Report& report) {
  const std::vector<std::string> folders = adapter_folders(folder);
  if (folders.empty()) return {};
  WEIR_ASSIGN(const FamilyFixture fixture, FamilyFixture::open(folder));
  AdapterCheck check(folder, runtime, report);
  WEIR_TRY(check.load(card, folders));
  WEIR_TRY(check.check_base(fixture, base));
  WEIR_TRY(check.check_each(fixture));
  return check.check_batch(fixture);
}

}  // namespace weir::check
