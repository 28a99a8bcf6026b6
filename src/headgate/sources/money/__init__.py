"""Bank statements: OFX and QFX, CAMT.053 and the CSV files of banks, as accounts and transactions."""
