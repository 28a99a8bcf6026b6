"""Decide: grant and request make a plan, or a typed refusal. Pure, and the only place that decides."""
