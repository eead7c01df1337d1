#include "model/model.h"

#include <algorithm>

#include "base/check.h"
#include "model/decoder.h"

namespace weir::model {

Result<std::unique_ptr<Model>> Model::bind(const card::ModelCard& card, const ModelOptions& options,
                                           const kernels::Ops& ops, int members) {
  auto decoder = Decoder::bind(card, options, ops, members);
  if (!decoder) return tl::unexpected(card.in_folder(std::move(decoder).error()));
  return std::unique_ptr<Model>(std::move(*decoder));
}

Result<std::unique_ptr<Model>> Model::load(const card::ModelCard& card, const ModelOptions& options,
                                           const kernels::Ops& ops, ThreadTeam& team,
                                           const std::function<void(int64_t, int64_t)>& progress) {
  WEIR_ASSIGN(std::unique_ptr<Model> model, bind(card, options, ops, team.members()));
  model->pack(team, progress);
  WEIR_TRY(model->files().check());
  return model;
}

Result<void> WeightFiles::check() const {
  for (const FileView& file : all) WEIR_TRY(file.check_unchanged());
  if (!fault.empty()) return fail(ErrorCode::kConfig, fault);
  if (draft != nullptr) return draft->files().check();
  return {};
}

int32_t Model::cross_layers() const {
  return static_cast<int32_t>(std::ranges::count_if(needs_, [](const kv::MemoryNeed& need) {
    return std::holds_alternative<kv::CrossNeed>(need);
  }));
}

int32_t Model::cross_rows() const {
  int32_t rows = 0;
  for (const kv::MemoryNeed& need : needs_)
    if (const auto* cross = std::get_if<kv::CrossNeed>(&need)) rows = cross->rows;
  return rows;
}

void Model::fill_cross(const CrossFill&, int) { CHECK(false); }

Result<std::shared_ptr<const Adapter>> Model::bind_adapter(const card::AdapterCard&,
                                                           int64_t) const {
  return fail(ErrorCode::kUnsupported, "this model takes no adapters");
}

const ssd::ExpertCatalogue* Model::expert_catalogue() const {
  const StreamedBank* const bank = streamed_bank();
  return bank != nullptr ? &bank->catalogue() : nullptr;
}

int32_t Model::experts_per_token() const {
  const StreamedBank* const bank = streamed_bank();
  return bank != nullptr ? bank->top_k() : 0;
}

ssd::ExpertStore* Model::experts() const {
  const StreamedBank* const bank = streamed_bank();
  return bank != nullptr ? bank->store() : nullptr;
}

Result<void> Model::open_experts(std::unique_ptr<ssd::Disk> disk,
                                 const ssd::StoreOptions& options) {
  StreamedBank* const bank = streamed_bank();
  if (bank == nullptr) return fail(ErrorCode::kUnsupported, "this model does not stream experts");
  return bank->open(std::move(disk), options, options_.rows_max);
}

}  // namespace weir::model
