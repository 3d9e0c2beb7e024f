"""What outlives the process and is shared by several: sessions, jobs and glossaries. `base.py` says
what any storage promises; one is a file of SQLite, one a Redis."""
