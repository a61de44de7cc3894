"""Data that the package can make by itself."""

from m3n.datasets.digits import DigitStrings, digit_strings

__all__ = ["DigitStrings", "digit_strings"]
