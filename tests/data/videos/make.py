#!/usr/bin/env python3
"""Makes the videos of this folder by the ffmpeg program, which no test needs.

All show the same eight frames of 64 x 64 pixels, four a second: eight colours in blocks that move (colour() below,
which tests/media/video and tests/e2e/video_test.py have as well). pattern.* keep every pixel; the others are lossy."""
import os, subprocess, sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
SIDE, FRAMES = 64, 8


def colour(frame, x, y):
    v = (x // 8 + 3 * frame ^ y // 16) % 8
    return v * 37 % 256, (v * 91 + 40) % 256, 255 - v * 29


RAW = b"".join(bytes(colour(frame, x, y)) for frame in range(FRAMES) for y in range(SIDE) for x in range(SIDE))
INPUT = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-r", "4", "-i", "pipe:0"]
SOUND = ["-f", "lavfi", "-i", "sine=frequency=440:duration=2"]
X264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20"]
FILES = {
    "pattern.mp4": [*INPUT, "-c:v", "libx264rgb", "-qp", "0", "-g", "4", "-bf", "2"],
    "pattern.webm": [*INPUT, "-c:v", "libvpx-vp9", "-lossless", "1", "-pix_fmt", "gbrp", "-g", "4",
                     "-auto-alt-ref", "0"],
    "pattern.gif": [*INPUT, "-filter_complex", "split[a][b];[a]palettegen=reserve_transparent=0:max_colors=8[p];"
                                               "[b][p]paletteuse=dither=none"],
    # It says of frames that decoding may begin there, and that it gives none before some more have been decoded.
    "refresh.mp4": [*INPUT, *X264, "-bf", "0", "-x264-params", "intra-refresh=1:keyint=3:ref=1"],
    "fragments.mp4": [*INPUT, *X264, "-g", "4", "-movflags", "empty_moov+frag_keyframe"],
    "h264.mp4": [*INPUT, *SOUND, *X264, "-bf", "3", "-c:a", "aac", "-b:a", "16k", "-shortest"],
    "hevc.mp4": [*INPUT, "-c:v", "libx265", "-pix_fmt", "yuv420p10le", "-x265-params", "crf=15:log-level=none",
                 "-tag:v", "hvc1"],
    "mpeg4.mp4": [*INPUT, "-c:v", "mpeg4", "-q:v", "3"],
    "vp8.webm": [*INPUT, "-c:v", "libvpx", "-b:v", "400k", "-auto-alt-ref", "1", "-lag-in-frames", "8"],
    "vp9.webm": [*INPUT, "-c:v", "libvpx-vp9", "-crf", "20", "-b:v", "0", "-pix_fmt", "yuv420p"],
    "av1.webm": [*INPUT, "-c:v", "libaom-av1", "-crf", "20", "-b:v", "0", "-pix_fmt", "yuv420p", "-cpu-used", "8"],
    "sound.mp4": [*SOUND, "-c:a", "aac", "-b:a", "16k"],
    "prores.mov": [*INPUT, "-c:v", "prores_ks", "-frames:v", "1"],
}
for name, arguments in FILES.items():
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-fflags", "+bitexact", *arguments, "-flags", "+bitexact",
                    f"{FOLDER}/{name}"], input=RAW, check=True)
    print(f"{name:16} {os.path.getsize(f'{FOLDER}/{name}'):6} bytes")
