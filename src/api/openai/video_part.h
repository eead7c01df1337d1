// Parts of messages that are videos: lists of frames, or files. Chat completions of OpenAI have none; these
// are what clients of transformers and of vLLM send.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/request/media_source.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::openai {

// {"type":"video","video":[IMAGE,...],"fps":N}: each IMAGE is an address, or a part with an image; N
// of them make a second. Or "video" is the address of a file, of which N frames a second are seen.
Result<std::vector<MediaSource>> frames_of_video(const std::string& path, JsonObject part);

// {"type":"video_url","video_url":{"url":URL},"fps":N}: URL is data:video/jpeg;base64, followed by
// the frames' digits with commas between, or the address of a file.
Result<std::vector<MediaSource>> frames_of_video_url(const std::string& path, JsonObject part);

}  // namespace weir::api::openai
