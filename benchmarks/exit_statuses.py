"""How a benchmark ends that ran to its end, and has more to say than 0. A failure is 1, a wrong call 2."""

GOAL_MISSED = 3  # a figure is worse than its goal, which a busy machine is reason enough for
NOT_HERE = (
    77  # this machine lacks what the benchmark needs, as its last line says; other test harnesses know the number
)
