// Layer: a stage with its weights, as it is computed.
//
// Threads: immutable after load; run() is called by every member of the team inside
// ThreadTeam::run().
#pragma once

#include <memory>
#include <vector>

#include "encoder/pass.h"
#include "encoder/spec.h"
#include "encoder/tower_binder.h"
#include "model/scratch.h"

namespace weir::encoder {

// Views that are computed together, at most: each leaves the rest of a page of keys unused.
inline constexpr int32_t kViewsMax = 64;

class Layer {
 public:
  virtual ~Layer() = default;

  // A pass that leaves its rows in Pass::next, rather than where they were.
  virtual bool moves_rows() const { return true; }
  // How many of its rows, at least, become one.
  virtual int32_t patches_joined() const { return 1; }
  // What becomes of a view; its row_begin is the caller's business.
  virtual void reshape(View& /*view*/) const {}
  // Why a view cannot be computed; empty: it can.
  virtual std::string refusal(const View& /*view*/) const { return {}; }
  virtual void run(const Pass& pass) const = 0;
};

// What layers are made of, and in.
struct LayerSource {
  TowerBinder& binder;
  model::ScratchPlan& scratch;
  const EncoderSpec& spec;
  const Stage& stage;
  const kernels::Ops& ops;
  int32_t width = 0;  // Numbers of a row as the stage reads it.
  bool exact = false;
  bool pairs = false;  // Weights of 16 bits meet rows in bf16, pair by pair.
  bool spans = false;  // Rows see each other in bf16.
  // Angles of rows, by the spec's rope: [rows, head_dim], cosines first. Made by the first stage.
  model::Buffer<float> angles{};
};

// One for each kind of operation. `width` becomes what a row has after it.
std::unique_ptr<Layer> make_layer(const LayerSource& source, int32_t& width);

std::unique_ptr<Layer> make(const LayerSource& source, const Patches& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const PixelConv& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Convolve& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const SqueezeExcite& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const TimeConv& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Attention& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const LocalAttention& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const LightConv& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Mlp& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Normalise& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Standardise& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const DropClassRow& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Merge& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Pool& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Thin& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const FillUp& op, int32_t& width);
std::unique_ptr<Layer> make(const LayerSource& source, const Project& op, int32_t& width);

}  // namespace weir::encoder
