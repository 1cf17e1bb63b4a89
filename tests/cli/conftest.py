"""What tests of the command line call."""

from support.served import served as served
