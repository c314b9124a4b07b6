"""What was lent when and on whose line, as a page of its own: no script, no network."""

from __future__ import annotations

from collections import defaultdict
from html import escape

from funct.device.memory.allocator import Event, SegmentInfo
from funct.device.memory.report import readable

__all__ = ["page"]

_WIDTH, _HEIGHT = 1000, 320
_STEPS = 500  # points of time
_LINES = 9  # with a colour of their own
_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2",
    "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac",
)  # fmt: skip
_STATES = {"active": "#4e79a7", "cached": "#f5c577", "inactive": "#e6e6e6"}
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; max-width: 1100px; color: #222 }
svg { width: 100%; height: auto; background: #fafafa; border: 1px solid #ddd }
i { display: inline-block; width: 1em; height: 1em; margin-right: .5em; vertical-align: -2px }
td { padding: 0 1.5em 0 0; white-space: nowrap } td.n { text-align: right }
pre { background: #fafafa; border: 1px solid #ddd; padding: 1em; overflow: auto }
"""


def page(events: list[Event], segments: list[SegmentInfo], summary: str) -> str:
    """HTML: bytes over time by line, every segment with its blocks, the table of statistics."""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>memory</title>"
        f"<style>{_STYLE}</style><h1>Memory</h1>"
        f"<h2>Over time, by line</h2>{_areas(events)}"
        f"<h2>Now, by address</h2>{_map(segments)}"
        f"<h2>In all</h2><pre>{escape(summary)}</pre></html>"
    )


def _areas(events: list[Event]) -> str:
    """Stacked areas: the bytes that each line's arrays have, over the time of the recording."""
    if not events:
        return "<p>Nothing was recorded; see <code>funct.device.record_memory</code>.</p>"
    curves, peak_of = _curves(events)
    order = sorted(peak_of, key=lambda site: -peak_of[site])
    shown = [*order[:_LINES], *(["other lines"] if len(order) > _LINES else [])]
    layers = {site: curves[site] for site in order[:_LINES]}
    if len(order) > _LINES:
        rest = [curves[site] for site in order[_LINES:]]
        layers["other lines"] = [sum(values) for values in zip(*rest)]
    total = [sum(values) for values in zip(*layers.values())]
    most = max(*total, 1)
    base = [0] * len(total)
    shapes, rows = [], []
    for site, colour in zip(shown, _COLOURS):
        top = [b + v for b, v in zip(base, layers[site])]
        points = [*_points(top, most), *reversed(_points(base, most))]
        shapes.append(
            f'<polygon fill="{colour}" points="{" ".join(points)}">'
            f"<title>{escape(site)}</title></polygon>"
        )
        rows.append(
            f'<tr><td><i style="background:{colour}"></i>{escape(site)}</td>'
            f"<td class=n>{readable(max(layers[site]))} at most</td></tr>"
        )
        base = top
    seconds = (events[-1].time - events[0].time) / 1e9
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(shapes)}'
        f"<text x=6 y=16 font-size=12>{readable(most)}</text>"
        f"<text x={_WIDTH - 6} y={_HEIGHT - 6} text-anchor=end font-size=12>{seconds:.3f} s</text>"
        f"</svg><table>{''.join(rows)}</table>"
    )


def _curves(events: list[Event]) -> tuple[dict[str, list[int]], dict[str, int]]:
    """For each line its bytes at equal steps of time (the most within each), and its peak."""
    start, span = events[0].time, max(events[-1].time - events[0].time, 1)
    now: defaultdict[str, int] = defaultdict(int)
    curves: defaultdict[str, list[int]] = defaultdict(lambda: [0] * _STEPS)
    reached: defaultdict[str, int] = defaultdict(int)
    peak_of: defaultdict[str, int] = defaultdict(int)
    for event in events:
        site = event.site or "unknown line"
        step = min((event.time - start) * _STEPS // span, _STEPS - 1)
        curve = curves[site]
        for k in range(reached[site] + 1, step + 1):
            curve[k] = now[site]
        reached[site] = step
        now[site] += event.bytes
        curve[step] = max(curve[step], now[site])
        peak_of[site] = max(peak_of[site], now[site])
    for site, curve in curves.items():
        for k in range(reached[site] + 1, _STEPS):
            curve[k] = now[site]
    return curves, peak_of


def _points(values: list[int], most: int) -> list[str]:
    wide = _WIDTH / max(len(values) - 1, 1)
    return [
        f"{k * wide:.1f},{_HEIGHT - v / most * (_HEIGHT - 20):.1f}" for k, v in enumerate(values)
    ]


def _map(segments: list[SegmentInfo]) -> str:
    """One bar for each segment, its blocks in order."""
    bars = []
    for segment in sorted(segments, key=lambda s: -s.size)[:100]:
        x, blocks = 0.0, []
        for b in segment.blocks:
            wide = b.size / segment.size * _WIDTH
            what = f"{b.state} {readable(b.size)} {b.site}"
            blocks.append(
                f'<rect x="{x:.2f}" width="{wide:.2f}" height="20" fill="{_STATES[b.state]}" '
                f'stroke="#fff"><title>{escape(what)}</title></rect>'
            )
            x += wide
        bars.append(
            f"<div>{segment.pool.replace('_', ' ')}, {readable(segment.size)} at "
            f"{segment.address:#x}<svg viewBox='0 0 {_WIDTH} 20'>{''.join(blocks)}</svg></div>"
        )
    key = "".join([f'<i style="background:{c}"></i>{s} &emsp;' for s, c in _STATES.items()])
    return f"<p>{key}</p>{''.join(bars)}"
