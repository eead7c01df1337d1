#include "media/audio/decode_sound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/base64.h"
#include "media/audio/sound_samples.h"
#include "media/audio/wav_writer.h"

namespace weir::media {
namespace {

constexpr int kRate = 16000;

std::string sample_file(std::string_view name) {
  for (const SoundSample& sample : kSoundSamples)
    if (sample.name == name) return *decode_base64(sample.base64);
  ADD_FAILURE() << name;
  return "";
}

Result<Sound> decode(std::string_view bytes) { return decode_sound(bytes, kRate, SoundLimits{}); }

Sound decoded(std::string_view bytes) {
  Result<Sound> sound = decode(bytes);
  EXPECT_TRUE(sound) << sound.error().message;
  return sound ? *sound : Sound{};
}

void expect_refused(std::string_view bytes, ErrorCode code, std::string_view part,
                    const SoundLimits& limits = {}) {
  const Result<Sound> sound = decode_sound(bytes, kRate, limits);
  ASSERT_FALSE(sound) << part;
  EXPECT_EQ(sound.error().code, code) << sound.error().message;
  EXPECT_NE(sound.error().message.find(part), std::string::npos) << sound.error().message;
}

struct Tone {
  double amplitude = 0;
  double rest = 0;  // Of what is not the tone, its root mean square.
};

// How much of a tone of `hertz` is in the samples; without their ends, where encoders and filters
// swing in and out. REQUIRES: whole periods.
Tone tone_in(std::span<const float> samples, double hertz, int rate) {
  std::complex<double> sum = 0;
  double squares = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double angle = 2 * std::numbers::pi * hertz * static_cast<double>(i) / rate;
    sum += double{samples[i]} * std::complex(std::cos(angle), -std::sin(angle));
    squares += double{samples[i]} * samples[i];
  }
  const auto count = static_cast<double>(samples.size());
  const double amplitude = 2 * std::abs(sum) / count;
  return {amplitude, std::sqrt(std::max(0.0, squares / count - amplitude * amplitude / 2))};
}

std::vector<float> sine(double hertz, int rate, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  return out;
}

TEST(DecodeSound, EveryFormatGivesItsTone) {
  for (const SoundSample& sample : kSoundSamples) {
    const Sound sound = decoded(sample_file(sample.name));
    EXPECT_EQ(sound.rate, kRate);
    const std::string_view name = sample.name;
    // One MP3 does not say what its encoder put around the sound; the other does in its first
    // frame.
    const size_t length = name == "flac_cd" ? 800 : name == "mp3" ? 4608 : 3200;
    ASSERT_EQ(sound.samples.size(), length) << sample.name;
    const size_t middle = sound.samples.size() / 2;
    const Tone tone = tone_in(std::span(sound.samples).subspan(middle - 240, 480), 1000, kRate);
    EXPECT_NEAR(tone.amplitude, 0.5, 0.03) << sample.name;
    EXPECT_LT(tone.rest, 0.03) << sample.name;  // Encoders of few bits leave noise.
  }
}

TEST(DecodeSound, FormatsAreToldByTheirFirstBytes) {
  EXPECT_EQ(sound_format_of(wav_of({1})), SoundFormat::kWav);
  EXPECT_EQ(sound_format_of(sample_file("flac")), SoundFormat::kFlac);
  EXPECT_EQ(sound_format_of(sample_file("mp3")), SoundFormat::kMp3);
  EXPECT_EQ(sound_format_of(sample_file("mp3_title")), SoundFormat::kMp3);
  EXPECT_EQ(sound_format_of(sample_file("vorbis")), SoundFormat::kVorbis);
  EXPECT_EQ(sound_format_of(sample_file("opus")), SoundFormat::kOpus);
}

TEST(DecodeSound, LosslessFilesHaveTheSamplesThatWereEncoded) {
  const Sound flac = decoded(sample_file("flac"));
  ASSERT_EQ(flac.samples.size(), size_t{3200});
  const std::vector<float> expected = sine(1000, kRate, 3200);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(flac.samples[i], std::round(expected[i] * 32768) / 32768) << i;
}

TEST(DecodeSound, WavOfAllSizesOfSample) {
  const std::vector<float> expected = {0.5f, -1.0f, 0.0f, 0.25f};
  struct Case {
    WavHeader header{};
    std::string data{};
  };
  const auto floats = [](auto numbers, auto bits) {
    std::string data;
    for (const auto number : numbers)
      append_little_endian(data, std::bit_cast<decltype(bits)>(number), sizeof number);
    return data;
  };
  const Case cases[] = {
      {{.bits = 8}, std::string("\xc0\x00\x80\xa0", 4)},
      {{.bits = 16}, std::string("\x00\x40\x00\x80\x00\x00\x00\x20", 8)},
      {{.bits = 24}, std::string("\0\0\x40\0\0\x80\0\0\0\0\0\x20", 12)},
      {{.bits = 32}, std::string("\0\0\0\x40\0\0\0\x80\0\0\0\0\0\0\0\x20", 16)},
      {{.tag = 3, .bits = 32}, floats(expected, uint32_t{})},
      {{.tag = 3, .bits = 64}, floats(std::vector<double>{0.5, -1, 0, 0.25}, uint64_t{})},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(decoded(wav(c.header, c.data)).samples, expected) << c.header.bits;
    WavHeader extensible = c.header;
    extensible.extensible = true;
    EXPECT_EQ(decoded(wav(extensible, c.data)).samples, expected) << c.header.bits;
  }
}

TEST(DecodeSound, WavOfTelephones) {
  // The smallest and the largest numbers of G.711 (A-law in 13 bits, mu-law in 14).
  const Sound a_law = decoded(wav({.tag = 6, .bits = 8}, "\xd5\x55\xaa\x2a"));
  ASSERT_EQ(a_law.samples.size(), size_t{4});
  EXPECT_NEAR(a_law.samples[0], 8.0 / 32768, 1e-6);
  EXPECT_NEAR(a_law.samples[1], -8.0 / 32768, 1e-6);
  EXPECT_NEAR(a_law.samples[2], 32256.0 / 32768, 1e-6);
  const Sound mu_law = decoded(wav({.tag = 7, .bits = 8}, std::string("\xff\x80\x00\x7f", 4)));
  ASSERT_EQ(mu_law.samples.size(), size_t{4});
  EXPECT_EQ(mu_law.samples[0], 0);
  EXPECT_NEAR(mu_law.samples[1], 32124.0 / 32768, 1e-6);
  EXPECT_NEAR(mu_law.samples[2], -32124.0 / 32768, 1e-6);
}

TEST(DecodeSound, ChannelsBecomeTheirMean) {
  const std::vector<float> stereo = {0.5f, 0.25f, -1.0f, 1.0f};
  EXPECT_EQ(decoded(wav_of_floats(stereo, 2)).samples, (std::vector<float>{0.375f, 0.0f}));
  const std::vector<float> seven = {0.5f, 0.5f, 0.5f, 0.5f, -0.5f, -0.5f, -0.25f};
  EXPECT_EQ(decoded(wav_of_floats(seven, 7)).samples, (std::vector<float>{0.75f / 7}));
  expect_refused(wav_of(std::vector<int>(9), 9), ErrorCode::kTooLarge,
                 "the WAV has 9 channels; at most 8 are decoded");
}

TEST(DecodeSound, RatesBecomeTheOneThatIsWanted) {
  for (const int rate : {8000, 11025, 22050, 32000, 44100, 48000, 96000, 192000}) {
    const auto seconds = static_cast<size_t>(rate) / 5;
    const Sound sound = decoded(wav_of_floats(sine(1000, rate, seconds), 1, rate));
    EXPECT_EQ(sound.samples.size(), size_t{3200}) << rate;
    const Tone tone = tone_in(std::span(sound.samples).subspan(800, 1600), 1000, kRate);
    EXPECT_NEAR(tone.amplitude, 0.5, 2e-5) << rate;
    EXPECT_LT(tone.rest, 2e-5) << rate;
  }
}

TEST(DecodeSound, FrequenciesThatTheRateCannotHoldAreTakenOut) {
  const Sound sound = decoded(wav_of_floats(sine(12000, 48000, 9600), 1, 48000));
  const Tone alias = tone_in(std::span(sound.samples).subspan(800, 1600), 4000, kRate);
  EXPECT_LT(alias.amplitude, 5e-6);
  EXPECT_LT(alias.rest, 5e-6);
}

TEST(DecodeSound, LengthsAreRoundedUp) {
  EXPECT_EQ(decoded(wav_of(std::vector<int>(1), 1, 48000)).samples.size(), size_t{1});
  EXPECT_EQ(decoded(wav_of(std::vector<int>(4), 1, 48000)).samples.size(), size_t{2});
  EXPECT_EQ(decoded(wav_of(std::vector<int>(44100), 1, 44100)).samples.size(), size_t{16000});
  EXPECT_EQ(decoded(wav_of(std::vector<int>(1), 1, 8000)).samples.size(), size_t{2});
}

TEST(DecodeSound, RatesBeyondTheLimitsAreRefused) {
  expect_refused(wav_of({1}, 1, 4000), ErrorCode::kMediaType,
                 "the WAV has 4000 samples a second; from 8000 to 192000 are decoded");
  expect_refused(wav_of({1}, 1, 400000), ErrorCode::kMediaType, "400000 samples a second");
}

TEST(DecodeSound, OneSampleIsASound) {
  EXPECT_EQ(decoded(wav_of({16384})).samples, std::vector<float>{0.5f});
}

TEST(DecodeSound, NoSampleIsNone) {
  expect_refused("", ErrorCode::kInvalid, "the sound is empty; WAV, FLAC, MP3");
  expect_refused(wav_of(std::vector<int>{}), ErrorCode::kInvalid, "the WAV has no samples");
  const std::string opus = sample_file("opus");
  // The pages of the header alone.
  expect_refused(opus.substr(0, opus.rfind("OggS")), ErrorCode::kInvalid, "the Ogg Opus");
}

TEST(DecodeSound, WhatIsNoNumberIsRefused) {
  std::vector<float> samples(8000, 0.25f);
  samples[4000] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(wav_of_floats(samples), ErrorCode::kInvalid,
                 "the WAV is damaged: after 0.250 s comes a sample that is not a number");
  samples[4000] = -std::numeric_limits<float>::infinity();
  expect_refused(wav_of_floats(samples), ErrorCode::kInvalid, "after 0.250 s");
  samples[4000] = 3e9f;
  expect_refused(wav_of_floats(samples, 2), ErrorCode::kInvalid, "after 0.125 s");
  samples[4000] = 32767;  // Integers that someone wrote as floats.
  EXPECT_EQ(decoded(wav_of_floats(samples)).samples[4000], 32767);
}

TEST(DecodeSound, AFileThatEndsEarlyIsRefused) {
  const std::string bytes = wav_of(std::vector<int>(1000, 7));
  expect_refused(bytes.substr(0, 1044), ErrorCode::kInvalid,
                 "the WAV ends early: it says that its samples take 2000 bytes, and 1000 are "
                 "there");
  expect_refused(bytes.substr(0, 30), ErrorCode::kInvalid, "ends before the format");
  expect_refused(bytes.substr(0, 40), ErrorCode::kInvalid, "ends before its samples");
  for (const char* name : {"flac", "flac_cd", "vorbis", "opus"}) {
    const std::string file = sample_file(name);
    for (const size_t length : {file.size() / 3, file.size() / 2, file.size() - 1}) {
      const Result<Sound> sound = decode(file.substr(0, length));
      ASSERT_FALSE(sound) << name << " of " << length << " bytes";
      EXPECT_EQ(sound.error().code, ErrorCode::kInvalid) << sound.error().message;
    }
  }
}

TEST(DecodeSound, AnOggFileThatEndsWithinAPageIsRefused) {
  // Its decoders would take it for a shorter sound.
  for (const char* name : {"vorbis", "opus"}) {
    const std::string file = sample_file(name);
    expect_refused(file.substr(0, file.size() - 1), ErrorCode::kInvalid,
                   "ends early, within one of its pages");
    expect_refused(file.substr(0, file.rfind("OggS") + 20), ErrorCode::kInvalid,
                   "ends early, within one of its pages");
  }
}

TEST(DecodeSound, AFlacWithoutItsLastFrameIsRefused) {
  std::string flac = sample_file("flac");
  ++flac[25];  // The lowest byte of the number of samples.
  expect_refused(flac, ErrorCode::kInvalid,
                 "the FLAC ends early: it says that it has 3201 samples, and 3200 are there");
}

// Memory is asked for by the number that the header says.
TEST(DecodeSound, MoreSamplesThanTheHeaderSaysAreRefused) {
  std::string flac = sample_file("flac");
  --flac[25];
  --flac[24];
  expect_refused(flac, ErrorCode::kInvalid,
                 "the FLAC is damaged: it says that it has 2943 samples, and has more");
}

TEST(DecodeSound, AWrongChecksumIsRefused) {
  std::string flac = sample_file("flac");
  flac.back() ^= 1;  // The last frame's.
  expect_refused(flac, ErrorCode::kInvalid, "the FLAC is damaged: the checksum of a frame");
  flac = sample_file("flac");
  flac[26] ^= 1;  // Of all samples, in the header.
  expect_refused(flac, ErrorCode::kInvalid, "the FLAC is damaged: its checksum");
}

TEST(DecodeSound, AnMp3IsHeardUpToItsEnd) {
  // Its frames stand by themselves, and nothing reliable says how many there are.
  const std::string file = sample_file("mp3");
  const size_t whole = decoded(file).samples.size();
  const size_t half = decoded(file.substr(0, file.size() / 2)).samples.size();
  EXPECT_GT(half, size_t{0});
  EXPECT_LT(half, whole);
}

// Once, in as many bytes as the samples take: a minute's at a time, or as many as the header says.
TEST(DecodeSound, MemoryIsAskedForBeforeSamplesCome) {
  for (const char* name : {"mp3", "flac", "vorbis", "opus"}) {
    size_t asked = 0;
    SoundLimits limits;
    limits.seconds_max = 90;
    limits.admit = [&](size_t bytes) -> Result<void> {
      asked += bytes;
      return {};
    };
    const Result<Sound> sound = decode_sound(sample_file(name), kRate, limits);
    ASSERT_TRUE(sound) << name;
    EXPECT_GE(asked, sound->samples.size() * sizeof(float)) << name;
    EXPECT_LE(asked, size_t{60} * kRate * sizeof(float)) << name;
    EXPECT_GE(sound->samples.capacity(), sound->samples.size());
    limits.admit = [](size_t) -> Result<void> { return fail(ErrorCode::kOverloaded, "full"); };
    const Result<Sound> refused = decode_sound(sample_file(name), kRate, limits);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().message, "full") << name;
  }
}

TEST(DecodeSound, WhatStandsBehindAnMp3IsNoPartOfIt) {
  const std::string file = sample_file("mp3");
  const Sound sound = decoded(file);
  EXPECT_EQ(decoded(file + "TAG" + std::string(125, ' ')).samples, sound.samples);
  EXPECT_EQ(decoded(file + "APETAGEX" + std::string(5000, ' ')).samples, sound.samples);
}

TEST(DecodeSound, AWavFromAPipeIsReadToItsEnd) {
  for (const uint32_t unknown : {0xffffffffu, 0x7ffff000u}) {
    std::string bytes = wav_of(std::vector<int>(100, 8192));
    std::string length;
    append_little_endian(length, unknown, 4);
    bytes.replace(40, 4, length);
    bytes.replace(4, 4, length);
    EXPECT_EQ(decoded(bytes).samples, std::vector<float>(100, 0.25f));
  }
}

TEST(DecodeSound, ChunksBesideTheSamplesAreSkipped) {
  const std::string data("\x00\x40", 2);
  const std::string bytes =
      riff(chunk("LIST", "odd") + chunk("fmt ", wav_format({})) +
           chunk("fact", std::string(4, '\0')) + chunk("data", data) + chunk("id3 ", "title"));
  EXPECT_EQ(decoded(bytes).samples, std::vector<float>{0.5f});
}

TEST(DecodeSound, OtherEncodingsInAWavAreRefused) {
  expect_refused(wav({.tag = 0x11, .bits = 4}, std::string(64, '\0')), ErrorCode::kMediaType,
                 "the WAV holds format 17 (ADPCM) of 4 bits; integers of 8, 16, 24 or 32 bits");
  expect_refused(wav({.bits = 12}, std::string(64, '\0')), ErrorCode::kMediaType,
                 "format 1 of 12 bits");
  expect_refused(wav({.bits = 0}, std::string(64, '\0')), ErrorCode::kMediaType, "of 0 bits");
  expect_refused(wav({.channels = 0}, std::string(64, '\0')), ErrorCode::kInvalid,
                 "it has no channel");
  std::string bytes = wav_of({1, 2});
  bytes[32] = 7;  // The bytes of a frame.
  expect_refused(bytes, ErrorCode::kInvalid, "1 samples of 16 bits take 7 bytes");
  expect_refused(riff(chunk("data", "ab")), ErrorCode::kInvalid, "before their format");
}

TEST(DecodeSound, OtherFormatsAreRefusedByName) {
  expect_refused(std::string_view("\0\0\0\x20"
                                  "ftypM4A \0\0\0\0",
                                  16),
                 ErrorCode::kMediaType,
                 "the sound is MP4 (M4A); WAV, FLAC, MP3, Ogg Vorbis and Ogg Opus are read");
  expect_refused("\x1a\x45\xdf\xa3 webm", ErrorCode::kMediaType, "is WebM");
  expect_refused("\xff\xf1\x50\x80", ErrorCode::kMediaType, "is AAC");
  expect_refused("\x89PNG\r\n", ErrorCode::kMediaType, "is PNG, a picture");
  expect_refused("FORM....AIFF", ErrorCode::kMediaType, "is AIFF");
  expect_refused("OggS", ErrorCode::kMediaType, "is Ogg with something else");
  expect_refused("hello world", ErrorCode::kMediaType, "it begins with 68 65 6c 6c 6f 20 77 6f");
  // An MP3's tag, and after it something else.
  expect_refused(std::string("ID3\x03\0\0\0\0\0\0", 10) + wav_of({1, 2, 3}), ErrorCode::kInvalid,
                 "the MP3 is damaged");
}

TEST(DecodeSound, LimitsAreHeld) {
  const std::string second = wav_of(std::vector<int>(16000));
  expect_refused(second, ErrorCode::kTooLarge, "the sound's file has 32044 bytes; at most 20",
                 {.file_bytes_max = 20});
  EXPECT_TRUE(decode_sound(second, kRate, {.seconds_max = 1}));
  expect_refused(wav_of(std::vector<int>(16001)), ErrorCode::kTooLarge,
                 "the WAV lasts 2 s; at most 1 s are decoded", {.seconds_max = 1});
  // FLAC's header says how long it is. An MP3 says nothing, and is decoded up to the limit.
  std::string flac = sample_file("flac");
  flac[21] = static_cast<char>(flac[21] | 0x0f);  // The upper four bits of 36.
  expect_refused(flac, ErrorCode::kTooLarge, "the FLAC lasts ");
  expect_refused(sample_file("mp3"), ErrorCode::kTooLarge, "the MP3 lasts longer; at most 0 s",
                 {.seconds_max = 0});
}

// Under the sanitizers this is where a decoder shows that it reads beyond its bytes.
TEST(DecodeSound, DamagedBytesGiveASoundOrASentence) {
  std::mt19937 random(30);
  const SoundLimits limits = {.seconds_max = 10};
  for (int round = 0; round < 40; ++round) {
    for (const SoundSample& sample : kSoundSamples) {
      std::string bytes = sample_file(sample.name);
      for (int i = 0; i < 1 + round % 4; ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      const Result<Sound> sound = decode_sound(bytes, kRate, limits);
      if (sound) {
        ASSERT_LE(sound->samples.size(), size_t{160000}) << sample.name;
      } else {
        ASSERT_FALSE(sound.error().message.empty()) << sample.name;
      }
    }
  }
}

TEST(DecodeSound, ThreadsDecodeBesideEachOther) {
  std::vector<std::string> files;
  std::vector<std::vector<float>> expected;
  for (const SoundSample& sample : kSoundSamples) {
    files.push_back(sample_file(sample.name));
    expected.push_back(decoded(files.back()).samples);
  }
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 5; ++round)
        for (size_t i = 0; i < files.size(); ++i) {
          const Result<Sound> sound = decode(files[i]);
          same[t] += sound && sound->samples == expected[i] ? 1 : 0;
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, static_cast<int>(5 * files.size())));
}

}  // namespace
}  // namespace weir::media
