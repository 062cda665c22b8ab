"""What indexes stand on: rows in 64-bit keys, events in the same, verification, and memory for what changes."""
