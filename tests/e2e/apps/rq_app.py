from ledger import work

__all__ = ["work"]
