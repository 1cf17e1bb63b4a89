"""What workers report by themselves: the folder of their pipes, how they load the reporter, what they say."""
