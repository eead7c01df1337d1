// Attention in which every row of a view sees every other one, or those of its window: the kernels
// of the text's attention, over pages that hold the keys and values of one pass.
#include <numeric>

#include "encoder/layers/products.h"
#include "encoder/layers/residual.h"
#include "model/batch.h"

namespace weir::encoder {

namespace {

using kernels::kPageTokens;

// Rows of a claim of attention: so many queries share the keys that a kernel has widened.
constexpr int32_t kQueryRows = 128;
// What the exponential of a score takes beside its products, in multiply-adds of these.
constexpr int64_t kWorkOfScore = 32;

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const LayerSource& source, const Attention& op)
      : op_(op),
        width_(source.width),
        inner_(op.heads * op.head_dim),
        step_(head_step(source, op)),
        spread_(op.heads * step_),
        exact_(source.exact),
        rope_(source.spec.rope),
        pre_(source.binder.norm(*source.stage.pre, source.width)),
        in_(source.width),
        out_(inner_),
        output_(source, source.width),
        angles_(source.angles),
        normed_(ask<float>(source, {.per_row = source.width})),
        qkv_(ask<float>(source, {.per_row = int64_t{3} * spread_})),
        attended_(ask<float>(source, {.per_row = spread_})),
        pages_(ask<std::byte>(source, {.per_row = token_bytes(),
                                       .fixed = int64_t{kViewsMax} * kPageTokens * token_bytes()})),
        page_numbers_(ask<int32_t>(source, {.per_row = 1, .fixed = kViewsMax})) {
    if (op.fused.empty())
      for (const std::string* module : {&op.q, &op.k, &op.v})
        in_.add(source, *module, inner_, op.bias && (module != &op.k || op.key_bias), op.clipped);
    else
      in_.add(source, op.fused, 3 * inner_, op.bias);
    in_.finish_adding(source);
    out_.add(source, op.out, source.width, op.out_bias, op.clipped);
    out_.finish_adding(source);
    const int32_t normed = op.norms_heads ? op.head_dim : inner_;
    if (op.q_norm) q_norm_ = source.binder.norm(*op.q_norm, normed);
    if (op.k_norm) k_norm_ = source.binder.norm(*op.k_norm, normed);
    if (op.v_norm) v_norm_ = source.binder.norm(*op.v_norm, normed);
  }

  bool moves_rows() const override { return false; }

  void run(const Pass& pass) const override {
    float* normed = pass.ws.at(normed_);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      if (begin == 0) number_pages(pass);
      for (int32_t r = begin; r < end; ++r)
        normalise(pass.ops, pre_, pass.rows + int64_t{r} * width_, width_,
                  normed + int64_t{r} * width_);
      in_.prepare(pass, normed, begin, end);
    });
    pass.barrier();
    project(pass);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r) place(pass, r);
    });
    pass.barrier();
    attend(pass);
    pass.barrier();
    const float* given = gather_heads(pass);
    out_.run(pass, given, 0, pass.count(), [&](const Block& block) { output_.take(pass, block); });
    output_.finish(pass);
  }

 private:
  template <class T>
  static model::Buffer<T> ask(const LayerSource& source, const model::BufferSize& size) {
    return source.scratch.ask<T>(model::BufferUse::kComputing, size);
  }
  // Kernels that multiply in bf16 take heads of whole steps of k: others are filled up with zeros.
  static int32_t head_step(const LayerSource& source, const Attention& op) {
    constexpr int32_t kStep = 32;
    const bool plain = source.exact || source.ops.attend_prompt == source.ops.attend;
    const bool joint = !op.norms_heads && (op.q_norm || op.k_norm || op.v_norm);
    return plain || joint ? op.head_dim : (op.head_dim + kStep - 1) / kStep * kStep;
  }

  // What a token takes in the pages, all heads.
  int64_t token_bytes() const { return int64_t{2} * spread_ * (exact_ ? 4 : 2); }
  kernels::KvPages pages(const Pass& pass) const {
    const int64_t head_bytes = token_bytes() / op_.heads * kPageTokens;
    return {.base = reinterpret_cast<uint8_t*>(pass.ws.at(pages_)),
            .page_bytes = head_bytes * op_.heads,
            .head_bytes = head_bytes,
            .kv_heads = op_.heads,
            .k_dim = step_,
            .v_dim = step_,
            .type = exact_ ? kernels::FloatType::kF32 : kernels::FloatType::kF16};
  }
  // A view's pages begin at that of its first row, where as many views as come before it have each
  // left the rest of one.
  static int32_t first_page(const Pass& pass, const View& view) {
    return view.row_begin / kPageTokens + static_cast<int32_t>(&view - pass.views.data());
  }

  void number_pages(const Pass& pass) const {
    int32_t* numbers = pass.ws.at(page_numbers_);
    std::iota(numbers, numbers + pass.count() / kPageTokens + pass.views.size() + 1, 0);
  }

  void project(const Pass& pass) const {
    float* qkv = pass.ws.at(qkv_);
    in_.run(pass, pass.ws.at(normed_), 0, pass.count(), [&](const Block& block) {
      const auto first = static_cast<int32_t>(block.weight) * inner_;
      for (int32_t r = 0; r < block.rows; ++r)
        spread(block.row_of(r), first + block.begin, first + block.end,
               qkv + int64_t{block.row + r} * 3 * spread_);
    });
  }

  // Columns [begin, end) of a row of heads that lie side by side, to where they lie in steps.
  void spread(const float* x, int32_t begin, int32_t end, float* row) const {
    while (begin < end) {
      const int32_t head = begin / op_.head_dim, at = begin % op_.head_dim;
      const int32_t count = std::min(op_.head_dim - at, end - begin);
      std::copy_n(x, count, row + int64_t{head} * step_ + at);
      x += count;
      begin += count;
    }
  }

  // What the heads have given, side by side, in the forms that the output's weight wants.
  const float* gather_heads(const Pass& pass) const {
    const float* attended = pass.ws.at(attended_);
    const bool apart = step_ != op_.head_dim;
    if (!apart && !out_.prepares()) return attended;
    // Queries, keys and values are done with.
    float* gathered = pass.ws.at(qkv_);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; apart && r < end; ++r)
        for (int32_t h = 0; h < op_.heads; ++h)
          std::copy_n(attended + (int64_t{r} * op_.heads + h) * step_, op_.head_dim,
                      gathered + int64_t{r} * inner_ + int64_t{h} * op_.head_dim);
      out_.prepare(pass, apart ? gathered : attended, begin, end);
    });
    pass.barrier();
    return apart ? gathered : attended;
  }

  void norm_heads(const Pass& pass, const std::optional<model::NormWeights>& norm, float* x) const {
    if (!norm) return;
    if (!op_.norms_heads) return normalise(pass.ops, *norm, x, inner_, x);
    for (int32_t at = 0; at < spread_; at += step_)
      normalise(pass.ops, *norm, x + at, op_.head_dim, x + at);
  }

  void turn_heads(const Pass& pass, int32_t row, float* x) const {
    const float* cos = pass.ws.at(angles_) + int64_t{row} * op_.head_dim;
    const float* sin = cos + op_.head_dim / 2;
    if (rope_.kind != Rope::kHalves) {
      pass.ops.rope(x, op_.heads, step_, op_.head_dim, cos, sin, rope_.kind == Rope::kNeighbours);
      return;
    }
    const int32_t half = op_.head_dim / 2;
    for (const int32_t part : {0, 1})
      pass.ops.rope(x + part * half, op_.heads, step_, half, cos + part * half / 2,
                    sin + part * half / 2, false);
  }

  // Norms and turns a row's query and key, and puts its key and value into the pages.
  void place(const Pass& pass, int32_t row) const {
    const View& view = view_of(pass.views, row);
    float* q = pass.ws.at(qkv_) + int64_t{row} * 3 * spread_;
    float* k = q + spread_;
    float* v = k + spread_;
    for (int32_t h = 0; h < 3 * op_.heads; ++h)
      std::fill(q + h * step_ + op_.head_dim, q + (h + 1) * step_, 0.0f);
    norm_heads(pass, q_norm_, q);
    norm_heads(pass, k_norm_, k);
    norm_heads(pass, v_norm_, v);
    if (rope_.kind != Rope::kNone) {
      turn_heads(pass, row, q);
      turn_heads(pass, row, k);
    }
    const int32_t at = row - view.row_begin;
    const int32_t page = first_page(pass, view) + at / kPageTokens;
    const kernels::KvPages kv = pages(pass);
    pass.ops.store_keys(kv, page, at % kPageTokens, 0, op_.heads, k);
    pass.ops.store_values(kv, page, at % kPageTokens, 0, op_.heads, v);
  }

  // Rows of a view that see each other.
  struct Span {
    const View* view = nullptr;
    int32_t begin = 0, end = 0;

    int32_t rows() const { return end - begin; }
    int32_t blocks() const { return (rows() + kQueryRows - 1) / kQueryRows; }
  };
  Span span_from(const View* view, int32_t begin) const {
    return {view, begin, op_.windows ? view->window_end(begin) : view->rows()};
  }
  Span span_after(const Span& span) const {
    return span.end < span.view->rows() ? span_from(span.view, span.end)
                                        : span_from(span.view + 1, 0);
  }

  void attend(const Pass& pass) const {
    int64_t claims = 0;
    int32_t longest = 0;
    for (const View& view : pass.views)
      for (int32_t row = 0; row < view.rows();) {
        const Span span = span_from(&view, row);
        claims += int64_t{span.blocks()} * op_.heads;
        longest = std::max(longest, span.rows());
        row = span.end;
      }
    const int64_t work = int64_t{std::min(kQueryRows, longest)} * longest *
                         (int64_t{2} * step_ + kWorkOfScore);
    Span span = span_from(pass.views.data(), 0);
    int64_t first = 0;  // Claims of the spans before.
    claim_blocks(pass, claims, work, [&](int64_t claim) {
      while (claim - first >= int64_t{span.blocks()} * op_.heads) {
        first += int64_t{span.blocks()} * op_.heads;
        span = span_after(span);
      }
      const auto head = static_cast<int32_t>((claim - first) / span.blocks());
      const auto block = static_cast<int32_t>((claim - first) % span.blocks());
      attend_rows(pass, *span.view, head, {span.begin, span.end},
                  span.begin + block * kQueryRows);
    });
  }
  // So many rows of a view as a claim has, from `row` on: they see those of `span`.
  void attend_rows(const Pass& pass, const View& view, int32_t head, model::Mask span,
                   int32_t row) const {
    const auto kernel = exact_ ? pass.ops.attend : pass.ops.attend_prompt;
    const int64_t at = view.row_begin + row, column = int64_t{head} * step_;
    kernel(pages(pass), {.q = pass.ws.at(qkv_) + at * 3 * spread_ + column,
                         .q_stride = int64_t{3} * spread_,
                         .out = pass.ws.at(attended_) + at * spread_ + column,
                         .out_stride = spread_,
                         .rows = std::min(kQueryRows, span.end - row),
                         .first_position = row,
                         .pages = pass.ws.at(page_numbers_) + first_page(pass, view),
                         .kv_head = head,
                         .scale = op_.scale,
                         .span_begin = span.begin,
                         .span_end = span.end,
                         .first_key = span.begin,
                         .scratch = pass.scratch()});
  }

  Attention op_;
  int32_t width_;
  int32_t inner_;   // Numbers of all heads, as weights have them,
  int32_t step_;    // and from one head to the next where they are attended with,
  int32_t spread_;  // so that all take so many.
  bool exact_;
  Rope rope_;
  model::NormWeights pre_;
  Products in_, out_;
  ResidualOutput output_;
  model::Buffer<float> angles_, normed_, qkv_, attended_;
  model::Buffer<std::byte> pages_;
  model::Buffer<int32_t> page_numbers_;
  std::optional<model::NormWeights> q_norm_, k_norm_, v_norm_;
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const Attention& op, int32_t&) {
  return std::make_unique<AttentionLayer>(source, op);
}

}  // namespace weir::encoder
