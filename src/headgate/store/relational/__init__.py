"""Records in tables: the reads, writes and checks that both engines share.

An engine brings a connection (`database.Database`), its statements and migrations; everything else is here, so that
both engines give the same answers by the same code.
"""
