"""Opens a picture or a page of a PDF as a model can see it: scaled, in parts, or as it is. Runs with the tools' rights and the
image's own Pillow and poppler.

Arguments: the file's real path, a page or frame (or nothing), a region as `x,y,width,height` (or nothing). Prints one line of JSON,
then the picture. Exits with 95 if Pillow is missing.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Facts = dict[str, Any]

NO_PILLOW = 95
# What providers accept. Source: store-image.ts.
MAX_BYTES = 3_900_000
MAX_PIXELS = 8_000
# What models look at: a larger picture is scaled by them. Source: Anthropic's guide to images.
FIT_PIXELS = 1_568
# A picture that would have less than this share of its size is shown in parts, since its text could not be read.
LEAST_SCALE = 1 / 3
# Chosen: a usual page has 935 x 1,210 pixels then, which models read without scaling.
PDF_DPI = 110
# Of a page that is larger, and of its text. Chosen: a square of it is no decompression bomb; some 25,000 tokens.
MAX_PAGE_PIXELS = 9_000
MAX_TEXT_CHARS = 100_000
PDF_SECONDS = 20
# Formats that are shown as they are, if they fit.
SHOWN = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}
PLAIN_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16")
ORIENTATION = 0x0112
INSTALL_POPPLER = "a PDF's pages need poppler-utils, which this image lacks: apt-get install poppler-utils in the image"


class Refused(Exception):
    """Why the file is not shown, as the rest of a sentence that begins with its name."""


def main():
    path, page, region = sys.argv[1:4]
    try:
        # The image's, or none: our own programs need only the standard library.
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        sys.exit(NO_PILLOW)
    warnings.simplefilter("error", pillow.DecompressionBombWarning)
    try:
        facts, data = shown(pillow, path, int(page) if page else None, region_of(region))
    except Refused as reason:
        facts, data = {"refused": str(reason)}, b""
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning):
        facts = {"refused": f"has more than {pillow.MAX_IMAGE_PIXELS:,} pixels, which is refused as a decompression bomb"}
        data = b""
    except MemoryError:
        facts, data = {"refused": "needs more memory than the sandbox has"}, b""
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + data)


def region_of(text: str):
    return tuple(int(part) for part in text.split(",")) if text else None


def shown(pillow: Any, path: str, page: int | None, region: tuple[int, ...] | None) -> tuple[Facts, bytes]:
    with open(path, "rb") as file:
        head = file.read(1024)
    if b"%PDF-" in head:
        return pdf_page(pillow, path, page or 1, region)
    try:
        with pillow.open(path) as image:
            return picture(image, path, page, region)
    except pillow.UnidentifiedImageError:
        raise Refused("is neither a PDF nor a picture that Pillow knows, going by its content; for text use read_file") from None
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise Refused(f"is a damaged picture: {str(error)[:200] or type(error).__name__}") from None


def picture(image: Any, path: str, page: int | None, region: tuple[int, ...] | None) -> tuple[Facts, bytes]:
    kind, mode = image.format, image.mode
    # A phone's photo with a preview in it.
    kind, frames = ("JPEG", 1) if kind == "MPO" else (kind, getattr(image, "n_frames", 1))
    number = page or 1
    if number > frames:
        raise Refused(f"has {frames} frame{'s' if frames > 1 else ''}: there is no page {number}")
    orientation = image.getexif().get(ORIENTATION, 1) if frames == 1 else 1
    if number > 1:
        image.seek(number - 1)
    image.load()
    facts: Facts = {"frame": number, "frames": frames} if frames > 1 else {}
    is_plain = frames == 1 and region is None and kind in SHOWN and mode in PLAIN_MODES and orientation == 1
    is_large = max(image.size) > MAX_PIXELS or os.path.getsize(path) > MAX_BYTES
    if is_plain and not is_large:
        with open(path, "rb") as file:
            return {**facts, **sizes(image.size, image.size)}, file.read()
    upright = importlib.import_module("PIL.ImageOps").exif_transpose(image) or image
    return part_of(upright, region, is_large, kind == "JPEG", facts)


def sizes(source: tuple[int, int], now: tuple[int, int]) -> Facts:
    return {"source": source, "size": now}


def part_of(image: Any, region: tuple[int, ...] | None, is_large: bool, is_photo: bool, facts: Facts) -> tuple[Facts, bytes]:
    """A part of it, or all of it; what is large, scaled, or its first tile and how many there are."""
    width, height = image.size
    tile = min(width, FIT_PIXELS), min(height, FIT_PIXELS)
    box = (0, 0, width, height)
    scale = 1.0
    if region is not None:
        box = region[0], region[1], min(region[0] + region[2], width), min(region[1] + region[3], height)
        if box[0] >= box[2] or box[1] >= box[3]:
            raise Refused(f"is {width} x {height} pixels: the region {','.join(map(str, region))} is outside")
        if max(box[2] - box[0], box[3] - box[1]) > MAX_PIXELS:
            scale = FIT_PIXELS / max(box[2] - box[0], box[3] - box[1])
    elif is_large:
        scale = min(1.0, FIT_PIXELS / max(width, height))
        if scale < LEAST_SCALE:
            box, scale = (0, 0, *tile), 1.0
    cut = image.crop(box) if box != (0, 0, width, height) else image
    data, size = encoded(cut, scale, is_photo)
    facts = {**facts, **sizes((width, height), size)}
    if box != (0, 0, width, height):
        facts.update(box=(box[0], box[1], box[2] - box[0], box[3] - box[1]), **tiling(box, tile, (width, height)))
    return facts, data


def tiling(box: tuple[int, ...], tile: tuple[int, int], size: tuple[int, int]) -> Facts:
    """Which tile it is, of how many, and the next one's region; nothing if it is none."""
    columns, rows = math.ceil(size[0] / tile[0]), math.ceil(size[1] / tile[1])
    column, row = box[0] // tile[0], box[1] // tile[1]

    def region(at: int):
        x, y = at % columns * tile[0], at // columns * tile[1]
        return x, y, min(tile[0], size[0] - x), min(tile[1], size[1] - y)

    at = row * columns + column
    if columns * rows < 2 or region(at) != (box[0], box[1], box[2] - box[0], box[3] - box[1]):
        return {}
    return {"tile": at + 1, "tiles": columns * rows, "next": region(at + 1) if at + 1 < columns * rows else None}


def encoded(image: Any, scale: float, is_photo: bool) -> tuple[bytes, tuple[int, int]]:
    """As PNG, or as JPEG if it was one or is too large otherwise; scaled down until it fits."""
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    if image.mode.startswith("I"):
        # 16 bits a pixel: the upper eight are shown.
        image = image.convert("I").point([at // 256 for at in range(65_536)], "L").convert("L")
    plain = image.convert("RGBA" if has_alpha else "RGB") if image.mode not in ("L", "RGB", "RGBA") else image
    while True:
        size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        drawn = plain if size == plain.size else plain.resize(size, reducing_gap=2.0)
        for kind in ("JPEG",) if is_photo and not has_alpha else ("PNG", "JPEG"):
            out = io.BytesIO()
            if kind == "JPEG" and drawn.mode == "RGBA":
                white = importlib.import_module("PIL.Image").new("RGB", size, "white")
                white.paste(drawn, mask=drawn.getchannel("A"))
                drawn = white
            drawn.save(out, kind, **({"quality": 85} if kind == "JPEG" else {}))
            if out.tell() <= MAX_BYTES:
                return out.getvalue(), size
        scale = min(scale / 2, FIT_PIXELS / max(image.size))


def pdf_page(pillow: Any, path: str, page: int, region: tuple[int, ...] | None) -> tuple[Facts, bytes]:
    info = poppler(["pdfinfo", "-f", str(page), "-l", str(page), path])
    pages = int(number_in(r"^Pages:\s+(\d+)", info) or 0)
    if page > pages:
        raise Refused(f"has {pages} page{'' if pages == 1 else 's'}: there is no page {page}")
    found = re.search(r"^Page\s+\d+\s+size:\s+([\d.]+) x ([\d.]+)", info, re.MULTILINE)
    longest = max(float(found[1]), float(found[2])) * PDF_DPI / 72 if found else 0
    how = ["-r", str(PDF_DPI)] if longest <= MAX_PAGE_PIXELS else ["-scale-to", str(MAX_PAGE_PIXELS)]
    with tempfile.TemporaryDirectory() as folder:
        at = ["-f", str(page), "-l", str(page)]
        poppler(["pdftoppm", "-png", "-singlefile", *how, *at, path, f"{folder}/page"])
        with pillow.open(f"{folder}/page.png") as image:
            image.load()
            facts, data = part_of(image, region, max(image.size) > MAX_PIXELS, False, {"page": page, "pages": pages})
    text = poppler(["pdftotext", "-layout", "-enc", "UTF-8", *at, path, "-"])
    return {**facts, "text": text[:MAX_TEXT_CHARS].strip("\f\n")}, data


def poppler(command: list[str]):
    """What a program of poppler prints. @raises Refused"""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PDF_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Refused(f"is a PDF, and {INSTALL_POPPLER}") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"is a PDF that {command[0]} did not get done with in {PDF_SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        if "password" in said.lower():
            raise Refused("is an encrypted PDF, which needs a password: remove it first, with bash (qpdf --decrypt)")
        raise Refused(f"is a PDF that cannot be opened: {said[-300:] or command[0]}")
    return done.stdout.decode("utf-8", "replace")


def number_in(pattern: str, text: str):
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


if __name__ == "__main__":
    main()
