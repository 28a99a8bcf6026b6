"""Kinds of questions: periods, senders and orders that people name in words, in the languages of the stop words. Pure."""
