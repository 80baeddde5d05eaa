#!/usr/bin/env python3
"""Draws the pictures of docs/convolution.md.

  scripts/draw_convolution.py            writes docs/images/convolution_*.svg
  scripts/draw_convolution.py --check    fails if they are not what it would write

The kernels have 128 lanes in partitions of 32; the pictures have 16 in partitions of 4, which is all that differs.
"""
import pathlib
import sys

sys.dont_write_bytecode = True  # the lint reads all files in scripts/
from drawing import FAINT, INK, PAPER, Drawing

IMAGES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"

LANES, PARTITION = 16, 4

PIXEL, DROPPED, BORDER = "#bfdbfe", "#e4e7eb", "#fde68a"
STALE, FRESH, SECOND, IDLE = "#fca5a5", "#86efac", "#ddd6fe", "#f5f7fa"


def index():
    """Three rows of a 5-wide image, padded by 1, under a 3-wide filter."""
    outputs, halo, rows, cell = 5, 2, 3, 34
    row_positions = outputs + halo
    d = Drawing(700, 290, "The implicit-GEMM index over a padded image")
    d.text(20, 24, "Implicit-GEMM index (row m of the GEMM)", bold=True)
    d.text(380, 24, "What filter column 0 reads there", bold=True)
    for p in range(rows):
        d.text(20, 62 + p * cell, f"row {p}", 11, colour=FAINT)
        for q in range(row_positions):
            x, y, column = 62 + q * cell, 40 + p * cell, q - 1
            d.box(x, y, cell, cell, PIXEL if q < outputs else DROPPED, p * row_positions + q)
            inside = 0 <= column < outputs
            d.box(x + 318, y, cell, cell, PAPER if inside else BORDER, f"x{column}" if inside else "0")
    d.text(62, 160, "out_q = 5", 11, colour=FAINT)
    d.text(62 + outputs * cell, 160, "halo = 2", 11, colour=FAINT)
    d.text(380, 160, "column q - pad; outside the image the TMA writes 0", 11, colour=FAINT)
    d.text(20, 196, "One tile: consecutive positions, whatever row they lie in", bold=True)
    for lane in range(LANES):
        d.box(62 + lane * cell, 206, cell, 28, PIXEL if lane % row_positions < outputs else DROPPED, lane)
    d.text(20, 225, "lane", 11, colour=FAINT)
    d.legend(62, 268, [(PIXEL, "an output pixel"), (DROPPED, "computed and dropped"), (BORDER, "zero filled by the TMA")])
    return d


def row_offset():
    cell, halo = 17, 2
    d = Drawing(620, 400, "One staged tile, three descriptors")
    d.text(20, 24, "A tile of 16 positions and its halo in shared memory, one 128-byte row a position", bold=True)
    for row in range(LANES + halo):
        d.box(70, 40 + row * cell, 130, cell, PIXEL if row < LANES else SECOND, f"position m + {row}")
        d.text(60, 53 + row * cell, row, 10, "end", FAINT)
    for s in range(halo + 1):
        top = 40 + s * cell
        d.bracket(215 + s * 130, top + 1, top + LANES * cell - 1, f"A of column {s}")
        d.text(229 + s * 130, 40 + LANES * cell / 2 + s * cell + 18, f"start + {s} x 128 B", 10, colour=FAINT)
    d.legend(70, 376, [(PIXEL, "the tile of column 0"), (SECOND, "its halo")])
    return d


def lanes_after(shifts, refreshed):
    """(position, fill) of each lane after `shifts` shifts, the last of them refreshed or not."""
    lanes = []
    for lane in range(LANES):
        last = lane % PARTITION == PARTITION - 1
        stale = last and shifts > 0 and not refreshed
        lanes.append((lane + shifts - (1 if stale else 0), STALE if stale else FRESH if last and shifts > 0 else PIXEL))
    return lanes


def lane_shift():
    cell, width, step = 19, 52, 108
    d = Drawing(760, 440, "What the lanes hold from filter column to filter column")
    d.text(20, 24, "Position held by each lane of A in Tensor Memory (m = 0; partitions of 4 lanes)", bold=True)
    states = [("copied", 0, True), ("shifted", 1, False), ("refreshed", 1, True), ("shifted", 2, False), ("refreshed", 2, True)]
    for i, (name, shifts, refreshed) in enumerate(states):
        x = 60 + i * step
        d.text(x + width / 2, 52, name, 12, "middle")
        for lane, (position, fill) in enumerate(lanes_after(shifts, refreshed)):
            y = 62 + lane * cell + lane // PARTITION * 6
            d.box(x, y, width, cell, fill, position)
            if i == 0:
                d.text(x - 8, y + 14, lane, 10, "end", FAINT)
        if refreshed:
            d.text(x + width / 2, 402, f"mma, column {shifts}", 11, "middle")
        if i + 1 < len(states):
            what = "shift" if refreshed else "cp.4x256b"
            d.line(x + width + 4, 226, x + step - 4, 226, arrow=True)
            d.text(x + width + 28, 219, what, 9, "middle", FAINT)
    x = 630
    d.text(x + 40, 40, "edge tile in", 11, "middle")
    d.text(x + 40, 53, "shared memory", 11, "middle")
    for column in range(2):
        for p in range(LANES // PARTITION):
            y = 90 + (column * 5 + p) * cell
            d.box(x, y, 80, cell, FRESH, (p + 1) * PARTITION + column)
        d.text(x + 40, 86 + column * 5 * cell, f"for column {column + 1}", 10, "middle", FAINT)
    d.legend(60, 428, [(PIXEL, "right"), (STALE, "stale after the shift"), (FRESH, "written by cp.4x256b")])
    return d


def fused():
    """Lanes of a fused shift: partitions overlap by what a filter row of three columns moves."""
    cell, width, step, lost = 19, 52, 130, 2
    kept = PARTITION - lost
    d = Drawing(760, 440, "What the lanes hold when the product moves them")
    d.text(20, 24, "Position held by each lane of A in Tensor Memory (m = 0; partitions of 4 lanes, 2 of them kept)", bold=True)
    for column in range(lost + 1):
        x = 60 + column * step
        d.text(x + width / 2, 52, f"mma, column {column}", 11, "middle")
        for lane in range(LANES):
            first, i = lane // PARTITION * kept, lane % PARTITION
            y = 62 + lane * cell + lane // PARTITION * 6
            left_out = i >= PARTITION - column
            fill = STALE if left_out else PIXEL if i < kept else DROPPED
            d.box(x, y, width, cell, fill, first + min(i + column, PARTITION - 1))
            if column == 0:
                d.text(x - 8, y + 14, lane, 10, "end", FAINT)
        if column < lost:
            d.line(x + width + 4, 226, x + step - 4, 226, arrow=True)
            d.text(x + width + 39, 219, "its .ashift", 9, "middle", FAINT)
    x = 60 + 3 * step
    d.text(x + 70, 40, "loaded by four copies", 11, "middle")
    d.text(x + 70, 53, "of overlapping runs", 11, "middle")
    for partition in range(LANES // PARTITION):
        y = 62 + partition * (PARTITION * cell + 6)
        first = partition * kept
        d.box(x, y, 140, PARTITION * cell, PIXEL, f"positions {first} to {first + PARTITION - 1}")
    d.text(x + 160, 230, "stored: 8 of 16;", 11)
    d.text(x + 160, 246, "of 128 lanes: 120", 11)
    d.legend(60, 428, [(PIXEL, "stored"), (DROPPED, "valid, also in the next partition"), (STALE, "stale: masked")])
    return d


def masked():
    """Two rows of a 5-wide image under a filter of three columns, padded by 1, and masked."""
    width, cell, lanes = 5, 34, 12
    d = Drawing(700, 330, "Lanes that a masked border leaves out")
    d.text(20, 24, "The index over the image's own columns: rows of 5, no zeros between them", bold=True)
    d.text(20, 60, "staged", 11, colour=FAINT)
    for i in range(lanes + 2):
        position = i - 1
        inside = position >= 0
        d.box(110 + i * cell, 42, cell, 26, PIXEL if position // width % 2 == 0 and inside else SECOND if inside else DROPPED,
              f"x{position % width}" if inside else "")
    d.text(20, 104, "output of lane", 11, colour=FAINT)
    for lane in range(lanes):
        d.box(110 + (lane + 1) * cell, 88, cell, 26, PIXEL if lane // width % 2 == 0 else SECOND, f"y{lane % width}")
    for row, (s, beside, note) in enumerate(((1, 0, "first: every lane"), (2, 1, "without the last column"), (0, -1, "without the first column"))):
        y = 142 + row * 46
        d.text(20, y + 17, f"column {s}", 12)
        for lane in range(lanes):
            q = lane % width + beside
            out = not 0 <= q < width
            d.box(110 + (lane + 1) * cell, y, cell, 26, STALE if out else FRESH, "" if out else f"x{q}")
        d.text(110 + (lanes + 1) * cell + 8, y + 17, note, 11, colour=FAINT)
    d.text(20, 290, "Mask words are made once a tile, from the column of its first position. Zeros would take 7 positions a row for 5 outputs.", 11)
    d.legend(20, 318, [(PIXEL, "an image row"), (SECOND, "the next one"), (FRESH, "multiplied"), (STALE, "left out by the mask")])
    return d


def chain_row(d, y, label, steps):
    """Boxes of one issuing thread; `steps` are (text, fill)."""
    d.text(20, y - 12, label, bold=True)
    x = 20
    for text, fill in steps:
        d.box(x, y, 74, 30, fill, text, 10)
        if x > 20:
            d.line(x - 20, y + 15, x, y + 15, arrow=True)
        x += 94


def chain():
    copy, shift, fresh = ("cp.128x256b", SECOND), ("shift", STALE), ("cp.4x256b", FRESH)
    idle = ("mma, idle", IDLE)

    def mma(s):
        return (f"mma, s={s}", PIXEL)

    d = Drawing(880, 270, "The order of issue")
    chain_row(d, 46, "One filter row of three columns: every arrow is a pair that the PTX manual orders",
              [copy, mma(0), shift, fresh, mma(1), shift, fresh, mma(2)])
    chain_row(d, 126, "Dilation 2: two lanes a column; shift after cp is not such a pair, so an idle MMA separates them",
              [copy, mma(0), shift, fresh, idle, shift, fresh, mma(1), ("...", PAPER)])
    lists = ((194, "Ordered, and used:", ("cp → mma", "mma → shift", "shift → cp.4x256b", "mma → mma of one accumulator")),
             (218, "Not ordered:", ("cp → shift", "shift → shift", "mma → cp", "cp → cp")))
    for y, title, pairs in lists:
        d.text(20, y, title, 11, bold=True)
        for x, pair in zip((150, 240, 340, 480), pairs):
            d.text(x, y, pair, 11)
    d.text(20, 246, "Each box is one instruction per 32 bytes of K: four for 64 channels of 16 bits.", 11)
    return d


def stride():
    """A filter of five columns at stride 2: even and odd input columns."""
    columns, cell, taps = 14, 36, 5
    d = Drawing(660, 330, "Stride 2 as two phases")
    d.text(20, 24, "Columns of the padded image; output q = 0 reads columns 0 to 4, q = 1 columns 2 to 6", bold=True)
    for c in range(columns):
        d.box(80 + c * cell, 40, cell, 26, SECOND if c % 2 else PIXEL, c)
    d.text(20, 108, "phase 0", 12)
    d.text(20, 168, "phase 1", 12)
    for lane in range(columns // 2):
        for phase in range(2):
            y = 90 + phase * 60
            d.box(80 + lane * 2 * cell, y, 2 * cell, 26, SECOND if phase else PIXEL, f"column {2 * lane + phase}", 10)
            d.text(80 + (lane * 2 + 1) * cell, y + 40, f"row {lane}", 10, "middle", FAINT)
    d.text(20, 232, "column s of the filter", 12)
    d.text(20, 256, "phase", 12)
    d.text(20, 280, "rows later", 12)
    for s in range(taps):
        x = 190 + s * 70
        for y, text in ((232, s), (256, s % 2), (280, s // 2)):
            d.text(x, y, text, 12, "middle")
    d.text(20, 312, "Both phases are staged in one slot; phase 0 is shifted by 2 rows, so the index has 2 positions more per row than the output.", 11)
    return d


def gather():
    """The RGB stem: 7 x 7 taps of three channels."""
    d = Drawing(760, 250, "K of a filter of three channels")
    d.text(20, 24, "K of one position, gathered: (tap, channel) without gaps", bold=True)
    cell, shown = 26, 24
    tints = ("#fecaca", "#bbf7d0", "#bfdbfe")
    for k in range(shown):
        d.box(20 + k * cell, 40, cell, 26, tints[k % 3], f"{k // 3}{'rgb'[k % 3]}", 10)
    for chunk in range(shown // 8 + 1):
        d.line(20 + chunk * 8 * cell, 36, 20 + chunk * 8 * cell, 72)
    d.text(20 + shown * cell + 8, 57, "... 48b", 11)
    d.text(20, 86, "16 bytes", 10, colour=FAINT)
    d.text(20 + 8 * cell, 86, "16 bytes: a chunk may cross taps", 10, colour=FAINT)
    d.text(20, 124, "The whole filter in blocks of 64 (to scale)", bold=True)
    scale = 0.9
    for block in range(3):
        d.box(20 + block * 64 * scale, 134, 64 * scale, 22, PAPER)
    d.box(20, 134, 147 * scale, 22, PIXEL, "147 of 192 used")
    d.text(20 + 192 * scale + 10, 149, "gathered: 3 blocks", 11)
    d.text(20, 192, "The same with 16 channels a tap, 3 of them used", bold=True)
    for tap in range(49):
        x = 20 + tap * 16 * scale
        d.box(round(x, 1), 202, round(3 * scale, 1), 22, PIXEL, stroke=PIXEL)
        d.box(round(x + 3 * scale, 1), 202, round(13 * scale, 1), 22, DROPPED, stroke=DROPPED)
    d.text(20, 242, "147 of 784 used", 11, colour=FAINT)
    return d


def tensor_memory():
    """What `laneshift inspect` shows for tile=128x64x64 acc=2."""
    d = Drawing(700, 300, "Tensor Memory of a lane_shift kernel")
    d.text(20, 24, "Tensor Memory, tile=128x64x64 acc=2: 128 lanes, 192 columns used of 256 allocated", bold=True)
    left, top, scale, height = 70, 60, 2.3, 192
    regions = ((0, 32, SECOND, "a[0]"), (32, 32, SECOND, "a[1]"), (64, 64, PIXEL, "acc[0]"), (128, 64, PIXEL, "acc[1]"),
               (192, 64, PAPER, "free"))
    for begin, columns, fill, label in regions:
        d.box(round(left + begin * scale, 1), top, round(columns * scale, 1), height, fill)
        d.text(left + (begin + columns / 2) * scale, top - 8, label, 11, "middle")
        d.text(left + begin * scale, top + height + 14, begin, 10, "middle", FAINT)
    for lane in (0, 32, 64, 96):
        y = top + lane * height / 128
        d.text(left - 8, y + 10, f"lane {lane}", 10, "end", FAINT)
        d.line(left, y, left + 256 * scale, y, FAINT, dash=True)
        d.elements.append(f'<rect x="{left}" y="{y + 46.5:g}" width="{64 * scale:g}" height="1.5" fill="#16a34a"/>')
    for group in (1, 2, 3, 5, 6, 7):
        d.line(left + group * 8 * scale, top, left + group * 8 * scale, top + height, "#c4b5fd")
    d.text(20, 290, "A: groups of 8 columns are 32 bytes of K, one MMA each. Green: lanes 31, 63, 95, 127, which cp.4x256b refreshes.", 11)
    return d


PICTURES = {
    "index": index,
    "row_offset": row_offset,
    "lane_shift": lane_shift,
    "fused": fused,
    "masked": masked,
    "chain": chain,
    "stride": stride,
    "gather": gather,
    "tensor_memory": tensor_memory,
}


def main():
    status = 0
    for name, draw in PICTURES.items():
        path, text = IMAGES / f"convolution_{name}.svg", draw().svg()
        if "--check" not in sys.argv[1:]:
            IMAGES.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"docs/images/{path.name} is not what scripts/draw_convolution.py draws; run it", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
