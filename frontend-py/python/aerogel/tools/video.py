"""Frames as pictures, and videos of them."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

import numpy as np

from aerogel import _colormaps, _log
from aerogel.tools import _progress
from aerogel.tools._files import replacing, write_whole
from aerogel.tools._pixels import imwrite, to_pixels
from aerogel.tools.gif import encoded
from aerogel.tools.image import imread, imresize


def find_ffmpeg() -> str | None:
    """The program ffmpeg: on the path, or that of the package imageio-ffmpeg; None if there is neither."""
    if found := shutil.which("ffmpeg"):
        return found
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return None


class VideoManager:
    """Writes frames as numbered pictures, and makes an MP4 or an animated GIF of them.

    MP4 files are made by ffmpeg; GIFs need nothing else.

    Args:
        output_dir: The folder, which is created if necessary; frames are in its folder ``frames``.
        video_filename: The name of the video, whose suffix does not count; ``video`` if left out.
        width: The width of frames in pixels, to which images are brought; as the first image if left out.
        height: The height.
        post_processor: An object whose ``process(img)`` makes a frame of an image, both NumPy arrays.
        framerate: Frames a second.
        automatic_build: Whether the video is made as frames come: after 4, 8, 16, and so on.

    >>> import tempfile
    >>> import numpy as np
    >>> manager = VideoManager(tempfile.mkdtemp(), framerate=10, automatic_build=False)
    >>> for k in range(3):
    ...     manager.write_frame(np.full((16, 16), k / 2))
    >>> manager.frame_counter
    3
    """

    def __init__(
        self,
        output_dir: str,
        video_filename: str | None = None,
        width: int | None = None,
        height: int | None = None,
        post_processor: Any = None,
        framerate: float = 24,
        automatic_build: bool = True,
    ) -> None:
        if not framerate > 0:
            raise ValueError(f"framerate must be positive, not {framerate!r}")
        if (width is None) != (height is None):
            raise ValueError("width and height belong together: give both, or neither")
        self.directory = output_dir
        self.frame_directory = os.path.join(output_dir, "frames")
        os.makedirs(self.frame_directory, exist_ok=True)
        self.video_filename = video_filename
        self.width, self.height = width, height
        self.post_processor = post_processor
        self.framerate = framerate
        self.automatic_build = automatic_build
        self.next_video_checkpoint = 4
        self.frame_counter = 0
        self.frame_fns: list[str] = []

    def get_output_filename(self, suffix: str) -> str:
        """The path of the video with this suffix, such as ``.mp4``."""
        stem, given = os.path.splitext(self.video_filename or "video")
        if given and given != suffix:
            _log.debug(f"the suffix {given} of the video's name is ignored")
        return os.path.join(self.directory, stem + suffix)

    def get_frame_directory(self) -> str:
        """The folder of the frames."""
        return self.frame_directory

    def write_frame(self, img: Any, cmap: str | None = None, vmin: Any = None, vmax: Any = None) -> None:
        """Writes the next frame.

        Videos want even sizes, so of an odd one the last row or column is left out.

        Args:
            img: An image, as `ti.tools.imwrite` takes it.
            cmap: The colours of numbers, as in `ti.tools.imwrite`.
            vmin, vmax: The numbers of the first and the last colour; give them, since otherwise each frame has a range
                of its own.

        Raises:
            ValueError: It has another size than the frames before.
            OSError: The picture cannot be written; then it is not counted.
        """
        if self.post_processor is not None:
            img = self.post_processor.process(img.to_numpy() if hasattr(img, "to_numpy") else np.asarray(img))
        img = _colormaps.maybe(img, cmap, vmin, vmax, "write_frame")
        pixels = to_pixels(img, "VideoManager.write_frame")
        given = pixels.shape[:2]
        if self.width is None or self.height is None:
            self.width, self.height = given
        elif given != (self.width, self.height):
            if self.frame_counter:
                raise ValueError(f"the frames are {self.width} by {self.height}; this is {given[0]} by {given[1]}")
            pixels = imresize(pixels, self.width, self.height)
        if min(self.width, self.height) < 2:
            raise ValueError(f"frames have two pixels or more each way, not {self.width} by {self.height}")
        pixels = pixels[: self.width // 2 * 2, : self.height // 2 * 2]
        name = f"{self.frame_counter:06d}.png"
        imwrite(pixels, os.path.join(self.frame_directory, name))
        self.frame_fns.append(name)
        self.frame_counter += 1
        if self.automatic_build and self.frame_counter == self.next_video_checkpoint:
            self.next_video_checkpoint *= 2
            if find_ffmpeg() is None:
                _log.warn(f"the video is not made by itself: {_NO_FFMPEG}")
                self.automatic_build = False
            else:
                self.make_video(gif=False)

    def write_frames(self, images: Iterable[Any]) -> None:
        """Writes frames one after the other."""
        for image in _progress.progress(images, "frames"):
            self.write_frame(image)

    def clean_frames(self) -> None:
        """Removes the pictures of the frames written so far; the next is frame 0 again."""
        for name in self.frame_fns:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.frame_directory, name))
        self.frame_fns.clear()
        self.frame_counter = 0

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """Makes videos of the frames written so far.

        Args:
            mp4: Whether to make ``video.mp4`` (H.264), by ffmpeg.
            gif: Whether to make ``video.gif``; of more than 50 frames a second every second or third frame.

        Raises:
            ImportError: There is no ffmpeg; the message names the package to install. The GIF is written anyway.
            RuntimeError: ffmpeg failed, or there are no frames.
            OSError: A file cannot be written; then there is none.
        """
        if not self.frame_fns:
            raise RuntimeError("there are no frames to make a video of: call write_frame")
        # What needs no other program is there even if that fails.
        if gif:
            self._make_gif(self.get_output_filename(".gif"))
        if mp4:
            ffmpeg = find_ffmpeg()
            if ffmpeg is None:
                raise ImportError(_NO_FFMPEG)
            # Pictures with opacity are made opaque by the pixel format.
            options = ["-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p"]
            self._encode(ffmpeg, options, self.get_output_filename(".mp4"))

    def _encode(self, ffmpeg: str, options: list[str], path: str) -> None:
        """Runs ffmpeg over the frames."""
        frames = os.path.join(self.frame_directory, "%06d.png")
        command = [ffmpeg, "-y", "-loglevel", "error", "-progress", "pipe:1", "-nostats"]
        command += ["-framerate", str(self.framerate), "-i", frames, "-frames:v", str(len(self.frame_fns)), *options]
        shown = _progress.bar(len(self.frame_fns), os.path.basename(path))
        with replacing(path) as temporary:
            with subprocess.Popen(
                [*command, temporary],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process:
                try:
                    said = _follow(process, shown)
                except BaseException:
                    process.kill()
                    raise
            shown.close()
            if process.returncode:
                raise RuntimeError(f"ffmpeg could not make {path}: {'; '.join(said[-3:]) or process.returncode}")

    def _make_gif(self, path: str) -> None:
        # A GIF has 50 frames a second at most: of more, every second or third.
        step = math.ceil(self.framerate / 50)
        names = _progress.progress(self.frame_fns[::step], os.path.basename(path))
        frames = (imread(os.path.join(self.frame_directory, name), 3) for name in names)
        write_whole(path, encoded(frames, self.framerate / step))


def _follow(process: Any, shown: Any) -> list[str]:
    """Updates a progress bar while ffmpeg runs; returns its other output, line by line."""
    said, done = [], 0
    for line in process.stdout:
        key, _, value = line.strip().partition("=")
        if key == "frame" and value.isdigit():
            shown.update(int(value) - done)
            done = int(value)
        elif " " in line.strip():
            said.append(line.strip())
    return said


_NO_FFMPEG = (
    "making an MP4 needs ffmpeg (`pip install imageio-ffmpeg`, or your system's package); a GIF needs nothing: "
    "`make_video(mp4=False)`"
)
