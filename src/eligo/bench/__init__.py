"""Measurements, by name: `eligo bench run NAME --json FILE`, then `eligo bench report FILE -o docs/performance.md`."""
