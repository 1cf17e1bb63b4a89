"""What Spark computes, merged and kept: buckets, rollups, windows, seasons."""
