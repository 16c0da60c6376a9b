#!/usr/bin/env python3
"""A load of CUDA from Python: inference of models with random weights, or additions of long vectors.

It says what it has done as native/compute does, and writes the same log: the third and the fifth number of a line are
when a job was released and when it ended.
"""

import argparse
import json
import random
import signal
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("calibrate", "job", "flood"),
                        help="how long a job takes alone; jobs by a clock; one job after the other")
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--graph", action="store_true", help="as a CUDA graph (models of PyTorch)")
    parser.add_argument("--hz", type=float, default=10, help="jobs per second [default: %(default)s]")
    parser.add_argument("--jitter", type=float, default=0, metavar="PART",
                        help="periods are longer or shorter by up to this part [default: %(default)s]")
    parser.add_argument("--seconds", type=float, default=86400)
    parser.add_argument("--log")
    return parser.parse_args()


def torch_model(make_input, make_model):
    """A job of PyTorch, eager."""
    def load(as_graph):
        import torch
        torch.manual_seed(1)
        model, given = make_model(torch).cuda().eval().half(), make_input(torch).cuda().half()
        with torch.inference_mode():
            for _ in range(5):
                model(given)
            torch.cuda.synchronize()
            run = lambda: model(given)
            if as_graph:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    model(given)
                run = graph.replay

        def job():
            with torch.inference_mode():
                run()
                torch.cuda.synchronize()
        return job
    return load


def resnet(torch):
    """ResNet-152 after its paper; torchvision is not needed."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, stride, before):
            super().__init__()
            norm = nn.BatchNorm2d
            self.way = nn.Sequential(
                nn.Conv2d(before, inner, 1, bias=False), norm(inner), nn.ReLU(),
                nn.Conv2d(inner, inner, 3, stride, 1, bias=False), norm(inner), nn.ReLU(),
                nn.Conv2d(inner, outer, 1, bias=False), norm(outer))
            plain = before == outer and stride == 1
            self.beside = nn.Identity() if plain else nn.Sequential(
                nn.Conv2d(before, outer, 1, stride, bias=False), norm(outer))

        def forward(self, given):
            return torch.relu(self.way(given) + self.beside(given))

    layers, before = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for inner, count, stride in ((64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2)):
        for number in range(count):
            layers.append(Block(inner, 4 * inner, stride if number == 0 else 1, before))
            before = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def transformer(torch):
    """An encoder as small as BERT's base model with 6 layers."""
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)


def products(torch):
    """Products of matrices, which cuBLAS computes."""
    return torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, bias=False) for _ in range(8)))


def vectors(as_graph):
    """100 additions of vectors of 32 M elements, as XSched's first example makes them, with CuPy."""
    if as_graph:
        sys.exit("model: vectors are not added as a graph")
    import cupy
    a, b = cupy.ones(32 << 20, dtype=cupy.float32), cupy.ones(32 << 20, dtype=cupy.float32)
    c = cupy.empty_like(a)

    def job():
        for _ in range(100):
            cupy.add(a, b, out=c)
        cupy.cuda.get_current_stream().synchronize()
    return job


MODELS = {
    "resnet152": torch_model(lambda torch: torch.rand(1, 3, 224, 224), resnet),
    "transformer": torch_model(lambda torch: torch.rand(1, 128, 768), transformer),
    "products": torch_model(lambda torch: torch.rand(512, 4096), products),
    "vectors": vectors,
}

now_ns = time.monotonic_ns


def calibrate(job):
    """The median of jobs that follow each other for a second."""
    times, until = [], now_ns() + 1_000_000_000
    while now_ns() < until or len(times) < 10:
        began = now_ns()
        job()
        times.append(now_ns() - began)
    print(json.dumps({"mode": "calibrate", "ms": sorted(times)[len(times) // 2] / 1e6}))


def load(job, args):
    """Jobs until the time is over, or until SIGINT."""
    stopped, chance = [], random.Random(1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))
    log = open(args.log, "w", encoding="ascii") if args.log else None
    responses, period, began = [], 1e9 / args.hz, now_ns()
    due, until = began, began + args.seconds * 1e9
    while not stopped and now_ns() < until:
        release = round(due) if args.mode == "job" else now_ns()
        if args.mode == "job":
            time.sleep(max(0, release - now_ns()) / 1e9)
        start = now_ns()
        job()
        end = now_ns()
        responses.append(end - release)
        if log:
            log.write(f"{len(responses)},0,{release},{start},{end},0\n")
            log.flush()
        # Jobs that would have begun before this one was over are left out.
        due += period * (1 + args.jitter * chance.uniform(-1, 1))
        due = max(due, end) if args.mode == "job" else due
    seconds = (now_ns() - began) / 1e9
    ordered = sorted(responses) or [0]
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e6
    print(json.dumps({"mode": args.mode, "jobs": len(responses), "seconds": round(seconds, 3),
                      "per_s": round(len(responses) / seconds, 3), "p50_ms": at(0.5), "p99_ms": at(0.99),
                      "max_ms": at(1)}))


def main():
    args = arguments()
    try:
        job = MODELS[args.model](args.graph)
    except ImportError as error:
        sys.exit(f"model: {error}; it needs PyTorch, or CuPy for vectors")
    calibrate(job) if args.mode == "calibrate" else load(job, args)


if __name__ == "__main__":
    main()
