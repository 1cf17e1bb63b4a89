"""What ticks find."""

from control.ticks import database as database
