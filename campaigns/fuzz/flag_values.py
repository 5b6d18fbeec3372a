"""Values that people and scripts give to flags, few of which are right."""

from __future__ import annotations

Values = tuple[str, ...]

NUMBERS: Values = (
    *("-1", "0", "x", "", "1.5", "nan", "-inf", "1e3", "-99999999999999999999", "٣", "1_0", " 1"),
    *("--", "0x10", "None"),
)
HUGE: Values = (
    *("99999999999999999999", "18446744073709551616", "9223372036854775808", "4294967296", "1000000"),
    *("1e400",),
)
WORDS: Values = (
    *("", "x", "-", "--", "..", "\udcff", "a" * 300, "[red]", "é", "a\nb", "nan", "None", "1", "all"),
    *("cls+", "+"),
)
PATHS: Values = (
    *("", ".", "nowhere", "nowhere/deep", "\\0", "a" * 300, "/dev/null", "/dev/full", "/proc/self/mem"),
    *("~nobody", "run"),
)
