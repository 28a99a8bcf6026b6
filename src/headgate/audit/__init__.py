"""The disclosure log: what left and for whom, written before an answer is sent, then sealed into a chain."""
