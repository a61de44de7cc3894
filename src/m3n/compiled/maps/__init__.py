"""Feature maps and losses, as compiled code sees them."""
