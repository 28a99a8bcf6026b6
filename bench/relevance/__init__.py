"""How well search finds: questions with known answers over texts that others wrote."""
