// Attention in which every row of a view sees every other one, or those of its window: over pages
// that hold the keys and values of one pass, in bf16 (kernels/span_ops.h) or, where that is not
// wanted or not fast, as floats, by the kernels of the text's attention.
#include <numeric>

#include "encoder/layers/products.h"
#include "encoder/layers/residual.h"
#include "kernels/span_ops.h"

namespace weir::encoder {

namespace {

using kernels::kPageTokens;

// Rows of a claim of attention. As floats so many queries share the keys that a kernel has widened.
// In bf16 what 4,096 rows hold for a head of 72, 1.5 MB, is read again for each claim, from beyond
// the second-level cache: with so many rows 2 bytes a cycle, as tiles compute, 1 as vectors do.
constexpr int32_t kFloatRows = 128;
constexpr int32_t kSpanRows = 256;
// What the exponential of a score takes beside its products, in multiply-adds of these.
constexpr int64_t kWorkOfScore = 32;

class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const LayerSource& source, const Attention& op)
      : op_(op),
        width_(source.width),
        inner_(op.heads * op.head_dim),
        in_spans_(source.spans && op.head_dim <= kernels::kSpanDimsMax && op.scale > 0),
        exact_(source.exact),
        rope_(source.spec.rope),
        pre_(source.binder.norm(*source.stage.pre, source.width)),
        in_(source.width),
        out_(inner_),
        output_(source, source.width),
        angles_(source.angles),
        normed_(ask<float>(source, {.per_row = source.width})),
        qkv_(ask<float>(source, {.per_row = int64_t{3} * inner_})),
        attended_(ask<float>(source, {.per_row = inner_})),
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
    place(pass);
    pass.barrier();
    attend(pass);
    pass.barrier();
    const float* attended = pass.ws.at(attended_);
    if (out_.prepares()) {
      claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
        out_.prepare(pass, attended, begin, end);
      });
      pass.barrier();
    }
    out_.run(pass, attended, 0, pass.count(),
             [&](const Block& block) { output_.take(pass, block); });
    output_.finish(pass);
  }

 private:
  template <class T>
  static model::Buffer<T> ask(const LayerSource& source, const model::BufferSize& size) {
    return source.scratch.ask<T>(model::BufferUse::kComputing, size);
  }
  // What a token takes in the pages, all heads.
  int64_t token_bytes() const {
    if (in_spans_)
      return op_.heads * kernels::span_page_numbers(op_.head_dim) * 2 / kPageTokens;
    return int64_t{2} * inner_ * (exact_ ? 4 : 2);
  }
  kernels::KvPages pages(const Pass& pass) const {
    const int64_t head_bytes = token_bytes() / op_.heads * kPageTokens;
    return {.base = reinterpret_cast<uint8_t*>(pass.ws.at(pages_)),
            .page_bytes = head_bytes * op_.heads,
            .head_bytes = head_bytes,
            .kv_heads = op_.heads,
            .k_dim = op_.head_dim,
            .v_dim = op_.head_dim,
            .type = exact_ ? kernels::FloatType::kF32 : kernels::FloatType::kF16};
  }
  static int32_t pages_of(const View& view) {
    return (view.rows() + kPageTokens - 1) / kPageTokens;
  }
  // A view's pages begin at that of its first row, where as many views as come before it have each
  // left the rest of one.
  static int32_t first_page(const Pass& pass, const View& view) {
    return view.row_begin / kPageTokens + static_cast<int32_t>(&view - pass.views.data());
  }
  // In bf16 a view's pages lie head by head.
  uint16_t* span_page(const Pass& pass, const View& view, int32_t head, int32_t page) const {
    const int64_t number = int64_t{first_page(pass, view)} * op_.heads +
                           int64_t{head} * pages_of(view) + page;
    return reinterpret_cast<uint16_t*>(pass.ws.at(pages_)) +
           number * kernels::span_page_numbers(op_.head_dim);
  }

  void number_pages(const Pass& pass) const {
    int32_t* numbers = pass.ws.at(page_numbers_);
    std::iota(numbers, numbers + pass.count() / kPageTokens + pass.views.size() + 1, 0);
  }

  void project(const Pass& pass) const {
    float* qkv = pass.ws.at(qkv_);
    in_.run(pass, pass.ws.at(normed_), 0, pass.count(), [&](const Block& block) {
      const int64_t column = static_cast<int64_t>(block.weight) * inner_ + block.begin;
      for (int32_t r = 0; r < block.rows; ++r)
        std::copy_n(block.row_of(r), block.columns(),
                    qkv + int64_t{block.row + r} * 3 * inner_ + column);
    });
  }

  void norm_heads(const Pass& pass, const std::optional<model::NormWeights>& norm, float* x) const {
    if (!norm) return;
    if (!op_.norms_heads) return normalise(pass.ops, *norm, x, inner_, x);
    for (int32_t at = 0; at < inner_; at += op_.head_dim)
      normalise(pass.ops, *norm, x + at, op_.head_dim, x + at);
  }

  void turn_heads(const Pass& pass, int32_t row, float* x) const {
    const float* cos = pass.ws.at(angles_) + int64_t{row} * op_.head_dim;
    const float* sin = cos + op_.head_dim / 2;
    if (rope_.kind != Rope::kHalves) {
      pass.ops.rope(x, op_.heads, op_.head_dim, op_.head_dim, cos, sin,
                    rope_.kind == Rope::kNeighbours);
      return;
    }
    const int32_t half = op_.head_dim / 2;
    for (const int32_t part : {0, 1})
      pass.ops.rope(x + part * half, op_.heads, op_.head_dim, half, cos + part * half / 2,
                    sin + part * half / 2, false);
  }

  // Norms and turns a row's query and key.
  void turn(const Pass& pass, int32_t row) const {
    float* q = pass.ws.at(qkv_) + int64_t{row} * 3 * inner_;
    float* k = q + inner_;
    norm_heads(pass, q_norm_, q);
    norm_heads(pass, k_norm_, k);
    norm_heads(pass, v_norm_, k + inner_);
    if (rope_.kind == Rope::kNone) return;
    turn_heads(pass, row, q);
    turn_heads(pass, row, k);
  }

  // Puts keys and values into pages. Each is one claim, so that members do not write into the same
  // lines of the cache.
  void place(const Pass& pass) const {
    int64_t claims = 0;
    for (const View& view : pass.views) claims += pages_of(view);
    const int64_t work = kPageTokens * int64_t{3} * inner_ * kWorkOfNumber;
    claim_blocks(pass, claims, work, [&](int64_t claim) {
      const View* view = pass.views.data();
      for (; claim >= pages_of(*view); ++view) claim -= pages_of(*view);
      fill_page(pass, *view, static_cast<int32_t>(claim));
    });
  }
  void fill_page(const Pass& pass, const View& view, int32_t page) const {
    const int32_t first = view.row_begin + page * kPageTokens;
    const int32_t end = std::min(first + kPageTokens, view.row_end());
    for (int32_t row = first; row < end; ++row) turn(pass, row);
    const float* k = pass.ws.at(qkv_) + int64_t{first} * 3 * inner_ + inner_;
    if (in_spans_) {
      for (int32_t head = 0; head < op_.heads; ++head, k += op_.head_dim)
        pass.spans.fill_page(k, k + inner_, int64_t{3} * inner_, end - first, op_.head_dim,
                             span_page(pass, view, head, page));
      return;
    }
    const kernels::KvPages kv = pages(pass);
    const int32_t number = first_page(pass, view) + page;
    for (int32_t slot = 0; slot < end - first; ++slot, k += 3 * inner_) {
      pass.ops.store_keys(kv, number, slot, 0, op_.heads, k);
      pass.ops.store_values(kv, number, slot, 0, op_.heads, k + inner_);
    }
  }

  // Rows of a view that see each other.
  struct Span {
    const View* view = nullptr;
    int32_t begin = 0, end = 0;

    int32_t rows() const { return end - begin; }
  };
  Span span_from(const View* view, int32_t begin) const {
    return {view, begin, op_.windows ? view->window_end(begin) : view->rows()};
  }
  Span span_after(const Span& span) const {
    return span.end < span.view->rows() ? span_from(span.view, span.end)
                                        : span_from(span.view + 1, 0);
  }
  int32_t claim_rows_max() const { return in_spans_ ? kSpanRows : kFloatRows; }
  int32_t blocks_of(const Span& span) const {
    return (span.rows() + claim_rows_max() - 1) / claim_rows_max();
  }

  void attend(const Pass& pass) const {
    int64_t claims = 0;
    int32_t longest = 0;
    for (const View& view : pass.views)
      for (int32_t row = 0; row < view.rows();) {
        const Span span = span_from(&view, row);
        claims += int64_t{blocks_of(span)} * op_.heads;
        longest = std::max(longest, span.rows());
        row = span.end;
      }
    const int64_t work = int64_t{std::min(claim_rows_max(), longest)} * longest *
                         (int64_t{2} * op_.head_dim + kWorkOfScore);
    Span span = span_from(pass.views.data(), 0);
    int64_t first = 0;  // Claims of the spans before.
    claim_blocks(pass, claims, work, [&](int64_t claim) {
      while (claim - first >= int64_t{blocks_of(span)} * op_.heads) {
        first += int64_t{blocks_of(span)} * op_.heads;
        span = span_after(span);
      }
      const auto head = static_cast<int32_t>((claim - first) / blocks_of(span));
      const auto block = static_cast<int32_t>((claim - first) % blocks_of(span));
      attend_rows(pass, span, head, span.begin + block * claim_rows_max());
    });
  }
  // So many rows of a span as a claim has, from `row` on.
  void attend_rows(const Pass& pass, const Span& span, int32_t head, int32_t row) const {
    const int64_t at = span.view->row_begin + row, column = int64_t{head} * op_.head_dim;
    const float* q = pass.ws.at(qkv_) + at * 3 * inner_ + column;
    float* out = pass.ws.at(attended_) + at * inner_ + column;
    const int32_t rows = std::min(claim_rows_max(), span.end - row);
    if (in_spans_)
      pass.spans.attend({.q = q,
                         .q_stride = int64_t{3} * inner_,
                         .out = out,
                         .out_stride = inner_,
                         .rows = rows,
                         .dims = op_.head_dim,
                         .pages = span_page(pass, *span.view, head, 0),
                         .begin = span.begin,
                         .end = span.end,
                         .scale = op_.scale,
                         .scratch = pass.scratch()});
    else
      pass.ops.attend(pages(pass), {.q = q,
                                    .q_stride = int64_t{3} * inner_,
                                    .out = out,
                                    .out_stride = inner_,
                                    .rows = rows,
                                    .first_position = row,
                                    .pages = pass.ws.at(page_numbers_) +
                                             first_page(pass, *span.view),
                                    .kv_head = head,
                                    .scale = op_.scale,
                                    .span_begin = span.begin,
                                    .span_end = span.end,
                                    .first_key = span.begin,
                                    .scratch = pass.scratch()});
  }

  Attention op_;
  int32_t width_;
  int32_t inner_;  // Numbers of all heads.
  bool in_spans_;  // In bf16.
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
