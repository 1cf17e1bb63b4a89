from job_log import work

__all__ = ["work"]
