#!/usr/bin/env python3
"""Writes the two files of convolutions in tests/sweep.

  scripts/conv_sweep.py            writes tests/sweep/conv.txt and tests/sweep/conv_layers.txt
  scripts/conv_sweep.py --check    fails if they are not what it would write

conv.txt is a sweep over small geometries; conv_layers.txt holds the layers of well-known networks at batch 1, cut down in
space where the emulator would take long. Nothing here is random from run to run.
"""
import pathlib
import sys

SWEEP = pathlib.Path(__file__).resolve().parent.parent / "tests" / "sweep"
SMALL_FLOPS = 1e6  # of a line of the sweep, on average far less
MOST_FLOPS = 7e6
LAYER_FLOPS = 0.3e9  # of a layer: what the emulator does in about 20 s


class Random:
    """Knuth's linear congruential generator: the same numbers in every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def of(self, choices):
        return choices[self.below(len(choices))]


class Conv:
    """One problem. pad, stride and dilation: one value, or a list of one for each dimension; a pad may be (before, after)."""

    def __init__(self, image, filters, c, k, n=1, pad=0, stride=1, dilation=1, groups=1, types="", rest=""):
        def spread(value):
            return value if isinstance(value, list) else [value] * len(image)

        self.n, self.c, self.k, self.groups = n, c, k, groups
        self.image, self.filters = list(image), list(filters)
        self.pads = [p if isinstance(p, tuple) else (p, p) for p in spread(pad)]
        self.stride, self.dilation = spread(stride), spread(dilation)
        self.types, self.rest = types, rest

    def output(self):
        reach = [(f - 1) * d + 1 for f, d in zip(self.filters, self.dilation)]
        padded = [i + b + a for i, (b, a) in zip(self.image, self.pads)]
        return [(p - r) // s + 1 if p >= r else 0 for p, r, s in zip(padded, reach, self.stride)]

    def flops(self):
        total = 2.0 * self.n * self.k * (self.c // self.groups)
        for extent in self.output() + self.filters:
            total *= extent
        return total

    def legal(self):
        return min(self.output()) > 0 and self.c % self.groups == 0 and self.k % self.groups == 0

    def line(self):
        rank = len(self.image)
        words = [f"conv n={self.n}"]
        words += [f"{key}={value}" for key, value in zip("dhw"[3 - rank:], self.image)]
        words += [f"c={self.c} k={self.k}"]
        words += [f"{key}={value}" for key, value in zip("trs"[3 - rank:], self.filters)]

        def add(key, texts, usual):
            if all(text == usual for text in texts):
                return
            words.append(f"{key}=" + (texts[0] if len(set(texts)) == 1 else ",".join(texts)))

        add("pad", [str(b) if b == a else f"{b}:{a}" for b, a in self.pads], "0")
        add("stride", [str(s) for s in self.stride], "1")
        add("dilation", [str(d) for d in self.dilation], "1")
        if self.groups != 1:
            words.append(f"groups={self.groups}")
        words += [word for word in (self.types or "x=bf16 w=bf16 y=bf16", self.rest) if word]
        return " ".join(words)


def filter_widths():
    """Every filter width from 1 to 11, unpadded, centred and fully padded, under three strides, on ragged rows."""
    widths = [13, 17, 31, 40, 63, 65, 129]
    i = 0
    for s in range(1, 12):
        for pad in sorted({0, s // 2, s - 1}):
            for stride in (1, 2, 3):
                yield Conv([widths[i % len(widths)]], [s], 16, 24, pad=pad, stride=stride)
                i += 1
        yield Conv([6, 19], [s, s], 8, 8, pad=s // 2)
        yield Conv([9, 23], [min(s, 3), s], 8, 16, pad=[1, s // 2], stride=[1, 2])


def channels():
    """Channel counts that are not multiples of anything, from 1 up."""
    for c in (1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 33, 40, 64, 72, 96):
        yield Conv([7, 9], [3, 3], c, 16, pad=1)
        yield Conv([7, 9], [1, 1], c, 40)
    for k in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 64, 100, 127, 129, 200, 257):
        yield Conv([5, 9], [3, 3], 8, k, pad=1)
        yield Conv([3, 7], [2, 2], 24, k)


def stems():
    """Three channels (and one, two and four): filters of a first layer."""
    for c in (3, 1, 2, 4):
        for r, pad, stride in ((7, 3, 2), (3, 1, 1), (3, 1, 2), (5, 2, 2), (4, 0, 4), (11, 2, 4)):
            yield Conv([18, 21], [r, r], c, 16 if c == 3 else 9, pad=pad, stride=stride)


def rows():
    """Rows narrower and wider than a tile, and images whose rows end inside of one."""
    for w in (1, 2, 3, 5, 7, 8, 14, 15, 16, 28, 33, 56, 64, 100, 127, 128, 130):
        yield Conv([3, w], [3, 3], 8, 8, pad=1)
        yield Conv([4, w], [3, 3], 16, 8, n=2, pad=1, stride=[1, 1 + w % 2])
    for n, h, w in ((3, 7, 7), (5, 4, 3), (2, 14, 14), (9, 2, 2), (17, 1, 1), (4, 9, 5)):
        yield Conv([h, w], [3, 3], 8, 16, n=n, pad=1)
        yield Conv([h, w], [1, 1], 24, 16, n=n)


def dilations():
    for dilation in (2, 3, 4, 6):
        for s in (2, 3, 5):
            reach = (s - 1) * dilation
            yield Conv([9, 17], [s, s], 8, 8, pad=reach // 2, dilation=dilation)
            yield Conv([23], [s], 16, 8, pad=(reach, 0), dilation=dilation)
            yield Conv([12, 15], [3, s], 8, 8, pad=[1, reach // 2], dilation=[1, dilation], stride=[2, 1])
    yield Conv([10, 10], [3, 3], 8, 8, pad=[2, 4], dilation=[2, 4])
    yield Conv([10, 10], [3, 3], 3, 8, pad=[4, 2], dilation=[4, 2], stride=2)


def groups():
    for c, k, g in ((8, 8, 2), (16, 8, 2), (12, 6, 3), (32, 32, 4), (64, 64, 8), (8, 8, 8), (16, 32, 16), (6, 9, 3),
                    (48, 16, 2), (10, 5, 5), (64, 128, 4), (7, 7, 7), (128, 128, 2)):
        yield Conv([6, 7], [3, 3], c, k, pad=1, groups=g)
        yield Conv([5, 9], [1, 1], c, k, groups=g)
        yield Conv([17], [5], c, k, pad=2, stride=2, groups=g)


def asymmetric():
    for pads in ([(0, 1), (0, 1)], [(1, 0), (2, 0)], [(0, 2), (3, 1)], [(2, 1), (0, 0)], [(0, 0), (1, 3)]):
        for stride in (1, 2, [2, 1], [1, 3]):
            yield Conv([8, 11], [3, 3], 8, 8, pad=pads, stride=stride)
        yield Conv([8, 11], [2, 5], 12, 7, pad=pads)
    for r, s in ((1, 7), (7, 1), (3, 5), (5, 3), (1, 3), (3, 1), (2, 4), (1, 11), (11, 1)):
        yield Conv([12, 13], [r, s], 8, 8, pad=[r // 2, s // 2])
        yield Conv([12, 13], [r, s], 8, 8, stride=[1, 2])


def larger_than_the_image():
    for h, w, r, s in ((1, 1, 3, 3), (1, 1, 7, 7), (2, 3, 7, 7), (3, 1, 5, 5), (1, 4, 3, 9), (4, 2, 11, 3), (2, 2, 5, 11)):
        yield Conv([h, w], [r, s], 8, 8, pad=[r // 2, s // 2])
        yield Conv([h, w], [r, s], 3, 8, pad=[r - 1, s - 1])
    for pad in (3, 5, 9):
        yield Conv([2, 3], [1, 1], 8, 8, pad=pad)  # more border than image
        yield Conv([2, 3], [3, 3], 8, 8, pad=pad, stride=2)


def volumes():
    for d, h, w in ((3, 4, 5), (2, 7, 9), (5, 3, 3), (1, 5, 6)):
        for t, r, s in ((3, 3, 3), (1, 3, 3), (3, 1, 1), (2, 2, 2)):
            pad = [t // 2, r // 2, s // 2]
            yield Conv([d, h, w], [t, r, s], 8, 8, pad=pad)
            yield Conv([d, h, w], [t, r, s], 3, 8, pad=pad, stride=[1, 2, 2])
    yield Conv([6, 5, 5], [3, 3, 3], 8, 8, n=2, pad=2, dilation=2)
    yield Conv([4, 6, 6], [3, 3, 3], 8, 8, pad=[(2, 0), 1, (0, 1)], stride=[2, 1, 1])
    yield Conv([4, 4, 4], [2, 2, 2], 16, 16, stride=2, groups=4)


def epilogues():
    image, filters = [6, 9], [3, 3]
    for x in ("bf16", "f16"):
        for y in ("bf16", "f16", "f32"):
            types = f"x={x} w={x} y={y}"
            yield Conv(image, filters, 16, 24, pad=1, types=types)
            yield Conv(image, filters, 16, 24, pad=1, types=types, rest="bias=k")
            yield Conv(image, filters, 16, 24, pad=1, types=types, rest="beta=1")
            yield Conv(image, filters, 12, 7, pad=1, types=types, rest="alpha=0.5 beta=-2 bias=k")
    yield Conv(image, filters, 8, 8, pad=1, types="x=f16 w=f16 z=f32 y=f16", rest="beta=0.25")
    yield Conv(image, filters, 8, 8, pad=1, types="x=bf16 w=bf16 z=f16 y=f32", rest="beta=1 alpha=-1")
    yield Conv([13], [5], 3, 5, pad=2, types="x=f16 w=f16 y=f32", rest="alpha=2 bias=k")
    yield Conv([3, 4, 5], [3, 3, 3], 8, 8, pad=1, rest="beta=1 bias=k")
    # Outside of the image beta z and the bias are all of an element, and some nearly cancel.
    yield Conv([1, 12], [1, 1], 1, 196, pad=[1, 2], types="x=tf32 w=tf32 y=f32", rest="beta=0.1 bias=k")
    for steps in ("bias_k+relu", "scale_k:f32+bias_k:f32+silu", "residual+relu", "aux:f32+gelu", "dsilu+multiply",
                  "dtanh:f32+dclamp:-1:1", "sum_k+relu+amax_k+amax"):
        yield Conv(image, filters, 16, 24, pad=1, rest=f"epilogue={steps}")
        yield Conv(image, filters, 12, 6, pad=1, groups=3, types="x=f16 w=f16 y=f32", rest=f"epilogue={steps}")
    yield Conv([3, 4, 5], [3, 3, 3], 8, 8, pad=1, rest="y_pixel=16 epilogue=bias_k+residual+aux+tanh")
    # Pairs of filters.
    for steps in ("swiglu", "bias_k+geglu+scale_k:f32+residual", "amax_k+geglu_tanh+sum_k+amax_k+aux"):
        yield Conv(image, filters, 16, 64, pad=1, rest=f"epilogue={steps}")
        yield Conv(image, filters, 12, 12, pad=1, groups=3, types="x=f16 w=f16 y=f32", rest=f"epilogue={steps}")
    yield Conv(image, filters, 16, 134, pad=1, rest="beta=0.5 epilogue=swiglu")
    yield Conv(image, filters, 3, 24, pad=1, rest="epilogue=swiglu+bias_k")
    for steps in ("swiglu:halves", "bias_k+amax_k+geglu:halves+bias_k+residual"):
        yield Conv(image, filters, 16, 64, pad=1, rest=f"epilogue={steps}")
        yield Conv(image, filters, 64, 64, pad=1, groups=2, rest=f"epilogue={steps}")
        yield Conv(image, filters, 3, 36, pad=1, types="x=f16 w=f16 y=f32", rest=f"epilogue={steps}")
    yield Conv([13], [5], 32, 64, n=3, pad=2, types="x=e4m3 w=e4m3 y=e4m3", rest="epilogue=swiglu+amax")
    yield Conv([3, 4, 5], [3, 3, 3], 8, 16, pad=1, rest="y_pixel=16 epilogue=bias_k+geglu+residual")
    # Filters of one tap multiply matrices: D has half as many columns as there are filters.
    yield Conv([14, 14], [1, 1], 64, 128, rest="epilogue=swiglu")
    yield Conv([5, 7], [1, 1], 72, 48, n=2, rest="epilogue=bias_k+geglu:halves")
    yield Conv([1], [1], 1, 6, rest="epilogue=geglu")
    # Deterministic reductions.
    for steps in ("sum_k+relu+amax_k+sum_k", "bias_k+swiglu+sum_k"):
        rest = f"numerics=deterministic epilogue={steps}"
        yield Conv(image, filters, 16, 64, pad=1, rest=rest)
        yield Conv(image, filters, 12, 12, pad=1, groups=3, types="x=f16 w=f16 y=f32", rest=rest)
        yield Conv([3, 4, 5], [3, 3, 3], 8, 16, pad=1, rest=rest)


def pitches():
    image, filters = [5, 6], [3, 3]
    for words in ("x_pixel=24", "x_pixel=17", "x_row=120", "x_row=101", "x_image=600", "w_tap=24", "w_tap=19", "w_row=64",
                  "w_row=51", "w_filter=160", "w_filter=147", "y_pixel=16", "y_pixel=11", "y_row=80", "y_row=67",
                  "y_image=400", "y_pixel=9 z_pixel=13 beta=1", "z_row=56 z_image=301 beta=1",
                  "x_pixel=20 x_row=140 x_image=777 w_tap=17 w_row=55 w_filter=171 y_pixel=10 y_row=64 y_image=333",
                  "align_x=2", "align_w=2", "align_y=2", "align_x=8 align_w=4 align_y=4 align_z=2 beta=1"):
        yield Conv(image, filters, 16, 8, n=2, pad=1, rest=words)
    yield Conv([3, 4, 5], [2, 3, 3], 8, 8, n=2, pad=[0, 1, 1], rest="x_plane=200 x_image=640 w_plane=80 y_plane=170")
    yield Conv([19], [3], 8, 8, n=3, pad=1, rest="x_pixel=16 x_image=320 y_image=170 w_filter=32")
    yield Conv([6, 7], [3, 3], 16, 16, n=2, pad=1, groups=2, rest="x_pixel=24 w_tap=16 y_pixel=32")


def mixed(count):
    """Everything at once, by a generator with a fixed seed."""
    random = Random(4)
    made = 0
    while made < count:
        rank = random.of([1, 2, 2, 2, 3])
        image = [1 + random.below(6 if rank == 3 else 20) for _ in range(rank)]
        filters = [1 + random.below(3 if rank == 3 else 7) for _ in range(rank)]
        pad = [(random.below(f), random.below(f)) for f in filters]
        g = random.of([1, 1, 1, 2, 3, 4])
        conv = Conv(image, filters, g * random.of([1, 3, 4, 8, 11, 16, 32]), g * random.of([1, 2, 5, 8, 16, 33]),
                    n=1 + random.below(3), pad=pad, stride=[1 + random.below(3) for _ in range(rank)],
                    dilation=[random.of([1, 1, 2, 3]) for _ in range(rank)], groups=g,
                    types=random.of(["", "x=f16 w=f16 y=f16", "x=f16 w=f16 y=f32", "x=bf16 w=bf16 y=f32"]),
                    rest=random.of(["", "", "bias=k", "beta=1", "alpha=0.5 beta=-1 bias=k"]))
        if conv.legal() and conv.flops() <= SMALL_FLOPS:
            made += 1
            yield conv


FAMILIES = (
    ("Filter widths from 1 to 11", filter_widths()),
    ("Channels and filters in any number", channels()),
    ("First layers", stems()),
    ("Rows and images against the edges of tiles", rows()),
    ("Dilation", dilations()),
    ("Groups", groups()),
    ("Sides and dimensions that differ", asymmetric()),
    ("Filters larger than the image, borders larger than the filter", larger_than_the_image()),
    ("Three dimensions", volumes()),
    ("Types, alpha, beta and bias", epilogues()),
    ("Pitches and alignments", pitches()),
    ("All of it at once", mixed(110)),
)


def sweep():
    lines, seen = [
        "# Small convolutions over everything that the grammar can say. Written by scripts/conv_sweep.py.",
        "# A line is `problem [; schedule [; target]]`, as in gemm.txt.",
    ], set()
    for title, family in FAMILIES:
        lines += ["", f"# {title}."]
        for conv in family:
            line = conv.line()
            assert conv.legal(), line
            assert conv.flops() <= MOST_FLOPS, (conv.flops(), line)
            if line not in seen:
                seen.add(line)
                lines.append(line)
    return "\n".join(lines) + "\n"


# name, c, image, k, filter, pad, stride, dilation
LAYERS = {
    "resnet50": [
        ("conv1", 3, (224, 224), 64, (7, 7), 3, 2, 1),
        ("layer1.0.conv1", 64, (56, 56), 64, (1, 1), 0, 1, 1),
        ("layer1.0.conv2", 64, (56, 56), 64, (3, 3), 1, 1, 1),
        ("layer1.x.conv3", 64, (56, 56), 256, (1, 1), 0, 1, 1),
        ("layer1.x.conv1", 256, (56, 56), 64, (1, 1), 0, 1, 1),
        ("layer2.0.conv1", 256, (56, 56), 128, (1, 1), 0, 1, 1),
        ("layer2.0.conv2", 128, (56, 56), 128, (3, 3), 1, 2, 1),
        ("layer2.x.conv3", 128, (28, 28), 512, (1, 1), 0, 1, 1),
        ("layer2.0.downsample", 256, (56, 56), 512, (1, 1), 0, 2, 1),
        ("layer2.x.conv1", 512, (28, 28), 128, (1, 1), 0, 1, 1),
        ("layer2.x.conv2", 128, (28, 28), 128, (3, 3), 1, 1, 1),
        ("layer3.0.conv1", 512, (28, 28), 256, (1, 1), 0, 1, 1),
        ("layer3.0.conv2", 256, (28, 28), 256, (3, 3), 1, 2, 1),
        ("layer3.x.conv3", 256, (14, 14), 1024, (1, 1), 0, 1, 1),
        ("layer3.0.downsample", 512, (28, 28), 1024, (1, 1), 0, 2, 1),
        ("layer3.x.conv1", 1024, (14, 14), 256, (1, 1), 0, 1, 1),
        ("layer3.x.conv2", 256, (14, 14), 256, (3, 3), 1, 1, 1),
        ("layer4.0.conv1", 1024, (14, 14), 512, (1, 1), 0, 1, 1),
        ("layer4.0.conv2", 512, (14, 14), 512, (3, 3), 1, 2, 1),
        ("layer4.x.conv3", 512, (7, 7), 2048, (1, 1), 0, 1, 1),
        ("layer4.0.downsample", 1024, (14, 14), 2048, (1, 1), 0, 2, 1),
        ("layer4.x.conv1", 2048, (7, 7), 512, (1, 1), 0, 1, 1),
        ("layer4.x.conv2", 512, (7, 7), 512, (3, 3), 1, 1, 1),
    ],
    "vgg16": [
        ("conv1_1", 3, (224, 224), 64, (3, 3), 1, 1, 1),
        ("conv1_2", 64, (224, 224), 64, (3, 3), 1, 1, 1),
        ("conv2_1", 64, (112, 112), 128, (3, 3), 1, 1, 1),
        ("conv2_2", 128, (112, 112), 128, (3, 3), 1, 1, 1),
        ("conv3_1", 128, (56, 56), 256, (3, 3), 1, 1, 1),
        ("conv3_2", 256, (56, 56), 256, (3, 3), 1, 1, 1),
        ("conv4_1", 256, (28, 28), 512, (3, 3), 1, 1, 1),
        ("conv4_2", 512, (28, 28), 512, (3, 3), 1, 1, 1),
        ("conv5_x", 512, (14, 14), 512, (3, 3), 1, 1, 1),
    ],
    "sd_vae": [
        ("dec.conv_in", 4, (128, 128), 512, (3, 3), 1, 1, 1),
        ("dec.mid/up0.resnet", 512, (128, 128), 512, (3, 3), 1, 1, 1),
        ("dec.up0.upsample", 512, (256, 256), 512, (3, 3), 1, 1, 1),
        ("dec.up1.upsample", 512, (512, 512), 512, (3, 3), 1, 1, 1),
        ("dec.up2.resnet0.conv1", 512, (512, 512), 256, (3, 3), 1, 1, 1),
        ("dec.up2.resnet0.shortcut", 512, (512, 512), 256, (1, 1), 0, 1, 1),
        ("dec.up2.resnet", 256, (512, 512), 256, (3, 3), 1, 1, 1),
        ("dec.up2.upsample", 256, (1024, 1024), 256, (3, 3), 1, 1, 1),
        ("dec.up3.resnet0.conv1", 256, (1024, 1024), 128, (3, 3), 1, 1, 1),
        ("dec.up3.resnet0.shortcut", 256, (1024, 1024), 128, (1, 1), 0, 1, 1),
        ("dec.up3.resnet", 128, (1024, 1024), 128, (3, 3), 1, 1, 1),
        ("dec.conv_out", 128, (1024, 1024), 3, (3, 3), 1, 1, 1),
        ("enc.conv_in", 3, (1024, 1024), 128, (3, 3), 1, 1, 1),
        ("enc.down1.resnet0.conv1", 128, (512, 512), 256, (3, 3), 1, 1, 1),
        ("enc.down2.resnet0.conv1", 256, (256, 256), 512, (3, 3), 1, 1, 1),
        ("enc.conv_out", 512, (128, 128), 8, (3, 3), 1, 1, 1),
        ("enc.down0.downsample", 128, (1025, 1025), 128, (3, 3), 0, 2, 1),
        ("enc.down1.downsample", 256, (513, 513), 256, (3, 3), 0, 2, 1),
        ("enc.down2.downsample", 512, (257, 257), 512, (3, 3), 0, 2, 1),
    ],
    "unet": [
        ("down0.a", 3, (512, 512), 64, (3, 3), 1, 1, 1),
        ("down0.b", 64, (512, 512), 64, (3, 3), 1, 1, 1),
        ("down1.a", 64, (256, 256), 128, (3, 3), 1, 1, 1),
        ("down1.b", 128, (256, 256), 128, (3, 3), 1, 1, 1),
        ("down2.a", 128, (128, 128), 256, (3, 3), 1, 1, 1),
        ("down2.b", 256, (128, 128), 256, (3, 3), 1, 1, 1),
        ("down3.a", 256, (64, 64), 512, (3, 3), 1, 1, 1),
        ("down3.b", 512, (64, 64), 512, (3, 3), 1, 1, 1),
        ("down4.a", 512, (32, 32), 1024, (3, 3), 1, 1, 1),
        ("down4.b", 1024, (32, 32), 1024, (3, 3), 1, 1, 1),
        ("up3.a", 1024, (64, 64), 512, (3, 3), 1, 1, 1),
        ("up2.a", 512, (128, 128), 256, (3, 3), 1, 1, 1),
        ("up1.a", 256, (256, 256), 128, (3, 3), 1, 1, 1),
        ("up0.a", 128, (512, 512), 64, (3, 3), 1, 1, 1),
    ],
    "tileops": [
        ("resnet-3x3", 64, (56, 56), 64, (3, 3), 1, 1, 1),
        ("stem-3x3-s2", 3, (112, 112), 64, (3, 3), 1, 2, 1),
        ("stage-transition-3x3-s2", 128, (56, 56), 256, (3, 3), 1, 2, 1),
        ("highres-3x3-s1", 256, (112, 112), 512, (3, 3), 1, 1, 1),
        ("midres-5x5-s1", 64, (56, 56), 128, (5, 5), 2, 1, 1),
        ("stage-transition-5x5-s2", 128, (56, 56), 256, (5, 5), 2, 2, 1),
        ("stride2", 128, (28, 28), 128, (3, 3), 1, 2, 1),
        ("resnet-1x1", 64, (56, 56), 256, (1, 1), 0, 1, 1),
        ("bottleneck-expand-1x1", 128, (28, 28), 512, (1, 1), 0, 1, 1),
        ("bottleneck-reduce-1x1", 512, (28, 28), 128, (1, 1), 0, 1, 1),
        ("late-stage-1x1", 256, (14, 14), 1024, (1, 1), 0, 1, 1),
        ("classifier-1x1", 512, (7, 7), 2048, (1, 1), 0, 1, 1),
        ("deeplabv3-aspp-3x3-rate12", 2048, (32, 32), 256, (3, 3), 12, 1, 12),
        ("r3d-stem-k3-s1", 3, (16, 112, 112), 64, (3, 3, 3), 1, 1, 1),
        ("video-stage-downsample-k3-s2", 64, (8, 56, 56), 128, (3, 3, 3), 1, 2, 1),
        ("unet-encoder-k3-s1", 32, (32, 64, 64), 64, (3, 3, 3), 1, 1, 1),
        ("3d-unet-aspp-3x3x3-rate6", 256, (8, 16, 16), 256, (3, 3, 3), 6, 1, 6),
    ],
}

# Kept whole although they are above LAYER_FLOPS, so that every set has a full-size layer.
WHOLE = {"unet down0.a", "sd_vae dec.conv_in"}


def cut(conv):
    """Takes away planes, then rows, then columns of the image, and keeps a few of each in the output.

    Dilated filters keep their columns instead, so that the outer taps meet pixels at all.
    """
    for dimension in range(len(conv.image)):
        fewest = 1 if max(conv.dilation) > 1 else 2 if dimension < len(conv.image) - 2 else 3
        while conv.flops() > LAYER_FLOPS:
            conv.image[dimension] -= 1
            if conv.output()[dimension] < fewest:
                conv.image[dimension] += 1
                break
    return conv


def layers():
    lines = [
        "# Layers of networks at batch 1, cut down in space to what the emulator does in about 20 s (a name in brackets).",
        "# Written by scripts/conv_sweep.py.",
    ]
    for network, rows_of_network in LAYERS.items():
        names = {}  # by line: what is alike once it is cut down runs once
        for name, c, image, k, filters, pad, stride, dilation in rows_of_network:
            conv = Conv(image, filters, c, k, pad=pad, stride=stride, dilation=dilation)
            whole = conv.line()
            if f"{network} {name}" not in WHOLE:
                cut(conv)
            names.setdefault(conv.line(), []).append(name if conv.line() == whole else f"({name})")
        lines += ["", f"# {network}"]
        lines += [f"{line}  # {', '.join(of_line)}" for line, of_line in names.items()]
    return "\n".join(lines) + "\n"


def main():
    status = 0
    for name, text in (("conv.txt", sweep()), ("conv_layers.txt", layers())):
        path = SWEEP / name
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"tests/sweep/{name} is not what scripts/conv_sweep.py writes; run it", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
