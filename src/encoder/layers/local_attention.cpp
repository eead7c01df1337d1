// Attention to a few rows before, of which each also counts by how far back it lies: a dozen keys a
// row, so their scores are computed one by one.
#include <cmath>
#include <numbers>
#include <vector>

#include "encoder/layers/products.h"
#include "encoder/layers/residual.h"

namespace weir::encoder {

namespace {

// Sines, then cosines, of a position at rates that go from 1 to 1 / 10,000 in equal ratios.
void sinusoids(int32_t position, int32_t width, float* out) {
  const int32_t rates = width / 2;
  const float step = std::log(10000.0f) / static_cast<float>(std::max(rates - 1, 1));
  for (int32_t i = 0; i < rates; ++i) {
    const float angle = static_cast<float>(position) * std::exp(static_cast<float>(i) * -step);
    out[i] = std::sin(angle);
    out[rates + i] = std::cos(angle);
  }
}

// In so many lanes that the compiler makes vectors of them.
float dot(const float* a, const float* b, int32_t n) {
  constexpr int32_t kLanes = 16;
  float sums[kLanes] = {};
  int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int32_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

class LocalAttentionLayer final : public Layer {
 public:
  LocalAttentionLayer(const LayerSource& source, const LocalAttention& op)
      : op_(op),
        width_(source.width),
        inner_(op.heads * op.head_dim),
        limit_(source.stage.limit),
        pre_(source.binder.norm(*source.stage.pre, source.width)),
        in_(source.width),
        relative_(source.width, op.positions),
        out_(inner_),
        output_(source, source.width),
        normed_(ask(source, {.per_row = source.width})),
        qkv_(ask(source, {.per_row = int64_t{3} * inner_})),
        attended_(ask(source, {.per_row = inner_})),
        distances_(ask(source, {.fixed = int64_t{op.positions} * inner_})),
        scores_(
            ask(source, {.fixed = std::max(op.window, op.chunk + op.past), .per_member = true})) {
    for (const std::string* module : {&op.q, &op.k, &op.v})
      in_.add(source, *module, inner_, /*bias=*/false, op.clipped);
    in_.finish_adding(source);
    relative_.add(source, op.relative, inner_, /*bias=*/false);
    relative_.finish_adding(source);
    out_.add(source, op.out, source.width, /*bias=*/false, op.clipped);
    out_.finish_adding(source);
    sinusoids_.resize(static_cast<size_t>(op.positions) * static_cast<size_t>(width_));
    for (int32_t i = 0; i < op.positions; ++i)
      sinusoids(op.positions - 1 - i, width_, sinusoids_.data() + int64_t{i} * width_);
    const float* scale = source.binder.vector(op.dim_scale, op.head_dim);
    if (scale == nullptr) return;
    const double usual =
        1 / (std::numbers::ln2 * std::sqrt(double{static_cast<float>(op.head_dim)}));
    for (int32_t i = 0; i < op.head_dim; ++i)
      query_scale_.push_back(static_cast<float>(usual * std::log1p(std::exp(double{scale[i]}))));
  }

  bool moves_rows() const override { return false; }

  void run(const Pass& pass) const override {
    float* normed = pass.ws.at(normed_);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int64_t r = begin; r < end; ++r)
        normalise(pass.ops, pre_, limit_, pass.rows + r * width_, width_, normed + r * width_);
      in_.prepare(pass, normed, begin, end);
    });
    pass.barrier();
    project(pass);
    claim_rows(pass, pass.count(), [&](int32_t begin, int32_t end) {
      for (int32_t r = begin; r < end; ++r)
        for (int32_t head = 0; head < op_.heads; ++head) attend(pass, r, head);
      out_.prepare(pass, pass.ws.at(attended_), begin, end);
    });
    pass.barrier();
    out_.run(pass, pass.ws.at(attended_), 0, pass.count(),
             [&](const Block& block) { output_.take(pass, block); });
    output_.finish(pass);
  }

 private:
  static model::Buffer<float> ask(const LayerSource& source, const model::BufferSize& size) {
    return source.scratch.ask<float>(model::BufferUse::kComputing, size);
  }

  // Queries, keys and values of all rows, and what the sinusoids project to.
  void project(const Pass& pass) const {
    float* qkv = pass.ws.at(qkv_);
    in_.run(pass, pass.ws.at(normed_), 0, pass.count(), [&](const Block& block) {
      const int64_t column = static_cast<int64_t>(block.weight) * inner_ + block.begin;
      for (int32_t r = 0; r < block.rows; ++r) {
        float* y = block.row_of(r);
        if (block.weight == 1) pass.ops.scale(op_.key_scale, block.columns(), y);
        std::copy_n(y, block.columns(), qkv + int64_t{block.row + r} * 3 * inner_ + column);
      }
    });
    claim_rows(pass, op_.positions, [&](int32_t begin, int32_t end) {
      relative_.prepare(pass, sinusoids_.data(), begin, end);
    });
    pass.barrier();
    relative_.run(pass, sinusoids_.data(), 0, op_.positions, [&](const Block& block) {
      for (int32_t r = 0; r < block.rows; ++r)
        std::copy_n(block.row_of(r), block.columns(),
                    pass.ws.at(distances_) + int64_t{block.row + r} * inner_ + block.begin);
    });
  }

  // Rows [begin, end) of a sound, but for [without_begin, without_end), which a row sees; `slots`
  // of the reference's stretch of keys.
  struct Seen {
    int32_t begin = 0, end = 0;
    int32_t without_begin = 0, without_end = 0;
    int32_t slots = 0;
  };
  Seen seen_by(int32_t at, int32_t rows) const {
    const int32_t begin = std::max(at - op_.window + 1, 0);
    if (!op_.turned) return {.begin = begin, .end = at + 1};
    const int32_t chunk = at / op_.chunk * op_.chunk;
    return {.begin = std::max(chunk - op_.past, 0),
            .end = std::min(chunk + op_.chunk, rows),
            .without_begin = begin,
            .without_end = at + 1,
            .slots = op_.chunk + op_.past};
  }

  void attend(const Pass& pass, int32_t row, int32_t head) const {
    const View& view = view_of(pass.views, row);
    const int32_t at = row - view.row_begin, column = head * op_.head_dim;
    const Seen seen = seen_by(at, view.rows());
    const auto counts = [&](int32_t j) { return j < seen.without_begin || j >= seen.without_end; };
    float* q = pass.ws.at(qkv_) + int64_t{row} * 3 * inner_ + column;
    for (int32_t i = 0; i < op_.head_dim; ++i) q[i] *= query_scale_[static_cast<size_t>(i)];
    const float* keys = pass.ws.at(qkv_) + int64_t{view.row_begin} * 3 * inner_ + inner_ + column;
    float* scores = pass.ws.at(scores_, pass.member);
    float most = -INFINITY;
    for (int32_t j = seen.begin; j < seen.end; ++j) {
      if (!counts(j)) continue;
      float& score = scores[j - seen.begin];
      score = dot(q, keys + int64_t{j} * 3 * inner_, op_.head_dim);
      if (const int32_t position = op_.past - (at - j); position >= 0 && position < op_.positions)
        score += dot(q, pass.ws.at(distances_) + int64_t{position} * inner_ + column, op_.head_dim);
      if (op_.softcap > 0) score = op_.softcap * std::tanh(score / op_.softcap);
      most = std::max(most, score);
    }
    float* out = pass.ws.at(attended_) + int64_t{row} * inner_ + column;
    std::fill_n(out, op_.head_dim, 0.0f);
    float sum = 0;
    // Where nothing is seen, as only a turned mask has it, the reference gives each slot of the
    // stretch the same, those without a row too.
    const bool nothing = most == -INFINITY;
    for (int32_t j = seen.begin; j < seen.end; ++j) {
      if (!nothing && !counts(j)) continue;
      const float weight = nothing ? 1 : std::exp(scores[j - seen.begin] - most);
      sum += weight;
      pass.ops.add_scaled(keys + int64_t{j} * 3 * inner_ + inner_, weight, op_.head_dim, out);
    }
    pass.ops.scale(1 / (nothing ? static_cast<float>(seen.slots) : sum), op_.head_dim, out);
  }

  LocalAttention op_;
  int32_t width_, inner_;
  float limit_;
  model::NormWeights pre_;
  Products in_, relative_, out_;
  ResidualOutput output_;
  model::Buffer<float> normed_, qkv_, attended_, distances_, scores_;
  std::vector<float> sinusoids_;    // [positions, width], of the furthest first.
  std::vector<float> query_scale_;  // [head_dim].
};

}  // namespace

std::unique_ptr<Layer> make(const LayerSource& source, const LocalAttention& op, int32_t&) {
  return std::make_unique<LocalAttentionLayer>(source, op);
}

}  // namespace weir::encoder
