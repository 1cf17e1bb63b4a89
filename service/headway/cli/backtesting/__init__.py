"""Studies of recorded jobs on Spark: ``backtest``, ``tune``, ``topology``, ``seasons``."""
