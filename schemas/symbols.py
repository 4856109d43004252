"""`SymbolTable`: the fixed, versioned inventory that maps phonemes, tones and pauses to ids."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from pydantic import Field

from schemas.base import Record
from schemas.errors import IdentityError, TextError


class SymbolTable(Record):
    """Symbols by id; id 0 is always the padding symbol."""

    version: int = Field(description="version of the inventory; a new one may only append")
    symbols: tuple[str, ...] = Field(description="symbol of each id; the place in the list is the id")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id of each symbol."""
        return {symbol: number for number, symbol in enumerate(self.symbols)}

    @property
    def blank_id(self) -> int:
        """Id of the blank that models may put between symbols, `|`; 0 in a table that has none."""
        return self.ids.get("|", 0)

    def encode(self, symbols: Iterable[str]) -> list[int]:
        """Ids of `symbols`.

        Raises:
            TextError: a symbol is not in the table; the message lists what is.
        """
        try:
            return [self.ids[symbol] for symbol in symbols]
        except KeyError as error:
            raise TextError(
                f"symbol {error.args[0]!r} is not among the {len(self.symbols)} of table version {self.version}",
                hint="the symbols are: " + " ".join(self.symbols),
            ) from error

    def require_same(self, other: SymbolTable, mine: str, theirs: str) -> None:
        """Refuses another table by name. Raises IdentityError."""
        if self.digest() != other.digest():
            raise IdentityError(
                f"{mine} has symbol table {self.digest()[:12]} (version {self.version}, {len(self.symbols)} symbols), "
                f"{theirs} has {other.digest()[:12]} (version {other.version}, {len(other.symbols)} symbols)",
                hint="prepare the data again with this version, or use the version of voxloom that made it",
            )
