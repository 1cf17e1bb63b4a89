"""Worker classes of queue libraries, loaded by those libraries' own worker processes and by nothing of Headway's."""
