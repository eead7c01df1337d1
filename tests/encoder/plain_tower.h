// Plain arithmetic in double precision of a tower that reads blocks of patches: the Qwen-VL
// families and GLM's, patch after patch in the order in which a picture is read, whatever order the
// encoder has them in.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "media/processor/pixel_values.h"
#include "model/hand_made_model.h"

namespace weir::encoder {

using PlainRow = std::vector<double>;
using PlainRows = std::vector<PlainRow>;

// A picture of drawn numbers, and its patches by rows: [3][frames][patch][patch] each, as a
// convolution reads them.
struct DrawnPicture {
  int down = 0, across = 0;  // Patches.
  PlainRows patches{};
  media::PixelValues values{};

  // Of so many blocks of 2 x 2 patches.
  DrawnPicture(int blocks_down, int blocks_across, int patch, unsigned seed)
      : down(2 * blocks_down), across(2 * blocks_across) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    const auto size = static_cast<size_t>(3 * 2 * patch * patch);
    patches.resize(static_cast<size_t>(down * across));
    for (PlainRow& row : patches)
      for (size_t i = 0; i < size; ++i) row.push_back(double{number(random)});
    for (int i = 0; i < blocks_down * blocks_across; ++i)
      for (int inner = 0; inner < 4; ++inner) {
        const int y = i / blocks_across * 2 + inner / 2, x = i % blocks_across * 2 + inner % 2;
        for (const double value : patches[static_cast<size_t>(y * across + x)])
          values.numbers.push_back(static_cast<float>(value));
      }
    values.views = {{across * patch, down * patch}};
  }
};

struct PlainTower {
  const model::Weights& weights;
  int heads = 2;
  int down = 0, across = 0;  // Patches.
  PlainRows rows{};

  const std::vector<float>& at(const std::string& name) const { return weights.at(name); }

  // A linear layer; with its bias where the weights have one.
  PlainRow linear(const std::string& module, const PlainRow& x) const {
    const std::vector<float>& weight = at(module + ".weight");
    PlainRow y(weight.size() / x.size());
    for (size_t n = 0; n < y.size(); ++n)
      for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight[n * x.size() + k]} * x[k];
    if (const auto* bias = weights.find(module + ".bias"))
      for (size_t n = 0; n < y.size(); ++n) y[n] += double{(*bias)[n]};
    return y;
  }

  // A layer norm where the weights have a bias, else by the root of the mean square.
  PlainRow norm(const std::string& module, PlainRow x, double eps) const {
    const auto* bias = weights.find(module + ".bias");
    double mean = 0, squares = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    if (bias == nullptr) mean = 0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = (x[i] - mean) * factor * double{at(module + ".weight")[i]} +
             (bias == nullptr ? 0 : double{(*bias)[i]});
    return x;
  }

  static double silu(double x) { return x / (1 + std::exp(-x)); }
  static double quick_gelu(double x) { return x / (1 + std::exp(-1.702 * x)); }
  static double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
  static double gelu_tanh(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  static PlainRow act(PlainRow x, double (*f)(double)) {
    for (double& value : x) value = f(value);
    return x;
  }
  static void add(PlainRow& x, const PlainRow& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  // Heads turn by row and column, with equal rates.
  void turn(PlainRow& x, size_t row) const {
    const auto dim = static_cast<int>(x.size()) / heads, quarter = dim / 4;
    for (int i = 0; i < heads * dim / 2; ++i) {
      const int head = i / (dim / 2), pair = i % (dim / 2);
      const auto place = static_cast<int>(row);
      const int along = pair < quarter ? place / across : place % across;
      const double angle = along * std::pow(10000.0, -4.0 * (pair % quarter) / dim);
      double& a = x[static_cast<size_t>(head * dim + pair)];
      double& b = x[static_cast<size_t>(head * dim + pair + dim / 2)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
  }

  // Patches of one window see each other; 0: all do.
  bool sees(size_t i, size_t j, int window) const {
    const auto a = static_cast<int>(i), b = static_cast<int>(j);
    return window == 0 || (a / across / window == b / across / window &&
                           a % across / window == b % across / window);
  }

  void attend(const std::string& block, double eps, int window = 0) {
    const size_t width = rows[0].size(), dim = width / static_cast<size_t>(heads);
    PlainRows q, k, v;
    for (size_t r = 0; r < rows.size(); ++r) {
      const PlainRow qkv = linear(block + "attn.qkv", norm(block + "norm1", rows[r], eps));
      PlainRow parts[3];
      for (size_t i = 0; i < qkv.size(); ++i) parts[i / width].push_back(qkv[i]);
      for (const auto& [part, module] : {std::pair{0, "attn.q_norm"}, {1, "attn.k_norm"}}) {
        if (weights.find(block + module + ".weight") != nullptr)
          for (size_t h = 0; h < width; h += dim) {
            const PlainRow head(parts[part].begin() + static_cast<std::ptrdiff_t>(h),
                                parts[part].begin() + static_cast<std::ptrdiff_t>(h + dim));
            std::ranges::copy(norm(block + module, head, eps),
                              parts[part].begin() + static_cast<std::ptrdiff_t>(h));
          }
        turn(parts[part], r);
      }
      q.push_back(parts[0]), k.push_back(parts[1]), v.push_back(parts[2]);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      PlainRow out(width);
      for (size_t first = 0; first < width; first += dim) {
        PlainRow scores(rows.size());
        double sum = 0;
        for (size_t j = 0; j < rows.size(); ++j) {
          if (!sees(r, j, window)) continue;
          double score = 0;
          for (size_t d = first; d < first + dim; ++d) score += q[r][d] * k[j][d];
          scores[j] = std::exp(score / std::sqrt(static_cast<double>(dim)));
          sum += scores[j];
        }
        for (size_t j = 0; j < rows.size(); ++j)
          for (size_t d = first; d < first + dim; ++d) out[d] += scores[j] / sum * v[j][d];
      }
      add(rows[r], linear(block + "attn.proj", out));
    }
  }

  // Squares of 2 x 2 rows as one row each: patch by patch, or number by number.
  PlainRows merged(bool by_number = false) const {
    PlainRows out;
    for (int y = 0; y < down; y += 2)
      for (int x = 0; x < across; x += 2) {
        PlainRow row(4 * rows[0].size());
        for (int i = 0; i < 4; ++i) {
          const PlainRow& from = rows[static_cast<size_t>((y + i / 2) * across + x + i % 2)];
          for (size_t c = 0; c < from.size(); ++c)
            row[by_number ? 4 * c + static_cast<size_t>(i)
                          : static_cast<size_t>(i) * from.size() + c] = from[c];
        }
        out.push_back(row);
      }
    return out;
  }
};

}  // namespace weir::encoder
