"""What Python calls of `decoding.py`, `attention.py`, `reading.py`, `gates.py`, `mixing.py` and
others, kept as machine code."""

from __future__ import annotations

from tmnmt.compiled.native import Native, begin


def prepare_decoding() -> None:
    """Has another process compile all of it, which is done once on a machine."""
    begin(function for function in globals().values() if isinstance(function, Native))


def _native(name: str, *arguments: str, module: str = "decoding") -> Native:
    return Native(f"compiled.{module}", name, "decoder", *arguments)


_SIZE, _NUMBER = "int64", "float64"  # an address or a size; a number
embed = _native("embed", _SIZE, _SIZE, _SIZE, _NUMBER, _SIZE, _SIZE, _SIZE)
norm_of_sum = _native("norm_of_sum", *(_SIZE,) * 4, _NUMBER, *(_SIZE,) * 3)
level_of_sum = _native("level_of_sum", _SIZE, _SIZE, _NUMBER, *(_SIZE,) * 3)
look_back = _native("look_back", *(_SIZE,) * 13)
update_cell = _native("update_cell", *(_SIZE,) * 5)
look_at_source = _native("look_at_source", *(_SIZE,) * 14)
log_softmax = _native("log_softmax", *(_SIZE,) * 3)
best_words = _native("best_words", *(_SIZE,) * 9)
read_positions = _native(
    "read_positions", *(_SIZE,) * 11, *(_NUMBER,) * 4, *(_SIZE,) * 4, module="reading"
)
copy_logits = _native(
    "copy_logits",
    *(_SIZE,) * 9,
    _NUMBER,
    _SIZE,
    _NUMBER,
    _NUMBER,
    _SIZE,
    module="gates",
)
cover = _native("cover", *(_SIZE,) * 6, module="gates")
blend_positions = _native("blend_positions", *(_SIZE,) * 8, module="reading")
recall_slots = _native("recall_slots", *(_SIZE,) * 7, _NUMBER, *(_SIZE,) * 3, module="gates")
product_int8 = _native("product_int8", *(_SIZE,) * 12, module="integers")
decoder_step = _native(
    "decoder_step", *(_SIZE,) * 5, *(_NUMBER,) * 3, *(_SIZE,) * 20, module="whole_step"
)
pack_panels = _native("pack_panels", *(_SIZE,) * 6, module="integers")
first_positions = _native("first_positions", *(_SIZE,) * 6, module="mixing")
narrow_shares = _native("narrow_shares", *(_SIZE,) * 4, _NUMBER, _NUMBER, _SIZE, module="mixing")
mix_words = _native("mix_words", *(_SIZE,) * 10, module="mixing")
encode_directions = _native("encode_directions", *(_SIZE,) * 7, module="nearest")
pack_nearest = _native("pack_nearest", *(_SIZE,) * 6, _NUMBER, *(_SIZE,) * 6, module="nearest")
read_nearest = _native("read_nearest", *(_SIZE,) * 19, module="nearest")
mix_nearest = _native("mix_nearest", *(_SIZE,) * 19, _NUMBER, _NUMBER, module="nearest")
attend = _native("attend", *(_SIZE,) * 15, module="attention")
run_cells = _native("run_cells", *(_SIZE,) * 5, module="decoding")
read_out = _native("read_out", *(_SIZE,) * 5, _NUMBER, *(_SIZE,) * 7, module="whole_step")
