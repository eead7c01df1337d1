#include "encoder_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/concat.h"
#include "difference.h"

namespace weir::check {

Result<void> EncoderCheck::load_encoder() {
  WEIR_ASSIGN(encoder::EncoderOptions options, this->options());
  options.compute = runtime_.compute;
  WEIR_ASSIGN(encoder_, encoder::Encoder::load(card_, options, *runtime_.ops, *runtime_.team));
  return {};
}

Result<void> EncoderCheck::load_model() {
  const model::ModelOptions options = {
      .compute = runtime_.compute, .rows_max = 256, .context_max = 512};
  WEIR_ASSIGN(model_, model::Model::load(card_, options, *runtime_.ops, *runtime_.team));
  return {};
}

Encoded EncoderCheck::room(int64_t rows) const {
  Encoded encoded;
  encoded.of_level = static_cast<size_t>(rows * encoder_->width());
  encoded.rows.resize(encoded.of_level * static_cast<size_t>(1 + encoder_->levels()), NAN);
  return encoded;
}

// The fixture's prompt, whose placeholders begin with the rows.
Result<FamilyFixture> EncoderCheck::prompt(FamilyFixture fixture,
                                           const std::vector<Encoded>& encoded) const {
  if (model_->cross_layers() > 0) {  // Its tokens attend to the rows.
    fixture.heard = encoded[0].rows;
    return fixture;
  }
  const int64_t token = this->token();
  std::vector<model::VectorRows> rows;
  for (const Encoded& one : encoded)
    for (size_t i = 0; i < one.of_level; i += static_cast<size_t>(encoder_->width()))
      rows.push_back({.rows = 1,
                      .vectors = one.rows.data() + i,
                      .levels = encoder_->levels(),
                      .level_stride = static_cast<int64_t>(one.of_level)});
  auto& ids = fixture.input_ids;
  // A placeholder that the model itself expands.
  if (std::ranges::count(ids, token) == 1 && rows.size() > 1) {
    const auto at = std::ranges::find(ids, static_cast<int32_t>(token));
    ids.insert(at, rows.size() - 1, static_cast<int32_t>(token));
  }
  if (const auto places = std::ranges::count(ids, token); std::cmp_not_equal(places, rows.size()))
    return fail(
        ErrorCode::kConfig,
        concat({fixture.name, ": expected as many rows of features as the prompt has places for, ",
                std::to_string(places), ", found ", std::to_string(rows.size())}));
  fixture.rows.assign(ids.size(), {});
  size_t next = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == token) fixture.rows[i] = rows[next++];
  place(fixture, encoded);
  for (int32_t& id : ids)
    if (id == token) id = 0;  // An id that the vocabulary has.
  return fixture;
}

Result<void> EncoderCheck::check_prompt(const FamilyFixture& plain,
                                        const std::vector<Encoded>& encoded,
                                        const std::string& name, const std::string& about,
                                        Report& report) {
  WEIR_ASSIGN(const FamilyFixture fixture, prompt(plain, encoded));
  WEIR_ASSIGN(const FamilyComparison c,
              compare_family(fixture, *model_, *runtime_.team, runtime_.kv_format));
  const std::string failure = family_failure(fixture, c, is_exact(runtime_));
  char detail[200];
  std::snprintf(detail, sizeof detail,
                "%sone pass %.1e, greedy %.1e (bound %.1e), %d of %zu tokens equal", about.c_str(),
                c.pass_difference, c.greedy_difference, static_cast<double>(fixture.bound),
                c.greedy_equal, fixture.gen_ids.size());
  failure.empty() ? report.pass(name, detail) : report.fail(name, failure + "; " + detail);
  return {};
}

Result<void> EncoderCheck::check_answers(const FamilyFixture& plain, const std::string& name,
                                         Report& report) {
  if (const auto loaded = load_encoder(); !loaded) {
    if (loaded.error().code != ErrorCode::kUnsupported) return loaded;
    report.skip(name, loaded.error().message);
    return {};
  }
  WEIR_TRY(load_model());
  WEIR_ASSIGN(const std::vector<Encoded> recorded, encode(/*recorded=*/true));
  WEIR_ASSIGN(const std::vector<Encoded> of_file, encode(/*recorded=*/false));
  WEIR_TRY(check_prompt(plain, recorded, name, compare_rows(recorded, name, report), report));
  double farthest = 0;
  for (size_t i = 0; i < recorded.size(); ++i)
    farthest = worse_of(farthest, largest_difference(of_file[i].rows, recorded[i].rows));
  return check_prompt(plain, of_file, name + " from the file", figure("rows by", farthest), report);
}

void round_as_given(std::vector<float>& numbers) {
  for (float& number : numbers) number = std::nearbyint(number * 0x1p13f) * 0x1p-13f;
}

std::string figure(const char* what, double value) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %.1e, ", what, value);
  return text;
}

bool is_exact(const Runtime& runtime) {
  return runtime.compute == model::Compute::kExact && runtime.kv_format == kernels::FloatType::kF32;
}

}  // namespace weir::check
