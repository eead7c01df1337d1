// HandMadeTower: an encoder with weights that a test has drawn, and the file that it uses them in.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "model/hand_made_model.h"

namespace weir::encoder {

struct HandMadeTower {
  HandMadeTower(const model::Weights& weights, const std::string& settings, kernels::Isa isa,
                int threads, model::Compute compute, int64_t pixels_max)
      : config(settings), file(weights.file()), team(threads) {
    const auto card = card::ModelCard::open(
        card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                         {"model.safetensors", std::as_bytes(std::span(file))}}));
    EXPECT_TRUE(card) << card.error().message;
    auto loaded = Encoder::load(*card, {.compute = compute, .view_pixels_max = pixels_max},
                                kernels::ops_for(isa), team);
    if (loaded)
      encoder = std::move(*loaded);
    else
      error = loaded.error().message;
  }

  // Of each picture: its rows, and those of each level.
  std::vector<std::vector<float>> features(const std::vector<media::PixelValues>& pictures,
                                           int64_t work = 1) {
    std::vector<std::vector<float>> out(pictures.size());
    std::vector<Picture> begun;
    for (size_t i = 0; i < pictures.size(); ++i) {
      out[i].resize(static_cast<size_t>(
          (1 + encoder->levels()) * encoder->feature_rows(pictures[i].views) * encoder->width()));
      begun.push_back({&pictures[i], out[i]});
    }
    const auto taken = encoder->begin(begun);
    EXPECT_TRUE(taken) << taken.error().message;
    while (!encoder->advance(team, work)) EXPECT_TRUE(encoder->busy());
    return out;
  }

  const std::string config, file;
  ThreadTeam team;
  std::unique_ptr<Encoder> encoder;
  std::string error;
};

}  // namespace weir::encoder
