"""How bytes lie: what each stored form means, and how it is written and read. Pure, without a database."""
