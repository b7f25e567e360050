"""Means of frames as other software decodes them: make_expected_frames.py FFMPEG FOLDER > testing/expected_frames.inc

Of test.avi and arm_wrestling_demo.mp4 by a program ffmpeg (the one of imageio-ffmpeg 0.8.1: FFmpeg 9.0.2), of
img_*.jpg by Pillow; the middle square, in quarters, red, green and blue each.
"""

import os
import subprocess
import sys

import numpy
from PIL import Image

FFMPEG, FOLDER = sys.argv[1:]


def video(name, rows, columns):
    raw = subprocess.run([FFMPEG, "-v", "error", "-i", os.path.join(FOLDER, name), "-map", "0:v:0", "-fps_mode", "passthrough",
                          "-sws_flags", "bilinear+accurate_rnd+full_chroma_int", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"],
                         stdout=subprocess.PIPE, check=True).stdout
    return numpy.frombuffer(raw, numpy.uint8).reshape(-1, rows, columns, 3)


def pictures():
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".jpg"))
    return numpy.stack([numpy.asarray(Image.open(os.path.join(FOLDER, name)).convert("RGB")) for name in names])


def quarters(frame):
    rows, columns, _ = frame.shape
    square = frame[:, (columns - rows) // 2:(columns + rows) // 2].astype(float)
    half = rows // 2
    return [square[i:i + half, j:j + half, c].mean() for i in (0, half) for j in (0, half) for c in range(3)]


for name, frames, wanted in (("test.avi", video("test.avi", 240, 320), (0, 60, 127)),
                             ("arm_wrestling_demo.mp4", video("arm_wrestling_demo.mp4", 256, 340), (0, 60, 127)),
                             ("", pictures(), (0, 4, 9))):
    for index in wanted:
        numbers = ", ".join("%.3f" % x for x in quarters(frames[index]))
        print('{"%s", %d, %d, {%s}},' % (name, len(frames), index, numbers))
