// Quantises checkpoints as recorded results were quantised, and compares every tensor.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "card/model_card.h"
#include "card/safetensors.h"
#include "check.h"
#include "model/checkpoint_quantiser.h"
#include "model/decoder.h"
#include "runtime.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

// A folder that goes when this does.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create() {
    std::string name = (fs::temp_directory_path() / "weir-check-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      return fail(ErrorCode::kIo, name + ": expected a folder that can be made");
    return ScratchFolder(std::move(name));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The first difference, or nothing.
std::string difference(const card::Checkpoint& made, const card::Checkpoint& expected) {
  for (const card::StoredTensor& want : expected.tensors()) {
    const card::StoredTensor* found = made.find(want.name);
    const Tensor& w = want.tensor;
    if (found == nullptr) return "expected a tensor '" + want.name + "', found none";
    const Tensor& t = found->tensor;
    if (t.type != w.type || t.rank != w.rank || t.shape != w.shape)
      return "'" + want.name + "': expected " + to_string(w) + ", found " + to_string(t);
    if (std::memcmp(t.data, w.data, static_cast<size_t>(w.bytes())) != 0)
      return "'" + want.name + "': expected the same bytes, found others";
  }
  for (const card::StoredTensor& tensor : made.tensors())
    if (expected.find(tensor.name) == nullptr)
      return "expected no tensor '" + tensor.name + "', found one";
  return "";
}

Result<void> check_form(const card::ModelCard& card, const model::Decoder& model,
                        const std::string& form, const std::string& name, const Runtime& runtime,
                        Report& report) {
  WEIR_ASSIGN(const model::QuantiseRules rules, model::QuantiseRules::like(form));
  WEIR_ASSIGN(const ScratchFolder scratch, ScratchFolder::create());
  WEIR_TRY(model::quantise_checkpoint(card, model.modules(), rules, scratch.path(), *runtime.team));
  WEIR_ASSIGN(const card::ModelCard made, card::ModelCard::open_folder(scratch.path()));
  WEIR_ASSIGN(const card::ModelCard expected, card::ModelCard::open_folder(form));
  const std::string failure = difference(*made.tensors, *expected.tensors);
  failure.empty() ? report.pass(name, std::to_string(expected.tensors->tensors().size()) +
                                          " tensors equal to the last bit")
                  : report.fail(name, failure);
  return {};
}

}  // namespace

Result<void> check_quantised(const CheckOptions& options, Report& report) {
  WEIR_ASSIGN(const Runtime runtime, Runtime::create(options));
  WEIR_ASSIGN(const std::vector<std::string> folders, find_folders(options.paths, "config.json"));
  for (const std::string& form : folders) {
    // A result lies in a folder of its source.
    const std::string source = fs::path(form).parent_path().string();
    std::error_code error;
    if (!fs::exists(source + "/config.json", error)) continue;
    const std::string name = folder_name(source) + "/" + folder_name(form);
    const auto done = [&]() -> Result<void> {
      WEIR_ASSIGN(const card::ModelCard card, card::ModelCard::open_folder(source));
      WEIR_ASSIGN(const auto model, model::Decoder::bind(card, {.rows_max = 1}, *runtime.ops, 1));
      return check_form(card, *model, form, name, runtime, report);
    }();
    if (!done) report.fail(name, done.error().message);
  }
  return {};
}

}  // namespace weir::check
