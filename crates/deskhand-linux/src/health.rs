//! What works here, what is missing, and the command that mends it.
