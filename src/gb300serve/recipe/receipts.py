"""The text of a receipt: a piece of a log line in which `{value}` stands for the figure."""

from typing import Any

VALUE = "{value}"


def check_template(text: Any) -> Any:
    """Raises ValueError where `{value}` stands more than once: one receipt, one figure."""
    if isinstance(text, str) and text.count(VALUE) > 1:
        raise ValueError(f"`{VALUE}` may stand once: write a receipt for each figure")
    return text
