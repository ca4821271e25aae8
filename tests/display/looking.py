"""How tests look at a figure: the texts that were really drawn, where they stand, and what they cover."""

from itertools import combinations
from unittest.mock import patch

from matplotlib.axes import Axes
from matplotlib.text import Text


def whole(drawn):
    """The figure of what a drawing function returned."""
    return drawn.figure if isinstance(drawn, Axes) else drawn


def texts(figure):
    """Draw a figure as for print; give each text that was really drawn, with its box in pixels."""
    figure.set_dpi(300)
    seen, draw = [], Text.draw

    def noted(self, renderer):
        seen.append(self)
        draw(self, renderer)

    with patch.object(Text, "draw", noted):
        figure.draw_without_rendering()
    return [(text, Text.get_window_extent(text)) for text in seen if text.get_visible() and text.get_text().strip()]


def misplaced(figure):
    """Texts outside the page, and pairs of texts that cover each other."""
    page, boxes = figure.bbox, figure.boxes
    outside = [
        text.get_text() for text, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > page.x1 or box.y1 > page.y1
    ]
    covered = [(a.get_text(), b.get_text()) for (a, x), (b, y) in combinations(boxes, 2) if x.overlaps(y)]
    return outside, covered
