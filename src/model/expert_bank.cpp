#include "model/expert_bank.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/crc32c.h"
#include "kernels/repack.h"
#include "kv/hash128.h"

namespace weir::model {

namespace {

constexpr uint64_t kAlign = 64;
// Blocks of 16 rows that a member unpacks at a time: about 0.1 ms of a 2,048 wide matrix.
constexpr int32_t kUnitBlocks = 16;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

int32_t blocks_of(const Linear& linear) {
  return (linear.n + kernels::kBlockRows - 1) / kernels::kBlockRows;
}

int32_t units_of_matrix(const Linear& linear) {
  return linear.quantised ? (blocks_of(linear) + kUnitBlocks - 1) / kUnitBlocks : 1;
}

bool same_form(const StoredLinear& a, const StoredLinear& b) {
  const Linear &x = a.linear, &y = b.linear;
  return a.bits == b.bits && x.n == y.n && x.k == y.k && x.quantised == y.quantised &&
         (x.quantised ? x.quant.group == y.quant.group && x.quant.scale_type == y.quant.scale_type
                      : x.floats.type == y.floats.type);
}

}  // namespace

// Offsets of the matrices in their part; returns the part's bytes.
uint64_t ExpertBank::lay_out(std::vector<Matrix>& part) {
  uint64_t at = 0;
  for (Matrix& m : part) {
    const Linear& l = m.linear;
    m.words = at;
    if (!l.quantised) {
      at += aligned(static_cast<uint64_t>(l.weight_bytes()));
      continue;
    }
    at += aligned(static_cast<uint64_t>(kernels::packed_word_bytes(l.n, l.k, l.quant.bits)));
    m.scales = at;
    at += aligned(static_cast<uint64_t>(
        kernels::packed_scale_bytes(l.n, l.k, l.quant.group, l.quant.scale_type)));
  }
  return at;
}

Result<int32_t> ExpertBank::add_layer(int32_t top_k, std::span<const StoredLinear> gate,
                                      std::span<const StoredLinear> up,
                                      std::span<const StoredLinear> down) {
  const auto experts = static_cast<int32_t>(up.size());
  const auto number = static_cast<int32_t>(layers_.size());
  if (!catalogue_) {
    catalogue_.emplace(experts, /*in_slot_form=*/false);
    for (const FileView& file : checkpoint_.files()) catalogue_->add_file(file.name());
  }
  if (experts != catalogue_->experts())
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: expected as many experts in every layer, " +
                    std::to_string(catalogue_->experts()) + "; found " + std::to_string(experts));
  if (number > 0 && top_k != top_k_)
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: expected as many experts per token in every layer, " +
                    std::to_string(top_k_) + "; found " + std::to_string(top_k));
  top_k_ = top_k;
  std::array<std::vector<std::span<const StoredLinear>>, ssd::kParts> matrices;
  if (!gate.empty()) matrices[0].push_back(gate);
  matrices[0].push_back(up);
  matrices[1].push_back(down);

  Layer& layer = layers_.emplace_back();
  std::array<uint64_t, ssd::kParts> bytes{};
  std::array<int32_t, ssd::kParts> ranges{};
  for (size_t part = 0; part < ssd::kParts; ++part) {
    for (const std::span<const StoredLinear> matrix : matrices[part]) {
      const StoredLinear& first = matrix[0];
      const auto other = std::ranges::find_if_not(
          matrix, [&](const StoredLinear& s) { return same_form(s, first); });
      if (other != matrix.end())
        return fail(
            ErrorCode::kUnsupported,
            "--stream-experts: expected all experts of a layer to be stored alike; expert " +
                std::to_string(other - matrix.begin()) + " of layer " + std::to_string(number) +
                " differs from expert 0");
      layer.parts[part].push_back({.linear = first.linear, .bits = first.bits});
      layer.parts[part].back().linear.bias = nullptr;
      ranges[part] += first.pieces;
    }
    bytes[part] = lay_out(layer.parts[part]);
  }
  catalogue_->add_layer(bytes, ranges);
  std::vector<ssd::StoredRange> of_expert;
  for (size_t e = 0; e < up.size(); ++e) {
    of_expert.clear();
    for (const auto& part : matrices)
      for (const std::span<const StoredLinear> matrix : part)
        for (int32_t i = 0; i < matrix[e].pieces; ++i) {
          const StoredLinear::Piece& piece = matrix[e].piece[static_cast<size_t>(i)];
          of_expert.push_back({piece.file, piece.offset, piece.bytes});
        }
    catalogue_->add_expert(of_expert);
  }
  return number;
}

std::string ExpertBank::folder() const {
  const std::string& file = checkpoint_.files()[0].name();
  return file.substr(0, file.rfind('/'));
}

namespace {

// A file's name, size, time of change and header; tensors cannot be looked through at each start.
Result<std::string> identity_of(const FileView& file) {
  struct stat info {};
  if (::stat(file.name().c_str(), &info) != 0)
    return fail(ErrorCode::kIo, file.name() + ": " + std::generic_category().message(errno));
  uint64_t header = 0;
  CHECK(file.bytes().size() >= sizeof header);  // It has been parsed.
  std::memcpy(&header, file.bytes().data(), sizeof header);
  std::string text = file.name().substr(file.name().rfind('/') + 1);
  for (const int64_t number :
       {int64_t{info.st_size}, int64_t{info.st_mtim.tv_sec}, int64_t{info.st_mtim.tv_nsec}})
    text.append(" ").append(std::to_string(number));
  text.append("\n").append(file.text().substr(sizeof header, header)).append("\n");
  return text;
}

}  // namespace

Result<ssd::SourceHash> ExpertBank::source() const {
  std::string text;
  for (const FileView& file : checkpoint_.files()) {
    WEIR_ASSIGN(const std::string identity, identity_of(file));
    text += identity;
  }
  // The config decides what the files' bits mean.
  for (const Layer& layer : layers_)
    for (const std::vector<Matrix>& part : layer.parts)
      for (const Matrix& m : part) {
        const Linear& l = m.linear;
        for (const int32_t number :
             {l.n, l.k, m.bits, int32_t{l.quantised}, l.quantised ? l.quant.group : 0,
              static_cast<int32_t>(l.quantised ? l.quant.scale_type : l.floats.type)})
          text.append(std::to_string(number)).append(" ");
      }
  return kv::hash128(text);
}

Result<void> ExpertBank::use_bundle(const std::string& path) {
  WEIR_ASSIGN(ssd::ExpertBundle bundle, ssd::ExpertBundle::open(path));
  WEIR_ASSIGN(const ssd::SourceHash here, source());
  if (bundle.head.source != here)
    return fail(ErrorCode::kIo,
                path + ": expected a bundle of the checkpoint in " + folder() +
                    " as it is now; found one of another, or of what it was ('weir pack' makes it "
                    "anew)");
  if (!bundle.head.complete)
    return fail(ErrorCode::kIo, path + ": expected a finished bundle, found " +
                                    std::to_string(bundle.head.layers_done) + " of " +
                                    std::to_string(bundle.head.layers) + " layers");
  return catalogue_->use_bundle(path, std::move(bundle.index));
}

Result<void> ExpertBank::open(std::unique_ptr<ssd::Disk> disk, ssd::StoreOptions options,
                              int32_t rows_max) {
  options.top_k = top_k_;
  routing_ = options.routing;
  trace_ = options.trace;
  store_.reset();  // Its memory first.
  WEIR_ASSIGN(store_, ssd::ExpertStore::create(*catalogue_, std::move(disk), options));
  demands_.reserve(static_cast<size_t>(catalogue_->experts()));
  rows_.reserve(static_cast<size_t>(rows_max));
  for (ssd::ExpertWave& wave : waves_) wave = store_->make_wave();
  return {};
}

void ExpertBank::begin(int32_t layer, const Pass& pass, const ExpertPlan& plan) {
  demands_.clear();
  rows_.clear();
  for (int32_t i = 0; i < plan.active_count; ++i) {
    const int32_t e = plan.active[i];
    const std::span rows(plan.row + plan.begin[e], plan.row + plan.begin[e + 1]);
    const auto generated = static_cast<int32_t>(
        std::ranges::count_if(rows, [&](int32_t row) { return pass.generated(row); }));
    demands_.push_back({.expert = e,
                        .generated_rows = generated,
                        .prompt_rows = static_cast<int32_t>(rows.size()) - generated});
  }
  for (const BatchSlice& slice : pass.batch.slices) {
    const int32_t last = slice.row_begin + slice.rows - 1;
    const bool prompt = !pass.generated(last);
    for (int32_t row = prompt ? last : slice.row_begin; row <= last; ++row)
      rows_.push_back({.sequence = slice.sequence,
                       .prompt = prompt,
                       .experts = plan.choice + int64_t{row} * top_k_});
  }
  if (trace_ != nullptr) record(layer, pass, plan.choice);
  store_->begin_layer(layer, demands_, rows_);
  wants_lookahead_ = pass.generated(0) && store_->wants_lookahead();
  turn_ = 0;
  store_->next_wave(waves_[0]);
}

void ExpertBank::looked_ahead(int32_t layer, const Pass& pass, const int32_t* choice) {
  rows_.clear();
  for (int32_t row = 0; row < pass.rows(); ++row) {
    if (!pass.generated(row)) continue;
    rows_.push_back(
        {.sequence = pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])].sequence,
         .experts = choice + int64_t{row} * top_k_});
    if (trace_ != nullptr)
      trace_->add(ssd::RouteKind::kLookahead, traced_step_, layer, rows_.back().sequence,
                  {rows_.back().experts, static_cast<size_t>(top_k_)});
  }
  store_->looked_ahead(layer, rows_);
}

void ExpertBank::record(int32_t layer, const Pass& pass, const int32_t* choice) {
  if (layer == 0) ++traced_step_;
  for (int32_t row = 0; row < pass.rows(); ++row)
    trace_->add(pass.generated(row) ? ssd::RouteKind::kDecode : ssd::RouteKind::kPrompt,
                traced_step_, layer,
                pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])].sequence,
                {choice + int64_t{row} * top_k_, static_cast<size_t>(top_k_)});
}

void ExpertBank::next() { store_->next_wave(waves_[static_cast<size_t>(++turn_ & 1)]); }

void ExpertBank::end() { store_->end_layer(); }

void ExpertBank::point(int32_t layer, int32_t place, FfnWeights& expert) const {
  const Layer& l = layers_[static_cast<size_t>(layer)];
  const ssd::ExpertCatalogue::Layer& slot = catalogue_->layer(layer);
  const std::byte* memory = store_->memory_of(place);
  const auto point_at = [&](Linear& to, size_t part, const Matrix& m) {
    const std::byte* base = memory + slot.part_offset[part];
    if (to.quantised) {
      to.quant.words = reinterpret_cast<const uint8_t*>(base + m.words);
      to.quant.scales = reinterpret_cast<const uint8_t*>(base + m.scales);
    } else {
      to.floats.rows = base + m.words;
    }
  };
  if (expert.spec.gated) point_at(expert.gate, 0, l.parts[0][0]);
  point_at(expert.up, 0, l.parts[0].back());
  point_at(expert.down, 1, l.parts[1][0]);
}

int32_t ExpertBank::units_of(const ssd::ExpertWave::Unpack& job) const {
  int32_t units = 0;
  for (const Matrix& m :
       layers_[static_cast<size_t>(job.layer)].parts[static_cast<size_t>(job.part)])
    units += units_of_matrix(m.linear);
  return units;
}

int32_t ExpertBank::unpack_units(const ssd::ExpertWave& wave) const {
  auto units = static_cast<int32_t>(wave.check.size());
  for (const ssd::ExpertWave::Unpack& job : wave.unpack) units += units_of(job);
  return units;
}

void ExpertBank::unpack(const ssd::ExpertWave& wave, int32_t unit) const {
  const auto checks = static_cast<int32_t>(wave.check.size());
  if (unit < checks) {
    const ssd::ExpertWave::Check& check = wave.check[static_cast<size_t>(unit)];
    *check.found = crc32c(check.bytes);
    return;
  }
  unit -= checks;
  for (const ssd::ExpertWave::Unpack& job : wave.unpack) {
    const int32_t units = units_of(job);
    if (unit < units) return unpack_unit(job, unit);
    unit -= units;
  }
}

void ExpertBank::unpack_unit(const ssd::ExpertWave::Unpack& job, int32_t unit) const {
  const auto ranges = catalogue_->ranges(job.layer, job.expert, job.part);
  const std::byte* staged = job.staged;
  size_t next = 0;
  // The next range's first byte; ranges lie one after another in whole blocks.
  const auto take = [&] {
    const ssd::StoredRange& range = ranges[next++];
    const std::byte* bytes = staged + (range.offset - range.first_block());
    staged += range.block_bytes();
    return reinterpret_cast<const uint8_t*>(bytes);
  };
  for (const Matrix& m :
       layers_[static_cast<size_t>(job.layer)].parts[static_cast<size_t>(job.part)]) {
    const Linear& l = m.linear;
    const uint8_t* words = take();
    const uint8_t* scales = l.quantised ? take() : nullptr;
    const uint8_t* biases = l.quantised ? take() : nullptr;
    const int32_t units = units_of_matrix(l);
    if (unit >= units) {
      unit -= units;
      continue;
    }
    if (!l.quantised) {
      std::memcpy(job.slot + m.words, words, static_cast<size_t>(l.weight_bytes()));
      return;
    }
    const int32_t begin = unit * kUnitBlocks;
    kernels::repack_blocks({.n = l.n,
                            .k = l.k,
                            .group = l.quant.group,
                            .bits = m.bits,
                            .scale_type = l.quant.scale_type,
                            .words = words,
                            .scales = scales,
                            .biases = biases},
                           begin, std::min(begin + kUnitBlocks, blocks_of(l)),
                           reinterpret_cast<uint8_t*>(job.slot + m.words),
                           reinterpret_cast<uint8_t*>(job.slot + m.scales));
    return;
  }
}

void ExpertBank::clear_gaps(int32_t layer, std::byte* slot) const {
  const ssd::ExpertCatalogue::Layer& form = catalogue_->layer(layer);
  for (size_t part = 0; part < ssd::kParts; ++part) {
    std::byte* base = slot + form.part_offset[part];
    uint64_t end = 0;  // Of the last piece.
    const auto clear_to = [&](uint64_t next) { std::fill(base + end, base + next, std::byte{}); };
    for (const Matrix& m : layers_[static_cast<size_t>(layer)].parts[part]) {
      const Linear& l = m.linear;
      clear_to(m.words);
      if (!l.quantised) {
        end = m.words + static_cast<uint64_t>(l.weight_bytes());
        continue;
      }
      end = m.words + static_cast<uint64_t>(kernels::packed_word_bytes(l.n, l.k, l.quant.bits));
      clear_to(m.scales);
      end = m.scales + static_cast<uint64_t>(kernels::packed_scale_bytes(l.n, l.k, l.quant.group,
                                                                         l.quant.scale_type));
    }
    clear_to(form.part_bytes[part]);
  }
}

}  // namespace weir::model
