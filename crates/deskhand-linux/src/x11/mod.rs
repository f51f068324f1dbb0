//! X11: windows, pixels, pointer, keyboard, and the guard that puts right what an operation left behind.
