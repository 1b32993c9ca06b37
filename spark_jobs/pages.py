"""Pages of HTML that need nothing beside them: no script, no network, their pictures within."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light; --ink: #26323f; --pale: #6b7885; --line: #e1e6eb; --paper: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 40px 0 12px; }
h3 { font-size: 15px; margin: 24px 0 8px; }
p.about { color: var(--pale); margin: 4px 0 24px; }
.card { background: white; border: 1px solid var(--line); border-radius: 10px; padding: 16px 20px; margin: 12px 0;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { color: var(--pale); font-weight: 500; text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: bottom; }
td { text-align: right; padding: 5px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr:last-child td { border-bottom: 0; }
tfoot td { font-weight: 600; border-top: 1px solid #b9c2cb; border-bottom: 0; }
th.text, td.text { text-align: left; }
img { display: block; width: 100%; height: auto; }
@media print { body { background: white; } .card { break-inside: avoid; } }
"""


def document(title: str, body: str, style: str = "") -> str:
    """A whole page; `body` is HTML, and `style` is what CSS it needs besides the common one."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    head += f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}{style}</style>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body><main>\n{body}\n</main></body>\n</html>\n'


def table(
    name: str,
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    total: Sequence[object] = (),
    *,
    text_columns: int = 0,
) -> str:
    """Numbers to the right, with commas between thousands; the first columns may be texts."""

    def line(tag: str, cells: Sequence[object]) -> str:
        told = (
            f"<{tag}{' class=text' if column < text_columns else ''}>{_cell(cell)}</{tag}>"
            for column, cell in enumerate(cells)
        )
        return f"<tr>{''.join(told)}</tr>"

    body = "".join(line("td", row) for row in rows)
    foot = f"<tfoot>{line('td', total)}</tfoot>" if total else ""
    return f'<table class="{name}"><thead>{line("th", titles)}</thead><tbody>{body}</tbody>{foot}</table>'


def image(picture: bytes, text: str) -> str:
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))
