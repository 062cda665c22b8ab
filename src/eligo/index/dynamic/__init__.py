"""What indexes that change while they are searched stand on: rows in 64-bit keys, events in the same, memory."""
