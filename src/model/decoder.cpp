#include "model/decoder.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "model/families.h"
#include "model/layers/make_layer.h"
#include "model/layers/moe.h"
#include "model/resident_bank.h"

namespace weir::model {

Decoder::Decoder(ModelSpec spec, const ModelOptions& options, const kernels::Ops& ops,
                 std::vector<FeatureTap> taps)
    : ops_(ops), taps_(std::move(taps)) {
  spec_ = std::move(spec);
  taps_last_ = std::ranges::count(taps_, sublayers(), &FeatureTap::sublayer) > 0;
  options_ = options;
  if (options.compute == Compute::kFast && ops.attend_prompt != ops.attend)
    prompts_differ_from_ = ops.prompts_in_bf16 ? 0 : ops.attend_prompt_from;
  for (const Sublayer& sublayer : spec_.sublayers)
    for (const kv::MemoryNeed& need : needs_of(sublayer)) needs_.push_back(need);
}

Result<std::unique_ptr<Decoder>> Decoder::bind(const card::ModelCard& card,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members) {
  WEIR_ASSIGN(ModelSpec spec, spec_from_config(card.config.root()));
  if (!options.draft) return bind(card, std::move(spec), options, ops, members);
  WEIR_ASSIGN(DraftSpec draft, draft_spec(spec, card, options.draft->card));
  WEIR_ASSIGN(auto decoder, bind(card, std::move(spec), options, ops, members, draft.taps));
  WEIR_TRY(decoder->bind_drafter(std::move(draft), card, members));
  return decoder;
}

Result<std::unique_ptr<Decoder>> Decoder::bind(const card::ModelCard& card, ModelSpec spec,
                                               const ModelOptions& options, const kernels::Ops& ops,
                                               int members, std::vector<FeatureTap> taps,
                                               const DecoderPlace& place) {
  std::unique_ptr<Decoder> decoder(new Decoder(std::move(spec), options, ops, std::move(taps)));
  decoder->checkpoint_ = card.tensors;
  std::string_view pairs;
  decoder->paired_rows_ =
      card.config.root()["rope_parameters"]["pairs"].get(pairs) == simdjson::SUCCESS &&
      pairs == "neighbours";
  WEIR_TRY(decoder->bind_weights(card.weights, place));
  WEIR_TRY(decoder->bind_media_tokens(card));
  WEIR_TRY(decoder->make_workspace(members));
  return decoder;
}

// Projectors of towers lie beside the text's tensors, under names of their own.
Result<void> Decoder::bind_media_tokens(const card::ModelCard& card) {
  WEIR_ASSIGN(const std::vector<MediaTokens> all, media_tokens(card.config.root()));
  if (all.empty()) return {};
  ModelSpec names;
  names.family = spec_.family;
  for (const MediaTokens& tokens : all)
    for (const std::string& module : tokens.modules)
      names.towers.push_back(module + ".soft_embedding_norm.");  // Of rows that come of a tower.
  WeightBinder binder(*checkpoint_, names, card.weights, {}, store_);
  media_ = std::make_unique<MediaEmbedding>(binder, all, spec_.hidden_size, scratch_);
  for (const MediaTokens& tokens : all)
    for (const std::string& module : tokens.modules) WEIR_TRY(binder.finish(module + "."));
  return {};
}

// Its layers remember in the same pages, after those of the model's own.
Result<void> Decoder::bind_drafter(DraftSpec draft, const card::ModelCard& card, int members) {
  WEIR_ASSIGN(drafter_, Drafter::bind(std::move(draft), *this, card, ops_, members));
  std::ranges::copy(drafter_->memory_needs(), std::back_inserter(needs_));
  options_.draft->card = nullptr;
  return {};
}

bool Decoder::pack_until(ThreadTeam& team, const std::function<void(int64_t, int64_t)>& progress,
                         Clock::time_point until) {
  return store_.pack(team, progress, until) &&
         (!drafter_ || drafter_->pack_until(team, progress, until));
}

WeightFiles Decoder::files() const {
  return {.all = checkpoint_->files(),
          .in_place = store_.mapped_files(),
          .fault = store_.fault(),
          .draft = drafter_ ? &drafter_->net() : nullptr};
}

Result<void> Decoder::bind_weights(const card::WeightFormat& format, const DecoderPlace& place) {
  const bool fast = options_.compute == Compute::kFast;
  WeightBinder binder(*checkpoint_, spec_, format,
                      {.int8 = fast,
                       .bf16_prompts = fast && ops_.prompts_in_bf16,
                       .quantise_bits = options_.quantise_bits,
                       .adapters = options_.adapter_rank > 0},
                      store_);
  if (options_.stream_experts) {
    WEIR_TRY(check_mapped());
    auto streamed = std::make_unique<StreamedBank>(*checkpoint_);
    streamed_ = streamed.get();
    bank_ = std::move(streamed);
    store_.copy_floats();
  } else {
    bank_ = std::make_unique<ResidentBank>(store_);
  }
  if (place.copies_floats) store_.copy_floats();
  if (place.embedding == nullptr) own_embedding_ = std::make_unique<Embedding>(binder, spec_);
  embedding_ = own_embedding_ ? own_embedding_.get() : place.embedding;
  if (spec_.features) features_ = std::make_unique<FeatureProjection>(binder, spec_, scratch_);
  left_ = scratch_.ask<float>(BufferUse::kWholePass, {.per_row = left_width()});
  if (spec_.token_inputs) token_table_ = std::make_unique<TokenTable>(binder, spec_, scratch_);
  if (spec_.hyper) hyper_ = std::make_unique<HyperStreams>(binder, spec_, scratch_);
  if (spec_.streams) streams_ = std::make_unique<StreamTable>(binder, spec_, scratch_);
  LayerBuilder builder(binder, spec_, *bank_, context_max(), ropes_, scratch_);
  builder.remember_after(place.memories);
  if (features_) builder.set_beside(features_->beside());
  for (const Sublayer& sublayer : spec_.sublayers) {
    layers_.push_back(
        builder.make_layer(sublayer, token_table_.get(), streams_.get(), hyper_.get()));
    // A config may ask for thousands of layers of thousands of experts, of which the file has none.
    if (binder.failed()) return binder.finish();
  }
  if (streamed_ != nullptr && streamed_->empty())
    return fail(ErrorCode::kConfig,
                "--stream-experts: expected a mixture-of-experts model; found " + spec_.family +
                    " without experts");
  for (const auto& layer : layers_) facts_.push_back(layer->facts());
  if (cross_layers() > 0) unnamed_.resize(static_cast<size_t>(options_.rows_max));
  layers_leave_nothing_ = std::ranges::all_of(facts_, &LayerFacts::leaves_nothing);
  head_ =
      std::make_unique<Head>(binder, spec_, *embedding_, streams_.get(), hyper_.get(), place.head);
  tally_ = binder.tally();
  modules_ = binder.take_modules();
  targets_ = binder.take_targets();
  return binder.finish(place.within);
}

Result<void> Decoder::check_mapped() const {
  for (const FileView& file : checkpoint_->files())
    if (!file.mapped() && !file.only_beginning())
      return fail(ErrorCode::kConfig,
                  "--stream-experts: expected a model in a folder (--model DIR); found one that is "
                  "compiled into the binary");
  return {};
}

Result<void> Decoder::make_workspace(int members) {
  WorkspaceSizes sizes;
  sizes.rows = options_.rows_max;
  const bool states = std::ranges::any_of(memory_needs(), [](const kv::MemoryNeed& need) {
    return std::holds_alternative<kv::StateNeed>(need);
  });
  sizes.replay_rows = states ? options_.draft_rows_max : 0;
  sizes.members = members;
  sizes.hidden = spec_.hidden_size;
  sizes.logit_rows = std::min(options_.rows_max, kLogitRowsMax);
  sizes.vocab = head_->weight().n;
  for (const Sublayer& sublayer : spec_.sublayers)
    if (sublayer.beside_token) sizes.input_width = 2 * spec_.hidden_size;
  sizes.adapter_rank = options_.adapter_rank;
  sizes.input_forms = scratch_.input_forms() | head_->forms();
  for (const RopeTable& rope : ropes_) sizes.rope_dims.push_back(rope.rope().dim);
  WEIR_ASSIGN(workspace_, Workspace::create(sizes, scratch_));
  if (streamed_ == nullptr || options_.slab_rows == 0) return {};
  sizes.rows = options_.slab_rows;
  sizes.replay_rows = 0;  // No slab has drafts.
  sizes.logit_rows = std::min(options_.slab_rows, kLogitRowsMax);
  WEIR_ASSIGN(slab_, Workspace::create(sizes, scratch_));
  return {};
}

void Decoder::give_back_scratch() {
  workspace_->give_back();
  if (drafter_) drafter_->give_back_scratch();
  if (slab_) slab_->give_back();
}

Result<std::shared_ptr<const Adapter>> Decoder::bind_adapter(const card::AdapterCard& card,
                                                             int64_t bytes_max) const {
  if (options_.adapter_rank == 0) return Model::bind_adapter(card, bytes_max);
  AdapterForm form = {.bf16 = options_.compute == Compute::kFast,
                      .paired_rows = paired_rows_,
                      .rank_max = options_.adapter_rank,
                      .bytes_max = bytes_max};
  for (const Sublayer& sublayer : spec_.sublayers)
    if (const auto* attention = std::get_if<Attention>(&sublayer.op)) {
      form.head_dim = attention->head_dim;
      break;
    }
  return Adapter::bind(card, targets_, form, ops_);
}

int64_t Decoder::adapter_bytes() const {
  const int64_t number_bytes = options_.compute == Compute::kFast ? 2 : 4;
  int64_t bytes = 0;
  for (const AdapterTarget& target : targets_)
    if (!target.table && target.module.find(".experts.") == std::string::npos)
      bytes += options_.adapter_rank * (int64_t{target.weight.n} + target.weight.k) * number_bytes;
  return bytes;
}

ModelMemory Decoder::memory() const {
  ModelMemory memory = {.packed_weights = store_.packed_bytes(),
                        .mapped_weights = store_.mapped_bytes(),
                        .scratch = workspace_->bytes() + (slab_ ? slab_->bytes() : 0),
                        .formats = tally_.formats(),
                        .parameters = tally_.numbers()};
  if (!drafter_) return memory;
  const ModelMemory drafts = drafter_->memory();
  memory.packed_weights += drafts.packed_weights;
  memory.mapped_weights += drafts.mapped_weights;
  memory.scratch += drafts.scratch;
  return memory;
}

TokenWork Decoder::token_work() const {
  TokenWork work = {.weight_bytes = head_->weight().weight_bytes(), .macs = head_->weight().macs()};
  for (const LayerFacts& facts : facts_) {
    work.weight_bytes += facts.weight_bytes;
    work.macs += facts.macs;
  }
  return work;
}

// Where the row stands, its angles, and what it begins with.
void Decoder::begin_row(const Pass& pass, int32_t row) const {
  Workspace& ws = pass.ws;
  const auto past = std::ranges::upper_bound(pass.batch.slices, row, {}, &BatchSlice::row_begin);
  const BatchSlice& slice = *(past - 1);
  const int32_t position = pass.batch.first(slice) + row - slice.row_begin;
  ws.position[row] = position;
  ws.slice[row] = static_cast<int32_t>(past - 1 - pass.batch.slices.begin());
  const int32_t length = std::max(slice.prompt_length, position + 1);
  for (size_t r = 0; r < ropes_.size(); ++r) {
    const auto dim = static_cast<size_t>(ropes_[r].rope().dim);
    const std::span own(ws.own_angles[r] + static_cast<size_t>(row) * dim, dim);
    ws.angles[r * static_cast<size_t>(pass.rows()) + static_cast<size_t>(row)] =
        ropes_[r].angles(pass.batch.rope_position(slice, row, position), length, own);
  }
  if (!pass.batch.features.of_row.empty()) return;  // FeatureProjection begins it.
  if (const float* vector = pass.batch.vector_of(row, spec_.hidden_size)) {
    std::copy_n(vector, spec_.hidden_size, ws.residual.begin_row(row));
  } else if (const int32_t token = pass.batch.token_of(row);
             !media_ || !media_->embed(pass, row, token)) {
    embedding_->embed(pass, row, token);
  }
  embedding_->finish(pass, row);
  if (hyper_) hyper_->begin_row(pass, row);
}

// Sublayer i is the first one after a layer of the checkpoint: what is added to rows after that one.
void Decoder::add_levels(const Pass& pass, size_t i, int32_t begin, int32_t end) const {
  const int32_t level = spec_.sublayers[i - 1].stored_layer;
  if (spec_.sublayers[i].stored_layer == level) return;
  for (const VectorRows& part : pass.batch.vectors) {
    if (level >= part.levels) continue;
    const float* const vectors = part.vectors + (level + 1) * part.level_stride;
    const int32_t last = std::min(end, part.row_begin + part.rows);
    for (int32_t row = std::max(begin, part.row_begin); row < last; ++row)
      pass.ws.residual.add_row(
          ops_, vectors + int64_t{row - part.row_begin} * spec_.hidden_size, 1, row);
  }
}

// From layer i - 1 to layer i. What is late is added when layer i has read.
void Decoder::enter(const Pass& pass, size_t i, const RowRange& rows) const {
  const auto enter_rows = [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "norm");
    const bool late = i > 0 && spec_.sublayers[i - 1].late;
    if (i > 0 && !late) layers_[i - 1]->leave(pass, begin, end);
    if (i > 0 && pass.has_levels) add_levels(pass, i, begin, end);
    layers_[i]->enter(pass, begin, end);
    if (late) layers_[i - 1]->leave(pass, begin, end);
    if (!pass.own_inputs || pass.member == 0) leave_taps(pass, static_cast<int32_t>(i), begin, end);
  };
  if (pass.own_inputs) return enter_rows(0, pass.rows());
  claim_rows(pass, rows, enter_rows);
  pass.team.barrier(pass.member);
}

// Rows [begin, end) as they enter a sublayer.
void Decoder::leave_taps(const Pass& pass, int32_t sublayer, int32_t begin, int32_t end) const {
  if (taps_.empty() || &pass.ws != workspace_.get()) return;
  const int32_t hidden = spec_.hidden_size;
  for (size_t t = 0; t < taps_.size(); ++t) {
    if (taps_[t].sublayer != sublayer) continue;
    float* const to =
        pass.ws.at(left_) + int64_t{begin} * left_width() + static_cast<int64_t>(t) * hidden;
    if (taps_[t].normed) {
      head_->normalise_stream(pass, begin, end, to, left_width());
      continue;
    }
    for (int64_t row = begin; row < end; ++row)
      std::copy_n(pass.ws.residual.row(row), hidden, to + (row - begin) * left_width());
  }
}

// All rows leave the last sublayer, not only those that something is wanted of.
void Decoder::leave_last(const Pass& pass) const {
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "norm");
    layers_.back()->leave(pass, begin, end);
    leave_taps(pass, sublayers(), begin, end);
  });
  pass.team.barrier(pass.member);
}

Pass Decoder::make_pass(const Forward& run, int member) const {
  const int32_t rows = run.batch.rows();
  const bool slab = run.lane == Lane::kSlab;
  bool adapted = false, has_levels = false;
  for (const BatchSlice& slice : run.batch.slices) adapted |= slice.adapter != nullptr;
  for (const VectorRows& part : run.batch.vectors) has_levels |= part.levels > 0;
  CHECK(!adapted || options_.adapter_rank > 0);
  CHECK(rows > 0 && rows <= (slab ? options_.slab_rows : options_.rows_max));
  return {.batch = run.batch,
          .kv = run.kv,
          .ops = ops_,
          .team = run.team,
          .ws = slab ? *slab_ : *workspace_,
          .sink = run.sink,
          .reads = member == 0 ? experts() : nullptr,
          .member = member,
          .prompt_begin = prompts_differ_from() ? run.batch.prompt_begin() : kNoPrompts,
          .own_inputs = layers_leave_nothing_ && rows <= Workspace::kOwnRows && !has_levels,
          .adapted = adapted,
          .has_levels = has_levels};
}

void Decoder::begin_rows(const Pass& pass) const {
  if (pass.adapted && pass.member == 0) pass.ws.adapted.plan(pass.batch);
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    const trace::Scope scope(trace::Kind::kKernel, "embed");
    for (int32_t row = begin; row < end; ++row) begin_row(pass, row);
  });
  pass.team.barrier(pass.member);
  if (!pass.batch.features.of_row.empty()) features_->begin(pass, *embedding_);
  if (token_table_) token_table_->begin(pass);
  if (streams_) streams_->begin(pass);
}

// Layer i, and the way to the next. Where that reads experts from disk, it learns of those of the
// first rows before the others attend.
void Decoder::compute(const Pass& pass, size_t i) const {
  const Layer& layer = *layers_[i];
  if (i + 1 == layers_.size())
    return layer.compute(pass, pass.all_rows(), head_->first_weights(pass));
  const MoeLayer* const reads = facts_[i + 1].reads;
  RowRange rows = pass.all_rows();
  if (facts_[i].takes_groups && reads != nullptr && pass.ws.groups.cut() > 0) {
    const RowRange first = {0, pass.ws.groups.cut()};
    layer.compute(pass, first, {});
    enter(pass, i + 1, first);
    if (pass.member == 0) reads->expect(pass, first);
    rows.begin = first.end;
  }
  layer.compute(pass, rows, layers_[i + 1]->first_weights(pass));
  enter(pass, i + 1, rows);
}

void Decoder::forward(const Forward& run, int member) {
  const trace::Scope scope(trace::Kind::kWhole, run.lane == Lane::kSlab ? "slab" : "forward",
                           run.batch.rows());
  CHECK(run.begin >= 0 && run.begin < run.end && run.end <= sublayers());
  const Pass pass = make_pass(run, member);
  if (run.begin == 0) begin_rows(pass);
  if (pass.reads) begin_step(pass, *pass.reads);
  // All members look at the groups of rows that begin_step() has planned.
  if (experts() != nullptr) pass.team.barrier(member);
  if (run.begin == 0) {
    enter(pass, 0, pass.all_rows());
    // The others claim the first layer's work meanwhile.
    if (member == 0) run.sink.while_beginning();
  }
  for (int32_t i = run.begin; i < run.end; ++i) {
    if (i + 1 == sublayers() && member == 0) run.sink.while_ending();
    compute(pass, static_cast<size_t>(i));
  }
  if (pass.reads) end_step(pass, *pass.reads);
  if (run.end != sublayers()) return;
  if (taps_last_) leave_last(pass);
  head_->forward(pass, taps_last_ ? nullptr : layers_.back().get());
}

void Decoder::remember(const Forward& run, int member) {
  Pass pass = make_pass(run, member);
  pass.own_inputs = false;
  begin_rows(pass);
  for (const auto& layer : layers_) layer->remember(pass);
}

const Layer& Decoder::cross_layer(int32_t index) const {
  size_t i = 0;
  for (; i < layers_.size(); ++i)
    if (std::holds_alternative<CrossAttention>(spec_.sublayers[i].op) && index-- == 0) break;
  CHECK(i < layers_.size());
  return *layers_[i];
}

// The rows are those of a prompt to the arithmetic: so a slot is filled as fast as can be, and its
// bits do not depend on what attends to it.
void Decoder::fill_cross(const CrossFill& fill, int member) {
  const trace::Scope scope(trace::Kind::kWhole, "fill", fill.count);
  class Nothing final : public RowSink {
    void on_rows(int32_t, int32_t, Rows, int) override {}
  } nothing;
  const BatchSlice slice = {.rows = fill.count,
                            .first_position = fill.first,
                            .prompt_length = fill.first + fill.count,
                            .memory = {.cross = fill.slot}};
  const Batch batch = {.tokens = std::span(unnamed_).first(static_cast<size_t>(fill.count)),
                       .slices = std::span(&slice, 1)};
  Pass pass = make_pass({.batch = batch, .kv = fill.kv, .sink = nothing, .team = fill.team}, member);
  pass.own_inputs = false;
  pass.reads = nullptr;
  claim_rows(pass, pass.all_rows(), [&](int32_t begin, int32_t end) {
    for (int32_t row = begin; row < end; ++row)
      std::copy_n(fill.rows + int64_t{row} * spec_.hidden_size, spec_.hidden_size,
                  pass.ws.residual.begin_row(row));
  });
  pass.team.barrier(pass.member);
  cross_layer(fill.layer).remember(pass);
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

// It is not known which rows an expert has spoiled that was not what it should have been.
void Decoder::end_step(const Pass& pass, ssd::ExpertStore& store) {
  store.end_step();
  if (store.doubt().empty()) return;
  for (size_t i = 0; i < pass.batch.slices.size(); ++i)
    pass.sink.on_failed(static_cast<int32_t>(i), store.doubt());
}

}  // namespace weir::model
