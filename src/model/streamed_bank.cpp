#include "model/streamed_bank.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "kv/hash128.h"

namespace weir::model {

Result<void> StreamedBank::check(int32_t top_k, size_t experts) const {
  if (top_k > static_cast<int32_t>(experts))
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: expected at most " + std::to_string(experts) +
                    " experts per token, as many as are stored; found " + std::to_string(top_k));
  if (layers_.empty()) return {};
  if (static_cast<int32_t>(experts) != catalogue_->experts())
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: expected as many experts in every layer, " +
                    std::to_string(catalogue_->experts()) + "; found " + std::to_string(experts));
  if (top_k != top_k_)
    return fail(ErrorCode::kUnsupported,
                "--stream-experts: expected as many experts per token in every layer, " +
                    std::to_string(top_k_) + "; found " + std::to_string(top_k));
  return {};
}

namespace {

// The experts' matrices from `begin` on lie in the same bytes as those before: gate and up, row by
// row.
bool shares_pieces(std::span<const StoredMatrix> matrices, size_t begin, size_t experts) {
  if (begin == 0) return false;
  for (size_t e = 0; e < experts; ++e) {
    const StoredMatrix &a = matrices[begin - experts + e], &b = matrices[begin + e];
    const auto same = [](const StoredMatrix::Piece& x, const StoredMatrix::Piece& y) {
      return x.file == y.file && x.offset == y.offset && x.bytes == y.bytes;
    };
    if (!a.source || !b.source || a.pieces != b.pieces ||
        !std::ranges::equal(a.piece, b.piece, same))
      return false;
  }
  return true;
}

}  // namespace

// The last matrix, down_proj, is part 1.
Result<SlotForm> StreamedBank::form_of(std::span<const StoredMatrix> matrices, size_t experts) {
  SlotForm form;
  for (size_t begin = 0; begin < matrices.size(); begin += experts) {
    const auto all = matrices.subspan(begin, experts);
    for (const StoredMatrix& other : all)
      if (!SlotForm::same(all[0], other))
        return fail(ErrorCode::kUnsupported,
                    "--stream-experts: tensor '" + other.name + "': expected " +
                        all[0].format_name() + " [" + std::to_string(all[0].linear.n) + ", " +
                        std::to_string(all[0].linear.k) +
                        "], as expert 0 of the layer is stored; " + "found " + other.format_name());
    const bool down = begin + experts == matrices.size();
    form.add(down ? 1 : 0, all[0], !down && shares_pieces(matrices, begin, experts));
  }
  return form;
}

void StreamedBank::add_to_catalogue(const SlotForm& form, std::span<const StoredMatrix> matrices,
                                    size_t experts) {
  std::array<int32_t, ssd::kParts> ranges{};
  std::vector<bool> shares;  // By matrix of an expert.
  for (size_t m = 0; m < matrices.size(); m += experts)
    shares.push_back(m + experts < matrices.size() && shares_pieces(matrices, m, experts));
  for (size_t m = 0; m < matrices.size(); m += experts)
    if (!shares[m / experts]) ranges[m + experts == matrices.size() ? 1 : 0] += matrices[m].pieces;
  catalogue_->add_layer(form.part_bytes(), ranges);
  std::vector<ssd::StoredRange> of_expert;
  for (size_t e = 0; e < experts; ++e) {
    of_expert.clear();
    for (size_t m = e; m < matrices.size(); m += experts)
      for (int32_t i = 0; i < matrices[m].pieces && !shares[m / experts]; ++i) {
        const StoredMatrix::Piece& piece = matrices[m].piece[static_cast<size_t>(i)];
        of_expert.push_back({piece.file_number, piece.offset, piece.bytes});
      }
    catalogue_->add_expert(of_expert);
  }
}

Result<ExpertBank::Layer> StreamedBank::add_layer(int32_t top_k, std::vector<FfnWeights> experts) {
  const std::vector<StoredMatrix> matrices = placer_.take();
  CHECK(!experts.empty());
  CHECK(matrices.size() == experts.size() * (experts[0].spec.gated ? 3 : 2));
  WEIR_TRY(check(top_k, experts.size()));
  WEIR_ASSIGN(SlotForm form, form_of(matrices, experts.size()));
  if (!catalogue_) {
    catalogue_.emplace(static_cast<int32_t>(experts.size()), /*in_slot_form=*/false);
    for (const FileView& file : checkpoint_.files()) catalogue_->add_file(file.name());
  }
  top_k_ = top_k;
  add_to_catalogue(form, matrices, experts.size());
  layers_.push_back({std::move(form), std::move(experts)});
  return Layer{.number = static_cast<int32_t>(layers_.size()) - 1,
               .experts = layers_.back().experts};
}

std::string StreamedBank::folder() const {
  const std::string& file = checkpoint_.files()[0].name();
  return file.substr(0, file.rfind('/'));
}

std::string StreamedBank::bundle_prefix() const {
  constexpr std::string_view kGguf = ".gguf";
  const std::string& file = checkpoint_.files()[0].name();
  return file.ends_with(kGguf) ? file.substr(0, file.size() - kGguf.size()) + "." : folder() + "/";
}

namespace {

// A file's name, size, time of change and header; tensors cannot be looked through at each start.
Result<std::string> identity_of(const card::Checkpoint& checkpoint, size_t number) {
  const FileView& file = checkpoint.files()[number];
  struct stat info {};
  if (::stat(file.name().c_str(), &info) != 0)
    return fail(ErrorCode::kIo, file.name() + ": " + std::generic_category().message(errno));
  // All before the first tensor, but for the header's length or the mark of its format.
  constexpr size_t kMark = 8;
  size_t end = file.bytes().size();
  for (const card::StoredTensor& tensor : checkpoint.tensors())
    if (static_cast<size_t>(tensor.file) == number) end = std::min(end, tensor.offset);
  CHECK(end >= kMark);  // It has been parsed.
  std::string text = file.name().substr(file.name().rfind('/') + 1);
  for (const int64_t part :
       {int64_t{info.st_size}, int64_t{info.st_mtim.tv_sec}, int64_t{info.st_mtim.tv_nsec}})
    text.append(" ").append(std::to_string(part));
  text.append("\n").append(file.text().substr(kMark, end - kMark)).append("\n");
  return text;
}

}  // namespace

Result<ssd::SourceHash> StreamedBank::source() const {
  std::string text;
  for (size_t file = 0; file < checkpoint_.files().size(); ++file) {
    WEIR_ASSIGN(const std::string identity, identity_of(checkpoint_, file));
    text += identity;
  }
  // The config decides what the files' bits mean.
  for (const StreamedLayer& layer : layers_) text += layer.form.text();
  return kv::hash128(text);
}

Result<void> StreamedBank::use_bundle(const std::string& path) {
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

Result<void> StreamedBank::open(std::unique_ptr<ssd::Disk> disk, ssd::StoreOptions options,
                                int32_t rows_max) {
  options.top_k = top_k_;
  store_.reset();  // Its memory first.
  WEIR_ASSIGN(store_, ssd::ExpertStore::create(*catalogue_, std::move(disk), options));
  demands_.reserve(static_cast<size_t>(catalogue_->experts()));
  rows_.reserve(static_cast<size_t>(rows_max));
  for (ssd::ExpertWave& wave : waves_) wave = store_->make_wave();
  return {};
}

ExpertBank::Wave StreamedBank::begin(const Pass& pass, int32_t layer, const ExpertPlan& plan) {
  if (pass.member == 0) {
    layer_ = layer;
    plan_ = &plan;
    ask(pass);
    make_wave(0);
  }
  pass.team.barrier(pass.member);
  return ready(pass, 0);
}

std::optional<ExpertBank::Wave> StreamedBank::next(const Pass& pass, const Wave& done) {
  const bool leader = pass.member == 0;
  if (leader && !done.last) make_wave(done.turn + 1);
  pass.team.barrier(pass.member);
  if (!done.last) return ready(pass, done.turn + 1);
  if (leader) store_->end_layer();
  return {};
}

// The plan's demands of the store.
void StreamedBank::ask(const Pass& pass) {
  const ExpertPlan& plan = *plan_;
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
  store_->begin_layer(layer_, demands_, rows_);
  wants_lookahead_ = pass.generated(0) && store_->wants_lookahead();
}

// An expert stays where it is until its run is over, so it is enough to say once where.
void StreamedBank::make_wave(int turn) {
  store_->next_wave(wave(turn));
  StreamedLayer& layer = layers_[static_cast<size_t>(layer_)];
  const SlotForm::Parts& offset = catalogue_->layer(layer_).part_offset;
  for (const int32_t place : wave(turn).activate)
    layer.form.point(store_->memory_of(place), offset,
                     layer.experts[static_cast<size_t>(plan_->active[place])]);
}

// By every member, after the wave was made: what has landed is put into the kernels' form.
ExpertBank::Wave StreamedBank::ready(const Pass& pass, int turn) {
  const ssd::ExpertWave& made = wave(turn);
  if (!made.unpack.empty() || !made.check.empty()) {
    const trace::Scope scope(trace::Kind::kKernel, "unpack");
    claim_blocks(pass, unpack_units(made),
                 [&](int64_t unit) { unpack(made, static_cast<int32_t>(unit)); });
    pass.team.barrier(pass.member);
  }
  if (pass.member == 0) report_failures(pass, made);
  return {.activate = made.activate,
          .down = made.down,
          .failed = made.failed,
          .turn = turn,
          .last = made.last,
          .looks_ahead = turn == 0 && wants_lookahead_};
}

void StreamedBank::report_failures(const Pass& pass, const ssd::ExpertWave& wave) const {
  for (const int32_t place : wave.failed) {
    const int32_t e = plan_->active[place];
    for (int32_t slot = plan_->begin[e]; slot < plan_->begin[e + 1]; ++slot)
      pass.sink.on_failed(pass.ws.slice[plan_->row[slot]], store_->failure_of(place));
  }
}

void StreamedBank::looked_ahead(const Pass& pass, int32_t layer, const int32_t* choice) {
  rows_.clear();
  for (int32_t row = 0; row < pass.rows(); ++row) {
    if (!pass.generated(row)) continue;
    rows_.push_back(
        {.sequence = pass.batch.slices[static_cast<size_t>(pass.ws.slice[row])].sequence,
         .experts = choice + int64_t{row} * top_k_});
  }
  store_->looked_ahead(layer, rows_);
}

int32_t StreamedBank::unpack_units(const ssd::ExpertWave& wave) const {
  auto units = static_cast<int32_t>(wave.check.size());
  for (const ssd::ExpertWave::Unpack& job : wave.unpack)
    units += form(job.layer).units(static_cast<size_t>(job.part));
  return units;
}

void StreamedBank::unpack(const ssd::ExpertWave& wave, int32_t unit) const {
  const auto checks = static_cast<int32_t>(wave.check.size());
  if (unit < checks) {
    const ssd::ExpertWave::Check& check = wave.check[static_cast<size_t>(unit)];
    *check.found = crc32c(check.bytes);
    return;
  }
  unit -= checks;
  for (const ssd::ExpertWave::Unpack& job : wave.unpack) {
    const SlotForm& to = form(job.layer);
    const auto part = static_cast<size_t>(job.part);
    const int32_t units = to.units(part);
    if (unit < units)
      return to.unpack(part, unit, catalogue_->ranges(job.layer, job.expert, job.part), job.staged,
                       job.slot);
    unit -= units;
  }
}

void StreamedBank::clear_gaps(int32_t layer, std::byte* slot) const {
  const ssd::ExpertCatalogue::Layer& in_slot = catalogue_->layer(layer);
  for (size_t part = 0; part < ssd::kParts; ++part)
    form(layer).clear_gaps(part, slot + in_slot.part_offset[part], in_slot.part_bytes[part]);
}

}  // namespace weir::model
