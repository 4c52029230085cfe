"""Sessions, shops, players and sales in a database: SQLite, or PostgreSQL.

`models` are the tables, `database` opens one and tells its errors, `schema` brings it to this
version, `repository` has the transactions, and `episodes` makes conversations of what they read.
"""
