"""What a gated query looks like, token by token."""

from __future__ import annotations

import io
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table

__all__ = ["Explanation", "TokenExplanation"]


@dataclass(frozen=True)
class TokenExplanation:
    """One query token.

    Attributes
    ----------
    token
        Text of the token.
    probability
        P(numerical) of the detector, None for a model without a gate.
    gate
        Factor the embedding was multiplied with: 1.0 where the detector found no number.
    document_token
        The document token MaxSim chose, None without a document.
    score
        Contribution to the score, ``max_j q_i · d_j``; None without a document.
    share
        Contribution divided by the score of the document; None without a document.
    """

    token: str
    probability: float | None
    gate: float
    document_token: str | None = None
    score: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Explanation:
    """A query, token by token, and against a document if one was given; prints as a table.

    The tokens that fill a query up to its length ("[MASK]") share the table's last row unless the gate is open at one.

    Attributes
    ----------
    query
        Text of the query.
    tokens
        Its tokens in order.
    document
        Text of the document or None.
    score
        MaxSim of query and document, None without a document.

    Examples
    --------
    >>> print(Explanation("5 kg", [TokenExplanation("5", 0.98, 3.2), TokenExplanation("kg", 0.4, 1.0)]))
    query: 5 kg
     token  P(numerical)  gate
     5              0.98  3.20
     kg             0.40  1.00
    """

    query: str
    tokens: list[TokenExplanation]
    document: str | None = None
    score: float | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield f"query: {self.query}"
        table = Table(box=None, pad_edge=True, header_style="bold")
        table.add_column("token")
        table.add_column("P(numerical)", justify="right")
        table.add_column("gate", justify="right")
        if self.document is not None:
            yield f"document: {self.document}"
            table.add_column("document token")
            table.add_column("score", justify="right")
            table.add_column("share", justify="right")
        for tokens in self._rows():
            first = tokens[0]
            cells = [
                first.token if len(tokens) == 1 else f"{first.token} ×{len(tokens)}",
                "" if first.probability is None else f"{max(token.probability or 0.0 for token in tokens):.2f}",
                f"{first.gate:.2f}",
            ]
            if self.document is not None:
                chosen = {token.document_token for token in tokens}
                cells += [
                    (first.document_token or "") if len(chosen) == 1 else f"({len(chosen)} tokens)",
                    f"{sum(token.score or 0.0 for token in tokens):.3f}",
                    f"{sum(token.share or 0.0 for token in tokens):.1%}",
                ]
            table.add_row(*cells, style="bold cyan" if first.gate != 1.0 else None)
        yield table
        if self.score is not None:
            yield f"score: {self.score:.3f}"

    def _rows(self) -> list[list[TokenExplanation]]:
        """Tokens a row: one each, but for those that fill up the query."""
        rows = [[token] for token in self.tokens]
        kind = [(token.token, token.gate) for token in self.tokens]
        start = len(kind)
        while start > 0 and kind[start - 1] == (kind[-1][0], 1.0):
            start -= 1
        return rows if len(kind) - start < 3 else [*rows[:start], self.tokens[start:]]

    def __str__(self) -> str:
        # Plain text, unwrapped, and without the terminal's colours: for logs, notebooks and model cards.
        console = Console(file=io.StringIO(), width=200, color_system=None, highlight=False, markup=False)
        console.print(self)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]
