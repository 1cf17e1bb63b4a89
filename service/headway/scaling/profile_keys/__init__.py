"""The parts of a profile: its rules, presets, schedules and pauses."""
