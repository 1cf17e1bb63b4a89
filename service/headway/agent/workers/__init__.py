"""Worker processes: started, recorded, recovered after a crash, drained and ended."""
