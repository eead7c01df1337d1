// Parts of messages that are videos: lists of frames. Chat completions of OpenAI have none; these
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

// {"type":"video","video":[IMAGE,...],"fps":N}: each IMAGE is an address, or a part with an image.
Result<std::vector<MediaSource>> frames_of_video(const std::string& path, JsonObject part);

// {"type":"video_url","video_url":{"url":URL},"fps":N}: URL is data:video/jpeg;base64, followed by
// the frames' digits with commas between. Files of videos are refused, for they are not decoded
// here.
Result<std::vector<MediaSource>> frames_of_video_url(const std::string& path, JsonObject part);

}  // namespace weir::api::openai
