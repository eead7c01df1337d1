#include "model/layers/moe.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "model/layers/router.h"

namespace weir::model {

MoeLayer::MoeLayer(const LayerSource& source, const Moe& spec, ExpertBank& bank)
    : spec_(spec), hidden_(source.hidden), output_(SublayerOutput::bind(source)), bank_(bank) {
  WeightBinder& binder = source.binder;
  const int layer = source.stored_layer();
  // Routing is discrete: a rounding error there is not a small one.
  router_ = binder.linear(layer, "mlp.gate", spec_.choices(), hidden_, spec_.router.bias,
                          Precision::kFloatActivations);
  if (spec_.router.selection_bias)
    selection_bias_ = binder.vector(layer, "mlp.gate.e_score_correction_bias", spec_.choices(), 0,
                                    /*bare=*/true);
  if (spec_.router.token_table > 0)
    token_experts_ = binder.choices(layer, "mlp.gate.tid2eid", spec_.router.token_table,
                                    spec_.top_k, spec_.choices());
  if (spec_.router.own_norm)
    router_norm_ = binder.vector(layer, "mlp.gate.scale", hidden_, 0, /*bare=*/true);
  if (spec_.router.expert_scale)
    expert_scale_ =
        binder.vector(layer, "mlp.gate.expert_scale", spec_.num_experts, 0, /*bare=*/true);
  bound_ = bank_.bind(binder, layer, spec_, hidden_);
  if (spec_.shared)
    shared_ = FfnWeights::bind(binder, layer, "mlp.shared_expert", *spec_.shared, hidden_);
  if (spec_.shared_gate)
    shared_gate_ = binder.linear(layer, "mlp.shared_expert_gate", 1, hidden_, false,
                                 Precision::kFloatActivations);
  if (binder.failed()) return;
  uint8_t forms = 0;
  const auto add = [&](const FfnWeights& ffn) {
    forms |= ffn.input_forms();
    column_multiple_ = std::max(column_multiple_, ffn.column_multiple());
  };
  for (const FfnWeights& expert : bound_.experts) add(expert);
  if (shared_) add(*shared_);
  input_ = SublayerInput::bind(source, forms);
  ask_scratch(source.scratch);
}

MoeLayer::RouteBuffers::RouteBuffers(ScratchPlan& scratch, BufferUse use, int32_t inputs,
                                     int32_t floats, int32_t top_k)
    : input(scratch.ask<float>(use, {.per_row = inputs})),
      scores(scratch.ask<float>(use, {.per_row = floats})),
      choice(scratch.ask<int32_t>(use, {.per_row = top_k})),
      weight(scratch.ask<float>(use, {.per_row = top_k})) {}

MoeLayer::Routes MoeLayer::RouteBuffers::at(const Pass& pass) const {
  return {.input = pass.ws.at(input),
          .scores = pass.ws.at(scores),
          .choice = pass.ws.at(choice),
          .weight = pass.ws.at(weight)};
}

void MoeLayer::ask_scratch(ScratchPlan& scratch) {
  const int32_t experts = spec_.choices(), top_k = spec_.top_k;
  routes_ = {scratch, BufferUse::kEntered, router_norm_ == nullptr ? 0 : hidden_,
             router_floats(spec_.router, experts), top_k};
  // The next layer's router may have another style.
  if (bank_.reads()) seen_ = {scratch, BufferUse::kComputing, hidden_, 2 * experts, top_k};
  plan_ = {scratch, spec_.num_experts, spec_.top_k, spec_.weighs_input};
  inner_ = InnerBuffers::ask(scratch, bound_.experts, spec_.top_k);
  expert_out_ =
      scratch.ask<float>(BufferUse::kComputing, {.per_row = int64_t{spec_.top_k} * hidden_});
  sum_ = scratch.ask<float>(BufferUse::kComputing, {.fixed = hidden_, .per_member = true});
  if (!shared_) return;
  shared_inner_ = InnerBuffers::ask(scratch, {&*shared_, 1}, 1);
  shared_out_ = scratch.ask<float>(BufferUse::kComputing, {.per_row = hidden_});
  shared_weight_ = scratch.ask<float>(BufferUse::kEntered, {.per_row = 1});
}

LayerFacts MoeLayer::facts() const {
  const FfnWeights& expert = bound_.experts[0];
  LayerFacts facts = {.weight_bytes = spec_.top_k * expert.weight_bytes(),
                      .macs = spec_.top_k * expert.macs(),
                      .reads = bank_.reads() ? this : nullptr};
  facts.add(router_);
  if (!shared_) return facts;
  facts.weight_bytes += shared_->weight_bytes();
  facts.macs += shared_->macs();
  facts.add(shared_gate_);
  return facts;
}

void MoeLayer::enter(const Pass& pass, int32_t begin, int32_t end) const {
  input_.enter(pass, begin, end);
  route(pass, begin, end);
}

void MoeLayer::route(const Pass& pass, int32_t begin, int32_t end) const {
  const trace::Scope scope(trace::Kind::kKernel, "router");
  choose_rows(pass, begin, end, routes_.at(pass));
  const Activations in = {.x = pass.normed(), .first_row = begin};
  const int32_t rows = end - begin;
  if (spec_.shared_gate) {
    float* weight = pass.ws.at(shared_weight_) + begin;
    multiply(pass, shared_gate_, in, {.rows = rows, .end = 1, .y = weight, .y_stride = 1});
    for (int32_t row = 0; row < rows; ++row) weight[row] = 1 / (1 + std::exp(-weight[row]));
  }
}

// Returns how many others there are; the order of both kinds stays. From there on it chose none.
int32_t MoeLayer::put_zero_experts_last(int32_t* choice, float* weight) const {
  if (spec_.zero_experts == 0) return spec_.top_k;
  int32_t real = 0;
  for (int32_t rank = 0; rank < spec_.top_k; ++rank) {
    if (choice[rank] >= spec_.num_experts) continue;
    std::rotate(choice + real, choice + rank, choice + rank + 1);
    std::rotate(weight + real, weight + rank, weight + rank + 1);
    ++real;
  }
  std::fill(choice + real, choice + spec_.top_k, kNoExpert);
  return real;
}

// Of the row's token; null where experts are chosen by their scores.
const int32_t* MoeLayer::given_experts(const Pass& pass, int32_t row) const {
  if (token_experts_ == nullptr) return nullptr;
  // A place that holds a vector in place of a token is as token 0.
  const bool vector = pass.batch.vector_of(row, hidden_) != nullptr;
  const int32_t token = vector ? 0 : pass.batch.token_of(row);
  CHECK(token >= 0 && token < spec_.router.token_table);
  return token_experts_ + int64_t{token} * spec_.top_k;
}

// What this router makes of Pass::normed().
void MoeLayer::choose_rows(const Pass& pass, int32_t begin, int32_t end, const Routes& to) const {
  Activations in = {.x = pass.normed(), .first_row = begin};
  if (router_norm_ != nullptr) {
    in.x = to.input;
    for (int64_t row = begin; row < end; ++row)
      pass.ops.rms_norm(pass.ws.residual.row(row), router_norm_, spec_.router.norm_eps, hidden_,
                        to.input + row * hidden_);
  }
  const int32_t experts = spec_.choices();
  const int32_t floats = router_floats(spec_.router, experts);
  float* scores = to.scores + int64_t{begin} * floats;
  const kernels::GemmRange range = {
      .rows = end - begin, .end = experts, .y = scores, .y_stride = floats};
  multiply(pass, router_, in, range);
  add_bias(pass.ops, router_, range);
  for (int64_t row = begin; row < end; ++row, scores += floats) {
    int32_t* choice = to.choice + row * spec_.top_k;
    float* weight = to.weight + row * spec_.top_k;
    if (spec_.router.logit_scale != 1) pass.ops.scale(spec_.router.logit_scale, experts, scores);
    choose(pass.ops, spec_.router, experts, spec_.top_k, selection_bias_,
           given_experts(pass, static_cast<int32_t>(row)), scores, choice, weight);
    const int32_t real = put_zero_experts_last(choice, weight);
    for (int32_t rank = 0; expert_scale_ != nullptr && rank < real; ++rank)
      weight[rank] *= expert_scale_[choice[rank]];
  }
  if (RouteHook* hook = bank_.route_hook()) hook->replace(pass, answers(to), begin, end);
}

Routing MoeLayer::answers(const Routes& routes) const {
  return {.layer = bound_.number,
          .top_k = spec_.top_k,
          .early = routes.early,
          .choice = routes.choice,
          .weight = routes.weight};
}

void MoeLayer::tell(const Pass& pass, const Routes& routes) const {
  if (RouteHook* hook = bank_.route_hook()) hook->observe(pass, answers(routes));
}

// The next layer's router on this layer's input: what it would say if this layer changed nothing.
void MoeLayer::look_ahead(const Pass& pass) const {
  const trace::Scope scope(trace::Kind::kKernel, "look_ahead");
  Routes seen = seen_.at(pass);
  seen.early = true;
  claim_blocks(pass, pass.rows(), [&](int64_t block) {
    const auto row = static_cast<int32_t>(block);
    if (pass.generated(row)) next_->choose_rows(pass, row, row + 1, seen);
  });
}

// What these rows lack is read while others attend and are routed.
void MoeLayer::expect(const Pass& pass, const RowRange& rows) const {
  const auto choices = static_cast<size_t>(rows.count()) * static_cast<size_t>(spec_.top_k);
  bank_.expect(bound_.number,
               {pass.ws.at(routes_.choice) + int64_t{rows.begin} * spec_.top_k, choices});
}

void MoeLayer::compute(const Pass& pass, const RowRange&, const kernels::NextWeights& after) const {
  const ExpertPlan& plan = plan_.make(pass, pass.ws.at(routes_.choice), pass.ws.at(routes_.weight));
  if (pass.member == 0) tell(pass, routes_.at(pass));
  for (std::optional<ExpertBank::Wave> wave = bank_.begin(pass, bound_.number, plan); wave;
       wave = bank_.next(pass, *wave))
    compute_wave(pass, *wave, wave->last ? after : kernels::NextWeights{});
}

void MoeLayer::compute_wave(const Pass& pass, const ExpertBank::Wave& wave,
                            const kernels::NextWeights& after) const {
  const bool leader = pass.member == 0;
  const bool shared = wave.turn == 0 && shared_.has_value();
  const bool looks = wave.looks_ahead && next_ != nullptr;
  const Group first = {.places = wave.activate, .shared = shared};
  if (leader) clear_failed(pass, wave);
  if (looks) look_ahead(pass);
  if (looks || !first.empty()) {
    activate(pass, first);
    pass.team.barrier(pass.member);
  }
  if (leader && looks) {
    Routes seen = seen_.at(pass);
    seen.early = true;
    next_->tell(pass, seen);
    bank_.looked_ahead(pass, next_->bound_.number, seen.choice);
  }
  project_down(pass, {.places = wave.down, .shared = shared}, after);
}

// Rows of an expert that cannot be read go on with zeros, so that what is computed beside them
// meets numbers; their slices have failed.
void MoeLayer::clear_failed(const Pass& pass, const ExpertBank::Wave& wave) const {
  const ExpertPlan& p = plan_.at(pass);
  for (const int32_t place : wave.failed) {
    const int32_t e = p.active[place];
    float* out = pass.ws.at(expert_out_);
    std::fill(out + int64_t{p.begin[e]} * hidden_, out + int64_t{p.begin[e + 1]} * hidden_, 0.0f);
  }
}

namespace {

// Blocks of columns of some of the active experts, then of the shared one.
struct ExpertColumns {
  int32_t width = 0;         // Of an expert.
  int32_t shared_width = 0;  // Of the shared one.
  int32_t size = 0;          // Columns of a block.
  int64_t blocks = 0;        // Of one expert.
  int64_t routed = 0;        // Of all active experts.
  int64_t total = 0;

  // `rows`: of one of the experts, on average.
  ExpertColumns(const Pass& pass, int64_t active, int32_t rows, int32_t one, int32_t shared,
                int64_t column_bytes, int32_t multiple)
      : width(one), shared_width(shared) {
    size = column_block(pass, rows, active * width + shared_width, column_bytes, multiple);
    blocks = (width + size - 1) / size;
    routed = active * blocks;
    total = routed + (shared_width + size - 1) / size;
  }

  // A block's expert, by its index among them, or -1 for the shared one.
  int64_t expert(int64_t block) const { return block < routed ? block / blocks : -1; }
  ColumnRange columns(int64_t block) const {
    const bool is_routed = block < routed;
    const auto at = static_cast<int32_t>(is_routed ? block % blocks : block - routed);
    return {0, at * size, std::min((at + 1) * size, is_routed ? width : shared_width)};
  }
};

}  // namespace

// Of one of the group's experts, on average; all of the step's where there is only the shared one.
int32_t MoeLayer::rows_of(const Pass& pass, const ExpertPlan& p, const Group& group) {
  if (group.places.empty()) return pass.rows();
  int64_t rows = 0;
  for (const int32_t place : group.places) rows += p.rows_of(p.active[place]);
  return static_cast<int32_t>(rows / std::ssize(group.places));
}

void MoeLayer::activate(const Pass& pass, const Group& group) const {
  if (group.empty()) return;
  const trace::Scope scope(trace::Kind::kKernel, "gate_up_proj");
  const ExpertPlan& p = plan_.at(pass);
  const Activations in = {
      .x = pass.normed(), .forms = &pass.normed_forms(), .prompt_begin = pass.prompt_begin};
  const ExpertColumns shares(pass, std::ssize(group.places), rows_of(pass, p, group),
                             spec_.expert.width, group.shared ? shared_->spec.width : 0,
                             bound_.experts[0].first().column_bytes(), column_multiple_);
  claim_in_shares(pass, shares.total, [&](int64_t block, int64_t next_block) {
    const int32_t place = group.place(shares.expert(block));
    const FfnWeights& ffn = network(p, place);
    kernels::NextWeights next;
    if (next_block >= 0)
      next = network(p, group.place(shares.expert(next_block)))
                 .first_weights(shares.columns(next_block));
    if (place < 0) {
      ffn.activate(pass, in, {.count = pass.rows()}, shares.columns(block), next,
                   shared_inner_.at(pass));
      return;
    }
    const int32_t e = p.active[place];
    FfnWeights::Inner inner = inner_.at(pass);
    inner.row = p.begin[e];
    inner.prompt_begin = p.prompt_begin[e];
    const FfnWeights::Rows rows = {.index = p.row + p.begin[e],
                                   .count = p.rows_of(e),
                                   .weight = p.weight ? p.weight + p.begin[e] : nullptr};
    ffn.activate(pass, in, rows, shares.columns(block), next, inner);
  });
}

void MoeLayer::project_down(const Pass& pass, const Group& group,
                            const kernels::NextWeights& after) const {
  if (group.empty()) return;
  const trace::Scope scope(trace::Kind::kKernel, "down_proj");
  const ExpertPlan& p = plan_.at(pass);
  const ExpertColumns shares(pass, std::ssize(group.places), rows_of(pass, p, group), hidden_,
                             group.shared ? hidden_ : 0, bound_.experts[0].down.column_bytes(), 64);
  claim_in_shares(pass, shares.total, [&](int64_t block, int64_t next_block) {
    const int32_t place = group.place(shares.expert(block));
    const FfnWeights& ffn = network(p, place);
    const FfnWeights::Inner rows = (place < 0 ? shared_inner_ : inner_).at(pass);
    Activations in = {.x = rows.hidden, .forms = rows.forms, .prompt_begin = rows.prompt_begin};
    const ColumnRange columns = shares.columns(block);
    kernels::GemmRange range = {
        .rows = pass.rows(), .begin = columns.begin, .end = columns.end, .y_stride = hidden_};
    if (place < 0) {
      range.y = pass.ws.at(shared_out_);
    } else {
      const int32_t e = p.active[place];
      in.first_row = p.begin[e];
      in.prompt_begin = p.prompt_begin[e];
      in.pass_rows = p.row + p.begin[e];
      range.rows = p.rows_of(e);
      range.y = pass.ws.at(expert_out_) + int64_t{p.begin[e]} * hidden_;
    }
    range.next = after;
    if (next_block >= 0) {
      const ColumnRange next = shares.columns(next_block);
      range.next = next_weights(network(p, group.place(shares.expert(next_block))).down, next.begin,
                                next.end);
    }
    multiply(pass, ffn.down, in, range);
    add_bias(pass.ops, ffn.down, range);
  });
}

void MoeLayer::leave(const Pass& pass, int32_t begin, int32_t end) const {
  const ExpertPlan& p = plan_.at(pass);
  const float* weight = pass.ws.at(routes_.weight);
  float* sum = pass.ws.at(sum_, pass.member);
  for (int32_t row = begin; row < end; ++row) {
    std::fill(sum, sum + hidden_, 0.0f);
    for (int64_t i = int64_t{row} * spec_.top_k; i < int64_t{row + 1} * spec_.top_k; ++i) {
      const float* given = p.slot[i] < 0 ? pass.normed() + int64_t{row} * hidden_
                                         : pass.ws.at(expert_out_) + int64_t{p.slot[i]} * hidden_;
      pass.ops.add_scaled(given, spec_.weighs_input && p.slot[i] >= 0 ? 1 : weight[i], hidden_,
                          sum);
    }
    if (shared_)
      pass.ops.add_scaled(pass.ws.at(shared_out_) + int64_t{row} * hidden_,
                          spec_.shared_gate ? pass.ws.at(shared_weight_)[row] : 1, hidden_, sum);
    output_.add_row(pass, sum, row);
  }
}

}  // namespace weir::model
