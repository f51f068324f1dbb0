//! Programs: what runs, what can be launched.
