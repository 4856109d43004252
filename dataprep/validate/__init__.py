"""Checks everything a data set promises, and says what is wrong in the form that a person, a script or CI reads."""
