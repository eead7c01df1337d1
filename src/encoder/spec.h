// EncoderSpec describes a tower, of vision or of hearing, and its projector completely: its stages
// in order, with their sizes and the names of their weights. Plain data. A family's file
// (families/) makes it of config.json; the encoder and describe() read it. Nothing else knows a
// family's name.
//
// A tower works on rows, one for each patch of a picture, or for each moment of a sound. A stage
// changes the rows, or makes fewer of them; what the last one leaves are the rows of features that
// the text's model reads.
//
// Names of modules begin with "tower." or "projector.", which stand for what the file has in their
// place (EncoderSpec::tower_roots, ::projector_roots).
//
// Threads: plain data, free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/ops.h"
#include "media/processor/processor.h"
#include "model/operations/norm.h"

namespace weir::encoder {

using model::Norm;

enum class Medium : uint8_t { kPicture, kSound };

// How the places of patches are told apart by learned rows.
struct PositionTable {
  enum Kind : uint8_t {
    kNone,
    kOneByOne,  // Row i of the table is for row i, a class row's included; views of one size.
    kBucketed,  // A table of side x side; a place is the fraction of the view that it lies at.
    // The same table, resized to the view's grid as torch does it (bilinear, antialias).
    kAntialiased,
    kAxes,  // Row x of a table, and row y of another one, of `side` rows each.
    // A table of side x side, between whose outermost entries the view's outermost patches lie,
    // bilinearly: qwen3_vl.
    kCorners,
    // The same table over the view's area, sampled bicubically at the patches' middles: glm4v.
    kBicubic
  } kind = kNone;
  std::string tensor{};
  int side = 0;  // Of a square table; kOneByOne: of the views' grid.
};

// The first stage: numbers of pixels to rows.
struct Patches {
  std::string module{};
  bool bias = true;
  // A row beside those of patches, which is learned; empty: there is none.
  std::string class_row{};
  bool class_last = false;
  std::optional<Norm> norm{};  // Of what the product gives, before positions are added.
  PositionTable positions{};
  // Numbers that come patch by patch enter as factor * (number - middle).
  float factor = 1, middle = 0;
};

// How pairs of a head's numbers turn with the patch's row and column.
struct Rope {
  enum Kind : uint8_t {
    kNone,
    // Pair i is (i, i + head_dim / 2); n = head_dim / 4 pairs by the row, then n by the column.
    kInterleavedRates,  // With rates theta^(-4i / head_dim) and theta^(-(4i + 2) / head_dim):
                        // pixtral.
    kEqualRates,        // Both with rates theta^(-4i / head_dim): the Qwen-VL families.
    // Pair i is (2i, 2i + 1); n pairs by column + 1, then n by row + 1, as kEqualRates: llama4.
    kNeighbours,
    // The first half of a head by the column, the second by the row; within each, pair i is
    // (i, i + n), with rates as kEqualRates: gemma4.
    kHalves
  } kind = kNone;
  float theta = 10000;
  bool operator==(const Rope&) const = default;
};

// The first stage of a tower of convolutions: each row of kernel x kernel pixels around its place,
// which lie `patch` pixels apart; beyond the view there are zeros.
struct PixelConv {
  std::string module{};
  int kernel = 3;
  kernels::Act act = kernels::Act::kGelu;
  // A convolution of which the shape says whether the file has colours last, as MLX writes them: of
  // the first one's they may be as many as it has columns.
  std::string tells_layout{};
};

// A convolution of each number by itself over kernel x kernel rows around a row's place in the
// grid; beyond it there are zeros. What it gives may be several times as wide: then that many
// neighbours there are of one number here.
struct Depthwise {
  std::string module{};
  int kernel = 3;
  bool bias = true;
  std::string batch_norm{};  // A module that normalises what it gives; empty: none.
};

// Each row becomes what a convolution gives there, of every stride-th place in both directions.
struct Convolve {
  Depthwise conv{};
  int stride = 1;
  int width = 0;  // Of what it gives.
  std::optional<kernels::Act> act{};
};

// Rows are multiplied by numbers that the mean of the view's rows gives, through two linear layers
// (`module`.reduce, `module`.expand); then act().
struct SqueezeExcite {
  std::string module{};
  int inner = 0;
  kernels::Act act = kernels::Act::kGelu;
};

// A convolution along a sound. A row has `bands` bands of equally many numbers (channels); row t,
// band f of what it gives reads those around row t * time.stride, band f * band.stride. Beyond the
// rows and the bands there are zeros. The first stage of a tower of hearing reads frames.
struct TimeConv {
  struct Axis {
    int taps = 3;
    int stride = 1;
    int before = 1, after = 1;  // Zeros.

    int count(int from) const { return (from + before + after - taps) / stride + 1; }
  };
  std::string module{};
  int channels = 0;  // That each band has afterwards.
  int bands = 1;     // That it finds.
  Axis time{};
  Axis band{.taps = 1, .before = 0, .after = 0};
  bool bias = true;
  // Of each band's channels; `running`: of all numbers of the sound up to the row's last one, whose
  // mean and variance are running ones.
  std::optional<Norm> norm{};
  bool running = false;
  kernels::Act act = kernels::Act::kGelu;
  std::string positions{};  // A tensor of a row for each of `positions_max` rows, added; or none.
  int positions_max = 0;
};

// Every row of a view sees every other one, or those of its window.
struct Attention {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;
  // Modules; where `fused` is not empty, one of all three, in this order.
  std::string q{}, k{}, v{}, fused{};
  std::string out{};
  bool bias = true;
  bool key_bias = true;  // Where others have one.
  bool out_bias = true;
  std::optional<Norm> q_norm{}, k_norm{}, v_norm{};
  bool norms_heads = false;  // Each by itself; else all of them together.
  bool windows = false;      // EncoderSpec::window.
  bool clipped = false;      // As Mlp::clipped.
};

// A row sees itself and the rows before it, `window` in all, and no later one. A query's score of
// the row d before it is softcap(q . (k + r)), where r is what the sinusoids of position d +
// positions - 1 - past project to, or nothing where that is no position.
struct LocalAttention {
  int heads = 0;
  int head_dim = 0;
  int window = 0;
  int past = 0;
  int positions = 0;
  float softcap = 0;
  float key_scale = 1;
  std::string q{}, k{}, v{}, out{};
  std::string relative{};   // The module that projects sinusoids.
  std::string dim_scale{};  // A tensor of a head's size: queries grow by its softplus / ln 2.
  bool clipped = false;     // As Mlp::clipped; `relative` is never.

  static constexpr int kPositionsMax = 256;  // 20 times what is published.
  // How the reference shares out its work: rows of a chunk read one stretch of keys, from `past`
  // rows before the chunk to its end. Of no meaning here unless `turned`, which sees of that
  // stretch all but the window (EncoderOptions::turned_masks).
  int chunk = 0;
  bool turned = false;
};

// out(act(norm(conv(a * sigmoid(b))))), where `in` gives a and b side by side, and conv is one of
// each number by itself over the row and the taps - 1 rows before it.
struct LightConv {
  std::string in{}, conv{}, out{};
  int taps = 0;
  Norm norm{};
  kernels::Act act = kernels::Act::kSilu;
  bool clipped = false;  // As Mlp::clipped.
};

// out(act(up(x))), or out(act(gate(x)) * up(x)) where there is a gate.
struct Mlp {
  int width = 0;
  kernels::Act act = kernels::Act::kGeluTanh;
  std::string gate{}, up{}, out{};
  bool bias = true;
  std::optional<Depthwise> conv{};  // Of what it reads, in place of Stage::pre.
  // A module has its weight in `.linear`, and numbers beside that clip what it reads and gives.
  bool clipped = false;
};

// Each row becomes its norm, and that its activation.
struct Normalise {
  Norm norm{};
  std::optional<kernels::Act> act{};
};

// The class row goes.
struct DropClassRow {};

// side x side patches become one row, of all their numbers.
struct Merge {
  enum Order : uint8_t { kPatchByPatch, kNumberByNumber };
  int side = 2;
  Order order = kPatchByPatch;
  bool transposed = false;  // The grid is turned over: squares come column by column.
};

// side x side patches become their mean.
struct Pool {
  int side = 2;
  float factor = 1;  // By which it is multiplied.
};

// Of each `step` rows of a sound one is left: their mean, where there are so many, or the first.
struct Thin {
  int step = 2;
  bool mean = false;
};

// Up to `rows` rows follow those of a sound: the last entry of a table, normed.
struct FillUp {
  int rows = 0;
  std::string table{};  // A module of `entries` rows.
  int entries = 0;
  Norm norm{};
};

// row = (row - bias) * scale, number by number.
struct Standardise {
  std::string bias{}, scale{};  // Tensors.
};

// A linear layer, and an activation of what it gives.
struct Project {
  std::string module{};
  int width = 0;  // Of what it gives.
  bool bias = true;
  bool turned = false;  // A tensor [numbers read, numbers given] of this very name.
  // The weight is a convolution's, over squares of so many patches a side, which a Merge number by
  // number has made rows of.
  int side = 1;
  std::optional<kernels::Act> act{};
};

using Operation = std::variant<Patches, PixelConv, Convolve, SqueezeExcite, TimeConv, Attention,
                               LocalAttention, LightConv, Mlp, Normalise, Standardise, DropClassRow,
                               Merge, Pool, Thin, FillUp, Project>;

// Of Attention, LocalAttention, LightConv and Mlp: row += scale * factor * post(op(pre(row))).
struct Stage {
  Operation op;
  std::optional<Norm> pre{}, post{};
  std::string scale{};  // A tensor of as many numbers as a row has; empty: 1.
  float factor = 1;
  // Above 0: what pre and post read, what Normalise does, and what LightConv's own norm does, but
  // not what that reads first, is kept within so much of 0.
  float limit = 0;
  bool replaces = false;  // Rather than add to the row, it takes its place.
};

// Further rows of features, which the text's model adds after a layer of its own. Made of the rows
// that stage `after` leaves, which go on unchanged. The first of its stages moves rows.
struct Level {
  size_t after = 0;
  std::vector<Stage> stages{};
};

struct EncoderSpec {
  std::string family{};
  Medium medium = Medium::kPicture;
  // Of sounds. Frames are computed as far as the sound is heard, rounded up to a multiple where
  // there are so many, or all of them.
  int bands = 0;  // Numbers of a frame.
  int frames_multiple = 1;
  bool all_frames = false;
  // Of pictures.
  media::PixelLayout layout = media::PixelLayout::kPlanes;
  int patch = 14;  // Pixels of a patch's side.
  int frames = 1;  // That a patch has.
  int merge = 1;   // Patches of a block's side, where patches come block by block (kBlocks).
  // Patches of a window's side, where some stages attend within windows: their rows come window by
  // window until patches join; 0: there are none.
  int window = 0;
  int width = 0;  // Numbers of a row, up to the first stage that says otherwise.
  Rope rope{};
  std::vector<Stage> stages{};
  std::vector<Level> levels{};  // Ascending in `after`.
  // What names begin with in the file: the first of these that some tensor there begins with.
  std::vector<std::string> tower_roots{}, projector_roots{};
  // Tensors whose names begin so are not needed.
  std::vector<std::string> unused{};
};

std::string describe(const EncoderSpec& spec);  // One line per distinct stage; golden-tested.

}  // namespace weir::encoder
