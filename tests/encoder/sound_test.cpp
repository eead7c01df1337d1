// Towers for sounds with drawn weights of odd sizes, against the same arithmetic written plainly,
// and against themselves: sounds together and alone, in units of any size, by teams of any size.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <random>

#include "base/concat.h"
#include "encoder/encoder.h"
#include "encoder/hand_made_tower.h"
#include "kernels/cpu_ops.h"

namespace weir::encoder {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

// A checkpoint's tensors, drawn by name.
class Tensors {
 public:
  void draw(const std::string& name, std::vector<int> shape, float centre = 0) {
    Tensor& tensor = tensors_[name];
    size_t count = 1;
    for (const int size : shape) count *= static_cast<size_t>(size);
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(name)));
    std::normal_distribution<float> normal(centre, 0.3f);
    tensor.shape = std::move(shape);
    tensor.data.resize(count);
    for (float& x : tensor.data) x = normal(random);
  }
  void put(const std::string& name, float value) { tensors_[name] = {{}, {value}}; }
  const std::vector<float>& at(const std::string& name) const { return tensors_.at(name).data; }

  std::string file() const {
    std::string header = "{", data;
    for (const auto& [name, tensor] : tensors_) {
      const std::string begin = std::to_string(data.size());
      data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size() * 4);
      std::string shape;
      for (const int size : tensor.shape)
        shape += (shape.empty() ? "" : ",") + std::to_string(size);
      header +=
          concat({header.size() > 1 ? ",\"" : "\"", name, R"(":{"dtype":"F32","shape":[)", shape,
                  R"(],"data_offsets":[)", begin, ",", std::to_string(data.size()), "]}"});
    }
    header += "}";
    while (header.size() % 8 != 0) header += " ";
    const uint64_t length = header.size();
    std::string out(sizeof length, '\0');
    std::memcpy(out.data(), &length, sizeof length);
    return out + header + data;
  }

 private:
  struct Tensor {
    std::vector<int> shape{};
    std::vector<float> data{};
  };
  std::map<std::string, Tensor> tensors_;
};

constexpr char kText[] =
    R"("text_config":{"model_type":"TYPE","hidden_size":16,"intermediate_size":24,)"
    R"("num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":2,"vocab_size":48,)"
    R"("max_position_embeddings":64,)"
    R"("head_dim":8},)";

std::string text(const std::string& type) {
  std::string s = kText;
  return s.replace(s.find("TYPE"), 4, type);
}

media::SoundFeatures sound(int64_t frames, int64_t heard, int bands, unsigned seed) {
  media::SoundFeatures values = {.frames = frames, .heard = heard};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  values.numbers.resize(static_cast<size_t>(frames * bands));
  for (float& x : values.numbers) x = number(random);
  return values;
}

// --- The arithmetic.

Row times(const std::vector<float>& weight, const Row& x,
          const std::vector<float>* bias = nullptr) {
  Row y(weight.size() / x.size());
  for (size_t n = 0; n < y.size(); ++n) {
    y[n] = bias == nullptr ? 0 : double{(*bias)[n]};
    for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight[n * x.size() + k]} * x[k];
  }
  return y;
}

Row layer_normed(Row x, const std::vector<float>& weight, const std::vector<float>* bias,
                 double eps) {
  double mean = 0, variance = 0;
  const auto n = static_cast<double>(x.size());
  for (const double value : x) mean += value / n;
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = (x[i] - mean) / std::sqrt(variance + eps) * double{weight[i]} +
           (bias == nullptr ? 0 : double{(*bias)[i]});
  return x;
}

Row rms_normed(Row x, const std::vector<float>* weight) {
  double squares = 0;
  for (const double value : x) squares += value * value / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= (weight == nullptr ? 1 : double{(*weight)[i]}) / std::sqrt(squares + 1e-6);
  return x;
}

double gelu(double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void add(Row& x, const Row& y, double factor = 1) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += factor * y[i];
}

Row softmax_of(Row scores) {
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score);
  for (double& score : scores) score /= sum;
  return scores;
}

// --- Qwen2-Audio: Whisper's encoder.

constexpr int kBands = 6, kWidth = 8, kPositions = 20;

std::string whisper_config() {
  return R"({"architectures":["Qwen2AudioForConditionalGeneration"],"model_type":"qwen2_audio",)" +
         text("qwen2") +
         R"("audio_config":{"model_type":"qwen2_audio_encoder","num_mel_bins":6,"d_model":8,)"
         R"("encoder_layers":1,"encoder_attention_heads":2,"encoder_ffn_dim":11,)"
         R"("max_source_positions":20}})";
}

Tensors whisper_tensors() {
  Tensors w;
  w.draw("audio_tower.conv1.weight", {kWidth, kBands, 3});
  w.draw("audio_tower.conv1.bias", {kWidth});
  w.draw("audio_tower.conv2.weight", {kWidth, kWidth, 3});
  w.draw("audio_tower.conv2.bias", {kWidth});
  w.draw("audio_tower.embed_positions.weight", {kPositions, kWidth});
  for (const char* norm :
       {"layers.0.self_attn_layer_norm", "layers.0.final_layer_norm", "layer_norm"}) {
    w.draw(concat({"audio_tower.", norm, ".weight"}), {kWidth}, 1);
    w.draw(concat({"audio_tower.", norm, ".bias"}), {kWidth});
  }
  for (const char* part : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    const std::string module = concat({"audio_tower.layers.0.self_attn.", part});
    w.draw(module + ".weight", {kWidth, kWidth});
    if (std::string_view(part) != "k_proj") w.draw(module + ".bias", {kWidth});
  }
  w.draw("audio_tower.layers.0.fc1.weight", {11, kWidth});
  w.draw("audio_tower.layers.0.fc1.bias", {11});
  w.draw("audio_tower.layers.0.fc2.weight", {kWidth, 11});
  w.draw("audio_tower.layers.0.fc2.bias", {kWidth});
  w.draw("multi_modal_projector.linear.weight", {16, kWidth});
  w.draw("multi_modal_projector.linear.bias", {16});
  return w;
}

// Three taps around every stride-th row of all that are there.
Rows convolved(const Rows& rows, const Tensors& w, const std::string& module, int stride) {
  const auto& weight = w.at(module + ".weight");
  const int count = static_cast<int>(rows.size());
  Rows out;
  for (int t = 0; t < count; t += stride) {
    Row y;
    for (size_t n = 0; n < kWidth; ++n) {
      double sum = double{w.at(module + ".bias")[n]};
      for (size_t c = 0; c < rows[0].size(); ++c)
        for (int tap = 0; tap < 3; ++tap)
          if (const int from = t + tap - 1; from >= 0 && from < count)
            sum += double{weight[(n * rows[0].size() + c) * 3 + static_cast<size_t>(tap)]} *
                   rows[static_cast<size_t>(from)][c];
      y.push_back(gelu(sum));
    }
    out.push_back(y);
  }
  return out;
}

void attend(const Tensors& w, Rows& rows) {
  const std::string in = "audio_tower.layers.0.self_attn.";
  Rows q, k, v;
  for (const Row& row : rows) {
    const std::string norm = "audio_tower.layers.0.self_attn_layer_norm";
    const Row x = layer_normed(row, w.at(norm + ".weight"), &w.at(norm + ".bias"), 1e-5);
    q.push_back(times(w.at(in + "q_proj.weight"), x, &w.at(in + "q_proj.bias")));
    k.push_back(times(w.at(in + "k_proj.weight"), x));
    v.push_back(times(w.at(in + "v_proj.weight"), x, &w.at(in + "v_proj.bias")));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    Row out(kWidth);
    for (size_t head = 0; head < kWidth; head += 4) {
      Row scores;
      for (const Row& key : k) {
        scores.push_back(0);
        for (size_t i = head; i < head + 4; ++i) scores.back() += q[r][i] * key[i] / 2;
      }
      scores = softmax_of(scores);
      for (size_t j = 0; j < k.size(); ++j)
        for (size_t i = head; i < head + 4; ++i) out[i] += scores[j] * v[j][i];
    }
    add(rows[r], times(w.at(in + "out_proj.weight"), out, &w.at(in + "out_proj.bias")));
  }
}

std::vector<float> whisper_plainly(const Tensors& w, const media::SoundFeatures& values) {
  Rows rows;
  for (int64_t i = 0; i < values.frames; ++i)
    rows.emplace_back(values.numbers.begin() + i * kBands,
                      values.numbers.begin() + (i + 1) * kBands);
  rows = convolved(convolved(rows, w, "audio_tower.conv1", 1), w, "audio_tower.conv2", 2);
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < kWidth; ++i)
      rows[r][i] += double{w.at("audio_tower.embed_positions.weight")[r * kWidth + i]};
  // Rows that were not heard are seen by none.
  rows.resize(static_cast<size_t>((values.heard + 1) / 2));
  attend(w, rows);
  std::vector<float> out;
  for (Row& row : rows) {
    const std::string layer = "audio_tower.layers.0.", norm = layer + "final_layer_norm";
    Row wide = times(w.at(layer + "fc1.weight"),
                     layer_normed(row, w.at(norm + ".weight"), &w.at(norm + ".bias"), 1e-5),
                     &w.at(layer + "fc1.bias"));
    for (double& x : wide) x = gelu(x);
    add(row, times(w.at(layer + "fc2.weight"), wide, &w.at(layer + "fc2.bias")));
  }
  for (size_t r = 0; r + 1 < rows.size(); r += 2) {
    Row mean(kWidth);
    add(mean, rows[r], 0.5);
    add(mean, rows[r + 1], 0.5);
    const Row given = times(w.at("multi_modal_projector.linear.weight"),
                            layer_normed(mean, w.at("audio_tower.layer_norm.weight"),
                                         &w.at("audio_tower.layer_norm.bias"), 1e-5),
                            &w.at("multi_modal_projector.linear.bias"));
    for (const double x : given) out.push_back(static_cast<float>(x));
  }
  return out;
}

// --- Gemma 4: a conformer. A window of 3 rows, positions counted from 3 rows back.

constexpr int kMels = 128, kWindow = 3, kTaps = 4, kOut = 7;

std::string conformer_config() {
  return R"({"architectures":["Gemma4ForConditionalGeneration"],"model_type":"gemma4",)" +
         text("gemma4_text") +
         R"("audio_config":{"model_type":"gemma4_audio","hidden_size":8,"num_hidden_layers":1,)"
         R"("num_attention_heads":2,"attention_chunk_size":3,"attention_context_left":4,)"
         R"("attention_context_right":0,"attention_logit_cap":2.0,"conv_kernel_size":4,)"
         R"("output_proj_dims":7,"residual_weight":0.25,"subsampling_conv_channels":[4,2],)"
         R"("gradient_clipping":1.5,"use_clipped_linears":true}})";
}

const std::string kTower = "model.audio_tower.", kLayer = kTower + "layers.0.";

Tensors conformer_tensors() {
  Tensors w;
  const std::string front = kTower + "subsample_conv_projection.";
  w.draw(front + "layer0.conv.weight", {4, 1, 3, 3});
  w.draw(front + "layer0.norm.weight", {4}, 1);
  w.draw(front + "layer1.conv.weight", {2, 4, 3, 3});
  w.draw(front + "layer1.norm.weight", {2}, 1);
  w.draw(front + "input_proj_linear.weight", {kWidth, 2 * kMels / 4});
  for (const char* norm :
       {"feed_forward1.pre_layer_norm", "feed_forward1.post_layer_norm",
        "feed_forward2.pre_layer_norm", "feed_forward2.post_layer_norm", "norm_pre_attn",
        "norm_post_attn", "lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_out"})
    w.draw(kLayer + norm + ".weight", {kWidth}, 1);
  const auto clipped = [&](const std::string& module, int n, int k) {
    w.draw(kLayer + module + ".linear.weight", {n, k});
    w.put(kLayer + module + ".input_min", -1.25f);
    w.put(kLayer + module + ".input_max", 1.5f);
    w.put(kLayer + module + ".output_min", -0.75f);
    w.put(kLayer + module + ".output_max", 1.0f);
  };
  for (const char* half : {"feed_forward1", "feed_forward2"}) {
    clipped(concat({half, ".ffw_layer_1"}), 4 * kWidth, kWidth);
    clipped(concat({half, ".ffw_layer_2"}), kWidth, 4 * kWidth);
  }
  for (const char* part : {"q_proj", "k_proj", "v_proj", "post"})
    clipped(concat({"self_attn.", part}), kWidth, kWidth);
  w.draw(kLayer + "self_attn.relative_k_proj.weight", {kWidth, kWidth});
  w.draw(kLayer + "self_attn.per_dim_scale", {kWidth / 2});
  clipped("lconv1d.linear_start", 2 * kWidth, kWidth);
  clipped("lconv1d.linear_end", kWidth, kWidth);
  w.draw(kLayer + "lconv1d.depthwise_conv1d.weight", {kWidth, 1, kTaps});
  w.draw(kTower + "output_proj.weight", {kOut, kWidth});
  w.draw(kTower + "output_proj.bias", {kOut});
  w.draw("model.embed_audio.embedding_projection.weight", {16, kOut});
  return w;
}

Row within(Row x, double least, double most) {
  for (double& value : x) value = std::min(std::max(value, least), most);
  return x;
}
Row limited(Row x) { return within(std::move(x), -1.5, 1.5); }

Row times_clipped(const Tensors& w, const std::string& module, Row x) {
  return within(times(w.at(kLayer + module + ".linear.weight"), within(std::move(x), -1.25, 1.5)),
                -0.75, 1);
}

Row normed(const Tensors& w, const std::string& module, Row x) {
  return rms_normed(std::move(x), &w.at(kLayer + module + ".weight"));
}

// Of [frames][bands * channels] another such.
Rows convolved_by_bands(const Rows& rows, const Tensors& w, const std::string& module,
                        size_t channels, size_t given) {
  const int frames = static_cast<int>(rows.size());
  const int bands = static_cast<int>(rows[0].size() / channels);
  const auto& weight = w.at(module + ".conv.weight");
  Rows out;
  for (int t = 0; t < frames; t += 2) {
    Row row;
    for (int f = 0; f < bands; f += 2) {
      Row y(given);
      for (size_t n = 0; n < given; ++n)
        for (size_t c = 0; c < channels; ++c)
          for (int tap = 0; tap < 9; ++tap) {
            const int time = t + tap / 3 - 1, band = f + tap % 3 - 1;
            if (time < 0 || time >= frames || band < 0 || band >= bands) continue;
            y[n] += double{weight[(n * channels + c) * 9 + static_cast<size_t>(tap)]} *
                    rows[static_cast<size_t>(time)][static_cast<size_t>(band) * channels + c];
          }
      y = layer_normed(y, w.at(module + ".norm.weight"), nullptr, 1e-6);
      for (const double x : y) row.push_back(std::max(x, 0.0));
    }
    out.push_back(row);
  }
  return out;
}

void feed_forward(const Tensors& w, const std::string& half, Row& row) {
  Row wide =
      times_clipped(w, half + ".ffw_layer_1", normed(w, half + ".pre_layer_norm", limited(row)));
  for (double& x : wide) x *= sigmoid(x);
  add(row,
      normed(w, half + ".post_layer_norm", limited(times_clipped(w, half + ".ffw_layer_2", wide))),
      0.25);
}

// The key `back` rows before, of what the sinusoids of that distance project to.
Row distance(const Tensors& w, int back) {
  Row sinusoids(kWidth);
  for (size_t i = 0; i < kWidth / 2; ++i) {
    const double angle = back * std::pow(10000.0, -static_cast<double>(i) / (kWidth / 2 - 1));
    sinusoids[i] = std::sin(angle);
    sinusoids[i + kWidth / 2] = std::cos(angle);
  }
  return times(w.at(kLayer + "self_attn.relative_k_proj.weight"), sinusoids);
}

void attend_near(const Tensors& w, Rows& rows) {
  Rows q, k, v;
  for (const Row& row : rows) {
    const Row x = normed(w, "norm_pre_attn", limited(row));
    q.push_back(times_clipped(w, "self_attn.q_proj", x));
    k.push_back(times_clipped(w, "self_attn.k_proj", x));
    v.push_back(times_clipped(w, "self_attn.v_proj", x));
    for (size_t i = 0; i < kWidth; ++i) {
      const double scale = double{w.at(kLayer + "self_attn.per_dim_scale")[i % 4]};
      q.back()[i] *= std::log1p(std::exp(scale)) / 2 / std::numbers::ln2;
      k.back()[i] *= std::log(1 + std::numbers::e) / std::numbers::ln2;
    }
  }
  for (int r = 0; r < static_cast<int>(rows.size()); ++r) {
    Row out(kWidth);
    const auto at = static_cast<size_t>(r);
    for (size_t head = 0; head < kWidth; head += 4) {
      Row scores;
      const int first = std::max(r - kWindow + 1, 0);
      for (int j = first; j <= r; ++j) {
        const Row back = distance(w, r - j);
        double score = 0;
        for (size_t i = head; i < head + 4; ++i)
          score += q[at][i] * (k[static_cast<size_t>(j)][i] + back[i]);
        scores.push_back(2 * std::tanh(score / 2));
      }
      scores = softmax_of(scores);
      for (size_t j = 0; j < scores.size(); ++j)
        for (size_t i = head; i < head + 4; ++i)
          out[i] += scores[j] * v[static_cast<size_t>(first) + j][i];
    }
    add(rows[at], normed(w, "norm_post_attn", limited(times_clipped(w, "self_attn.post", out))));
  }
}

void convolve_lightly(const Tensors& w, Rows& rows) {
  Rows gated;
  for (const Row& row : rows) {
    const Row both =
        times_clipped(w, "lconv1d.linear_start", normed(w, "lconv1d.pre_layer_norm", row));
    Row& x = gated.emplace_back(kWidth);
    for (size_t i = 0; i < kWidth; ++i) x[i] = both[i] * sigmoid(both[i + kWidth]);
  }
  const auto& weight = w.at(kLayer + "lconv1d.depthwise_conv1d.weight");
  for (size_t r = 0; r < rows.size(); ++r) {
    Row y(kWidth);
    for (size_t tap = 0; tap < kTaps; ++tap)
      if (r + tap + 1 >= kTaps)
        for (size_t i = 0; i < kWidth; ++i)
          y[i] += double{weight[i * kTaps + tap]} * gated[r + tap + 1 - kTaps][i];
    y = normed(w, "lconv1d.conv_norm", limited(y));
    for (double& x : y) x *= sigmoid(x);
    add(rows[r], times_clipped(w, "lconv1d.linear_end", y));
  }
}

std::vector<float> conformer_plainly(const Tensors& w, const media::SoundFeatures& values) {
  Rows rows;
  for (int64_t i = 0; i < values.heard; ++i)
    rows.emplace_back(values.numbers.begin() + i * kMels, values.numbers.begin() + (i + 1) * kMels);
  const std::string front = kTower + "subsample_conv_projection.";
  rows = convolved_by_bands(rows, w, front + "layer0", 1, 4);
  rows = convolved_by_bands(rows, w, front + "layer1", 4, 2);
  for (Row& row : rows) {
    row = times(w.at(front + "input_proj_linear.weight"), row);
    feed_forward(w, "feed_forward1", row);
  }
  attend_near(w, rows);
  convolve_lightly(w, rows);
  std::vector<float> out;
  for (Row& row : rows) {
    feed_forward(w, "feed_forward2", row);
    row = normed(w, "norm_out", limited(row));
    row = rms_normed(
        times(w.at(kTower + "output_proj.weight"), row, &w.at(kTower + "output_proj.bias")),
        nullptr);
    for (const double x : times(w.at("model.embed_audio.embedding_projection.weight"), row))
      out.push_back(static_cast<float>(x));
  }
  return out;
}

// --- The towers.

struct SoundTower : HandMadeEncoder {
  SoundTower(const std::string& settings, const Tensors& tensors, int threads,
             model::Compute compute = model::Compute::kExact,
             kernels::Isa isa = kernels::detect_isa())
      : HandMadeEncoder(settings, tensors.file(),
                        {.compute = compute, .medium = Medium::kSound, .frames_max = 40}, isa,
                        threads) {}

  std::vector<std::vector<float>> rows(const std::vector<media::SoundFeatures>& sounds,
                                       int64_t units = 1) {
    std::vector<std::vector<float>> out(sounds.size());
    std::vector<Sound> begun;
    for (size_t i = 0; i < sounds.size(); ++i) {
      out[i].resize(static_cast<size_t>(encoder->sound_rows(sounds[i]) * encoder->width()), NAN);
      begun.push_back({&sounds[i], out[i]});
    }
    encode(begun, units);
    return out;
  }
};

double furthest(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return HUGE_VAL;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = std::fabs(double{found[i]} - double{expected[i]});
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

// Heard as a whole and in part, in odd and even numbers of frames.
std::vector<media::SoundFeatures> sounds(int bands) {
  return {sound(40, 40, bands, 1), sound(40, 13, bands, 2), sound(40, 14, bands, 3),
          sound(21, 21, bands, 4), sound(40, 39, bands, 5), sound(7, 5, bands, 6)};
}

TEST(SoundTowers, WhispersEncoderIsWhatItsEquationsSay) {
  const Tensors tensors = whisper_tensors();
  for (int level = 0; level <= static_cast<int>(kernels::detect_isa()); ++level) {
    SoundTower tower(whisper_config(), tensors, 2, model::Compute::kExact,
                        static_cast<kernels::Isa>(level));
    ASSERT_NE(tower.encoder, nullptr) << tower.error;
    const auto all = sounds(kBands);
    const auto found = tower.rows(all);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_LT(furthest(found[i], whisper_plainly(tensors, all[i])), 1e-4)
          << "sound " << i << ", level " << level;
  }
}

// Frames that were not heard are zeros, as the front end makes them.
std::vector<media::SoundFeatures> conformer_sounds() {
  auto all = sounds(kMels);
  for (media::SoundFeatures& values : all)
    std::fill(values.numbers.begin() + values.heard * kMels, values.numbers.end(), 0.0f);
  return all;
}

TEST(SoundTowers, AConformerIsWhatItsEquationsSayWithTheWindowThatIsMeant) {
  const Tensors tensors = conformer_tensors();
  for (int level = 0; level <= static_cast<int>(kernels::detect_isa()); ++level) {
    SoundTower tower(conformer_config(), tensors, 2, model::Compute::kExact,
                        static_cast<kernels::Isa>(level));
    ASSERT_NE(tower.encoder, nullptr) << tower.error;
    const auto all = conformer_sounds();
    const auto found = tower.rows(all);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_LT(furthest(found[i], conformer_plainly(tensors, all[i])), 1e-4)
          << "sound " << i << ", level " << level;
  }
}

TEST(SoundTowers, GiveASoundTheSameBitsWhateverIsWithIt) {
  for (const bool conformer : {false, true})
    for (const auto compute : {model::Compute::kExact, model::Compute::kFast}) {
      const std::string config = conformer ? conformer_config() : whisper_config();
      const Tensors tensors = conformer ? conformer_tensors() : whisper_tensors();
      SoundTower one(config, tensors, 1, compute), three(config, tensors, 3, compute);
      ASSERT_NE(one.encoder, nullptr) << one.error;
      const auto some = conformer ? conformer_sounds() : sounds(kBands);
      std::vector<media::SoundFeatures> all;
      for (int times = 0; times < 15; ++times) all.insert(all.end(), some.begin(), some.end());
      const auto together = three.rows(all, Encoder::kAllWork);
      for (size_t i = 0; i < all.size(); ++i)
        EXPECT_EQ(one.rows({all[i]})[0], together[i]) << "sound " << i;
    }
}

TEST(SoundTowers, RefuseSoundsThatTheyCannotTake) {
  SoundTower tower(whisper_config(), whisper_tensors(), 1);
  ASSERT_NE(tower.encoder, nullptr) << tower.error;
  const auto refusal = [&](const media::SoundFeatures& values) {
    const Sound begun = {&values, {}};
    const auto taken = tower.encoder->begin(std::span(&begun, 1));
    return taken ? "" : taken.error().message;
  };
  EXPECT_EQ(refusal(sound(41, 41, kBands, 1)), "a sound of 41 frames: expected 1 to 40");
  EXPECT_EQ(refusal(sound(40, 2, kBands, 1)),
            "a sound of 40 frames: expected at least 2 rows to average, found 1");
  EXPECT_EQ(refusal(sound(40, 40, kBands + 1, 1)),
            "a sound of 40 frames: expected 6 numbers of each, found 280 of all");
  EXPECT_FALSE(tower.encoder->busy());
}

}  // namespace
}  // namespace weir::encoder
