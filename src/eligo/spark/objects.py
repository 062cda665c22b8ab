"""Objects on their way to the matcher: rules see only whether a struct or a map is there, so no content goes along.

    s     {x: 1, y: "a"}  null  {x: 2, y: null}         a kept column, or one of a file
    bare  {}              null  {}                      what the matcher gets as the attribute `s`

The fields that rules name come as columns of their own, such as `s.x`; a struct with fields would bring them twice.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

BARE: Final = pa.struct([])


def bare(column: pa.Array) -> pa.Array:
    """Structs without fields in place of structs, maps, and lists of them; any other column as it is."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind) and not pa.types.is_map(kind):
        return column
    return pa.Array.from_buffers(BARE, len(column), column.buffers()[:1], offset=column.offset)
