"""What a key may do; each role may what those before it may, too."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["read", "translate", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
