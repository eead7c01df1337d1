// What hearing costs before an encoder begins, on one thread: front ends, resampling, and decoding.
//
//   sound_bench [FILE...]
//
// Prints processor time for a second of sound, and how many seconds of sound a second is enough
// for. Front ends and resampling take half a minute of noise; of each file the whole is decoded.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "card/config_reader.h"
#include "media/audio/decode_sound.h"
#include "media/audio/resampler.h"
#include "media/features/sound_features.h"

namespace {

using namespace weir;

constexpr int kSeconds = 30;

// The thread's own time: the machine has other work.
double now_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// The best of five.
template <class Work>
void report(const std::string& name, double seconds, Work&& work) {
  double best = 1e300;
  for (int round = 0; round < 5; ++round) {
    const double begin = now_ms();
    work();
    best = std::min(best, now_ms() - begin);
  }
  std::printf("%-28s %9.3f ms a second, %8.0f times real time\n", name.c_str(), best / seconds,
              seconds * 1e3 / best);
}

std::vector<float> noise(size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  std::vector<float> samples(count);
  for (float& sample : samples) sample = uniform(random);
  return samples;
}

void measure_front_end(const std::string& family) {
  const JsonDoc file = *card::parse_config("{}");
  const JsonDoc config = *card::parse_config(R"({"model_type": ")" + family + R"("})");
  const auto front_end = media::read_front_end(file.root(), config.root());
  CHECK(front_end);
  const std::vector<float> samples = noise(size_t{16000} * kSeconds);
  const auto plan = media::plan_sound(*front_end, static_cast<int64_t>(samples.size()));
  CHECK(plan);
  report(family, kSeconds, [&] { media::sound_features(*front_end, *plan, samples); });
}

void measure_resampling(int rate) {
  const std::vector<float> samples = noise(static_cast<size_t>(rate) * kSeconds);
  report(std::to_string(rate) + " Hz to 16000 Hz", kSeconds, [&] {
    auto resampler = media::Resampler::create(rate, 16000);
    CHECK(resampler);
    std::vector<float> out;
    resampler->add(samples, out);
    resampler->finish(out);
  });
}

int measure_file(const std::string& path) {
  const media::SoundLimits limits;
  const auto bytes = read_file(path, limits.file_bytes_max);
  if (!bytes) {
    std::fprintf(stderr, "sound_bench: %s\n", bytes.error().message.c_str());
    return 1;
  }
  const auto sound = media::decode_sound(*bytes, 16000, limits);
  if (!sound) {
    std::fprintf(stderr, "sound_bench: %s: %s\n", path.c_str(), sound.error().message.c_str());
    return 1;
  }
  report(path, sound->seconds(), [&] { CHECK(media::decode_sound(*bytes, 16000, limits)); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* family : {"whisper", "qwen2_audio", "gemma3n", "gemma4"})
    measure_front_end(family);
  for (const int rate : {8000, 44100, 48000, 96000}) measure_resampling(rate);
  int failed = 0;
  for (int i = 1; i < argc; ++i) failed |= measure_file(argv[i]);
  return failed;
}
