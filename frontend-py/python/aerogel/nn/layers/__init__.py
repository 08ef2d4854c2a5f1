"""The modules that ``aerogel.nn`` offers, by topic."""
