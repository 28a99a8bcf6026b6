"""What a person did, as programs recorded it: pages visited, music played, videos watched, places, health."""
