"""How values become text in a terminal: screens, tables, labels, units."""
