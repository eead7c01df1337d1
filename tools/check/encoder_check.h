// EncoderCheck: a fixture's answers to its pictures or its sound. The encoder runs on the recorded
// numbers, then on the file's own, and the model of text on the rows that come of either.
//
// Threads: one, with the team's help.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "card/model_card.h"
#include "check.h"
#include "encoder/encoder.h"
#include "family_fixture.h"
#include "media/processor/sizes.h"
#include "model/model.h"
#include "runtime.h"

namespace weir::check {

// What an encoder gave for one picture or sound: rows, then those of each level.
struct Encoded {
  std::vector<float> rows{};
  size_t of_level = 0;  // Numbers of the rows themselves.
  media::Size grid{};   // Of tokens; of a sound none.
};

class EncoderCheck {
 public:
  virtual ~EncoderCheck() = default;
  EncoderCheck(const EncoderCheck&) = delete;

  // kUnsupported for what is not computed here.
  Result<void> load_encoder();
  // By the recorded numbers, or by the file.
  virtual Result<std::vector<Encoded>> encode(bool recorded) = 0;
  // Two lines: the answers from the recorded numbers, and those from the file.
  Result<void> check_answers(const FamilyFixture& plain, const std::string& name, Report& report);

 protected:
  EncoderCheck(const card::ModelCard& card, const Runtime& runtime)
      : card_(card), runtime_(runtime) {}

  // All but how it computes.
  virtual Result<encoder::EncoderOptions> options() const = 0;
  // The prompt's token that a row takes the place of.
  virtual int64_t token() const = 0;
  // How far the rows of the recorded numbers are from recorded rows, where there are some; what is
  // too far is a failure of `name`.
  virtual std::string compare_rows(const std::vector<Encoded>& recorded, const std::string& name,
                                   Report& report) const = 0;
  // Positions and spans of a prompt whose rows are in place.
  virtual void place(FamilyFixture&, const std::vector<Encoded>&) const {}

  // Of something with so many rows, for the encoder to fill.
  Encoded room(int64_t rows) const;
  template <class Begun>
  Result<void> run(const std::vector<Begun>& begun) {
    WEIR_TRY(encoder_->begin(begun));
    while (!encoder_->advance(*runtime_.team, encoder::Encoder::kAllWork)) {
    }
    return {};
  }

  const card::ModelCard& card_;
  const Runtime& runtime_;
  std::unique_ptr<encoder::Encoder> encoder_;
  std::unique_ptr<model::Model> model_;

 private:
  Result<void> load_model();
  Result<FamilyFixture> prompt(FamilyFixture fixture, const std::vector<Encoded>& encoded) const;
  Result<void> check_prompt(const FamilyFixture& plain, const std::vector<Encoded>& encoded,
                            const std::string& name, const std::string& about, Report& report);
};

// The reference was given its processor's numbers rounded to multiples of 2^-13.
void round_as_given(std::vector<float>& numbers);

// "rows 1.0e-06, ".
std::string figure(const char* what, double value);

bool is_exact(const Runtime& runtime);

}  // namespace weir::check
