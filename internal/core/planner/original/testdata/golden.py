# What SciPy makes of profiles, for golden_test.go: python3 golden.py > golden.json
# (made with SciPy 1.10.1 and NumPy 1.24.2; the product needs neither).
import json
import re

import numpy as np
from scipy.interpolate import griddata, interp1d


def wobble(i):  # noise of a per cent that Go makes as well
    return 1 + (7919 * i % 101 - 50) / 5000


def swept(cache, context, granularity, ranks):  # as the original's profiler lays it out
    for prompt in range(100, context - 500, (context - 500) // granularity):
        most = min(2000, cache // (prompt + 500))
        step = max(ranks, (most - ranks) // granularity // ranks * ranks)
        for n in range(ranks, most + 1, step):
            yield (prompt + 250) * n / cache, prompt + 250, n / ranks


def regular(cache, context, granularity, ranks):  # each four places are on a circle
    for i in range(granularity):
        for j in range(granularity):
            usage, length = (j + 1) / granularity, 350 + i * (context // granularity)
            yield usage, length, usage * cache / length


def decode(places):
    rows = []
    for usage, length, n in places:
        token = (4.3 + 0.02 * n + 30 * usage) * wobble(len(rows))
        rows.append((usage, length, token, 500 * n / (0.002 * n + 0.5 * token)))
    return np.array(rows, dtype=float).T


def table(usage, context, values):
    grid = tuple(np.meshgrid(np.linspace(0, 1, 100), np.linspace(0, context.max(), 100)))
    smooth = griddata((usage, context), values, grid, method="cubic")
    near = griddata((usage, context), values, grid, method="nearest")
    return np.where(np.isnan(smooth), near, smooth)  # by context, then usage


def short(values):
    return [float("%.12g" % v) for v in np.ravel(values)]


def sample(t):
    at = [0, 33, 66, 99]
    return {"cells": short(t[np.ix_(at, at)]), "sums": short(t.reshape(10, 10, 100).sum(axis=(1, 2)))}


golden = {"profiles": []}
for name, layout, args in [
    ("8B on one GPU", swept, (945029, 16384, 6, 1)),
    ("attention on two ranks", swept, (448266, 40960, 8, 2)),
    ("four places nearly on a circle", swept, (668379, 65536, 6, 1)),
    ("many of those, and places too near to others", swept, (9772182, 131072, 16, 1)),
    ("a regular grid", regular, (945029, 16384, 7, 1)),
]:
    usage, context, token, throughput = decode(layout(*args))
    golden["profiles"].append({
        "name": name, "layout": layout.__name__, "arguments": args, "points": len(usage),
        "token": sample(table(usage, context, token)), "throughput": sample(table(usage, context, throughput)),
    })
prompts = np.arange(100, 16384 - 512, 985)
first = np.array([(15 + 0.02 * n + 5e-7 * n * n) * wobble(i) for i, n in enumerate(prompts)])
at = [100, 101, 777, 1500, 2999, 3000, 4444, 8080, 12345, 15000, 15859, 15860]
golden["prompts"] = {
    "at": at,
    "first_token": short(interp1d(prompts, first, kind="cubic")(at)),
    "throughput": short(interp1d(prompts, prompts / first * 1000, kind="cubic")(at)),
}
print(re.sub(r"\[[^][{}]*\]", lambda m: " ".join(m[0].split()), json.dumps(golden, indent=1)))
