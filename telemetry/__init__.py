"""What the server tells of itself: logs now, metrics beside them."""
