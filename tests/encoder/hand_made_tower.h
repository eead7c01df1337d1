// HandMadeEncoder: an encoder with weights that a test has drawn, and the file that it uses them
// in. HandMadeTower: one of pictures.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "model/hand_made_model.h"

namespace weir::encoder {

struct HandMadeEncoder {
  HandMadeEncoder(std::string settings, std::string weights, const EncoderOptions& options,
                  kernels::Isa isa, int threads)
      : config(std::move(settings)), file(std::move(weights)), team(threads) {
    const auto card = card::ModelCard::open(
        card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                         {"model.safetensors", std::as_bytes(std::span(file))}}));
    EXPECT_TRUE(card) << card.error().message;
    auto loaded = Encoder::load(*card, options, kernels::ops_for(isa), team);
    if (loaded)
      encoder = std::move(*loaded);
    else
      error = loaded.error().message;
  }

  // All of `begun`, pictures or sounds, in units of so much work (Encoder::advance).
  template <class Begun>
  void encode(const std::vector<Begun>& begun, int64_t units) {
    const auto taken = encoder->begin(begun);
    EXPECT_TRUE(taken) << taken.error().message;
    while (!encoder->advance(team, units)) EXPECT_TRUE(encoder->busy());
  }

  const std::string config, file;
  ThreadTeam team;
  std::unique_ptr<Encoder> encoder;
  std::string error;
};

struct HandMadeTower : HandMadeEncoder {
  HandMadeTower(const model::Weights& weights, const std::string& settings, kernels::Isa isa,
                int threads, model::Compute compute, int64_t pixels_max)
      : HandMadeEncoder(settings, weights.file(),
                        {.compute = compute, .view_pixels_max = pixels_max}, isa, threads) {}

  // Of each picture: its rows, and those of each level.
  std::vector<std::vector<float>> features(const std::vector<media::PixelValues>& pictures,
                                           int64_t units = 1) {
    std::vector<std::vector<float>> out(pictures.size());
    std::vector<Picture> begun;
    for (size_t i = 0; i < pictures.size(); ++i) {
      out[i].resize(static_cast<size_t>(
          (1 + encoder->levels()) * encoder->feature_rows(pictures[i].views) * encoder->width()));
      begun.push_back({&pictures[i], out[i]});
    }
    encode(begun, units);
    return out;
  }
};

}  // namespace weir::encoder
