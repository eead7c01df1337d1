#include "model/decoder.h"

#include <algorithm>

#include "base/check.h"
#include "model/families.h"
#include "model/layers/make_layer.h"
#include "model/resident_bank.h"

namespace weir::model {

Result<std::unique_ptr<Model>> Model::bind(const card::ModelCard& card, const ModelOptions& options,
                                           const kernels::Ops& ops, int members) {
  auto decoder = Decoder::bind(card, options, ops, members);
  if (!decoder) return tl::unexpected(card.in_folder(std::move(decoder).error()));
  return std::unique_ptr<Model>(std::move(*decoder));
}

Result<void> Model::open_experts(std::unique_ptr<ssd::Disk>, const ssd::StoreOptions&) {
  return fail(ErrorCode::kUnsupported, "this model does not stream experts");
}

Result<std::unique_ptr<Model>> Model::load(const card::ModelCard& card, const ModelOptions& options,
                                           const kernels::Ops& ops, ThreadTeam& team,
                                           const std::function<void(int64_t, int64_t)>& progress) {
  WEIR_ASSIGN(std::unique_ptr<Model> model, bind(card, options, ops, team.members()));
  model->pack(team, progress);
  WEIR_TRY(model->check_files());
  return model;
}

Result<std::unique_ptr<Decoder>> Decoder::bind(const card::ModelCard& card,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members) {
  WEIR_ASSIGN(ModelSpec spec, spec_from_config(card.config.root()));
  return bind(card, std::move(spec), options, ops, members);
}

Result<std::unique_ptr<Decoder>> Decoder::bind(const card::ModelCard& card, ModelSpec spec,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members) {
  std::unique_ptr<Decoder> decoder(new Decoder(std::move(spec), options, ops));
  decoder->checkpoint_ = card.tensors;
  WEIR_TRY(decoder->bind_weights(card.weights));
  WEIR_TRY(decoder->make_workspace(members));
  return decoder;
}

Result<void> Decoder::bind_weights(const card::WeightFormat& format) {
  WeightBinder binder(
      *checkpoint_, spec_, format,
      {.int8 = options_.compute == Compute::kFast, .bf16_prompts = prompts_differ()}, store_);
  if (options_.stream_experts) {
    WEIR_TRY(check_mapped());
    auto streamed = std::make_unique<StreamedBank>(*checkpoint_);
    streamed_ = streamed.get();
    bank_ = std::move(streamed);
    store_.copy_floats();
  } else {
    bank_ = std::make_unique<ResidentBank>(store_);
  }
  embedding_ = std::make_unique<Embedding>(binder, spec_);
  LayerBuilder builder(binder, spec_, *bank_, context_max(), ropes_, scratch_);
  for (const Sublayer& sublayer : spec_.sublayers) {
    layers_.push_back(builder.make_layer(sublayer));
    // A config may ask for thousands of layers of thousands of experts, of which the file has none.
    if (binder.failed()) return binder.finish();
  }
  if (streamed_ != nullptr && streamed_->empty())
    return fail(ErrorCode::kConfig,
                "--stream-experts: expected a mixture-of-experts model; found " + spec_.family +
                    " without experts");
  layers_leave_nothing_ =
      std::ranges::all_of(layers_, [](const auto& layer) { return layer->leaves_nothing(); });
  head_ = std::make_unique<Head>(binder, spec_, *embedding_);
  tally_ = binder.tally();
  return binder.finish();
}

Result<void> Decoder::check_mapped() const {
  for (const FileView& file : checkpoint_->files())
    if (!file.mapped())
      return fail(ErrorCode::kConfig,
                  "--stream-experts: expected a model in a folder (--model DIR); found one that is "
                  "compiled into the binary");
  return {};
}

Result<void> Decoder::open_experts(std::unique_ptr<ssd::Disk> disk,
                                   const ssd::StoreOptions& options) {
  CHECK(streamed_ != nullptr);
  return streamed_->open(std::move(disk), options, options_.rows_max);
}

Result<void> Decoder::check_files() const {
  for (const FileView& file : checkpoint_->files()) WEIR_TRY(file.check_unchanged());
  return {};
}

Result<void> Decoder::make_workspace(int members) {
  WorkspaceSizes sizes;
  sizes.rows = options_.rows_max;
  sizes.members = members;
  sizes.hidden = spec_.hidden_size;
  sizes.logit_rows = std::min(options_.rows_max, Head::kRowsMax);
  sizes.vocab = spec_.vocab_size;
  sizes.input_forms = scratch_.input_forms() | head_->forms();
  for (const RopeTable& rope : ropes_) sizes.rope_dims.push_back(rope.rope().dim);
  WEIR_ASSIGN(workspace_, Workspace::create(sizes, scratch_));
  if (streamed_ == nullptr || options_.slab_rows == 0) return {};
  sizes.rows = options_.slab_rows;
  sizes.logit_rows = std::min(options_.slab_rows, Head::kRowsMax);
  WEIR_ASSIGN(slab_, Workspace::create(sizes, scratch_));
  return {};
}

void Decoder::give_back_scratch() {
  workspace_->give_back();
  if (slab_) slab_->give_back();
}

ModelMemory Decoder::memory() const {
  return {.packed_weights = store_.packed_bytes(),
          .mapped_weights = store_.mapped_bytes(),
          .scratch = workspace_->bytes() + (slab_ ? slab_->bytes() : 0),
          .formats = tally_.formats(),
          .parameters = tally_.numbers()};
}

bool Decoder::prompts_differ() const {
  return options_.compute == Compute::kFast && ops_.prompts_in_bf16;
}

int32_t Decoder::context_max() const {
  return options_.context_max > 0 ? options_.context_max : spec_.context_max;
}

int64_t Decoder::weight_bytes_per_token() const {
  int64_t bytes = head_->weight().weight_bytes();
  for (const auto& layer : layers_) bytes += layer->weight_bytes();
  return bytes;
}

int64_t Decoder::macs_per_token() const {
  int64_t macs = head_->weight().macs();
  for (const auto& layer : layers_) macs += layer->macs();
  return macs;
}

std::vector<kv::MemoryNeed> Decoder::memory_needs() const {
  std::vector<kv::MemoryNeed> needs;
  for (const Sublayer& sublayer : spec_.sublayers)
    if (const kv::MemoryNeed need = need_of(sublayer); need != kv::MemoryNeed{})
      needs.push_back(need);
  return needs;
}

// Where the row stands, its angles, and its embedding.
void Decoder::begin_row(const Pass& pass, int32_t row) const {
  Workspace& ws = pass.ws;
  const auto past = std::ranges::upper_bound(pass.batch.slices, row, {}, &BatchSlice::row_begin);
  const BatchSlice& slice = *(past - 1);
  const int32_t position = slice.first_position + row - slice.row_begin;
  ws.position[row] = position;
  ws.slice[row] = static_cast<int32_t>(past - 1 - pass.batch.slices.begin());
  const int32_t length = std::max(slice.prompt_length, position + 1);
  for (size_t r = 0; r < ropes_.size(); ++r) {
    const auto dim = static_cast<size_t>(ropes_[r].rope().dim);
    const std::span own(ws.own_angles[r] + static_cast<size_t>(row) * dim, dim);
    ws.angles[r * static_cast<size_t>(pass.rows()) + static_cast<size_t>(row)] =
        ropes_[r].angles(position, length, own);
  }
  const int32_t token = pass.batch.tokens[static_cast<size_t>(row)];
  embedding_->embed(pass, row, token >= 0 ? token : pass.batch.sampled[-token - 1]);
}

// From layer i - 1 to layer i.
void Decoder::enter(const Pass& pass, size_t i, const RowRange& rows) const {
  const auto enter_rows = [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "norm");
    if (i > 0) layers_[i - 1]->leave(pass, begin, end);
    layers_[i]->enter(pass, begin, end);
  };
  if (pass.own_inputs) return enter_rows(0, pass.rows());
  claim_rows(pass, rows, enter_rows);
  pass.team.barrier(pass.member);
}

Pass Decoder::make_pass(const Batch& batch, const kv::KvCache& kv, ForwardClient& client,
                        ThreadTeam& team, int member, Workspace& workspace) const {
  const auto rows = static_cast<int32_t>(batch.tokens.size());
  return {.batch = batch,
          .kv = kv,
          .ops = ops_,
          .team = team,
          .ws = workspace,
          .client = client,
          .reads = member == 0 ? experts() : nullptr,
          .member = member,
          .prompt_begin = prompts_differ() ? batch.prompt_begin() : kNoPrompts,
          .own_inputs = layers_leave_nothing_ && rows <= Workspace::kOwnRows};
}

void Decoder::begin_rows(const Pass& pass) const {
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "embed");
    for (int32_t row = begin; row < end; ++row) begin_row(pass, row);
  });
  pass.team.barrier(pass.member);
}

// Layer i, and the way to the next. Where that reads experts from disk, it learns of those of the
// first rows before the others attend.
void Decoder::compute(const Pass& pass, size_t i) const {
  const Layer& layer = *layers_[i];
  layer.begin(pass);
  if (i + 1 == layers_.size())
    return layer.compute(pass, pass.all_rows(), head_->first_weights(pass));
  const Layer& next = *layers_[i + 1];
  RowRange rows = pass.all_rows();
  if (layer.takes_groups() && next.wants_groups() && pass.ws.groups.cut() > 0) {
    const RowRange first = {0, pass.ws.groups.cut()};
    layer.compute(pass, first, {});
    enter(pass, i + 1, first);
    if (pass.member == 0) next.expect(pass, first);
    rows.begin = first.end;
  }
  layer.compute(pass, rows, next.first_weights(pass));
  enter(pass, i + 1, rows);
}

void Decoder::forward(const Batch& batch, const kv::KvCache& kv, ForwardClient& client,
                      ThreadTeam& team, int member) {
  const trace::Scope forward(trace::Kind::kWhole, "forward",
                             static_cast<int32_t>(batch.tokens.size()));
  const Pass pass = make_pass(batch, kv, client, team, member, *workspace_);
  CHECK(pass.rows() > 0 && pass.rows() <= options_.rows_max);
  begin_rows(pass);
  if (pass.reads) begin_step(pass, *pass.reads);
  enter(pass, 0, pass.all_rows());
  // The others claim the first layer's work meanwhile.
  if (member == 0) client.while_computing();
  for (size_t i = 0; i < layers_.size(); ++i) compute(pass, i);
  if (pass.reads) end_step(pass, *pass.reads);
  head_->forward(pass, *layers_.back(), client);
}

void Decoder::forward_slab(const Batch& batch, const kv::KvCache& kv, ForwardClient& client,
                           ThreadTeam& team, int member, int32_t step) {
  const trace::Scope forward(trace::Kind::kWhole, "slab",
                             static_cast<int32_t>(batch.tokens.size()));
  const Pass pass = make_pass(batch, kv, client, team, member, *slab_);
  CHECK(pass.rows() > 0 && pass.rows() <= options_.slab_rows);
  if (step == 0) begin_rows(pass);
  if (pass.reads) begin_step(pass, *pass.reads);
  if (step == 0) enter(pass, 0, pass.all_rows());
  compute(pass, static_cast<size_t>(step));
  if (pass.reads) end_step(pass, *pass.reads);
  if (step + 1 == slab_steps()) head_->forward(pass, *layers_.back(), client);
}

void Decoder::begin_step(const Pass& pass, ssd::ExpertStore& store) {
  int32_t generated = 0;
  for (const BatchSlice& slice : pass.batch.slices) {
    if (pass.generated(slice.row_begin))
      generated += slice.rows;
    else
      store.forget(slice.sequence);
  }
  store.begin_step(generated);
  pass.ws.groups.plan(pass.batch.slices, generated, store);
}

// Nobody knows which rows an expert has spoiled that was not what it should have been.
void Decoder::end_step(const Pass& pass, ssd::ExpertStore& store) {
  store.end_step();
  if (store.doubt().empty()) return;
  for (size_t i = 0; i < pass.batch.slices.size(); ++i)
    pass.client.on_failed(static_cast<int32_t>(i), store.doubt());
}

}  // namespace weir::model
